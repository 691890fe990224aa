//! Boot words through a GRUB that boots: QEMU starts a disk with GRUB's own boot sector and core, a file system, and the menu
//! that grub-mkconfig makes there. What the kernel was given is what the kernel says. Every boot ends by pulling the plug.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

#[path = "support/guests.rs"]
mod guests;

use std::cell::Cell;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};

const BINARY: &str = env!("CARGO_BIN_EXE_worstcase");
const MODULES: &str = "/usr/lib/grub/i386-pc";
const KERNEL: &str = "debian-6.1-amd64";
const DISK_BYTES: u64 = 64 << 20;
const SECTOR: u64 = 512;
/// Where partitions have begun since disks have sectors of 4 KiB; GRUB's core is between it and the boot sector.
const START: u64 = 2048;

/// As Debian's package grub-pc writes it, but for a machine with a serial line and nobody who looks at a menu.
const DEFAULTS: &str = "GRUB_DEFAULT=0\nGRUB_TIMEOUT=0\nGRUB_TERMINAL=console\nGRUB_DISTRIBUTOR=Debian\n\
    GRUB_CMDLINE_LINUX_DEFAULT=\"quiet\"\nGRUB_CMDLINE_LINUX=\"console=ttyS0\"\n";
/// What a kernel is given by that.
const DEFAULT: &str = "root=/dev/vdb ro console=ttyS0 quiet";

/// What a shell or GRUB would eat if it were not quoted for both.
const WORDS: &str = "isolcpus=managed_irq,domain,1 memmap=64K$0x18690000 dyndbg=\"file a.c +p; file b.c +p\"";
/// The same as GRUB gives it to the kernel.
const GIVEN: &str =
    " isolcpus=managed_irq,domain,1 memmap=64K$0x18690000 \"dyndbg=file a.c +p; file b.c +p\"";

/// The first process: says what the kernel was given, and waits for the end.
const INIT: &str = "#!/bin/busybox sh\n/bin/busybox mount -t proc proc /proc\n\
    echo \"booted: $(/bin/busybox cat /proc/cmdline)\"\nwhile :; do /bin/busybox sleep 60; done\n";

/// The disk's file system as /, with this machine's programs. /dev has no loop device: GRUB's scripts make no entry for a
/// root file system on one. It is unmounted before the end, because that of a namespace may come later, and GRUB reads no
/// journal. The running kernel is the one that GRUB started.
const ENTER: &str = "mount -t tmpfs none /dev; mknod -m 666 /dev/null c 1 3; mknod /dev/vdb b 7 \"$1\"\n\
    mount /dev/vdb \"$2\"; cd \"$2\"; mkdir -p dev proc sys usr opt; touch opt/worstcase\n\
    mount --bind /dev dev; mount --rbind /usr usr; mount -t proc proc proc; mount --rbind /sys sys\n\
    mount --bind \"$3\" opt/worstcase; mount --bind \"$4\" proc/cmdline; mount --bind \"$5\" proc/sys/kernel/random/boot_id\n\
    at=$2; shift 5\n\
    code=0; chroot . \"$@\" || code=$?; cd /; umount -R \"$at\"; exit $code";

/// What is put onto an empty file system: GRUB's modules, this machine's GRUB scripts, a kernel, an initramfs.
const FILL: &str = "mount \"$1\" \"$2\"; cd \"$2\"; mkdir -p boot/grub etc/default/grub.d var/lib tmp\n\
    for name in bin sbin lib lib64; do ln -s usr/$name $name; done\n\
    cp -a /etc/grub.d etc; cp -a \"$3\" boot/grub; cp \"$4\" boot/vmlinuz-6.1.0-1-amd64\n\
    printf %s \"$5\" > etc/default/grub\n\
    mkdir -p init/bin init/proc init/dev; mknod init/dev/console c 5 1; cd init\n\
    printf %s \"$6\" > init; chmod +x init; busybox=$(command -v busybox); cp \"$busybox\" bin/busybox\n\
    { ldd \"$busybox\" || :; } | { grep -o '/[^ ]*' || :; } | while read library; do cp -L --parents \"$library\" .; done\n\
    find . | cpio -o -H newc --quiet > ../boot/initrd.img-6.1.0-1-amd64\n\
    cd /; umount \"$2\"";

