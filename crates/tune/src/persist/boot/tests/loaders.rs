//! The other loaders, on files as distributions and boards have them.

use super::*;
use crate::undo::Back;

const WORDS: &str = "isolcpus=2-3 nohz_full=2-3";
const MACHINE: &str = "0123456789abcdef0123456789abcdef";

/// Fedora: GRUB with an entry a kernel.
fn fedora(options: &str) -> Machine {
    let entry = |version: &str| {
        format!(
            "title Fedora Linux ({version}) 41 (Server Edition)\nversion {version}\nlinux /vmlinuz-{version}\n\
             initrd /initramfs-{version}.img\noptions {options}\ngrub_users $grub_users\ngrub_arg --unrestricted\n\
             grub_class fedora\n"
        )
    };
    let (old, new) = ("6.11.4-301.fc41.x86_64", "6.12.7-200.fc41.x86_64");
    let block = format!(
        "{:#<1024}",
        format!("# GRUB Environment Block\nsaved_entry={MACHINE}-{new}\nkernelopts=root=/dev/sda3 ro \n")
    );
    Machine::new(&[
        ("/boot/grub2/grub.cfg", "set pager=1\nif [ -f ${config_directory}/grubenv ]; then\n  load_env -f ${config_directory}/grubenv\nfi\nif [ \"${next_entry}\" ] ; then\n   set default=\"${next_entry}\"\n   set next_entry=\n   save_env next_entry\nelse\n   set default=\"${saved_entry}\"\nfi\ninsmod blscfg\nblscfg\n"),
        ("/boot/grub2/grubenv", &block),
        (&format!("/boot/loader/entries/{MACHINE}-{old}.conf"), &entry(old)),
        (&format!("/boot/loader/entries/{MACHINE}-{new}.conf"), &entry(new)),
        ("/etc/kernel/cmdline", "root=/dev/sda3 ro quiet rhgb\n"),
        ("/proc/self/mountinfo", "22 1 254:1 / / rw - btrfs /dev/vda3 rw\n23 22 254:2 / /boot rw - ext4 /dev/vda2 rw\n"),
    ])
    .with(&["grub-editenv"])
}

#[test]
fn entries_of_the_specification_are_changed_where_they_stand() {
    let mut machine = fedora("root=/dev/sda3 ro quiet rhgb");
    let plan = machine.round_trip(WORDS, Manner::Default);
    assert_eq!((plan.loader, plan.draft.edits.len()), ("bls", 2));
    machine.persist(WORDS, Manner::Default).unwrap();
    assert_eq!(machine.text("/etc/kernel/cmdline"), format!("root=/dev/sda3 ro quiet rhgb {WORDS}\n"));
    machine.undo();
    machine.round_trip(WORDS, Manner::Entry);
    let plan = machine.round_trip(WORDS, Manner::Trial);
    assert_eq!(plan.draft.setting.unwrap().value(), format!("{MACHINE}-0-worstcase"));
    for eaten in ["a=b;c", "memmap=1$2", "dyndbg=\"file a +p\""] {
        assert!(machine.refusal(eaten, Manner::Default).contains("does not hand on"), "{eaten}");
    }
}

#[test]
fn words_behind_kernelopts_are_added_and_those_within_are_not_taken_away() {
    let mut machine = fedora("$kernelopts");
    assert_eq!(machine.next(), "root=/dev/sda3 ro");
    machine.round_trip(WORDS, Manner::Default);
    let edit = ParameterEdit { remove: vec!["ro".into()], ..ParameterEdit::default() };
    let error = machine.plan_of(&edit, Manner::Default).unwrap_err();
    assert!(error.reason.contains("/boot/grub2/grubenv"), "{error}");
}

/// systemd-boot with entries that kernel-install made.
fn systemd_boot(settings: &str, tail: &str) -> Machine {
    let entry = |version: &str| {
        format!(
            "# Boot Loader Specification type#1 entry\n# File created by /usr/lib/kernel/install.d/90-loaderentry.install\n\
             title      Debian GNU/Linux 12 (bookworm)\nversion    {version}\nmachine-id {MACHINE}\n{tail}\
             options    root=UUID=1 ro quiet systemd.machine_id={MACHINE}\nlinux      /{MACHINE}/{version}/linux\n\
             initrd     /{MACHINE}/{version}/initrd.img-{version}\n"
        )
    };
    Machine::new(&[
        ("/boot/efi/loader/loader.conf", settings),
        (&format!("/boot/efi/loader/entries/{MACHINE}-6.1.0-40-amd64.conf"), &entry("6.1.0-40-amd64")),
        (&format!("/boot/efi/loader/entries/{MACHINE}-6.1.0-41-amd64.conf"), &entry("6.1.0-41-amd64")),
        ("/etc/kernel/cmdline", "root=UUID=1 ro quiet\n"),
    ])
}

