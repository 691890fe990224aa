################################################################################
#
# worstcase
#
################################################################################

WORSTCASE_VERSION = 0.1.0
WORSTCASE_SOURCE = worstcase-$(WORSTCASE_VERSION).tar.gz
# The archive that `cargo xtask dist --packages` makes: its crates are in VENDOR.
WORSTCASE_SITE = $(BR2_EXTERNAL_WORSTCASE_PATH)/../../dist
WORSTCASE_SITE_METHOD = file
WORSTCASE_LICENSE = MIT or Apache-2.0
WORSTCASE_LICENSE_FILES = LICENSE-MIT LICENSE-APACHE THIRD-PARTY.md

WORSTCASE_CARGO_BUILD_OPTS = --package worstcase
ifeq ($(BR2_PACKAGE_WORSTCASE_AGENT_ONLY),y)
WORSTCASE_CARGO_BUILD_OPTS += --bin worstcase-agent
WORSTCASE_PROGRAMS = worstcase-agent
else
WORSTCASE_PROGRAMS = worstcase worstcase-agent
endif

# The workspace has no package at its root, which `cargo install` would want.
define WORSTCASE_INSTALL_TARGET_CMDS
	$(foreach program,$(WORSTCASE_PROGRAMS),\
		$(INSTALL) -D -m 0755 $(@D)/target/$(RUSTC_TARGET_NAME)/release/$(program) \
			$(TARGET_DIR)/usr/bin/$(program)
	)
endef

$(eval $(cargo-package))
