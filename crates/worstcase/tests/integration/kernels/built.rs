//! Building, with a source of the test's own: its Makefile answers as kbuild does, and compiles by copying.

use std::fs;
use std::path::PathBuf;

use super::house::{Answer, House, await_file, bzimage};

/// `olddefconfig` knows three symbols, as a kernel that the others were dropped from. The image names what is in it.
const MAKEFILE: &str = r#"
tinyconfig:
	@printf 'CONFIG_X86=y\nCONFIG_HZ=100\n# CONFIG_SMP is not set\n' > $(O)/.config
olddefconfig:
	@grep -E 'CONFIG_(X86|HZ|SMP)[= ]' $(O)/.config > $(O)/known; mv $(O)/known $(O)/.config
bzImage:
	@echo "  CC      init/main.o"
	@echo compiled >> $(HOUSE)/compiled
	@touch $(HOUSE)/begun; while [ -e $(HOUSE)/slow ]; do sleep 0.05; done
	@if [ -e $(HOUSE)/fails ]; then cat $(HOUSE)/fails; exit 1; fi
	@cat $(HOUSE)/image $(O)/.config > $(O)/bzImage
	@env | grep -E '^(KBUILD|KCFLAGS|CFLAGS)' | sort >> $(O)/bzImage
image_name:
	@echo bzImage
kernelrelease:
	@echo 6.12.1$(LOCALVERSION)
"#;

struct Site {
    house: House,
}

impl Site {
    fn new() -> Option<Self> {
        if !["/usr/bin/make", "/bin/make"].iter().any(|make| PathBuf::from(make).exists()) {
            println!("skipped: needs package make");
            return None;
        }
        let house = House::new();
        for name in ["gcc", "ld", "flex", "bison", "bc"] {
            house.tool(name, "exit 1");
        }
        house.file("image", bzimage("6.12.1-mine", true));
        // What the program clears from make's environment the source finds by its own path.
        let makefile = format!("HOUSE = {}\n{MAKEFILE}", house.path("").display());
        house.file("linux/Makefile", makefile);
        house.file("linux/Kbuild", "");
        house.file("linux/scripts/kconfig/conf.c", "");
        house.file("hz.cfg", "CONFIG_HZ=1000\n# CONFIG_HIGHMEM is not set\n");
        house.file("smp.cfg", "# a reason\nCONFIG_SMP=y\n");
        Some(Self { house })
    }

    fn build(&self, fragments: &[&str], more: &[&str]) -> Answer {
        let tree = self.house.path("linux").display().to_string();
        self.build_of(&tree, fragments, more)
    }

    fn build_of(&self, source: &str, fragments: &[&str], more: &[&str]) -> Answer {
        let paths: Vec<String> =
            fragments.iter().map(|name| self.house.path(name).display().to_string()).collect();
        let paths = paths.iter().map(String::as_str);
        let arguments: Vec<&str> =
            ["build", "mine", "--source", source, "--fragment"].into_iter().chain(paths).collect();
        self.house.run(&[&arguments, more].concat())
    }

    fn config(&self) -> String {
        fs::read_to_string(self.house.path("cache/mine/config")).unwrap()
    }
}

#[test]
fn fragments_are_merged_built_and_verified() {
    let Some(site) = Site::new() else { return };
    let built = site.build(&["hz.cfg", "smp.cfg"], &[]);
    built.is_done();
    assert!(built.out.starts_with("mine: 6.12.1-mine ("), "{built:?}");
    assert!(built.out.ends_with("linux, tinyconfig + hz.cfg + smp.cfg)\n"), "{built:?}");
    assert_eq!(site.config(), "CONFIG_X86=y\nCONFIG_HZ=1000\nCONFIG_SMP=y\n");
    let log = fs::read_to_string(site.house.path("cache/mine/build.log")).unwrap();
    assert!(log.contains("  CC      init/main.o\n"), "{log}");
    assert!(!site.house.path("cache/.builds/mine").exists() && site.house.left().is_empty());
}

#[test]
fn a_symbol_that_did_not_arrive_stops_the_build() {
    let Some(site) = Site::new() else { return };
    site.house.file("old.cfg", "CONFIG_RCU_BOOST_PRIO=1\nCONFIG_SMP=y\n");
    let refused = site.build(&["old.cfg", "hz.cfg"], &[]);
    refused.is_error(
        "1 of 4 symbols that the fragments ask for did not arrive in the configuration of mine; nothing is built\n  \
         CONFIG_RCU_BOOST_PRIO: asked for 1, is not in the configuration",
        "--allow-dropped",
    );
    assert_eq!((site.house.count("compiled", "compiled"), site.house.listed().len()), (0, 0));
    let allowed = site.build(&["old.cfg", "hz.cfg"], &["--allow-dropped"]);
    allowed.is_done();
    assert!(allowed.said.contains("warning: CONFIG_RCU_BOOST_PRIO: asked for 1"), "{allowed:?}");
}

#[test]
fn fragments_that_are_none_are_refused() {
    let Some(site) = Site::new() else { return };
    site.house.file("s0.cfg", "# CONFIG_HIGHMEM is not set, but you can set CONFIG_HIGHMEM=y\n");
    site.house.file("binary.cfg", [0xff, 0xfe, 0, 1]);
    site.build(&["s0.cfg"], &[]).is_error("s0.cfg line 1 is a comment", "a fragment has lines like");
    site.build(&["binary.cfg"], &[]).is_error("binary.cfg line 1 ", "");
    site.build(&["none.cfg"], &[]).is_error("No such file or directory", "");
    site.build_of("/nowhere", &["hz.cfg"], &[]).is_error("find the source /nowhere: No such file", "");
    let empty = site.house.path("tools").display().to_string();
    site.build_of(&empty, &["hz.cfg"], &[]).is_error("no tree of the kernel's source", "scripts/kconfig");
}

