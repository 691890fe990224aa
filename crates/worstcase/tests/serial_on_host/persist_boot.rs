//! Kernel parameters through a GRUB that boots: QEMU starts a disk with GRUB's own boot sector and core, a file system, and the menu
//! that grub-mkconfig makes there.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::boot_disk::{AMD64, Disk, Loader, SECTOR, START, done};

const MODULES: &str = "/usr/lib/grub/i386-pc";

const GRUB: Loader = Loader {
    name: "grub",
    programs: &["grub-mkimage", "grub-mkconfig"],
    package: ("/usr/lib/grub/i386-pc/boot.img", "grub-pc-bin"),
    kernel: AMD64,
    write_what_boots,
    format: &["mke2fs", "-q", "-t", "ext4"],
    fill: "mkdir -p boot/grub etc/default/grub.d; cp -a /etc/grub.d etc; cp -a /usr/lib/grub/i386-pc boot/grub",
    machine: &["qemu-system-x86_64", "-m", "512"],
    interface: "ide",
    mark: "booted: BOOT_IMAGE=/boot/vmlinuz-6.1.0-1-amd64 ",
    default: DEFAULT,
};

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

/// The boot sector, and GRUB's core behind it, as its manual says. Where each looks for the next is what they hold by
/// themselves: sector 1, sector 2.
fn write_what_boots(disk: &Disk) {
    let core = disk.place("core.img");
    let mut make = Command::new("grub-mkimage");
    make.args(["--format", "i386-pc", "--prefix", "(hd0,msdos1)/boot/grub", "--output"]).arg(&core);
    done(make.args(["biosdisk", "part_msdos", "ext2", "normal"]));
    disk.write_boot_sector(&fs::read(Path::new(MODULES).join("boot.img")).unwrap());
    let core = fs::read(core).unwrap();
    assert!(core.len() as u64 <= (START - 1) * SECTOR);
    disk.write_at(1, &core);
}

/// None where this machine cannot make one, which is said.
fn disk() -> Option<Disk> {
    let disk = Disk::new(&GRUB)?;
    disk.write("/etc/default/grub", DEFAULTS);
    let made = disk.must(&["sh", "-ec", "grub-editenv - create; grub-mkconfig -o /boot/grub/grub.cfg"]);
    assert!(made.contains("Found initrd image"), "{made}");
    Some(disk)
}

#[test]
#[ignore = "long"]
fn a_trial_is_booted_once_and_then_the_default_until_it_is_kept() {
    let Some(disk) = disk() else { return };
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
    let Some(disk) = disk() else { return };
    disk.persist(&["--words", WORDS, "--entry"]);
    assert_eq!(disk.booted(), DEFAULT);
    disk.must(&["grub-editenv", "/boot/grub/grubenv", "set", "next_entry=worstcase"]);
    assert_eq!(disk.booted(), format!("{DEFAULT}{GIVEN}"));
}
