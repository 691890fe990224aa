//! `worstcase lab kernels` against Debian's archive: real packages, real sources. A kernel that is fetched here takes
//! half a gigabyte and goes away at once; those that are built stay in the target directory.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::SystemTime;

use lab::kernels::{Architecture, Cache, Kernel};
use machine::KernelConfig;
use machine::kernel_config::Setting;

const BINARY: &str = env!("CARGO_BIN_EXE_worstcase");

/// Where kernels are built: the cache that the environment names, else one in the target directory.
fn shared() -> PathBuf {
    let named = std::env::var_os("WORSTCASE_CACHE").map(PathBuf::from);
    named.unwrap_or_else(|| Path::new(env!("CARGO_TARGET_TMPDIR")).join("lab-kernels"))
}

fn kernels(cache: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(BINARY);
    command.args(["lab", "kernels"]).args(arguments).env("WORSTCASE_CACHE", cache).output().unwrap()
}

/// Whether there is a Debian to ask.
fn has_apt() -> bool {
    let there = Command::new("apt-get").arg("--version").output().is_ok();
    if !there {
        println!("skipped: needs package apt, and Debian's archives");
    }
    there
}

/// Fetches one of Debian's kernels for amd64 or arm64.
fn fetched(cache: &Path, name: &str, arguments: &[&str]) -> Kernel {
    let output = kernels(cache, &[&["fetch", "debian"], arguments].concat());
    assert!(output.status.success(), "{output:?}");
    assert!(output.stdout.starts_with(format!("{name}: ").as_bytes()), "{output:?}");
    Cache::at(cache).unwrap().kernel(name).unwrap()
}

fn config_of(kernel: &Kernel) -> KernelConfig {
    let text = fs::read_to_string(kernel.config.as_ref().unwrap()).unwrap();
    let config = KernelConfig::parse(&text);
    assert_eq!(config.complaints, [], "Debian's own configuration is read without a complaint");
    config
}

/// A module that is in every one of these kernels, by how its file's name ends.
fn module_ends(kernel: &Kernel) -> &'static str {
    let modules = kernel.modules.as_ref().unwrap();
    assert!(modules.join("modules.order").is_file());
    let module = |ending: &&str| modules.join(format!("kernel/drivers/block/virtio_blk.{ending}")).is_file();
    ["ko", "ko.xz"].into_iter().find(module).unwrap()
}

#[test]
fn debians_kernels_are_fetched_and_nothing_is_installed() {
    if !has_apt() {
        return;
    }
    let installed = || fs::metadata("/var/lib/dpkg/status").and_then(|status| status.modified()).ok();
    let before: Option<SystemTime> = installed();
    for (name, arguments, real_time, ending) in [
        ("debian-6.1-rt-amd64", ["6.1", "rt", "amd64"], true, "ko"),
        ("debian-6.1-amd64", ["6.1", "plain", "amd64"], false, "ko"),
        ("debian-6.12-rt-amd64", ["6.12", "rt", "amd64"], true, "ko.xz"),
        ("debian-6.1-rt-arm64", ["6.1", "rt", "arm64"], true, "ko"),
    ] {
        let [version, flavour, arch] = arguments;
        let wanted = ["--version", version, "--flavour", flavour, "--arch", arch];
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let cache = directory.path();
        let kernel = fetched(cache, name, &wanted);
        assert_eq!(kernel.architecture, arch.parse::<Architecture>().unwrap());
        assert!(kernel.release.starts_with(&format!("{version}.")), "{kernel:?}");
        assert_eq!(module_ends(&kernel), ending, "{name}");
        let config = config_of(&kernel);
        assert_eq!(config.get("PREEMPT_RT") == Some(&Setting::Yes), real_time, "{name}");
        assert!(config.header.as_ref().unwrap().version.starts_with(&format!("{version}.")), "{name}");
        assert!(!Path::new("/boot").join(format!("vmlinuz-{}", kernel.release)).exists(), "{name}");
        let listed = String::from_utf8(kernels(cache, &["list"]).stdout).unwrap();
        assert!(listed.contains(&format!("\n{name} ")), "{listed}");
        let again = kernels(cache, &[&["fetch", "debian"], &wanted[..]].concat());
        assert!(again.status.success() && again.stderr.is_empty(), "it is there: {again:?}");
    }
    assert_eq!(installed(), before);
}

