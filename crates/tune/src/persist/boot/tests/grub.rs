//! GRUB, as Debian has it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;

use super::*;

const DEFAULTS: &str = "# If you change this file, run 'update-grub' afterwards to update\n# /boot/grub/grub.cfg.\n\n\
    GRUB_DEFAULT=0\nGRUB_TIMEOUT=5\nGRUB_DISTRIBUTOR=`lsb_release -i -s 2> /dev/null || echo Debian`\n\
    GRUB_CMDLINE_LINUX_DEFAULT=\"quiet\"\nGRUB_CMDLINE_LINUX=\"audit=0\"\n";

const HEADER_SCRIPT: &str = "#!/bin/sh\ncat <<'EOF'\nif [ -s $prefix/grubenv ]; then\n  set have_grubenv=true\n  load_env\nfi\n\
    if [ \"${next_entry}\" ] ; then\n   set default=\"${next_entry}\"\n   set next_entry=\n   save_env next_entry\n   set boot_once=true\n\
    else\n   set default=\"0\"\nfi\nEOF\n";

const LINUX_SCRIPT: &str = "#!/bin/sh\nset -e\nargs=\"$GRUB_CMDLINE_LINUX $GRUB_CMDLINE_LINUX_DEFAULT\"\ncat <<EOF\nfunction gfxmode {\n\tset gfxpayload=\"\\${1}\"\n}\n\
    menuentry 'Debian GNU/Linux' --class debian --class os \\$menuentry_id_option 'gnulinux-simple-1' {\n\
    \tload_video\n\techo\t'Loading Linux 6.1.0-41-amd64 ...'\n\tlinux\t/boot/vmlinuz-6.1.0-41-amd64 root=UUID=1 ro ${args}\n\
    \tinitrd\t/boot/initrd.img-6.1.0-41-amd64\n}\n\
    submenu 'Advanced options' \\$menuentry_id_option 'gnulinux-advanced-1' {\n\
    \tmenuentry 'Debian GNU/Linux, with Linux 6.1.0-40-amd64' --class debian \\$menuentry_id_option 'gnulinux-6.1.0-40' {\n\
    \t\tlinux\t/boot/vmlinuz-6.1.0-40-amd64 root=UUID=1 ro ${args}\n\t}\n}\nEOF\n";

const MAKER: &str = "#! /bin/sh\n# for x in ${sysconfdir}/default/grub.d/*.cfg ; do\n";

pub(in super::super) fn debian() -> Machine {
    let block = format!("{:#<1024}", "# GRUB Environment Block\n");
    let machine = Machine::new(&[
        ("/etc/default/grub", DEFAULTS),
        (
            "/etc/default/grub.d/init-select.cfg",
            "# Work around a bug in the obsolete init-select package.\n: ${GRUB_CMDLINE_LINUX:=}\n",
        ),
        ("/etc/grub.d/00_header", HEADER_SCRIPT),
        ("/etc/grub.d/10_linux", LINUX_SCRIPT),
        ("/usr/sbin/grub-mkconfig", MAKER),
        ("/boot/grub/grubenv", &block),
        ("/proc/self/mountinfo", "22 1 254:1 / / rw - ext4 /dev/vda1 rw\n"),
    ])
    .with(&["grub-mkconfig", "grub-editenv"]);
    std::fs::create_dir_all(machine.at("/boot/grub")).unwrap();
    let menu = machine.at("/boot/grub/grub.cfg");
    assert!(machine.programs.make_menu(&menu.to_string_lossy()).unwrap().is_ok);
    machine
}

