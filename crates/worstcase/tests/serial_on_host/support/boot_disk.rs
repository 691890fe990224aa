//! A disk that a boot loader boots in QEMU: made, used with its file system as / as somebody who is logged in there would,
//! and booted until the kernel says what it was given. Every boot ends by pulling the plug.
#![allow(dead_code, clippy::unwrap_used, clippy::print_stdout)]

use super::guests;

use std::cell::Cell;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};

pub const BINARY: &str = env!("CARGO_BIN_EXE_worstcase");
const DISK_BYTES: u64 = 128 << 20;
pub const SECTOR: u64 = 512;
/// Where partitions have begun since disks have sectors of 4 KiB. Before it there is room for what boots.
pub const START: u64 = 2048;

/// A loader, the disk that it boots from, and the machine.
pub struct Loader {
    /// What `--loader` calls it.
    pub name: &'static str,
    /// Programs that make its disk and boot it, beside those of every disk.
    pub programs: &'static [&'static str],
    /// A file of its package, and the package.
    pub package: (&'static str, &'static str),
    pub kernel: Kernel,
    /// Puts onto the empty disk what the machine starts.
    pub write_what_boots: fn(&Disk),
    /// The program that makes the partition's file system, and its words.
    pub format: &'static [&'static str],
    /// A script that puts what the loader needs onto the file system, which is its working directory.
    pub fill: &'static str,
    /// QEMU and its words for the machine; it runs where [`Disk::place`] is.
    pub machine: &'static [&'static str],
    /// How the disk is attached: `ide`, `virtio`.
    pub interface: &'static str,
    /// What the console says before the line that the kernel was given.
    pub mark: &'static str,
    /// What a kernel is given as long as nothing is changed.
    pub default: &'static str,
}

/// A kernel of the cache.
pub struct Kernel {
    /// Its name there.
    pub name: &'static str,
    /// The words behind `lab kernels fetch debian`.
    pub fetch: &'static [&'static str],
    /// What it is called in the disk's /boot, behind `vmlinuz-` and `initrd.img-`.
    pub release: &'static str,
}

pub const AMD64: Kernel = Kernel {
    name: "debian-6.1-amd64",
    fetch: &["--version", "6.1", "--flavour", "plain", "--arch", "amd64"],
    release: "6.1.0-1-amd64",
};

/// The first process: says what the kernel was given, and waits for the end.
const INIT: &str = "#!/bin/busybox sh\n/bin/busybox mount -t proc proc /proc\n\
    echo \"booted: $(/bin/busybox cat /proc/cmdline)\"\nwhile :; do /bin/busybox sleep 60; done\n";

/// The disk's file system as /, with this machine's programs. /dev has no loop device: GRUB's scripts make no entry for a
/// root file system on one. It is unmounted before the end, because that of a namespace may come later, and no loader
/// reads a journal. The running kernel is the one that was booted.
const ENTER: &str = "mount -t tmpfs none /dev; mknod -m 666 /dev/null c 1 3; mknod /dev/vdb b 7 \"$1\"\n\
    mount /dev/vdb \"$2\"; cd \"$2\"; mkdir -p dev proc sys usr opt; touch opt/worstcase\n\
    mount --bind /dev dev; mount --rbind /usr usr; mount -t proc proc proc; mount --rbind /sys sys\n\
    mount --bind \"$3\" opt/worstcase; mount --bind \"$4\" proc/cmdline; mount --bind \"$5\" proc/sys/kernel/random/boot_id\n\
    at=$2; shift 5\n\
    code=0; chroot . \"$@\" || code=$?; cd /; umount -R \"$at\"; exit $code";