/// A disk that GRUB boots from.
struct Disk {
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
    fn new() -> Option<Self> {
        if hindered() {
            return None;
        }
        let disk = Self { directory: tempfile::tempdir().unwrap(), boots: Cell::new(0) };
        fs::create_dir(disk.place("mount")).unwrap();
        disk.write_what_boots();
        let partition = match disk.partition() {
            Ok(partition) => partition,
            Err(why) => {
                println!("skipped: no block device can be made of a file here: {why}");
                return None;
            }
        };
        done(Command::new("mke2fs").args(["-q", "-t", "ext4", &partition.0]));
        let mount = disk.place("mount");
        let kernel = kernel();
        let mut fill = in_namespace(FILL);
        fill.arg(&partition.0).arg(mount).arg(MODULES).arg(kernel).arg(DEFAULTS).arg(INIT);
        done(&mut fill);
        drop(partition);
        disk.runs(DEFAULT);
        let made = disk.run(&["sh", "-ec", "grub-editenv - create; grub-mkconfig -o /boot/grub/grub.cfg"]);
        assert!(text(&made).contains("Found initrd image"), "{}", text(&made));
        Some(disk)
    }

    fn place(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The boot sector with a table of one partition, and GRUB's core behind it, as its manual says. Where each looks for
    /// the next is what they hold by themselves: sector 1, sector 2.
    fn write_what_boots(&self) {
        let core = self.place("core.img");
        let mut make = Command::new("grub-mkimage");
        make.args(["--format", "i386-pc", "--prefix", "(hd0,msdos1)/boot/grub", "--output"]).arg(&core);
        done(make.args(["biosdisk", "part_msdos", "ext2", "normal"]));
        let mut sector = fs::read(Path::new(MODULES).join("boot.img")).unwrap();
        // In the table's place it holds code for floppy disks.
        sector[446..510].fill(0);
        let entry = &mut sector[446..462];
        (entry[0], entry[4]) = (0x80, 0x83); // it is booted from; Linux
        entry[8..12].copy_from_slice(&(START as u32).to_le_bytes());
        entry[12..16].copy_from_slice(&((DISK_BYTES / SECTOR - START) as u32).to_le_bytes());
        let file = File::create(self.place("disk")).unwrap();
        file.set_len(DISK_BYTES).unwrap();
        file.write_all_at(&sector, 0).unwrap();
        let core = fs::read(core).unwrap();
        assert!(core.len() as u64 <= (START - 1) * SECTOR);
        file.write_all_at(&core, SECTOR).unwrap();
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
    fn run(&self, words: &[&str]) -> Output {
        let partition = self.partition().unwrap();
        let minor = partition.0.trim_start_matches("/dev/loop");
        let mut command = in_namespace(ENTER);
        command.arg(minor).arg(self.place("mount")).arg(BINARY);
        command.arg(self.place("cmdline")).arg(self.place("boot_id")).args(words);
        command.env("NO_COLOR", "1").env("COLUMNS", "200").stdin(Stdio::null()).output().unwrap()
    }

    fn persist(&self, arguments: &[&str]) {
        let (code, said) = self.asked(arguments);
        assert_eq!(code, Some(0), "{said}");
    }

    fn asked(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let command = ["/opt/worstcase", "tune", "persist", "--boot", "--loader", "grub"];
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
    fn booted(&self) -> String {
        let drive = format!("file={},format=raw,if=ide", self.place("disk").display());
        let mut boot = Command::new("timeout");
        boot.args(["120", "qemu-system-x86_64", "-m", "512", "-nic", "none", "-no-reboot", "-nographic"]);
        boot.args(["-drive", &drive]).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut guest = boot.spawn().unwrap();
        let told = told(guest.stdout.take().unwrap());
        // `timeout` hands the signal on.
        kill_process(Pid::from_child(&guest), Signal::TERM).unwrap();
        guest.wait().unwrap();
        let told = told.unwrap_or_else(|said| panic!("no kernel said what it was given: {said}"));
        self.runs(&told);
        told
    }
}

/// What a kernel was given, from what the console says; all that it says where it does not come to that.
fn told(console: impl Read) -> Result<String, String> {
    let (mut said, mut lines) = (String::new(), BufReader::new(console));
    loop {
        let mut line = Vec::new();
        if lines.read_until(b'\n', &mut line).unwrap() == 0 {
            return Err(said);
        }
        let line = String::from_utf8_lossy(&line);
        if let Some((_, told)) = line.split_once("booted: BOOT_IMAGE=/boot/vmlinuz-6.1.0-1-amd64 ") {
            return Ok(told.trim_end().to_owned());
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

fn done(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", text(&output));
}

fn text(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat()
}

fn kernel() -> PathBuf {
    let output = Command::new(BINARY).args(["lab", "kernels", "list", "--json"]).output().unwrap();
    let listed: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
    let ours = listed.iter().find(|kernel| kernel["name"] == KERNEL).unwrap();
    ours["image"].as_str().unwrap().into()
}

/// Whether something is missing, which is said.
fn hindered() -> bool {
    const PROGRAMS: &[&str] =
        &["qemu-system-x86_64", "grub-mkimage", "grub-mkconfig", "losetup", "mke2fs", "cpio", "busybox"];
    if !rustix::process::geteuid().is_root() {
        println!("skipped: needs root");
        return true;
    }
    if !Path::new(MODULES).join("boot.img").exists() {
        println!("skipped: needs {MODULES} (package grub-pc-bin)");
        return true;
    }
    guests::hindered(PROGRAMS, &[&["--version", "6.1", "--flavour", "plain", "--arch", "amd64"]])
}

#[test]
#[ignore = "long"]
fn a_trial_is_booted_once_and_then_the_default_until_it_is_kept() {
    let Some(disk) = Disk::new() else { return };
    let with_words = format!("{DEFAULT}{GIVEN}");
    assert_eq!(disk.booted(), DEFAULT);
    disk.persist(&["--words", WORDS, "--trial"]);
    assert_eq!(disk.booted(), with_words);
    assert_eq!(disk.booted(), DEFAULT, "the trial was switched off in the middle");
    let (code, said) = disk.asked(&["--keep"]);
    assert!(code == Some(2) && said.contains("was not booted with"), "{said}");
    disk.persist(&["--undo"]);
    disk.persist(&["--words", WORDS, "--trial"]);
    assert_eq!(disk.booted(), with_words);
    disk.persist(&["--keep"]);
    assert_eq!([disk.booted(), disk.booted()], [with_words.clone(), with_words]);
    let (_, said) = disk.asked(&["--status"]);
    assert!(said.contains("given") && !said.contains("not given"), "{said}");
    disk.persist(&["--undo"]);
    assert_eq!(disk.booted(), DEFAULT);
}

#[test]
#[ignore = "long"]
fn an_entry_of_its_own_stands_beside_the_default() {
    let Some(disk) = Disk::new() else { return };
    disk.persist(&["--words", WORDS, "--entry"]);
    assert_eq!(disk.booted(), DEFAULT);
    let chosen = disk.run(&["grub-editenv", "/boot/grub/grubenv", "set", "next_entry=worstcase"]);
    assert!(chosen.status.success(), "{}", text(&chosen));
    assert_eq!(disk.booted(), format!("{DEFAULT}{GIVEN}"));
}