#[test]
fn systemd_boot_gets_a_changed_entry_one_beside_or_one_that_may_fail_once() {
    for tail in ["", "sort-key   debian\n"] {
        let mut machine = systemd_boot("timeout 3\nconsole-mode keep\n", tail);
        machine.round_trip(WORDS, Manner::Default);
        machine.round_trip(WORDS, Manner::Entry);
        let plan = machine.round_trip(WORDS, Manner::Trial);
        assert_eq!(
            plan.draft.edits[0].path,
            format!("/boot/efi/loader/entries/{MACHINE}-6.1.0-41-amd64_worstcase+1.conf")
        );
        machine.persist(WORDS, Manner::Trial).unwrap();
        assert!(machine.next().ends_with(WORDS));
        // systemd-boot counts: the entry has no try left.
        let (first, used) =
            (plan.draft.edits[0].path.clone(), plan.draft.edits[0].path.replace("+1", "+0-1"));
        std::fs::rename(machine.at(&first), machine.at(&used)).unwrap();
        assert!(!machine.next().ends_with(WORDS), "the old default comes back by itself");
        assert_eq!(machine.undo().files[0].back, Back::Restored, "whatever the loader calls it now");
        assert!(!machine.at(&used).exists());
    }
}

#[test]
fn systemd_boot_boots_once_what_the_firmware_is_reported() {
    let mut machine = systemd_boot("timeout 3\n", "").with(&["bootctl"]);
    machine.put("/sys/firmware/efi/efivars/LoaderInfo-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f", "x");
    machine.round_trip(WORDS, Manner::Trial);
    let set = ["bootctl set-oneshot 0-worstcase.conf", "bootctl set-oneshot "];
    assert_eq!(machine.programs.ran, set);
}

#[test]
fn what_systemd_boot_does_not_read_from_files_is_refused() {
    let mut machine = systemd_boot("timeout 3\n", "");
    machine.put("/boot/efi/EFI/Linux/debian.efi", "MZ");
    assert!(machine.refusal(WORDS, Manner::Default).contains("sealed in a signed image"));
    let mut machine = systemd_boot("default 0123*\n", "");
    assert!(machine.refusal(WORDS, Manner::Trial).contains("by name"));
    machine.round_trip(WORDS, Manner::Entry);
    assert!(machine.refusal("panic=1 panic=2", Manner::Default).contains("given twice"));
}

const EXTLINUX: &str = "## /boot/extlinux/extlinux.conf\n##\n## IMPORTANT WARNING\n##\n## The configuration of this file is generated automatically.\n\
    ## Do not edit this file manually, use: u-boot-update\n\ndefault l0\nmenu title U-Boot menu\nprompt 0\ntimeout 50\n\n\n\
    label l0\n\tmenu label Debian GNU/Linux 12 (bookworm) 6.1.0-41-arm64\n\tlinux /boot/vmlinuz-6.1.0-41-arm64\n\
    \tinitrd /boot/initrd.img-6.1.0-41-arm64\n\tfdtdir /usr/lib/linux-image-6.1.0-41-arm64/\n\n\tappend root=UUID=1 ro quiet\n\n\
    label l0r\n\tmenu label rescue\n\tlinux /boot/vmlinuz-6.1.0-41-arm64\n\tappend root=UUID=1 ro single\n";
const EXTLINUX_PATH: &str = "/boot/extlinux/extlinux.conf";

#[test]
fn extlinux_gets_a_label_beside_the_default() {
    let mut machine = Machine::new(&[(EXTLINUX_PATH, EXTLINUX)]);
    let plan = machine.round_trip(WORDS, Manner::Default);
    assert!(plan.draft.notes[0].contains("U_BOOT_PARAMETERS"), "{:?}", plan.draft.notes);
    machine.round_trip(WORDS, Manner::Entry);
    assert!(machine.refusal(WORDS, Manner::Trial).contains("it cannot boot something once"));
    assert!(machine.refusal("memmap=1$2", Manner::Default).contains("does not hand on"));
    machine.persist(WORDS, Manner::Default).unwrap();
    let text = machine.text(EXTLINUX_PATH);
    assert!(
        text.starts_with(&EXTLINUX.replace("default l0", "default worstcase")),
        "the old label stays:\n{text}"
    );
    assert!(text.contains(
        "\tfdtdir /usr/lib/linux-image-6.1.0-41-arm64/\n\tappend root=UUID=1 ro quiet isolcpus=2-3"
    ));
}