/// What is put onto every empty file system: a kernel and an initramfs; then what the loader's script puts there.
const FILL: &str = "mount \"$1\" \"$2\"; cd \"$2\"; mkdir -p boot var/lib etc tmp\n\
    for name in bin sbin lib lib64; do ln -s usr/$name $name; done; cp \"$3\" \"boot/vmlinuz-$4\"\n\
    mkdir -p init/bin init/proc init/dev; mknod init/dev/console c 5 1; cd init\n\
    printf %s \"$5\" > init; chmod +x init; busybox=$(command -v busybox); cp \"$busybox\" bin/busybox\n\
    { ldd \"$busybox\" || :; } | { grep -o '/[^ ]*' || :; } | while read library; do cp -L --parents \"$library\" .; done\n\
    find . | cpio -o -H newc --quiet > \"../boot/initrd.img-$4\"; cd ..\n\
    eval \"$6\"; cd /; umount \"$2\"";

/// A disk that a loader boots from.
pub struct Disk {
    loader: &'static Loader,
    directory: tempfile::TempDir,
    boots: Cell<u64>,
}

/// A block device that is the disk's partition. It is given back when this is dropped.
struct Partition(String);

impl Drop for Partition {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.0]).status();
    }
}

impl Disk {
    /// None where this machine cannot make one, which is said.
    pub fn new(loader: &'static Loader) -> Option<Self> {
        if hindered(loader) {
            return None;
        }
        let disk = Self { loader, directory: tempfile::tempdir().unwrap(), boots: Cell::new(0) };
        fs::create_dir(disk.place("mount")).unwrap();
        File::create(disk.place("disk")).unwrap().set_len(DISK_BYTES).unwrap();
        (loader.write_what_boots)(&disk);
        let partition = match disk.partition() {
            Ok(partition) => partition,
            Err(why) => {
                println!("skipped: no block device can be made of a file here: {why}");
                return None;
            }
        };
        let (program, words) = loader.format.split_first().unwrap();
        done(Command::new(program).args(words).arg(&partition.0));
        let mut fill = in_namespace(FILL);
        fill.arg(&partition.0).arg(disk.place("mount")).arg(kernel(loader.kernel.name));
        done(fill.args([loader.kernel.release, INIT, loader.fill]));
        drop(partition);
        disk.runs(loader.default);
        Some(disk)
    }

