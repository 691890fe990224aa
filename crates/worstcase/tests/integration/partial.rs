//! Inputs of which a part is missing, or that contradict themselves: what `check` says of them, and with which exit code.
//! What is missing is unknown, never good.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// A configuration as kconfig writes it: a kernel of 6.12 with its menus, and two lines by which cuts are known.
const WHOLE: &str = "#\n# Automatically generated file; DO NOT EDIT.\n# Linux/x86 6.12.4 Kernel Configuration\n#\n\
                     CONFIG_64BIT=y\n#\n# General setup\n#\nCONFIG_LOCALVERSION=\"\"\n# end of General setup\n\
                     CONFIG_HZ_1000=y\nCONFIG_HZ=1000\nCONFIG_PREEMPT_RT=y\n# CONFIG_KCSAN is not set\n\
                     # CONFIG_DEBUG_PREEMPT is not set\n#\n# Kernel hacking\n#\n# end of Kernel hacking\n";

/// The same of a kernel that did not say where menus end.
const OLD: &str = "#\n# Automatically generated file; DO NOT EDIT.\n# Linux/x86 4.19.90 Kernel Configuration\n#\n\
                   CONFIG_64BIT=y\nCONFIG_HZ=1000\n#\n# Kernel hacking\n#\n# CONFIG_DEBUG_PREEMPT is not set\n\
                   #\n# Library routines\n#\nCONFIG_CRC32=y\n";

/// What follows from what: enough of a kernel's source.
const KCONFIG: &str = "config SMP\n\tbool \"Many\"\nconfig EXPERT\n\tbool \"Expert\"\nchoice\n\tprompt \"Tick\"\n\
                       \tdefault HZ_250\nconfig HZ_250\n\tbool \"250\"\nconfig HZ_1000\n\tbool \"1000\"\nendchoice\n\
                       config HZ\n\tint\n\tdefault 250 if HZ_250\n\tdefault 1000 if HZ_1000\n\
                       config HIGH_RES_TIMERS\n\tdef_bool y if SMP\n\
                       config DEBUG_PREEMPT\n\tdef_bool $(cc-option,-fnot-known-here)\n";

/// A machine as `worstcase snapshot` writes it, without its sum: see [`summed`].
const MACHINE: &str = "=== begin\n=== capture\n=== file absent /sys/kernel/realtime\n=== /proc/sys/kernel/osrelease\n6.12.4\n\
                       === /sys/kernel/mm/transparent_hugepage/enabled\nalways madvise [never]\n\
                       === /sys/kernel/mm/ksm/run\n0\n";