#[test]
fn extlinux_with_a_menu_default_or_no_newline_at_the_end() {
    let text =
        "label a\n  kernel /a\n  append x\nlabel b\n  menu default\n  kernel /b\n  append root=/dev/sda2 y";
    let mut machine = Machine::new(&[(EXTLINUX_PATH, text)]);
    machine.round_trip(WORDS, Manner::Default);
    machine.round_trip(WORDS, Manner::Entry);
    machine.put(EXTLINUX_PATH, "prompt 1\n");
    let why = machine.persist(WORDS, Manner::Default).unwrap_err().to_string();
    assert!(why.contains("do not say what is booted"), "{why}");
    machine.put(EXTLINUX_PATH, "label worstcase\n  append x\n");
    assert!(machine.refusal(WORDS, Manner::Default).contains("already"));
}

/// As Alpine's update-extlinux writes it.
const ALPINE: &str = "# Generated by update-extlinux 6.04_pre1-r15\nDEFAULT menu.c32\nPROMPT 0\nMENU TITLE Alpine/Linux Boot Menu\n\
    MENU HIDDEN\nMENU AUTOBOOT Alpine will be booted automatically in # seconds.\nTIMEOUT 10\n\
    LABEL virt\n  MENU LABEL Linux virt\n  LINUX vmlinuz-virt\n  INITRD initramfs-virt\n  APPEND root=UUID=1 quiet\n\n\
    LABEL lts\n  MENU DEFAULT\n  MENU LABEL Linux lts\n  LINUX vmlinuz-lts\n  INITRD initramfs-lts\n  FDTDIR dtbs-lts\n  \
    APPEND root=UUID=1 modules=sd-mod,ext4 quiet rootfstype=ext4\n\nMENU SEPARATOR\n";

#[test]
fn extlinux_keeps_a_menu_and_copies_of_a_label_only_what_belongs_to_it() {
    let mut machine = Machine::new(&[(EXTLINUX_PATH, ALPINE)]);
    machine.round_trip(WORDS, Manner::Entry);
    let plan = machine.round_trip(WORDS, Manner::Default);
    assert!(plan.draft.notes[0].contains("default_kernel_opts"), "{:?}", plan.draft.notes);
    machine.persist(WORDS, Manner::Default).unwrap();
    let text = machine.text(EXTLINUX_PATH);
    assert!(text.contains("ui menu.c32\ndefault worstcase\nPROMPT 0\n"), "{text}");
    let own = "label worstcase\n\tmenu label worstcase: Linux lts\n\tlinux vmlinuz-lts\n\tinitrd initramfs-lts\n\
        \tfdtdir dtbs-lts\n\tappend root=UUID=1 modules=sd-mod,ext4 quiet rootfstype=ext4 isolcpus=2-3 nohz_full=2-3\n";
    assert!(text.ends_with(own), "neither the default's mark nor the separator: {text}");
    machine.undo();
    let help = "default a\nlabel a\nlinux /v\nappend x\nsay hello\nTEXT HELP\nlabel b\ndefault b\nENDTEXT\nlabel b\nlinux /w\n";
    machine.put(EXTLINUX_PATH, help);
    machine.persist(WORDS, Manner::Default).unwrap();
    let text = machine.text(EXTLINUX_PATH);
    assert!(text.starts_with(&help.replacen("default a", "default worstcase", 1)), "{text}");
    assert!(text.ends_with(&format!("label worstcase\n\tlinux /v\n\tappend x {WORDS}\n")), "{text}");
}