    /// A file beside the disk.
    pub fn place(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes the first sector: code, and a table of one partition, from which is booted.
    pub fn write_boot_sector(&self, code: &[u8]) {
        let mut sector = [0; SECTOR as usize];
        let bytes = code.len().min(440);
        sector[..bytes].copy_from_slice(&code[..bytes]);
        let entry = &mut sector[446..462];
        (entry[0], entry[4]) = (0x80, 0x83); // it is booted from; Linux
        entry[8..12].copy_from_slice(&(START as u32).to_le_bytes());
        entry[12..16].copy_from_slice(&((DISK_BYTES / SECTOR - START) as u32).to_le_bytes());
        sector[510..].copy_from_slice(&[0x55, 0xaa]);
        self.write_at(0, &sector);
    }

    /// Writes bytes onto the disk, from a sector on.
    pub fn write_at(&self, sector: u64, bytes: &[u8]) {
        let disk = File::options().write(true).open(self.place("disk")).unwrap();
        disk.write_all_at(bytes, sector * SECTOR).unwrap();
    }

    fn partition(&self) -> Result<Partition, String> {
        let mut attach = Command::new("losetup");
        attach.args(["--find", "--show", "--offset", &(START * SECTOR).to_string()]);
        let output = attach.arg(self.place("disk")).output().unwrap();
        match output.status.success() {
            true => Ok(Partition(String::from_utf8(output.stdout).unwrap().trim().to_owned())),
            false => Err(text(&output)),
        }
    }

    /// Runs `words` with the disk's file system as /.
    pub fn run(&self, words: &[&str]) -> Output {
        let partition = self.partition().unwrap();
        let minor = partition.0.trim_start_matches("/dev/loop");
        let mut command = in_namespace(ENTER);
        command.arg(minor).arg(self.place("mount")).arg(BINARY);
        command.arg(self.place("cmdline")).arg(self.place("boot_id")).args(words);
        command.env("NO_COLOR", "1").env("COLUMNS", "200").stdin(Stdio::null()).output().unwrap()
    }

    /// The same of what must succeed; what it says.
    pub fn must(&self, words: &[&str]) -> String {
        let output = self.run(words);
        assert!(output.status.success(), "{words:?}: {}", text(&output));
        text(&output)
    }

    /// A file of the disk, as somebody there writes it.
    pub fn write(&self, path: &str, text: &str) {
        self.must(&["sh", "-ec", "mkdir -p \"${1%/*}\"; printf %s \"$2\" > \"$1\"", "sh", path, text]);
    }

    /// `tune persist --boot` on the disk, which must succeed.
    pub fn persist(&self, arguments: &[&str]) {
        let (code, said) = self.asked(arguments);
        assert_eq!(code, Some(0), "{said}");
    }

    /// The same: its exit code and what it says.
    pub fn asked(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let command = ["/opt/worstcase", "tune", "persist", "--boot", "--loader", self.loader.name];
        let ended = self.run(&[&command, arguments].concat());
        (ended.status.code(), text(&ended))
    }

    /// What the kernel is from now on for who looks: its line, and which boot it is.
    fn runs(&self, line: &str) {
        let count = self.boots.replace(self.boots.get() + 1);
        fs::write(self.place("cmdline"), format!("{line}\n")).unwrap();
        fs::write(self.place("boot_id"), format!("00000000-0000-4000-8000-{count:012}\n")).unwrap();
    }

    /// Boots. What the kernel was given; the plug is pulled then.
    pub fn booted(&self) -> String {
        let loader = self.loader;
        let drive = format!("file={},format=raw,if={}", self.place("disk").display(), loader.interface);
        let mut boot = Command::new("timeout");
        boot.arg("120").args(loader.machine).args(["-nic", "none", "-no-reboot", "-nographic"]);
        boot.current_dir(self.directory.path())
            .args(["-drive", &drive])
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let mut guest = boot.spawn().unwrap();
        let shown = shown(guest.stdout.take().unwrap(), loader.mark);
        // `timeout` hands the signal on.
        kill_process(Pid::from_child(&guest), Signal::TERM).unwrap();
        guest.wait().unwrap();
        let shown = shown.unwrap_or_else(|said| panic!("no kernel said what it was given: {said}"));
        self.runs(&shown);
        shown
    }
}

/// What a kernel was given, from what the console says; all that it says where it does not come to that.
fn shown(console: impl Read, mark: &str) -> Result<String, String> {
    let (mut said, mut lines) = (String::new(), BufReader::new(console));
    loop {
        let mut line = Vec::new();
        if lines.read_until(b'\n', &mut line).unwrap() == 0 {
            return Err(said);
        }
        let line = String::from_utf8_lossy(&line);
        if let Some((_, shown)) = line.split_once(mark) {
            return Ok(shown.trim_end().to_owned());
        }
        said.push_str(&line);
    }
}

/// `script` in a mount namespace of its own: what it mounts is gone with it.
fn in_namespace(script: &str) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-ec", script, "sh"]);
    command
}

/// Runs a command that must succeed.
pub fn done(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", text(&output));
}

/// All that a command said.
fn text(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat()
}

/// The image of a kernel of the cache.
pub fn kernel(name: &str) -> PathBuf {
    let output = Command::new(BINARY).args(["lab", "kernels", "list", "--json"]).output().unwrap();
    let listed: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
    let ours = listed.iter().find(|kernel| kernel["name"] == name).unwrap();
    ours["image"].as_str().unwrap().into()
}

/// Whether something is missing, which is said.
fn hindered(loader: &Loader) -> bool {
    const PROGRAMS: &[&str] = &["losetup", "cpio", "busybox"];
    let programs = [PROGRAMS, loader.programs, &[loader.machine[0], loader.format[0]]].concat();
    hindered_by(&[loader.package], &programs, loader.kernel.fetch)
}

/// The same of files with their packages, of programs, and of a kernel.
pub fn hindered_by(files: &[(&str, &str)], programs: &[&str], kernel: &[&str]) -> bool {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: needs root");
        return true;
    }
    if let Some((file, package)) = files.iter().find(|(file, _)| !Path::new(file).exists()) {
        println!("skipped: needs {file} (package {package})");
        return true;
    }
    guests::hindered(programs, &[kernel])
}
