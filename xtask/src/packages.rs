//! Debian packages and the file system of traces that tests need: what is missing is brought when run as root, and
//! named otherwise.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::command;
use crate::dist::targets::{self, Target};
use crate::tally::Tally;
use crate::workspace;

/// A program and the packages that bring it, the first that the distribution knows is taken.
const PROGRAMS: [(&str, &[&str]); 28] = [
    ("cyclictest", &["rt-tests"]),
    ("hackbench", &["rt-tests"]),
    ("stress-ng", &["stress-ng"]),
    ("strace", &["strace"]),
    ("trace-cmd", &["trace-cmd"]),
    ("chromium", &["chromium"]),
    ("c++", &["g++"]), // libFuzzer is C++
    ("make", &["make"]),
    ("flex", &["flex"]), // this and the next two: kernels for the lab's guests are built
    ("bison", &["bison"]),
    ("bc", &["bc"]),
    ("qemu-system-x86_64", &["qemu-system-x86"]), // this and the rest: guests of the lab
    ("qemu-system-aarch64", &["qemu-system-arm"]),
    ("mke2fs", &["e2fsprogs"]),
    ("xz", &["xz-utils"]),
    ("zstd", &["zstd"]),
    ("cpio", &["cpio"]),
    ("busybox", &["busybox", "busybox-static"]),
    ("systemd-analyze", &["systemd"]), // this and the next: what is written for the next boot is read by them
    ("dash", &["dash"]),
    ("grub-mkconfig", &["grub-common"]), // this and the next: menus that are made of kernel parameters
    ("debootstrap", &["debootstrap"]),
    ("extlinux", &["extlinux"]), // this and the rest: guests that other boot loaders boot
    ("mkimage", &["u-boot-tools"]),
    ("fw_setenv", &["libubootenv-tool"]),
    ("mkfs.vfat", &["dosfstools"]),
    ("depmod", &["kmod"]),
    ("mcopy", &["mtools"]),
];

/// Files that are no programs, and the packages that bring them.
const FILES: [(&str, &[&str]); 6] = [
    ("/usr/include/gelf.h", &["libelf-dev"]), // a kernel's build
    ("/usr/lib/grub/i386-pc/boot.img", &["grub-pc-bin"]), // a guest that GRUB boots
    ("/usr/lib/syslinux/modules/bios/menu.c32", &["syslinux-common"]), // one that extlinux boots
    ("/usr/lib/u-boot/qemu_arm64/u-boot.bin", &["u-boot-qemu"]), // one that U-Boot boots
    // A guest that systemd-boot boots. Its bootctl is in a package that installs the loader: not for us to bring.
    ("/usr/lib/systemd/boot/efi/systemd-bootx64.efi", &["systemd-boot-efi"]),
    ("/usr/share/OVMF/OVMF_CODE_4M.fd", &["ovmf"]),
];

/// Emulators of other machines; one package for all, under its older name and its newer one.
const EMULATORS: &[&str] = &["qemu-user-static", "qemu-user"];

/// Something that is not there.
struct Missing {
    what: String,
    packages: Vec<&'static str>,
}

/// Installs what is missing; what stays missing is skipped by name.
pub fn provide() -> Result<Tally> {
    let wanted = missing();
    if !wanted.is_empty() && is_root() && command::find("apt-get").is_some() {
        install(&wanted)?;
    }
    let mut tally = Tally::default();
    for missing in missing() {
        let packages = missing.packages.join(" or ");
        tally.add(Tally::skip(missing.what, format!("needs package {packages} (apt-get install)")));
    }
    tally.add(mount_tracefs());
    Ok(tally)
}

/// Where tests read and write traces.
const TRACEFS: &str = "/sys/kernel/tracing";

/// Mounts tracefs, which nothing has done on a machine without systemd.
fn mount_tracefs() -> Tally {
    let is_mounted = || Path::new(TRACEFS).join("instances").exists();
    if is_mounted() {
        return Tally::default();
    }
    if !Path::new(TRACEFS).exists() {
        return Tally::skip("tracefs", "this kernel has none");
    }
    if !is_root() {
        return Tally::skip("tracefs", format!("needs root (mount -t tracefs none {TRACEFS})"));
    }
    match Command::new("mount").args(["-t", "tracefs", "none", TRACEFS]).output() {
        Ok(_) if is_mounted() => Tally::default(),
        Ok(ended) => Tally::skip("tracefs", String::from_utf8_lossy(&ended.stderr).trim()),
        Err(error) => Tally::skip("tracefs", format!("mount: {error}")),
    }
}

/// Whether this process may do everything.
pub fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

fn missing() -> Vec<Missing> {
    let absent = PROGRAMS.iter().filter(|(program, _)| command::find(program).is_none());
    let programs = absent
        .map(|(program, packages)| Missing { what: (*program).to_owned(), packages: packages.to_vec() });
    let absent = FILES.iter().filter(|(file, _)| !Path::new(file).exists());
    let files =
        absent.map(|(file, packages)| Missing { what: (*file).to_owned(), packages: packages.to_vec() });
    let foreign = targets::ALL.iter().filter(|target| !target.is_native() && target.has_std());
    programs.chain(files).chain(foreign.flat_map(missing_for)).collect()
}

/// What building for `target` and running what was built needs.
fn missing_for(target: &Target) -> Vec<Missing> {
    let mut missing = Vec::new();
    if !target.links() {
        // The compiler alone brings no libc.a: that is in a package which it only recommends.
        missing.extend(target.packages.iter().map(|package| Missing {
            what: format!("linker for {}", target.triple),
            packages: vec![package],
        }));
    }
    if target.emulator().is_none() {
        let what = format!("emulator for {}", target.triple);
        missing.push(Missing { what, packages: EMULATORS.to_vec() });
    }
    missing
}

/// One update, one install.
fn install(wanted: &[Missing]) -> Result<()> {
    apt("update", &[])?;
    let mut names: Vec<&str> = wanted.iter().filter_map(|missing| known(&missing.packages)).collect();
    names.sort_unstable();
    names.dedup();
    apt("install", &names)
}

/// The first of `packages` that the distribution can install.
fn known(packages: &[&'static str]) -> Option<&'static str> {
    let knows = |package: &&&str| command::output(Command::new("apt-cache").args(["show", package])).is_ok();
    packages.iter().find(knows).copied()
}

/// A failure is in the log; what it leaves missing is found by looking again.
fn apt(verb: &str, names: &[&str]) -> Result<()> {
    let mut apt = Command::new("apt-get");
    apt.env("DEBIAN_FRONTEND", "noninteractive").args(["-q", "-y", verb]).args(names);
    if verb == "install" {
        apt.arg("--no-install-recommends");
    }
    command::logged(&mut apt, &workspace::logs().join(format!("apt-{verb}.log"))).map(drop)
}