#[test]
fn extlinux_gets_a_default_whatever_names_it_now() {
    let labels = "label a\nlinux /v\nappend a\nlabel b\nlinux /w\nappend b\n";
    let files = [
        format!("{labels}DEFAULT b\n"),
        format!("default a\nprompt 1\n{labels}ontimeout b\n"),
        format!("default b more=1\n{labels}"),
        format!("{labels}menu default\n"),
        "default /vmlinuz\nlabel /vmlinuz\n  append initrd=/i a\n".to_owned(),
    ];
    for file in files {
        let mut machine = Machine::new(&[(EXTLINUX_PATH, &file)]);
        machine.round_trip(WORDS, Manner::Entry);
        machine.round_trip(WORDS, Manner::Default);
        machine.persist(WORDS, Manner::Default).unwrap();
        let text = machine.text(EXTLINUX_PATH);
        let lower = text.to_lowercase();
        let names =
            lower.lines().filter(|line| line.starts_with("default ") || line.starts_with("ontimeout "));
        assert!(names.clone().all(|line| line.ends_with(" worstcase")) && names.count() > 0, "{text}");
        assert!(!text.contains("/vmlinuz") || text.contains("\tkernel /vmlinuz\n"), "{text}");
    }
}

#[test]
fn extlinux_that_includes_labels_gets_its_own_behind_them() {
    let main = "default a\nlabel a\n  linux /v\n  append a\ninclude more.cfg\n";
    let more = "default b\nlabel b\n  linux /w\n  append b\n";
    let mut machine = Machine::new(&[(EXTLINUX_PATH, main), ("/boot/extlinux/more.cfg", more)]);
    assert_eq!(machine.next(), "b");
    machine.round_trip(WORDS, Manner::Entry);
    machine.round_trip(WORDS, Manner::Default);
    machine.persist(WORDS, Manner::Default).unwrap();
    let text = machine.text(EXTLINUX_PATH);
    assert!(
        text.contains("include more.cfg\ndefault worstcase\n") && text.contains("\tlinux /w\n"),
        "{text}"
    );
    machine.undo();
    for word in ["a", "ab", "abc", "abcd"] {
        machine.persist(word, Manner::Default).unwrap();
        assert_ne!(machine.text(EXTLINUX_PATH).len() % 4, 0, "U-Boot would read on into what is included");
        machine.undo();
    }
}

#[test]
fn extlinux_that_boots_no_kernel_is_refused_and_a_line_without_words_is_none() {
    let mut machine = Machine::new(&[(EXTLINUX_PATH, "default a\nlabel a\n  localboot 0\n")]);
    assert!(machine.refusal(WORDS, Manner::Default).contains("boots no kernel"));
    machine.put(EXTLINUX_PATH, "default a\nlabel a\n  linux /v\n  append quiet\n");
    let edit = ParameterEdit { remove: vec!["quiet".into()], ..ParameterEdit::default() };
    let plan = machine.plan_of(&edit, Manner::Default).unwrap();
    machine.write(&plan).unwrap();
    assert!(
        machine.text(EXTLINUX_PATH).ends_with("\tappend -\n"),
        "U-Boot stops at a keyword without a value"
    );
    machine.undo();
    let long = format!("a={}", "x".repeat(600));
    assert!(machine.plan(&long, Manner::Default).unwrap().draft.notes[0].contains("CONFIG_SYS_CBSIZE"));
}

#[test]
fn who_makes_the_entries_of_systemd_boot_anew_is_named() {
    let entry = "title NixOS\nlinux /l\noptions root=1 quiet\n";
    let notes = |name: &str| {
        let mut machine = Machine::new(&[
            ("/boot/efi/loader/loader.conf", "timeout 3\n"),
            (&format!("/boot/efi/loader/entries/{name}.conf"), entry),
            ("/boot/efi/l", ""),
        ]);
        machine.plan_of(&ParameterEdit::of(WORDS).unwrap(), Manner::Default).unwrap().draft.notes
    };
    assert!(
        notes("nixos-generation-7")[0].contains("boot.kernelParams"),
        "{:?}",
        notes("nixos-generation-7")
    );
    assert_eq!(notes("debian-6.1"), Vec::<String>::new());
}

#[test]
fn a_line_that_only_some_of_the_pis_boards_read_is_not_written() {
    let with = |settings: &str| {
        Machine::new(&[
            ("/boot/firmware/cmdline.txt", "root=1\n"),
            ("/boot/firmware/other.txt", "root=2\n"),
            ("/boot/firmware/new/cmdline.txt", "root=3\n"),
            ("/boot/firmware/config.txt", settings),
        ])
    };
    for settings in [
        "[pi3]\ncmdline=other.txt\n",
        "[tryboot]\ncmdline=other.txt\n[all]\n",
        "[EDID=VSC-TD2220]\nos_prefix=new/\n",
    ] {
        for manner in [Manner::Default, Manner::Trial] {
            let refusal = with(settings).refusal(WORDS, manner);
            assert!(refusal.contains(settings.lines().next().unwrap()), "{refusal}");
        }
    }
    let mut machine = with("[none]\ncmdline=other.txt\n");
    machine.persist(WORDS, Manner::Default).unwrap();
    assert_eq!(machine.text("/boot/firmware/cmdline.txt"), format!("root=1 {WORDS}\n"));
    let mut machine = with("[pi3]\narm_freq=1\n[all]\ncmdline=other.txt\n");
    machine.persist(WORDS, Manner::Default).unwrap();
    assert_eq!(machine.text("/boot/firmware/other.txt"), format!("root=2 {WORDS}\n"));
}

