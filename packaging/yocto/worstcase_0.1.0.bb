SUMMARY = "Finds, explains and cuts the worst-case latency of a Linux system"
LICENSE = "MIT | Apache-2.0"
LIC_FILES_CHKSUM = "file://LICENSE-MIT;md5=f412913aa777a2eae751f9eb96c03e05"

# The archive that `cargo xtask dist --packages` makes: its crates are in VENDOR, and .cargo/config.toml names them.
SRC_URI = "file://worstcase-${PV}.tar.gz"
S = "${WORKDIR}/worstcase-${PV}"

inherit cargo

CARGO_BUILD_FLAGS += "--package worstcase"
# The crates come from the archive, not from what bitbake fetches.
CARGO_DISABLE_BITBAKE_VENDORING = "1"

do_install() {
    install -D -m 0755 ${B}/target/${CARGO_TARGET_SUBDIR}/worstcase ${D}${bindir}/worstcase
    install -D -m 0755 ${B}/target/${CARGO_TARGET_SUBDIR}/worstcase-agent ${D}${bindir}/worstcase-agent
}

PACKAGES =+ "${PN}-agent"
FILES:${PN}-agent = "${bindir}/worstcase-agent"