/// As openSUSE has it: other names, and a program that reads no drop-ins.
fn opensuse(programs: &[&'static str]) -> Machine {
    let machine = Machine::new(&[
        ("/etc/default/grub", DEFAULTS),
        ("/etc/grub.d/00_header", HEADER_SCRIPT),
        ("/etc/grub.d/10_linux", LINUX_SCRIPT),
        ("/usr/sbin/grub2-mkconfig", "#! /bin/sh\n. ${sysconfdir}/default/grub\n"),
        ("/sbin/update-bootloader", "#!/usr/bin/perl\n"),
    ])
    .with(programs);
    std::fs::create_dir_all(machine.at("/boot/grub2")).unwrap();
    let menu = machine.at("/boot/grub2/grub.cfg");
    assert!(machine.programs.make_menu(&menu.to_string_lossy()).unwrap().is_ok);
    machine
}

#[test]
fn opensuses_menu_is_made_by_its_own_program_and_never_by_another_distributions() {
    let mut machine = opensuse(&["grub2-mkconfig"]);
    let plan = machine.round_trip(WORDS, Manner::Default);
    assert!(plan.draft.notes.is_empty(), "{:?}", plan.draft.notes);
    let ran = &machine.programs.ran;
    assert!(!ran.is_empty() && ran.iter().all(|ran| ran.starts_with("grub2-mkconfig -o /")), "{ran:?}");
    let plan = opensuse(&[]).plan(WORDS, Manner::Default);
    let notes = plan.unwrap().draft.notes.join(" ");
    assert!(
        notes.contains("run grub2-mkconfig -o /boot/grub2/grub.cfg") && !notes.contains("update-grub"),
        "{notes}"
    );
}

const WORDS: &str = "isolcpus=managed_irq,domain,2-3 nohz_full=2-3 threadirqs";

#[test]
fn a_drop_in_appends_and_the_menu_is_made_anew() {
    let mut machine = debian();
    assert_eq!(machine.next(), "root=UUID=1 ro audit=0 quiet");
    let plan = machine.round_trip(WORDS, Manner::Default);
    assert_eq!(plan.loader, "grub");
    machine.persist(WORDS, Manner::Default).unwrap();
    assert_eq!(machine.next(), format!("root=UUID=1 ro audit=0 quiet {WORDS}"));
    assert_eq!(machine.text("/etc/default/grub"), DEFAULTS, "the distribution's file is not touched");
    assert!(machine.text("/etc/default/grub.d/90-worstcase.cfg").is_ascii());
}

/// What the shell itself makes of the drop-in, byte for byte, whatever was set before.
#[test]
fn a_strict_shell_makes_of_the_drop_in_what_was_asked_for() {
    let words = "memmap=64K$0x18690000 dyndbg=\"file a.c +p; file b.c +p\" x=`id` isolcpus=2-3 a=b&c";
    let mut machine = debian();
    machine.persist(words, Manner::Default).unwrap();
    let path = machine.at("/etc/default/grub.d/90-worstcase.cfg");
    for (before, expected) in [
        ("", ""),
        ("GRUB_CMDLINE_LINUX_DEFAULT=\n", ""),
        ("GRUB_CMDLINE_LINUX_DEFAULT='quiet splash'\n", "quiet splash"),
    ] {
        let script = format!("{before}. {}\nprintf %s \"$GRUB_CMDLINE_LINUX_DEFAULT\"", path.display());
        let output = Command::new("sh").args(["-eu", "-c", &script]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let appended =
            " 'memmap=64K$0x18690000' 'dyndbg=file a.c +p; file b.c +p' 'x=`id`' isolcpus=2-3 'a=b&c'";
        assert_eq!(text, format!("{expected}{appended}"));
        assert!(output.stderr.is_empty());
    }
    assert!(machine.next().ends_with(words), "{}", machine.next());
}

#[test]
fn an_entry_of_our_own_leaves_the_default_alone() {
    let mut machine = debian();
    let plan = machine.round_trip(WORDS, Manner::Entry);
    assert!(plan.draft.setting.is_none());
    machine.persist(WORDS, Manner::Entry).unwrap();
    assert_eq!(machine.next(), "root=UUID=1 ro audit=0 quiet");
    let menu = machine.text("/boot/grub/grub.cfg");
    assert!(menu.contains("menuentry 'worstcase: Debian GNU/Linux' --class debian --class os $menuentry_id_option 'worstcase' {"), "{menu}");
}

#[test]
fn a_trial_is_booted_once_and_undo_takes_it_back_before_and_after() {
    let mut machine = debian();
    machine.round_trip(WORDS, Manner::Trial);
    machine.persist(WORDS, Manner::Trial).unwrap();
    assert!(machine.text("/boot/grub/grubenv").contains("next_entry=worstcase\n"));
    assert!(machine.next().ends_with(WORDS), "the next boot has them");
    let consumed = machine.text("/boot/grub/grubenv").replace("next_entry=worstcase", "next_entry=");
    machine.put("/boot/grub/grubenv", &consumed);
    assert_eq!(machine.next(), "root=UUID=1 ro audit=0 quiet", "and the one after that not");
    let undone = machine.undo();
    assert_eq!(undone.setting, Some(crate::undo::Back::AsBefore));
    assert!(undone.left.is_empty());
    machine.persist(WORDS, Manner::Trial).unwrap();
    let other = machine.text("/boot/grub/grubenv").replace("next_entry=worstcase", "next_entry=1>0");
    machine.put("/boot/grub/grubenv", &other);
    assert_eq!(
        machine.undo().setting,
        Some(crate::undo::Back::Foreign("1>0".into())),
        "somebody else's choice stays"
    );
}

#[test]
fn a_trial_that_would_not_fall_back_is_refused() {
    let mut machine = debian();
    machine.put("/proc/self/mountinfo", "22 1 254:1 / / rw - btrfs /dev/vda1 rw\n");
    let why = machine.refusal(WORDS, Manner::Trial);
    assert!(why.contains("again and again") && why.contains("--entry"), "{why}");
    machine.put("/proc/self/mountinfo", "22 1 254:1 / / rw - ext4 /dev/mapper/vg-root rw\n");
    assert!(machine.refusal(WORDS, Manner::Trial).contains("/dev/mapper/vg-root"));
    machine.put(
        "/proc/self/mountinfo",
        "22 1 254:1 / / rw - btrfs /dev/vda1 rw\n23 22 254:2 / /boot rw - ext4 /dev/vda2 rw\n",
    );
    machine.round_trip(WORDS, Manner::Trial);
    machine.programs.names.retain(|name| *name != "grub-editenv");
    assert!(machine.refusal(WORDS, Manner::Trial).contains("grub-editenv"));
}

#[test]
fn a_key_that_somebody_else_has_set_is_a_conflict() {
    let mut machine = debian();
    machine.put("/etc/default/grub", &DEFAULTS.replace("quiet", "quiet isolcpus=1 splash"));
    let why = machine.refusal("isolcpus=2-3", Manner::Default);
    assert!(why.contains("/etc/default/grub, line 7 says isolcpus=1") && why.contains("--replace"), "{why}");
    let edit = ParameterEdit { replace: true, ..ParameterEdit::of("isolcpus=2-3").unwrap() };
    let plan = machine.plan_of(&edit, Manner::Default).unwrap();
    machine.write(&plan).unwrap();
    assert_eq!(machine.next(), "root=UUID=1 ro audit=0 quiet splash isolcpus=2-3");
    machine.undo();
    let remove = ParameterEdit { remove: vec!["audit".into(), "quiet".into()], ..ParameterEdit::default() };
    let plan = machine.plan_of(&remove, Manner::Default).unwrap();
    machine.write(&plan).unwrap();
    assert_eq!(machine.next(), "root=UUID=1 ro isolcpus=1 splash");
    machine.undo();
    let root = ParameterEdit { remove: vec!["root".into()], ..ParameterEdit::default() };
    let error = machine.plan_of(&root, Manner::Default).unwrap_err();
    assert!(error.reason.contains("none of GRUB's defaults"), "{error}");
}

#[test]
fn what_only_a_shell_could_tell_is_refused() {
    let mut machine = debian();
    for text in [
        "GRUB_CMDLINE_LINUX=\"$(cat /etc/line)\"\n",
        "if [ -e /x ]; then GRUB_CMDLINE_LINUX=a; fi\n",
        ". /etc/other\n",
        "GRUB_CMDLINE_LINUX+=\" more\"\n",
    ] {
        machine.put("/etc/default/grub", &format!("{DEFAULTS}{text}"));
        let why = machine.refusal(WORDS, Manner::Default);
        assert!(why.contains("only a shell could tell"), "{text}: {why}");
    }
    machine.put("/etc/default/grub", &DEFAULTS.replace("quiet", "a='b c' isolcpus=1"));
    let edit = ParameterEdit { replace: true, ..ParameterEdit::of("isolcpus=2-3").unwrap() };
    assert!(machine.plan_of(&edit, Manner::Default).is_err(), "quotes within are not taken apart");
}

#[test]
fn a_program_that_fails_or_makes_something_else_leaves_nothing_behind() {
    let mut machine = debian();
    let plan = machine.plan(WORDS, Manner::Default).unwrap();
    let before = machine.files();
    machine.programs.fails = true;
    let error = machine.write(&plan).unwrap_err();
    assert!(error.reason.contains("it fails here"), "{error}");
    assert_eq!(machine.files(), before);
    machine.programs.fails = false;
    // A later drop-in, or a script, that throws our words away.
    machine.put("/etc/default/grub.d/99-last.cfg", "GRUB_CMDLINE_LINUX_DEFAULT=quiet\n");
    let why = machine.refusal(WORDS, Manner::Default);
    assert!(why.contains("the next boot would have: root=UUID=1 ro audit=0 quiet"), "{why}");
    machine.put("/etc/default/grub.d/99-last.cfg", "");
    machine.put(
        "/etc/grub.d/10_linux",
        &LINUX_SCRIPT.replace("gnulinux-simple-1' {", "gnulinux-simple-1' {\n\tlinux /other"),
    );
    let menu = machine.at("/boot/grub/grub.cfg");
    assert!(machine.programs.make_menu(&menu.to_string_lossy()).unwrap().is_ok);
    machine.put("/etc/grub.d/10_linux", "#!/bin/sh\necho menuentry x {\necho linux /v a\necho }\n");
    machine.refusal(WORDS, Manner::Default);
}

/// A trial runs programs before, in the middle and at the end; undo finds every byte as it was, wherever it was killed.
#[test]
fn a_process_killed_around_any_program_leaves_what_undo_needs() {
    let mut whole = debian();
    whole.persist(WORDS, Manner::Trial).unwrap();
    let programs = whole.programs.ran.len();
    assert!(programs >= 4, "{:?}", whole.programs.ran);
    for number in 0..programs {
        for is_after in [false, true] {
            let mut machine = debian();
            let (before, plan) = (machine.files(), machine.plan(WORDS, Manner::Trial).unwrap());
            machine.programs.kills = Some((number, is_after));
            assert!(catch_unwind(AssertUnwindSafe(|| machine.write(&plan))).is_err());
            let shown = machine.on(|system| persisted(&system.files)).unwrap();
            assert!(shown.is_none_or(|(_, is_whole)| !is_whole), "half done and unsaid: {number}");
            if let Some(undone) = machine.on(undo).unwrap() {
                assert!(undone.files.iter().all(|file| file.back.is_as_before()), "{undone:?}");
            }
            assert_eq!(machine.files(), before, "{number} {is_after}");
            assert_eq!(
                std::fs::read_dir(machine.at(STATE)).map_or(0, Iterator::count),
                usize::from(number > 0)
            );
            machine.persist(WORDS, Manner::Trial).unwrap();
        }
    }
}

#[test]
fn an_undo_killed_around_any_program_is_undone_by_the_next() {
    let mut whole = debian();
    whole.persist(WORDS, Manner::Trial).unwrap();
    let first = whole.programs.ran.len();
    whole.undo();
    for number in first..whole.programs.ran.len() {
        for is_after in [false, true] {
            let mut machine = debian();
            let before = machine.files();
            machine.persist(WORDS, Manner::Trial).unwrap();
            machine.programs.kills = Some((number, is_after));
            assert!(catch_unwind(AssertUnwindSafe(|| machine.undo())).is_err());
            machine.undo();
            assert_eq!(machine.files(), before, "{number} {is_after}");
        }
    }
}

#[test]
fn a_menu_that_others_made_anew_is_made_anew_without_our_words() {
    let mut machine = debian();
    machine.persist(WORDS, Manner::Default).unwrap();
    // A new kernel comes.
    machine.put("/etc/grub.d/10_linux", &LINUX_SCRIPT.replace("6.1.0-41", "6.1.0-42"));
    let menu = machine.at("/boot/grub/grub.cfg");
    assert!(machine.programs.make_menu(&menu.to_string_lossy()).unwrap().is_ok);
    assert!(machine.next().ends_with(WORDS), "the words hold for new kernels");
    let undone = machine.undo();
    assert_eq!(undone.regenerated, Some(Ok("/boot/grub/grub.cfg".to_owned())));
    assert!(undone.left.is_empty());
    assert_eq!(machine.next(), "root=UUID=1 ro audit=0 quiet");
    assert!(machine.text("/boot/grub/grub.cfg").contains("6.1.0-42"));
}

/// The journal stays until the menu is made: a kill in between is no end.
#[test]
fn a_menu_that_cannot_be_made_anew_is_reported_and_a_killed_undo_tries_again() {
    let made_anew = || {
        let mut machine = debian();
        machine.persist(WORDS, Manner::Default).unwrap();
        machine.put("/etc/grub.d/10_linux", &LINUX_SCRIPT.replace("6.1.0-41", "6.1.0-42"));
        let menu = machine.at("/boot/grub/grub.cfg");
        assert!(machine.programs.make_menu(&menu.to_string_lossy()).unwrap().is_ok);
        machine
    };
    let mut machine = made_anew();
    machine.programs.kills = Some((machine.programs.ran.len(), false));
    assert!(catch_unwind(AssertUnwindSafe(|| machine.undo())).is_err());
    assert!(machine.undo().left.is_empty());
    assert_eq!(machine.next(), "root=UUID=1 ro audit=0 quiet");
    let mut machine = made_anew();
    machine.programs.fails = true;
    let undone = machine.undo();
    assert!(undone.regenerated.unwrap().unwrap_err().to_string().contains("it fails here"));
    assert_eq!(line(&undone.left), WORDS);
}

#[test]
fn without_drop_ins_the_defaults_get_lines_of_ours() {
    let mut machine = debian();
    machine.put("/usr/sbin/grub-mkconfig", "#!/bin/sh\n");
    std::fs::remove_dir_all(machine.at("/etc/default/grub.d")).unwrap();
    machine.round_trip(WORDS, Manner::Default);
    machine.persist(WORDS, Manner::Default).unwrap();
    assert!(machine.text("/etc/default/grub").starts_with(DEFAULTS));
}

/// In an image no program of it is run: what waits for it is listed.
#[test]
fn in_an_image_the_menu_waits() {
    let mut machine = debian();
    machine.programs.names.clear();
    let before = machine.files();
    let plan = machine.persist(WORDS, Manner::Default).unwrap();
    assert!(plan.draft.notes[0].contains("run update-grub"), "{:?}", plan.draft.notes);
    let request = boot_loader::find(&machine.root()).value().cloned().unwrap();
    assert!(line(&words_only(&request.sources)).ends_with(WORDS));
    machine.undo();
    assert_eq!(machine.files(), before);
    assert!(machine.refusal(WORDS, Manner::Trial).contains("grub-editenv"));
}

#[test]
fn our_own_file_from_elsewhere_is_not_overwritten() {
    let mut machine = debian();
    machine.put("/etc/default/grub.d/90-worstcase.cfg", "# by hand\n");
    assert!(machine.refusal(WORDS, Manner::Default).contains("there already"));
}