#[test]
fn the_pis_line_stays_one_line() {
    let line =
        "console=serial0,115200 console=tty1 root=PARTUUID=1-02 rootfstype=ext4 fsck.repair=yes rootwait";
    for end in ["", "\n", "\r\n", "\nignored second line\n"] {
        let mut machine = Machine::new(&[
            ("/boot/firmware/cmdline.txt", &format!("{line}{end}")),
            ("/boot/firmware/config.txt", "dtparam=audio=on\n[cm4]\notg_mode=1\n"),
        ]);
        machine.round_trip(WORDS, Manner::Default);
        machine.round_trip(WORDS, Manner::Trial);
        machine.persist(WORDS, Manner::Default).unwrap();
        assert_eq!(machine.text("/boot/firmware/cmdline.txt"), format!("{line} {WORDS}{end}"));
        machine.undo();
        assert!(machine.refusal(WORDS, Manner::Entry).contains("no menu"));
        machine.persist(WORDS, Manner::Trial).unwrap();
        let trial = machine.text("/boot/firmware/tryboot.txt");
        assert!(trial.starts_with("dtparam=audio=on\n[cm4]\notg_mode=1\n\n[all]\n"), "{trial}");
        assert!(trial.ends_with("\ncmdline=cmdline-worstcase.txt\n"));
        assert_eq!(machine.next(), line);
    }
}

#[test]
fn the_pis_files_may_have_other_names_and_a_trial_of_others_is_left_alone() {
    let mut machine = Machine::new(&[
        ("/boot/firmware/config.txt", "os_prefix=current/\ncmdline=line.txt\n"),
        ("/boot/firmware/current/line.txt", "root=LABEL=writable rw"),
    ]);
    machine.round_trip(WORDS, Manner::Default);
    let plan = machine.round_trip(WORDS, Manner::Trial);
    assert_eq!(plan.draft.edits[0].path, "/boot/firmware/current/cmdline-worstcase.txt");
    machine.put("/boot/firmware/tryboot.txt", "# another trial\n");
    assert!(machine.refusal(WORDS, Manner::Trial).contains("tryboot.txt"));
}

#[test]
fn boards_take_words_in_the_variable_that_is_there() {
    let armbian = "verbosity=1\nbootlogo=false\noverlay_prefix=rockchip\nrootdev=UUID=1\nrootfstype=ext4\n";
    let mut machine = Machine::new(&[("/boot/armbianEnv.txt", armbian)]);
    machine.round_trip(WORDS, Manner::Default);
    machine.put(
        "/boot/armbianEnv.txt",
        &format!("{armbian}extraargs=cma=128M quiet\nusbstoragequirks=0x1:0x2:u\n"),
    );
    machine.round_trip(WORDS, Manner::Default);
    machine.persist(WORDS, Manner::Default).unwrap();
    assert!(
        machine
            .text("/boot/armbianEnv.txt")
            .contains("\nextraargs=cma=128M quiet isolcpus=2-3 nohz_full=2-3\nusb")
    );
    machine.undo();
    machine.put("/boot/armbianEnv.txt", "extraargs =quiet\n");
    machine.persist(WORDS, Manner::Default).unwrap();
    let text = machine.text("/boot/armbianEnv.txt");
    assert_eq!(
        text,
        format!("extraargs =quiet\nextraargs={WORDS}\n"),
        "the other variable's name ends with a blank"
    );
    machine.undo();
    for manner in [Manner::Trial, Manner::Entry] {
        assert!(machine.refusal(WORDS, manner).contains("altbootcmd"));
    }
    assert!(machine.refusal("a=b;c", Manner::Default).contains("does not hand on"));
    let mut beagle = Machine::new(&[(
        "/boot/uEnv.txt",
        "uname_r=5.10.168-ti-r71\ncmdline=coherent_pool=1M net.ifnames=0\r\n",
    )]);
    beagle.round_trip(WORDS, Manner::Default);
    let mut other = Machine::new(&[("/boot/uEnv.txt", "uname_r=5.10\n")]);
    assert!(other.refusal(WORDS, Manner::Default).contains("sets none of"));
}

