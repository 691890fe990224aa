//! Boot words through an extlinux that boots: QEMU starts a disk with Syslinux's own boot sector, a file system on which
//! `extlinux --install` was run, and a file of labels as people write it.
#![allow(clippy::unwrap_used)]

#[path = "support/boot_disk.rs"]
mod boot_disk;

use std::fs;

use boot_disk::{AMD64, Disk, Loader};

const BOOT_SECTOR: &str = "/usr/lib/EXTLINUX/mbr.bin";
const CONFIGURATION: &str = "/boot/extlinux/extlinux.conf";

const EXTLINUX: Loader = Loader {
    name: "extlinux",
    programs: &["extlinux"],
    package: (BOOT_SECTOR, "extlinux"),
    kernel: AMD64,
    write_what_boots: |disk| disk.write_boot_sector(&fs::read(BOOT_SECTOR).unwrap()),
    // Syslinux 6 reads no newer forms of ext4.
    format: &["mke2fs", "-q", "-t", "ext4", "-O", "^64bit,^metadata_csum"],
    fill: "mkdir -p boot/extlinux; extlinux --install boot/extlinux --device \"$1\" 2>&1\n\
        cp /usr/lib/syslinux/modules/bios/menu.c32 /usr/lib/syslinux/modules/bios/libutil.c32 boot/extlinux",
    machine: &["qemu-system-x86_64", "-m", "512"],
    interface: "ide",
    mark: "booted: ",
    default: DEFAULT,
};

/// As somebody writes it by hand.
const LABELS: &str = "# /boot/extlinux/extlinux.conf\nDEFAULT linux\nPROMPT 0\nTIMEOUT 50\n\n\
    LABEL linux\n\tMENU LABEL ^Debian 12\n\tLINUX /boot/vmlinuz-6.1.0-1-amd64\n\
    \tINITRD /boot/initrd.img-6.1.0-1-amd64\n\tAPPEND root=/dev/vdb ro console=ttyS0 quiet\n\n\
    # When nothing else helps.\nLABEL rescue\n\tMENU LABEL Debian 12 (rescue)\n\tLINUX /boot/vmlinuz-6.1.0-1-amd64\n\
    \tINITRD /boot/initrd.img-6.1.0-1-amd64\n\tAPPEND root=/dev/vdb ro console=ttyS0 single\n";
/// What a kernel is given by that.
const DEFAULT: &str = "BOOT_IMAGE=/boot/vmlinuz-6.1.0-1-amd64 root=/dev/vdb ro console=ttyS0 quiet \
    initrd=/boot/initrd.img-6.1.0-1-amd64";

const WORDS: &str = "isolcpus=managed_irq,domain,1 memmap=64K@0x18690000 dyndbg=\"file a.c +p; file b.c +p\"";

/// The default's line with the words behind its own.
fn with_words() -> String {
    DEFAULT.replace(" initrd=", &format!(" {WORDS} initrd="))
}

/// None where this machine cannot make one, which is said.
fn disk(labels: &str) -> Option<Disk> {
    let disk = Disk::new(&EXTLINUX)?;
    disk.write(CONFIGURATION, labels);
    Some(disk)
}

#[test]
#[ignore = "long"]
fn words_are_those_of_the_default_until_they_are_taken_back() {
    let Some(disk) = disk(LABELS) else { return };
    assert_eq!(disk.booted(), DEFAULT);
    disk.persist(&["--words", WORDS]);
    assert_eq!(disk.booted(), with_words());
    let (_, said) = disk.asked(&["--status"]);
    assert!(said.contains("given") && !said.contains("not given"), "{said}");
    disk.persist(&["--undo"]);
    assert_eq!(disk.booted(), DEFAULT);
    assert_eq!(disk.must(&["cat", CONFIGURATION]), LABELS);
}

#[test]
#[ignore = "long"]
fn a_label_of_its_own_stands_beside_the_default_and_is_booted_once_where_that_is_asked_for() {
    let Some(disk) = disk(LABELS) else { return };
    let (code, said) = disk.asked(&["--words", WORDS, "--trial"]);
    assert!(code == Some(2) && said.contains("cannot boot something once"), "{said}");
    disk.persist(&["--words", WORDS, "--entry"]);
    assert_eq!(disk.booted(), DEFAULT);
    disk.must(&["extlinux", "--once=worstcase", "/boot/extlinux"]);
    assert_eq!([disk.booted(), disk.booted()], [with_words(), DEFAULT.to_owned()]);
}
