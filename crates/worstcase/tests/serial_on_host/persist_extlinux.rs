//! Kernel parameters through an extlinux that boots: QEMU starts a disk with Syslinux's own boot sector, a file system on which
//! `extlinux --install` was run, and a file of labels as people write it.
#![allow(clippy::unwrap_used)]

use std::fs;

use crate::support::boot_disk::{AMD64, Disk, Loader};

const BOOT_SECTOR: &str = "/usr/lib/EXTLINUX/mbr.bin";
const CONFIGURATION: &str = "/boot/extlinux/extlinux.conf";

const EXTLINUX: Loader = Loader {
    name: "extlinux",
    programs: &["extlinux"],
    package: ("/usr/lib/syslinux/modules/bios/menu.c32", "syslinux-common"),
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

/// What people and distributions write otherwise, and the label's number that Syslinux boots of it. The first is what
/// Alpine's update-extlinux makes.
const FORMS: [(&str, usize); 7] = [
    (
        "DEFAULT menu.c32\nPROMPT 0\nMENU TITLE Alpine/Linux Boot Menu\nMENU HIDDEN\nTIMEOUT 10\n{1}{2}\tMENU DEFAULT\nMENU SEPARATOR\n",
        2,
    ),
    ("{1}{2}TIMEOUT 10\nDEFAULT two\n", 2),
    ("UI menu.c32\nDEFAULT one\nTIMEOUT 10\n{1}{2}\tMENU DEFAULT\n", 1),
    ("DEFAULT one\nPROMPT 1\nTIMEOUT 10\nONTIMEOUT two\n{1}{2}", 2),
    ("DEFAULT two\n{1}{2}TEXT HELP\n default one\n label and append three\n append four\nENDTEXT\n", 2),
    ("DEFAULT one\nTIMEOUT 10\n{1}INCLUDE more.cfg\n", 2),
    ("DEFAULT two\n{1}{2}MENU BEGIN more\nMENU TITLE More\n{3}MENU END\n", 2),
];

#[test]
#[ignore = "long"]
fn each_form_of_the_file_is_read_as_it_is_booted_and_gets_the_words() {
    let Some(disk) = disk(LABELS) else { return };
    let label = |name: &str| {
        format!(
            "LABEL {name}\n\tLINUX /boot/vmlinuz-6.1.0-1-amd64\n\tINITRD /boot/initrd.img-6.1.0-1-amd64\n\
             \tAPPEND console=ttyS0 quiet {name}=1\n"
        )
    };
    let names = ["one", "two", "three"];
    disk.write("/boot/extlinux/more.cfg", &format!("DEFAULT two\n{}", label("two")));
    for (form, number) in FORMS {
        let fill =
            |form: String, number: usize| form.replace(&format!("{{{number}}}"), &label(names[number - 1]));
        let text = (1..=3).fold(form.to_owned(), fill);
        disk.write(CONFIGURATION, &text);
        let given = |words: &str| {
            let line = format!("console=ttyS0 quiet {}=1{words}", names[number - 1]);
            format!("BOOT_IMAGE=/boot/vmlinuz-6.1.0-1-amd64 {line} initrd=/boot/initrd.img-6.1.0-1-amd64")
        };
        assert_eq!(disk.booted(), given(""), "{text}");
        disk.persist(&["--words", "nohz_full=1"]);
        assert_eq!(disk.booted(), given(" nohz_full=1"), "{text}");
        disk.persist(&["--undo"]);
        assert_eq!(disk.must(&["cat", CONFIGURATION]), text);
    }
}

#[test]
#[ignore = "long"]
fn a_label_without_a_kernel_and_a_default_with_words_are_copied_as_syslinux_reads_them() {
    let Some(disk) = disk(LABELS) else { return };
    let name = "/boot/vmlinuz-6.1.0-1-amd64";
    let append = "initrd=/boot/initrd.img-6.1.0-1-amd64 console=ttyS0 quiet";
    disk.write(CONFIGURATION, &format!("DEFAULT {name} more=1\nLABEL {name}\n  APPEND {append}\n"));
    assert_eq!(disk.booted(), format!("BOOT_IMAGE={name} {append} more=1"));
    disk.persist(&["--words", "nohz_full=1"]);
    assert_eq!(disk.booted(), format!("BOOT_IMAGE={name} {append} more=1 nohz_full=1"));
}