#[test]
fn the_environment_of_u_boot_gets_a_variable_of_ours_where_it_names_it() {
    let mut machine = Machine::new(&[("/etc/hostname", "board")]).with(&["fw_printenv", "fw_setenv"]);
    machine.programs.environment.insert("bootargs".into(), "console=ttyS0".into());
    assert!(machine.refusal(WORDS, Manner::Default).contains("no variable of U-Boot's environment names it"));
    let grub = plan(
        &machine.root(),
        &mut machine.programs,
        Some("grub"),
        &ParameterEdit::of(WORDS).unwrap(),
        Manner::Default,
    );
    assert!(
        grub.unwrap_err().reason.contains("none that are known"),
        "another loader is not taken for the one asked for"
    );
    let command = "setenv bootargs ${bootargs} ${worstcase_args}; booti".to_owned();
    machine.programs.environment.insert("bootcmd".into(), command);
    let before = machine.programs.environment.clone();
    machine.persist(WORDS, Manner::Default).unwrap();
    assert_eq!(machine.programs.environment["worstcase_args"], WORDS);
    assert_eq!(machine.undo().setting, Some(Back::Restored));
    assert_eq!(machine.programs.environment, before);
    machine.persist(WORDS, Manner::Default).unwrap();
    machine.programs.environment.insert("worstcase_args".into(), "other".into());
    assert_eq!(machine.undo().setting, Some(Back::Foreign("other".into())));
}

#[test]
fn a_variable_of_u_boot_that_was_not_there_is_taken_away_whatever_a_program_says_of_it() {
    for program in ["", "libubootenv"] {
        let mut machine =
            Machine::new(&[("/etc/hostname", "board")]).with(&["fw_printenv", "fw_setenv", program]);
        machine.programs.environment.insert("bootcmd".into(), "booti ${worstcase_args}".into());
        let before = machine.programs.environment.clone();
        machine.persist(WORDS, Manner::Default).unwrap();
        assert_eq!(machine.undo().setting, Some(Back::Restored));
        assert_eq!(machine.programs.environment, before);
    }
}

#[test]
fn a_kernel_that_looks_at_no_line_and_a_line_that_is_too_long_are_refused() {
    let mut machine = Machine::new(&[("/boot/cmdline.txt", "root=/dev/sda1")]);
    let long = format!("a={}", "x".repeat(2100));
    assert!(machine.refusal(&long, Manner::Default).contains("cuts off all above 2047"));
    machine.put("/proc/sys/kernel/arch", "armv7l");
    machine.put("/proc/sys/kernel/osrelease", "6.1.0");
    machine.put("/proc/cmdline", "root=/dev/sda1\n");
    let long = format!("a={}", "x".repeat(1020));
    assert!(machine.refusal(&long, Manner::Default).contains("cuts off all above 1023"));
    machine.put("/proc/config.gz", "CONFIG_CMDLINE=\"root=/dev/sda1\"\nCONFIG_CMDLINE_FORCE=y\n");
    assert!(machine.refusal(WORDS, Manner::Default).contains("CONFIG_CMDLINE_FORCE=y"));
}

#[test]
fn where_no_loader_left_files_nothing_is_guessed() {
    let mut machine = Machine::new(&[("/etc/hostname", "x")]);
    assert!(machine.refusal(WORDS, Manner::Default).contains("there are none that are known"));
}

/// A file that is changed after it was planned, and one that others change later.
#[test]
fn others_changes_are_never_overwritten() {
    let path = "/boot/cmdline.txt";
    let mut machine = Machine::new(&[(path, "root=/dev/sda1\n")]);
    let plan = machine.plan(WORDS, Manner::Default).unwrap();
    machine.put(path, "root=/dev/sda2\n");
    assert!(machine.write(&plan).is_err());
    assert_eq!(machine.text(path), "root=/dev/sda2\n");
    machine.persist(WORDS, Manner::Default).unwrap();
    machine.put(path, "root=/dev/sda2 isolcpus=2-3 mine\n");
    let undone = machine.undo();
    assert_eq!(undone.files[0].back, Back::Foreign("changed".into()));
    assert_eq!(line(&undone.left), "isolcpus=2-3", "what the next boot still has is listed");
    assert_eq!(machine.text(path), "root=/dev/sda2 isolcpus=2-3 mine\n");
}