#[test]
fn a_failed_build_shows_its_last_words() {
    let Some(site) = Site::new() else { return };
    site.house.file("fails", "tools/objtool/elf.h:10: fatal error: gelf.h: No such file or directory\n");
    let failed = site.build(&["hz.cfg"], &[]);
    failed.is_error("gelf.h: No such file or directory", "apt-get install build-essential flex bison");
    site.house.file("fails", "write: No space left on device\n");
    site.build(&["hz.cfg"], &[]).is_error("building mine failed", "make room");
    assert!(site.house.listed().is_empty() && site.house.left().is_empty());
}

#[test]
fn missing_tools_are_named_with_their_packages() {
    let Some(mut site) = Site::new() else { return };
    site.house.only_tools = true;
    fs::remove_file(site.house.path("tools/flex")).unwrap();
    site.build(&["hz.cfg"], &[])
        .is_error("needs make, flex, not on this machine", "apt-get install build-essential");
}

/// Also under another environment, and from another directory.
#[test]
fn equal_inputs_give_equal_images() {
    let Some(site) = Site::new() else { return };
    let image = || fs::read(site.house.path("cache/mine/image")).unwrap();
    site.build(&["hz.cfg"], &[]).is_done();
    let first = image();
    let tree = site.house.path("linux").display().to_string();
    let fragment = site.house.path("hz.cfg").display().to_string();
    let mut again = site.house.command(&["build", "mine", "--source", &tree, "--fragment", &fragment]);
    again.env("KCFLAGS", "-O0").env("KBUILD_BUILD_USER", "somebody").env("MAKEFLAGS", "-n").current_dir("/");
    assert!(again.output().unwrap().status.success());
    assert_eq!(site.house.count("compiled", "compiled"), 2, "a tree of one's own may have changed");
    assert_eq!(image(), first);
    let identity = String::from_utf8_lossy(&first).into_owned();
    assert!(identity.contains("KBUILD_BUILD_USER=worstcase") && !identity.contains("KCFLAGS"), "{identity}");
}

/// Debian's package of the source, from an archive of the test's own.
fn with_package(site: &Site) {
    site.house.tool(
        "apt-cache",
        "for name; do :; done\n[ \"$name\" = linux-source-6.12 ] || exit 100\n\
         printf 'Package: linux-source-6.12\\nVersion: 6.12.1-1\\n'",
    );
    site.house.tool(
        "apt-get",
        "echo \"$*\" >> \"$HOUSE/calls\"\n\
         case \"$*\" in *download*) touch linux-source-6.12_6.12.1-1_all.deb;; esac",
    );
    site.house.tool(
        "dpkg-deb",
        "mkdir -p \"$3/usr/src\" && cd \"$HOUSE\" && rm -rf linux-source-6.12 && cp -r linux linux-source-6.12 &&\n\
         tar -cf \"$3/usr/src/linux-source-6.12.tar.xz\" linux-source-6.12",
    );
}

#[test]
fn debians_source_is_fetched_once_and_what_was_built_of_it_is_kept() {
    let Some(site) = Site::new() else { return };
    with_package(&site);
    let built = site.build_of("debian-6.12", &["hz.cfg", "smp.cfg"], &[]);
    built.is_done();
    assert!(
        built.out.contains("(Debian package linux-source-6.12 6.12.1-1, tinyconfig + hz.cfg + smp.cfg)"),
        "{built:?}"
    );
    // A reason that is worded anew changes nothing; another value does.
    site.house.file("smp.cfg", "# a better reason\nCONFIG_SMP=y\n");
    site.build_of("debian-6.12", &["hz.cfg", "smp.cfg"], &[]).is_done();
    assert_eq!((site.house.count("compiled", "compiled"), site.house.count("calls", "download")), (1, 1));
    site.house.file("hz.cfg", "CONFIG_HZ=250\n");
    site.build_of("debian-6.12", &["hz.cfg", "smp.cfg"], &[]).is_done();
    assert_eq!(site.house.count("compiled", "compiled"), 2);
    assert!(site.config().contains("CONFIG_HZ=250\n") && site.house.listed().len() == 1);
}

/// make outlives the program that started it; the next build waits for its end, and goes on from what is there.
#[test]
fn a_build_that_was_killed_goes_on() {
    let Some(site) = Site::new() else { return };
    with_package(&site);
    site.house.file("slow", "");
    let fragment = site.house.path("hz.cfg").display().to_string();
    let arguments = ["build", "mine", "--source", "debian-6.12", "--fragment", &fragment];
    let mut first = site.house.start(&arguments);
    await_file(&site.house.path("begun"));
    first.kill().unwrap();
    first.wait().unwrap();
    let kept = site.house.file("cache/.builds/mine/object.o", "compiled before");
    let second = site.house.start(&arguments);
    std::thread::sleep(std::time::Duration::from_millis(300));
    fs::remove_file(site.house.path("slow")).unwrap();
    assert!(kept.exists(), "the directory of the build was begun anew");
    let output = second.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(site.house.listed().len(), 1);
}