fn compressed(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// A text with the end of a snapshot.
fn summed(text: &str) -> String {
    let mut sum = flate2::Crc::new();
    sum.update(text.as_bytes());
    format!("{text}=== end {:08x}\n", sum.sum())
}

/// What came of a command: exit code, standard output, standard error.
struct Answer {
    code: Option<i32>,
    out: String,
    err: String,
}

/// `check` with arguments (blanks between them) in a directory that has these files.
fn check(files: &[(&str, &[u8])], arguments: &str) -> Answer {
    let directory = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        let path = directory.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    answer(directory.path(), arguments)
}

fn answer(directory: &Path, arguments: &str) -> Answer {
    let mut command = Command::new(env!("CARGO_BIN_EXE_worstcase"));
    command.arg("check").args(arguments.split(' ')).current_dir(directory).stdin(Stdio::null());
    let Output { status, stdout, stderr } =
        command.env("COLUMNS", "200").env("NO_COLOR", "1").output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Answer { code: status.code(), out: text(&stdout), err: text(&stderr) }
}

impl Answer {
    /// The exit code, and parts of what was printed on either stream.
    fn is(&self, code: i32, parts: &[&str]) -> &Self {
        let Self { out, err, .. } = self;
        assert_eq!(self.code, Some(code), "{err}{out}");
        for part in parts {
            assert!(out.contains(part) || err.contains(part), "no `{part}` in:\n{err}{out}");
        }
        self
    }

    fn never_says(&self, part: &str) {
        assert!(
            !self.out.contains(part) && !self.err.contains(part),
            "`{part}` in:\n{}{}",
            self.err,
            self.out
        );
    }
}

fn of_config(bytes: &[u8], arguments: &str) -> Answer {
    check(&[("given", bytes)], &format!("--kconfig given {arguments}"))
}

#[test]
fn a_whole_configuration_is_judged_without_a_word_about_its_form() {
    of_config(WHOLE.as_bytes(), "kc-hz kc-preempt-rt kc-debug-preempt-off --all")
        .is(0, &["passes   The timer tick runs at 1000 Hz"])
        .never_says("note:");
    of_config(OLD.as_bytes(), "kc-hz --all")
        .is(0, &["passes   The timer tick runs at 1000 Hz"])
        .never_says("note:");
    of_config(&compressed(WHOLE.as_bytes()), "kc-hz --all")
        .is(0, &["passes   The timer"])
        .never_says("note:");
}

#[test]
fn a_configuration_that_was_cut_off_anywhere_is_an_error() {
    let header = WHOLE.find("CONFIG_64BIT").unwrap();
    let end = WHOLE.rfind("# end of Kernel hacking").unwrap();
    for at in (header..end).step_by(7).chain([header + "CONFIG_64BIT=y\n".len(), end, WHOLE.len() - 1]) {
        let said = of_config(&WHOLE.as_bytes()[..at], "kc-hz");
        said.is(2, &["error: read given: "]);
        assert!(said.err.contains("cut off") || said.err.contains("damaged"), "{at}: {}", said.err);
    }
}

#[test]
fn an_old_configuration_that_lacks_its_last_menus_is_an_error() {
    let at = OLD.find("# Library").unwrap();
    of_config(&OLD.as_bytes()[..at], "kc-hz")
        .is(2, &["read given: its end is missing: it was cut off", "copy it again"]);
    let at = OLD.find("#\n# Kernel hacking").unwrap();
    of_config(&OLD.as_bytes()[..at], "kc-hz").is(2, &["its end is missing"]);
}

#[test]
fn a_configuration_without_its_head_is_judged_by_what_it_names() {
    let at = WHOLE.find("CONFIG_HZ_1000").unwrap();
    of_config(&WHOLE.as_bytes()[at..], "kc-hz kc-high-res-timers --all").is(
        0,
        &[
            "note: given has no header of kconfig",
            "by the 5 symbols",
            "unknown  High-resolution timers are built in",
        ],
    );
}

#[test]
fn a_packed_configuration_that_was_cut_off_or_changed_is_an_error() {
    let packed = compressed(WHOLE.as_bytes());
    for at in [2, 10, packed.len() / 2, packed.len() - 8, packed.len() - 1] {
        of_config(&packed[..at], "kc-hz")
            .is(2, &["cannot be decompressed, it was cut off or damaged", "copy it again"]);
    }
    let mut changed = packed.clone();
    let crc = changed.len() - 6;
    changed[crc] ^= 1;
    of_config(&changed, "kc-hz").is(2, &["cannot be decompressed"]);
    of_config(&compressed(&WHOLE.as_bytes()[..200]), "kc-hz").is(2, &["its end is missing: it was cut off"]);
}

#[test]
fn forms_that_are_not_read_are_named() {
    of_config(b"\xfd7zXZ\0\0\x04\xe6", "kc-hz").is(2, &["compressed with xz: unpack it first (xz -dc)"]);
    of_config(b"\x28\xb5\x2f\xfd\x04", "kc-hz").is(2, &["compressed with zstd"]);
    let wide: Vec<u8> = [0xff, 0xfe].into_iter().chain(WHOLE.bytes().flat_map(|byte| [byte, 0])).collect();
    of_config(&wide, "kc-hz").is(2, &["it is text in UTF-16"]);
    of_config(b"", "kc-hz").is(2, &["no kernel configuration, or a damaged one"]);
    of_config(b"# a comment alone\n", "kc-hz").is(2, &["no kernel configuration, or a damaged one"]);
}

#[test]
fn a_defconfig_leaves_unknown_what_it_does_not_state() {
    of_config(b"CONFIG_PREEMPT_RT=y\n", "kc-preempt-rt kc-debug-preempt-off kc-high-res-timers --all")
        .is(0, &["by the one symbol that it names", "passes   The kernel is fully preemptible", "unknown"])
        .never_says("passes   High-resolution");
    of_config(b"CONFIG_LOCALVERSION=\"-x\"\n", "kc-high-res-timers").is(3, &["verdict: inconclusive"]);
}

#[test]
fn a_fragment_fails_by_what_it_states() {
    of_config(b"CONFIG_DEBUG_PREEMPT=y\n", "kc-debug-preempt-off").is(0, &["warning  kc-debug-preempt-off"]);
    of_config(b"CONFIG_KCSAN=y", "kc-sanitizers-off").is(1, &["kc-sanitizers-off"]);
}

#[test]
fn a_fragment_that_contradicts_itself_is_said_to() {
    of_config(b"CONFIG_DEBUG_PREEMPT=y\n# CONFIG_DEBUG_PREEMPT is not set\n", "kc-debug-preempt-off")
        .is(0, &["warning: given: line 1 has no effect: CONFIG_DEBUG_PREEMPT=y; line 2 says # CONFIG_DEBUG_PREEMPT is not set"]);
    of_config(b"CONFIG_HZ_250=y\nCONFIG_HZ_1000=y\nCONFIG_HZ=1000\n", "kc-hz")
        .is(0, &["warning: given: lines 1 and 2: CONFIG_HZ_250=y and CONFIG_HZ_1000=y exclude each other"]);
    of_config(b"CONFIG_HZ=250\nCONFIG_HZ=250\n", "kc-hz").is(0, &["kc-hz"]).never_says("has no effect");
}

#[test]
fn lines_that_are_none_are_said_and_counted() {
    let mut text = "CONFIG_HZ=1000\n".to_owned();
    (0..9).for_each(|number| text += &format!("CONFIG_X{number} = y\n"));
    of_config(text.as_bytes(), "kc-hz")
        .is(0, &["warning: given: line 2 has a symbol of other", "4 more lines like these"]);
}

#[test]
fn carriage_returns_at_the_ends_of_lines_change_nothing() {
    let foreign = WHOLE.replace('\n', "\r\n");
    of_config(foreign.as_bytes(), "kc-hz --all").is(0, &["passes   The timer tick"]).never_says("warning:");
    of_config(&foreign.as_bytes()[..foreign.len() / 2], "kc-hz").is(2, &["cut off"]);
    of_config(b"CONFIG_HZ=1000\r\n", "kc-hz --all").is(0, &["passes   The timer tick"]);
    of_config(b"CONFIG_HZ=1000\rCONFIG_SMP=y\r", "kc-hz").is(2, &["no kernel configuration"]);
}

#[test]
fn a_byte_order_mark_costs_the_first_line_and_is_said() {
    let marked = |text: &str| ["\u{feff}", text].concat().into_bytes();
    of_config(&marked("CONFIG_HZ=1000\nCONFIG_SMP=y\n"), "kc-hz")
        .is(3, &["warning: given: line 1 begins with a byte order mark", "by the one symbol"]);
    of_config(&marked(WHOLE), "kc-hz --all").is(0, &["byte order mark", "passes   The timer tick"]);
    check(&[("given", &marked("idle=pool\n"))], "--recipe given --kernel 6.12")
        .is(1, &["begins with a byte order mark", "idle=pool"]);
}

const SOURCE: [(&str, &[u8]); 2] = [
    ("source/Kconfig", KCONFIG.as_bytes()),
    ("source/Makefile", b"VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 3\nEXTRAVERSION =\n"),
];

fn completed(config: &[u8], arguments: &str) -> Answer {
    let files = [&SOURCE[..], &[("given", config)]].concat();
    check(&files, &format!("--kconfig given --kernel-source source {arguments}"))
}

#[test]
fn a_source_decides_what_a_defconfig_leaves_out_and_says_what_stays_unknown() {
    completed(
        b"CONFIG_SMP=y\nCONFIG_HZ_1000=y\n",
        "--arch x86_64 kc-hz kc-high-res-timers kc-debug-preempt-off --all",
    )
    .is(
        0,
        &[
            "symbols that rules ask for follow from source; 1 stay unknown: DEBUG_PREEMPT",
            "what neither it nor source decides is unknown",
            "passes   The timer tick runs at 1000 Hz: 1000",
            "passes   High-resolution timers are built in: y",
            "unknown  ",
        ],
    );
    completed(b"CONFIG_HZ_1000=y\n", "--arch x86_64 kc-high-res-timers")
        .is(1, &["error    kc-high-res-timers"]);
}

#[test]
fn what_cannot_be_completed_is_refused() {
    completed(b"CONFIG_SMP=y\n", "kc-hz").is(2, &["does not say for which architecture", "--arch x86_64"]);
    completed(&WHOLE.as_bytes()[..200], "--arch x86_64 kc-hz").is(2, &["its end is missing"]);
    check(
        &[("given", b"CONFIG_SMP=y\n"), ("empty/x", b"")],
        "--kconfig given --kernel-source empty --arch x86_64",
    )
    .is(2, &["not a kernel's source"]);
}

#[test]
fn a_symbol_without_a_prompt_is_offered_as_no_cure() {
    let config = "CONFIG_COMPACT_UNEVICTABLE_DEFAULT=1\n";
    let said = of_config(config.as_bytes(), "kc-compact-unevictable");
    said.is(
        0,
        &["kc-compact-unevictable", "CONFIG_COMPACT_UNEVICTABLE_DEFAULT has no prompt: others set it"],
    );
    said.never_says("build the kernel with CONFIG_COMPACT");
    of_config(config.as_bytes(), "kc-compact-unevictable --emit kconfig")
        .is(0, &["# 00051-latency.cfg"])
        .never_says("\nCONFIG_COMPACT_UNEVICTABLE_DEFAULT=0");
}

#[test]
fn a_symbol_that_others_select_is_offered_as_no_cure_while_they_are_on() {
    let of = |selector: &str| {
        let text = format!("CONFIG_CPU_FREQ=y\nCONFIG_CPU_FREQ_GOV_SCHEDUTIL=y\n{selector}");
        of_config(text.as_bytes(), "kc-cpufreq-ondemand-off --profile rt --notes")
    };
    let others = "build the kernel without CONFIG_CPU_FREQ_GOV_ONDEMAND, CONFIG_CPU_FREQ_GOV_CONSERVATIVE";
    of("CONFIG_X86_INTEL_PSTATE=y\n").is(0, &[&format!("{others}\n")]);
    of("").is(0, &[&format!("{others}, CONFIG_CPU_FREQ_GOV_SCHEDUTIL\n")]);
}

#[test]
fn a_comparison_with_a_part_is_refused() {
    let part = &WHOLE.as_bytes()[..250];
    check(&[("given", WHOLE.as_bytes()), ("part", part)], "--kconfig given --against part")
        .is(2, &["read part: its end is missing: it was cut off"]);
    let packed = compressed(WHOLE.as_bytes());
    check(
        &[("given", WHOLE.as_bytes()), ("part", &packed[..packed.len() - 20])],
        "--kconfig given --against part",
    )
    .is(2, &["read part: it cannot be decompressed"]);
    check(&[("given", part), ("other", WHOLE.as_bytes())], "--kconfig given --against other")
        .is(2, &["read given: its end"]);
}

#[test]
fn a_fragment_did_not_arrive_in_a_part() {
    let files =
        |fragment: &'static [u8], result: &'static str| [("want", fragment), ("given", result.as_bytes())];
    check(&files(b"CONFIG_HZ=1000\n", WHOLE), "--verify-fragment want --kconfig given")
        .is(0, &["1 of 1 symbols arrived"]);
    check(&files(b"CONFIG_HZ=1000\r\nCONFIG_SMP=y\r\n", WHOLE), "--verify-fragment want --kconfig given")
        .is(1, &["CONFIG_SMP=y became nothing", "1 of 2 symbols arrived"]);
    check(&files(b"CONFIG_HZ=1000\n", &WHOLE[..260]), "--verify-fragment want --kconfig given")
        .is(2, &["read given: its end"]);
    check(&files(&WHOLE.as_bytes()[..260], WHOLE), "--verify-fragment want --kconfig given")
        .is(2, &["read want: its end"]);
    let said =
        check(&files(b"CONFIG_HZ=1000\n", "CONFIG_HZ=1000\n"), "--verify-fragment want --kconfig given");
    assert_eq!(said.err.matches("note:").count(), 1, "said once: {}", said.err);
}

/// In a machine's tree: a copy that was cut off says nothing of what is missing.
#[test]
fn a_tree_whose_configuration_was_cut_off_is_inconclusive() {
    let release: (&str, &[u8]) = ("tree/proc/sys/kernel/osrelease", b"6.12.4\n");
    let rules = "--root tree kc-sanitizers-off kc-debug-preempt-off --all";
    let with = |name: &'static str, bytes: &[u8]| check(&[release, (name, bytes)], rules);
    with("tree/boot/config-6.12.4", WHOLE.as_bytes())
        .is(0, &["passes   The kernel was built without sanitizers"]);
    for part in [&WHOLE.as_bytes()[..120], &WHOLE.as_bytes()[..260]] {
        with("tree/boot/config-6.12.4", part)
            .is(3, &["unread   the kernel's configuration"])
            .never_says("passes ");
    }
    let packed = compressed(WHOLE.as_bytes());
    with("tree/proc/config.gz", &packed[..packed.len() - 30]).is(3, &["unread"]).never_says("passes ");
}

fn of_snapshot(text: &[u8]) -> Answer {
    check(&[("board.txt", text)], "--root board.txt rn-thp rn-ksm --all")
}

#[test]
fn a_snapshot_that_was_cut_off_anywhere_is_an_error() {
    let whole = summed(MACHINE);
    of_snapshot(whole.as_bytes()).is(0, &["passes ", "never"]).never_says("note:");
    for at in (10..MACHINE.len()).step_by(13) {
        of_snapshot(&whole.as_bytes()[..at]).is(2, &["is not a snapshot", "the file was cut off"]);
    }
}

#[test]
fn a_snapshot_in_which_a_line_was_changed_is_an_error() {
    let whole = summed(MACHINE);
    for (from, to) in
        [("[never]", "[always]"), ("\n0\n", "\n1\n"), ("absent", "13"), ("\n=== file", "\n\n=== file")]
    {
        of_snapshot(whole.replacen(from, to, 1).as_bytes()).is(2, &["has another checksum", "was edited"]);
    }
    of_snapshot(whole.replace('\n', "\r\n").as_bytes()).is(2, &["has another checksum"]);
    of_snapshot(["\u{feff}", &whole].concat().as_bytes()).is(2, &["has another checksum"]);
    let without = whole
        .lines()
        .filter(|line| !line.contains("ksm"))
        .map(|line| format!("{line}\n"))
        .collect::<String>();
    of_snapshot(without.as_bytes()).is(2, &["has another checksum"]);
}

#[test]
fn an_end_without_its_sum_is_that_of_who_edits() {
    of_snapshot(format!("{MACHINE}=== end\n").as_bytes()).is(0, &["passes "]);
    of_snapshot(format!("{MACHINE}=== end 0000\n").as_bytes()).is(2, &["has another checksum"]);
    of_snapshot(format!("{MACHINE}=== end x\n").as_bytes()).is(2, &["has another checksum"]);
}

#[test]
fn nothing_stands_behind_the_end_of_a_snapshot() {
    let whole = summed(MACHINE);
    let more = format!("{whole}=== /sys/kernel/mm/ksm/run\n1\n");
    of_snapshot(more.as_bytes()).is(2, &["stands behind `=== end`"]);
    of_snapshot(format!("{whole}{whole}").as_bytes()).is(2, &["stands behind `=== end`"]);
}

#[test]
fn a_snapshot_without_the_mark_of_its_end_is_said_to_be_open() {
    let text = MACHINE.trim_start_matches("=== begin\n");
    of_snapshot(text.as_bytes()).is(0, &["note: board.txt: no line `=== end` says that it is whole"]);
    // Before the files of both rules: nothing is known, and nothing passes.
    let at = text.find("=== /sys/kernel/mm").unwrap();
    of_snapshot(&text.as_bytes()[..at])
        .is(3, &["no line `=== end`", "verdict: inconclusive"])
        .never_says("passes ");
}

#[test]
fn what_is_no_snapshot_is_refused() {
    of_snapshot(b"").is(2, &["is not a snapshot"]);
    of_snapshot(b"A note.\n").is(2, &["neither compressed nor a text"]);
    of_snapshot(b"\0\n=== /proc/cmdline\nquiet\n").is(2, &["is not a snapshot"]);
    let packed = compressed(summed(MACHINE).as_bytes());
    of_snapshot(&packed).is(2, &["not a tar archive, or is cut off"]);
    of_snapshot(&packed[..packed.len() / 2]).is(2, &["cannot be decompressed"]);
}

/// In a time that grows with their length: a sentence is not looked for in each place of a line.
#[test]
fn long_lines_are_answered_and_long_papers_refused() {
    let words = "isolcpus=2-3 ".repeat(8_000);
    check(&[("given", words.as_bytes())], "--recipe given --kernel 6.12").is(1, &["bytes long"]);
    let commands = "echo 1 > /proc/sys/vm/swappiness\n".repeat(1_000);
    check(&[("given", commands.as_bytes())], "--recipe given --kernel 6.12").is(0, &["1000 commands"]);
    let line = "x".repeat(10 << 20);
    for question in
        ["--recipe given", "--kconfig other --verify-fragment given", "--kconfig other --checklist given"]
    {
        check(&[("given", line.as_bytes()), ("other", b"CONFIG_HZ=1000\n")], question)
            .is(2, &["longer than 1 MiB"]);
    }
}

#[test]
fn what_is_no_file_is_refused_wherever_a_paper_is_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    rustix::fs::mkfifoat(rustix::fs::CWD, at("pipe"), rustix::fs::Mode::RWXU).unwrap();
    fs::create_dir(at("directory")).unwrap();
    fs::write(at("empty"), "").unwrap();
    fs::write(at("binary"), b"\x7fELF\0\0\0").unwrap();
    fs::write(at("config"), "CONFIG_HZ=1000\n").unwrap();
    for question in
        ["--recipe", "--kconfig config --verify-fragment", "--kconfig config --checklist", "--kconfig"]
    {
        for (name, said) in
            [("pipe", "not a regular file"), ("directory", "Is a directory"), ("none", "No such file")]
        {
            answer(directory.path(), &format!("{question} {name}")).is(2, &["error: read ", said, "hint: "]);
        }
        answer(directory.path(), &format!("{question} binary")).is(2, &["error: ", "hint: "]);
    }
    for name in ["pipe", "none"] {
        answer(directory.path(), &format!("--root {name}")).is(2, &["error: ", "hint: "]);
    }
    answer(directory.path(), "--kconfig config --verify-fragment empty").is(2, &["no setting in it"]);
    answer(directory.path(), "--kconfig config --checklist empty").is(2, &["no rule in it"]);
    answer(directory.path(), "--recipe empty").is(3, &["no command, kernel parameter or setting was found"]);
}