#[test]
fn a_version_that_debian_never_had_is_answered_with_those_that_it_has() {
    if !has_apt() {
        return;
    }
    let output =
        kernels(&shared(), &["fetch", "debian", "--version", "6.0.99", "--flavour", "rt", "--arch", "amd64"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        said.contains("have no linux-image-6.0.99-rt-amd64\n  hint: ") && said.contains(" 6.12"),
        "{said}"
    );
}

/// The ladder's fragments, as its file puts them together.
const LADDER: [(&str, &[&str]); 4] = [
    ("p2041-debug", &["base", "release", "demo-debug"]),
    ("p2041-release", &["base", "release"]),
    ("p2041-tuned", &["base", "release", "00051-latency"]),
    ("p2041-rt", &["base", "release", "00051-latency", "preempt-rt"]),
];

fn build(cache: &Path, name: &str, fragments: &[&str]) -> Output {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ladders/fragments");
    let paths = fragments.iter().map(|name| directory.join(format!("{name}.cfg")).display().to_string());
    let paths: Vec<String> = paths.collect();
    let arguments = ["build", name, "--source", "debian-6.12", "--fragment"].into_iter();
    let arguments: Vec<&str> = arguments.chain(paths.iter().map(String::as_str)).collect();
    kernels(cache, &arguments)
}

/// Enea's four kernels: each symbol of each fragment arrives, and they are what they are called.
#[test]
#[ignore = "long"]
fn the_ladders_kernels_are_built_and_verified() {
    if !has_apt() {
        return;
    }
    for (name, fragments) in LADDER {
        let output = build(&shared(), name, fragments);
        assert!(output.status.success(), "{output:?}");
        let kernel = Cache::at(shared()).unwrap().kernel(name).unwrap();
        assert!(
            kernel.release.starts_with("6.12.") && kernel.release.ends_with(&format!("-{name}")),
            "{kernel:?}"
        );
        let config = config_of(&kernel);
        let chosen = |symbol: &str| config.get(symbol) == Some(&Setting::Yes);
        assert_eq!(chosen("PREEMPT_RT"), name == "p2041-rt");
        assert_eq!(chosen("PREEMPT"), name != "p2041-rt");
        assert_eq!(chosen("IRQSOFF_TRACER"), name == "p2041-debug");
        assert_eq!(chosen("HZ_1000"), ["p2041-tuned", "p2041-rt"].contains(&name));
    }
}

/// Built in another directory, at another time: the same bytes.
#[test]
#[ignore = "long"]
fn equal_inputs_give_equal_images() {
    if !has_apt() {
        return;
    }
    let elsewhere = tempfile::tempdir().unwrap();
    let image = |cache: &Path| {
        let output = build(cache, "p2041-release", &["base", "release"]);
        assert!(output.status.success(), "{output:?}");
        fs::read(Cache::at(cache).unwrap().kernel("p2041-release").unwrap().image).unwrap()
    };
    assert!(image(elsewhere.path()) == image(&shared()), "the images differ");
}

/// A file system in memory that holds little. Dropped, it is gone.
struct Tiny(tempfile::TempDir);

impl Tiny {
    fn mount(size: &str) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size},mode=0700"), "tmpfs"]).arg(directory.path());
        mount.output().is_ok_and(|output| output.status.success()).then_some(Self(directory))
    }
}

impl Drop for Tiny {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn a_cache_on_a_full_disk_says_so_and_holds_no_half_kernel() {
    if !has_apt() {
        return;
    }
    // The first has no room for the package, the second none for the files in it.
    for size in ["2M", "200M"] {
        let Some(tiny) = Tiny::mount(size) else {
            return println!("skipped: needs root, to mount a small disk");
        };
        let cache = tiny.0.path();
        let output =
            kernels(cache, &["fetch", "debian", "--version", "6.1", "--flavour", "rt", "--arch", "amd64"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2));
        assert!(said.contains("make room"), "{size}: {said}");
        assert_eq!(said.matches("\nerror: ").count(), 1, "{said}");
        assert_eq!(said.matches("fetching ").count(), 1, "once is enough: {said}");
        assert!(Cache::at(cache).unwrap().entries().unwrap().is_empty());
    }
}
