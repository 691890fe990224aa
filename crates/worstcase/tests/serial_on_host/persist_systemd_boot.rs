//! Kernel parameters through a systemd-boot that boots: QEMU's UEFI firmware starts it from a FAT file system, and what is to be
//! done is done inside, where the firmware's variables are. Every boot ends by pulling the plug.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::boot_disk::{AMD64, BINARY, done, hindered_by, kernel};
use rustix::process::{Pid, Signal, kill_process};

const LOADER: &str = "/usr/lib/systemd/boot/efi/systemd-bootx64.efi";
const FIRMWARE: &str = "/usr/share/OVMF/OVMF_CODE_4M.fd";
const VARIABLES: &str = "/usr/share/OVMF/OVMF_VARS_4M.fd";

/// Modules of the kernel that find the disks and their file systems.
const MODULES: &str = "virtio_blk virtio_pci crc32c_generic ext4 vfat nls_cp437 nls_ascii efivarfs";

/// As kernel-install writes it.
const ENTRY: &str = "# Boot Loader Specification type#1 entry\ntitle      Debian GNU/Linux 12 (bookworm)\n\
    version    6.1.0-1-amd64\nmachine-id 0123456789abcdef0123456789abcdef\nsort-key   debian\n\
    options    root=/dev/vdb ro quiet console=ttyS0\nlinux      /linux\ninitrd     /initrd\n";
const NAME: &str = "0123456789abcdef0123456789abcdef-6.1.0-1-amd64";
/// What a kernel is given by that, but for the initrd that systemd-boot names before it.
const DEFAULT: &str = "root=/dev/vdb ro quiet console=ttyS0";
/// With what a shell would eat.
const WORDS: &str = "isolcpus=managed_irq,domain,1 memmap=64K$0x18690000 dyndbg=\"file a.c +p; file b.c +p\"";

/// The initramfs: loads the modules in their order, and goes on in the second disk.
const FIRST: &str = "#!/bin/busybox sh\nb=/bin/busybox; $b mount -t proc proc /proc; $b mount -t devtmpfs dev /dev\n\
    for m in $($b cat /modules/order); do $b insmod /modules/$m; done; $b mount -t ext4 /dev/vdb /new\n\
    $b mount --move /dev /new/dev; $b mount --move /proc /new/proc; exec $b switch_root /new /init\n";

/// Says what the kernel was given, does what is to be done, says how that ended, and waits for the end.
const SECOND: &str = "#!/bin/sh\nmount -t sysfs sys /sys; mount -t efivarfs none /sys/firmware/efi/efivars\n\
    mount -o remount,rw /; mount -t vfat -o umask=077 /dev/vda /boot; echo \"booted: $(cat /proc/cmdline)\"\n\
    sh /todo 2>&1; echo \"ended: $?\"; while :; do busybox sleep 60; done\n";

/// Makes the directory $1: the initramfs of modules, then the tree of the second disk.
const FILL: &str = "cd \"$1\"; stage=lib/modules/$2; mkdir -p $stage init/bin init/proc init/dev init/new init/modules\n\
    cp -a \"$3/.\" $stage; depmod -b . \"$2\"; cp \"$(command -v busybox)\" init/bin/busybox; printf %s \"$5\" > init/init\n\
    with_libraries() { { ldd \"$1\" || :; } | { grep -o '/[^ ]*' || :; } | while read l; do cp -L --parents \"$l\" \"$2\"; done; }\n\
    with_libraries \"$(command -v busybox)\" init\n\
    for m in $4; do modprobe -d . -S \"$2\" --show-depends $m; done | { grep ^insmod || :; } | awk '!seen[$2]++ { print $2 }' |\n\
    while read f; do cp $f init/modules; basename $f >> init/modules/order; done\n\
    chmod +x init/init; (cd init; find . | cpio -o -H newc --quiet) > initrd\n\
    mkdir -p root/proc root/dev root/sys root/boot root/etc/kernel root/var/lib root/tmp root/usr/bin root/usr/lib root/usr/lib64\n\
    for n in bin lib lib64; do ln -s usr/$n root/$n; done; ln -s usr/bin root/sbin; printf %s \"$6\" > root/init; chmod +x root/init\n\
    for p in \"$7\" \"$(command -v busybox)\" $(command -v bootctl || :); do cp $p root/usr/bin; with_libraries $p root; done\n\
    for a in sh cat ls mount mv; do ln -s busybox root/usr/bin/$a; done";

/// A machine with UEFI: its firmware's variables, the disk that it boots from, and the one of its system.
struct Machine(tempfile::TempDir);

/// How a boot went: what the kernel was given, what was said then, and how that ended.
struct Boot {
    given: String,
    said: String,
    code: i32,
}

impl Machine {
    /// None where this machine cannot make one, which is said.
    fn new() -> Option<Self> {
        if hindered() {
            return None;
        }
        let machine = Self(tempfile::tempdir().unwrap());
        let image = kernel(AMD64.name);
        let modules = image.with_file_name("modules");
        let release = release(&image);
        let mut fill = Command::new("sh");
        fill.args(["-euc", FILL, "sh"]).arg(machine.0.path()).arg(release).arg(modules);
        done(fill.args([MODULES, FIRST, SECOND, BINARY]));
        machine.boot_disk(&image);
        fs::write(machine.place("root/etc/kernel/cmdline"), format!("{DEFAULT}\n")).unwrap();
        fs::write(machine.place("root/todo"), "").unwrap();
        let mut format = Command::new("mke2fs");
        done(
            format
                .args(["-q", "-t", "ext4", "-d"])
                .arg(machine.place("root"))
                .arg(machine.place("system"))
                .arg("192M"),
        );
        fs::copy(VARIABLES, machine.place("variables")).unwrap();
        Some(machine)
    }

    fn place(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The disk that the firmware starts from.
    fn boot_disk(&self, image: &Path) {
        let disk = self.place("disk");
        File::create(&disk).unwrap().set_len(96 << 20).unwrap();
        done(Command::new("mkfs.vfat").arg(&disk));
        let at = |program: &str| {
            let mut command = Command::new(program);
            command.env("MTOOLSRC", "/dev/null").arg("-i").arg(&disk);
            command
        };
        done(at("mmd").args(["::EFI", "::EFI/BOOT", "::loader", "::loader/entries"]));
        let settings = self.place("loader.conf");
        fs::write(&settings, "timeout 0\n").unwrap();
        fs::write(self.place("entry"), ENTRY).unwrap();
        for (from, to) in [
            (Path::new(LOADER), "::EFI/BOOT/BOOTX64.EFI".to_owned()),
            (image, "::linux".to_owned()),
            (&self.place("initrd"), "::initrd".to_owned()),
            (&settings, "::loader/loader.conf".to_owned()),
            (&self.place("entry"), format!("::loader/entries/{NAME}.conf")),
        ] {
            done(at("mcopy").arg(from).arg(to));
        }
    }

    /// Boots, and has `script` done there; the plug is pulled then.
    fn boots(&self, script: &str) -> Boot {
        self.put(script);
        let mut boot = Command::new("timeout");
        boot.args([
            "180",
            "qemu-system-x86_64",
            "-machine",
            "q35",
            "-m",
            "512",
            "-nic",
            "none",
            "-nographic",
        ]);
        boot.arg("-drive").arg(format!("if=pflash,format=raw,readonly=on,file={FIRMWARE}"));
        boot.arg("-drive").arg(format!("if=pflash,format=raw,file={}", self.place("variables").display()));
        for disk in ["disk", "system"] {
            boot.arg("-drive").arg(format!("if=virtio,format=raw,file={}", self.place(disk).display()));
        }
        let mut guest = boot.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(guest.stdout.take().unwrap()).split(b'\n');
        let mut lines = lines.map(|line| String::from_utf8_lossy(&line.unwrap()).trim_end().to_owned());
        let mut before = String::new();
        let given = lines.by_ref().find_map(|line| {
            before += &format!("{line}\n");
            Some(line.strip_prefix("booted: ")?.to_owned())
        });
        let given = given.unwrap_or_else(|| panic!("it was not booted: {before}"));
        let mut boot = Boot { given, said: String::new(), code: -1 };
        boot.given = boot.given.replace("initrd=\\initrd ", "");
        for line in lines {
            if let Some(code) = line.strip_prefix("ended: ") {
                boot.code = code.parse().unwrap();
                break;
            }
            boot.said += &format!("{line}\n");
        }
        // `timeout` hands the signal on.
        kill_process(Pid::from_child(&guest), Signal::TERM).unwrap();
        guest.wait().unwrap();
        assert_ne!(boot.code, -1, "it never came to its end: {}", boot.said);
        boot
    }

    /// The same of what must succeed: what the kernel was given.
    fn must(&self, script: &str) -> String {
        let boot = self.boots(script);
        assert_eq!(boot.code, 0, "{script}: {}", boot.said);
        boot.given
    }

    /// Writes what is to be done into the second disk, once what its journal holds is in its place.
    fn put(&self, script: &str) {
        let system = self.place("system");
        fs::write(self.place("todo"), format!("export NO_COLOR=1 COLUMNS=200; set -e\n{script}\n")).unwrap();
        // It answers 1 for what it has put in order.
        Command::new("e2fsck").arg("-fy").arg(&system).output().unwrap();
        for request in ["rm /todo".to_owned(), format!("write {} /todo", self.place("todo").display())] {
            done(Command::new("debugfs").args(["-w", "-R", &request]).arg(&system));
        }
    }
}

/// A kernel's release, from what its image says of itself behind the boot protocol's header.
fn release(image: &Path) -> String {
    let bytes = fs::read(image).unwrap();
    let start = usize::from(u16::from_le_bytes([bytes[0x20e], bytes[0x20f]])) + 0x200;
    let text = bytes[start..].split(|byte| *byte == b' ').next().unwrap();
    String::from_utf8(text.to_vec()).unwrap()
}

/// Whether something is missing, which is said.
fn hindered() -> bool {
    const PROGRAMS: &[&str] = &[
        "qemu-system-x86_64",
        "mkfs.vfat",
        "mcopy",
        "mke2fs",
        "e2fsck",
        "debugfs",
        "depmod",
        "modprobe",
        "cpio",
        "busybox",
        "bootctl",
    ];
    let files = [(LOADER, "systemd-boot-efi"), (FIRMWARE, "ovmf"), (VARIABLES, "ovmf")];
    hindered_by(&files, PROGRAMS, AMD64.fetch)
}

/// A command line for `tune persist`.
fn persist(words: &str) -> String {
    format!("worstcase tune persist --boot {words}")
}

fn with_words(manner: &str) -> String {
    persist(&format!("--words '{WORDS}' {manner}"))
}

#[test]
#[ignore = "long"]
fn a_trial_is_booted_once_and_then_the_default_until_it_is_kept() {
    let Some(machine) = Machine::new() else { return };
    let given = format!("{DEFAULT} {WORDS}");
    assert_eq!(machine.must(&with_words("--trial")), DEFAULT);
    assert_eq!(machine.must(""), given);
    let second = machine.boots(&persist("--keep"));
    assert_eq!(second.given, DEFAULT, "the trial was switched off in the middle");
    assert!(second.code == 2 && second.said.contains("was not booted with"), "{}", second.said);
    machine.must(&format!("{}; {}", persist("--undo"), with_words("--trial")));
    assert_eq!(machine.must(&persist("--keep")), given);
    let kept = machine.boots(&format!("{} || :; {}", persist("--status"), persist("--undo")));
    assert_eq!((kept.given, kept.code), (given, 0), "{}", kept.said);
    assert!(kept.said.contains("given     dyndbg") && !kept.said.contains("not given"), "{}", kept.said);
    assert_eq!(machine.must(""), DEFAULT);
}

#[test]
#[ignore = "long"]
fn without_the_firmwares_variables_a_trial_is_an_entry_that_may_fail_once() {
    let Some(machine) = Machine::new() else { return };
    machine.must(&format!("mv /usr/bin/bootctl /tmp; {}", with_words("--trial")));
    assert_eq!(machine.must(""), format!("{DEFAULT} {WORDS}"));
    let undone = machine.boots(&format!("{}; ls /boot/loader/entries", persist("--undo")));
    assert_eq!(undone.given, DEFAULT, "it has no try left");
    assert!(undone.code == 0 && undone.said.ends_with(&format!("\n{NAME}.conf\n")), "{}", undone.said);
}

#[test]
#[ignore = "long"]
fn an_entry_of_its_own_stands_beside_the_default_which_the_firmware_may_keep() {
    let Some(machine) = Machine::new() else { return };
    assert_eq!(machine.must(&with_words("--entry")), DEFAULT);
    assert_eq!(machine.must("bootctl set-oneshot 0-worstcase.conf"), DEFAULT);
    // Another entry becomes the default by a variable of the firmware.
    let script = format!(
        "{}; cd /boot/loader/entries; busybox sed 's/quiet/older/; /^sort-key/d' {NAME}.conf >older.conf\n\
         bootctl set-default older.conf; {}",
        persist("--undo"),
        persist("--words x.y=z")
    );
    assert_eq!(machine.must(&script), format!("{DEFAULT} {WORDS}"));
    assert_eq!(machine.must(""), format!("{} x.y=z", DEFAULT.replace("quiet", "older")));
}

#[test]
#[ignore = "long"]
fn the_default_entry_itself_is_changed_and_comes_back() {
    let Some(machine) = Machine::new() else { return };
    assert_eq!(machine.must(&with_words("")), DEFAULT);
    assert_eq!(machine.must(&persist("--undo")), format!("{DEFAULT} {WORDS}"));
    assert_eq!(machine.must(&format!("cat /boot/loader/entries/{NAME}.conf")), DEFAULT);
}
