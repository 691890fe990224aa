//! The command line: what it says, what it refuses and how, and what it does when nobody reads what it writes.
#![allow(clippy::unwrap_used)]

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use record::Record;

use crate::mend;

const BINARY: &str = env!("CARGO_BIN_EXE_worstcase");

/// The names of all loads, in the catalogue's order.
fn loads() -> String {
    let catalogue = load::Catalogue::shipped().unwrap();
    catalogue.loads().iter().map(|load| load.name.clone()).collect::<Vec<_>>().join(", ")
}

/// Commands and their answers, in tests/cmd. Where they are written anew, put `[..]` back where a machine differs from
/// another.
#[test]
fn commands_answer_as_they_did() {
    println!("{}", mend::command());
    trycmd::TestCases::new()
        .case("tests/cmd/*.trycmd")
        .register_bin("worstcase", Path::new(BINARY))
        .env("COLUMNS", "80")
        .env("LC_ALL", "C.UTF-8")
        .env("NO_COLOR", "1")
        .timeout(Duration::from_secs(20))
        .insert_var("[VERSION]", env!("CARGO_PKG_VERSION"))
        .unwrap()
        .insert_var("[LOADS]", loads())
        .unwrap();
}

/// A record of tests/records.
fn record(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/records").join(name)
}

fn worstcase(arguments: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command.args(arguments).env("COLUMNS", "80").env("LC_ALL", "C.UTF-8").stdin(Stdio::null());
    command
}

fn shown(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// Commands that print without measuring, and the exit code that they have where they can.
fn printing() -> Vec<(Vec<String>, i32)> {
    let first = record("first").join("record.json").display().to_string();
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    vec![
        (vec!["report".to_owned(), first.clone()], 0),
        (vec!["report".to_owned(), "--json".to_owned(), first], 0),
        (words("load --list"), 0),
        (words("load --list --json"), 0),
        (words("--help"), 0),
        (words("bench --help"), 0),
        (words("--version"), 0),
    ]
}

#[test]
fn a_pipe_that_nobody_reads_is_no_error() {
    for (arguments, code) in printing() {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        drop(reader);
        let output = Command::new(BINARY).args(&arguments).stdout(writer).output().unwrap();
        assert_eq!(shown(&output), (Some(code), String::new(), String::new()), "{arguments:?}");
    }
}

#[test]
fn words_that_nobody_reads_change_nothing() {
    for (arguments, code) in
        [(&["bench", "--nosuch"][..], 2), (&["report", "nowhere"], 2), (&["load", "nosuch"], 2)]
    {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        drop(reader);
        let output = Command::new(BINARY).args(arguments).stderr(writer).output().unwrap();
        assert_eq!(shown(&output), (Some(code), String::new(), String::new()), "{arguments:?}");
    }
}

#[test]
fn output_that_is_lost_is_an_error() {
    for (arguments, _) in printing() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = Command::new(BINARY).args(&arguments).stdout(full).output().unwrap();
        let (code, _, said) = shown(&output);
        assert_eq!(code, Some(2), "{arguments:?}: {said}");
        assert!(
            said.starts_with("error: write to standard output: No space left on device"),
            "{arguments:?}: {said}"
        );
        assert!(said.contains("\n  hint: make room there, or name another place\n"), "{arguments:?}: {said}");
    }
}

#[test]
fn output_that_was_closed_is_an_error() {
    for (arguments, _) in printing() {
        // The shell closes it (dash and bash alike); what is said still comes through.
        let output = Command::new("sh")
            .args(["-c", "exec \"$@\" >&-", "sh", BINARY])
            .args(&arguments)
            .output()
            .unwrap();
        let (code, printed, said) = shown(&output);
        assert_eq!((code, printed.as_str()), (Some(2), ""), "{arguments:?}: {said}");
        let message = "error: write to standard output: Bad file descriptor (os error 9)\n  \
                       hint: standard output is closed: send it to a file, or to /dev/null\n";
        assert_eq!(said, message, "{arguments:?}");
    }
}

#[test]
fn who_prints_nothing_needs_no_output() {
    let output = Command::new("sh").args(["-c", "exec \"$0\" report nowhere >&-", BINARY]).output().unwrap();
    let (code, _, said) = shown(&output);
    assert!(code == Some(2) && said.starts_with("error: read nowhere: No such file"), "{said}");
    let output =
        Command::new("sh").args(["-c", "exec \"$0\" --version > /dev/null", BINARY]).output().unwrap();
    assert_eq!(shown(&output), (Some(0), String::new(), String::new()));
}

#[test]
fn every_list_of_loads_refuses_an_empty_name() {
    for command in [
        &["bench"][..],
        &["ways"],
        &["lab", "explain", "run"],
        &["lab", "sections", "run"],
        &["lab", "ladder", "some.toml"],
    ] {
        for loads in ["", ",", "idle,", " "] {
            let (code, _, said) =
                shown(&worstcase(&[command, &["--loads", loads]].concat()).output().unwrap());
            assert_eq!(code, Some(2), "{command:?}: {said}");
            assert!(said.contains("the name of a load is empty"), "{command:?} {loads:?}: {said}");
        }
    }
}

#[test]
fn a_reader_that_takes_one_line_gets_it() {
    let script = format!("'{BINARY}' load --list | head -n 1; exit ${{PIPESTATUS[0]}}");
    let output = Command::new("bash").args(["-c", &script]).output().unwrap();
    assert_eq!(shown(&output), (Some(0), "idle: Nothing but the machine itself\n".into(), String::new()));
}

#[test]
fn any_bytes_are_answered() {
    for arguments in
        [&[&b"\xff"[..]][..], &[b"report", b"\xff"], &[b"bench", b"--loads", b"\xff"], &[b"samples", b"\xff"]]
    {
        let words = arguments.iter().map(|bytes| OsStr::from_bytes(bytes));
        let (code, _, said) = shown(&Command::new(BINARY).args(words).output().unwrap());
        assert!(code == Some(2) && said.starts_with("error: "), "{arguments:?}: {said}");
    }
}

#[test]
fn every_load_is_explained() {
    let (code, out, said) = shown(&worstcase(&["load", "--list"]).output().unwrap());
    assert_eq!((code, said.as_str()), (Some(0), ""));
    let catalogue = load::Catalogue::shipped().unwrap();
    for load in catalogue.loads() {
        let start = out.find(&format!("\n{}: {}\n", load.name, load.title)).map_or(0, |at| at + 1);
        let own = &out[start..start + out[start..].find("\n\n").unwrap()];
        assert!(
            own.starts_with(&load.name) && own.contains("disturbs: ") && own.contains("source: "),
            "{own}"
        );
    }
    assert!(out.lines().all(|line| line.chars().count() <= 80));
    let (_, json, _) = shown(&worstcase(&["load", "--list", "--json"]).output().unwrap());
    let explained: Vec<serde_json::Value> = serde_json::from_str(&json).unwrap();
    assert_eq!(explained.len(), catalogue.loads().len());
}

#[test]
fn report_json_is_the_record() {
    let paths = ["first", "other-period"].map(|name| record(name).display().to_string());
    let records: Vec<Record> =
        paths.iter().map(|path| record::store::load(Path::new(path)).unwrap()).collect();
    let (_, one, _) =
        shown(&worstcase(&["report", "--json", &format!("{}/record.json", paths[0])]).output().unwrap());
    assert_eq!(serde_json::from_str::<Record>(&one).unwrap(), records[0]);
    let (_, both, _) = shown(&worstcase(&["report", "--json", &paths[0], &paths[1]]).output().unwrap());
    assert_eq!(serde_json::from_str::<Vec<Record>>(&both).unwrap(), records);
}

#[test]
fn report_writes_the_page_where_it_is_wanted() {
    let directory = tempfile::tempdir().unwrap();
    fs::copy(record("first").join("record.json"), directory.path().join("record.json")).unwrap();
    let (code, _, said) = shown(&worstcase(&["report", "."]).current_dir(&directory).output().unwrap());
    assert_eq!((code, said.as_str()), (Some(0), "Report  ./report.html\n"));
    let (first, again) = (record("first").display().to_string(), record("again").display().to_string());
    let both = ["report", &first, &again, "--html", "both.html"];
    assert_eq!(shown(&worstcase(&both).current_dir(&directory).output().unwrap()).0, Some(0));
    for page in ["report.html", "both.html"] {
        let page = fs::read_to_string(directory.path().join(page)).unwrap();
        assert!(page.starts_with("<!DOCTYPE html>") && page.contains("bench of the first board"));
    }
    assert!(
        !record("first").join("report.html").exists(),
        "two records side by side have no page of their own"
    );
}

#[test]
fn report_leaves_a_page_alone_that_is_as_new_as_its_record() {
    let directory = tempfile::tempdir().unwrap();
    let (kept, page) = (directory.path().join("record.json"), directory.path().join("report.html"));
    fs::copy(record("first").join("record.json"), &kept).unwrap();
    fs::write(&page, "a page of before").unwrap();
    let report = || {
        let words = ["report", ".", "--extreme", "1s"];
        let (code, _, said) = shown(&worstcase(&words).current_dir(&directory).output().unwrap());
        assert_eq!((code, said.as_str()), (Some(0), "Report  ./report.html\n"));
        fs::read_to_string(&page).unwrap()
    };
    assert_eq!(report(), "a page of before");
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(10);
    fs::File::options().append(true).open(&kept).unwrap().set_modified(later).unwrap();
    assert!(report().starts_with("<!DOCTYPE html>"), "the record is newer");
    let asked = ["report", ".", "--html", "report.html"];
    fs::write(&page, "a page of before").unwrap();
    fs::File::options().append(true).open(&page).unwrap().set_modified(later).unwrap();
    assert_eq!(shown(&worstcase(&asked).current_dir(&directory).output().unwrap()).0, Some(0));
    assert!(fs::read_to_string(&page).unwrap().starts_with("<!DOCTYPE html>"), "it was asked for");
}

#[test]
fn a_journal_cut_anywhere_is_reported_or_refused() {
    let journal = fs::read(record("cut-off").join("journal.ndjson")).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal.ndjson");
    let first_line = journal.iter().position(|&byte| byte == b'\n').unwrap();
    for part in 0..=40 {
        let cut = journal.len() * part / 40;
        File::create(&path).unwrap().write_all(&journal[..cut]).unwrap();
        let (code, out, said) = shown(&worstcase(&["report", path.to_str().unwrap()]).output().unwrap());
        if cut < first_line {
            assert_eq!(code, Some(2), "cut at {cut}: {said}");
            assert!(
                said.contains("its first line is not whole") && said.contains("hint: "),
                "cut at {cut}: {said}"
            );
        } else {
            assert!(
                code == Some(0) && out.contains("cut off") && !out.contains("PASS  "),
                "cut at {cut}: {out} {said}"
            );
        }
    }
}

/// Files of a machine without a hypervisor, as somebody makes them up: two CPUs that are threads of cores, and interrupts 30 to
/// 221 on CPU 1.
fn bare_metal() -> tempfile::TempDir {
    let tree = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = tree.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("sys/devices/system/cpu/online", "0-1\n");
    write("sys/devices/system/cpu/smt/active", "1\n");
    write("sys/class/dmi/id/sys_vendor", "A maker of boards\n");
    let mut interrupts = "           CPU0       CPU1\n".to_owned();
    for number in 30..222 {
        interrupts +=
            &format!(" {number}:          5          7   IO-APIC  {number}-edge      eth0-rx-{number}\n");
        write(&format!("proc/irq/{number}/smp_affinity_list"), "0-1\n");
        write(&format!("proc/irq/{number}/effective_affinity_list"), "1\n");
    }
    write("proc/interrupts", &interrupts);
    tree
}

#[test]
fn rules_for_bare_metal_are_asked_of_a_tree_that_somebody_made_up() {
    let tree = bare_metal();
    let mut check = worstcase(&["check", "fw-smt-off", "--profile", "isolated", "--isolate", "1", "--root"]);
    let (code, out, err) = shown(&check.arg(tree.path()).output().unwrap());
    assert!(code == Some(0) && out.contains("warning  fw-smt-off  cores run two threads each"), "{out}{err}");
}

#[test]
fn two_hundred_interrupts_are_a_few_lines_of_an_answer() {
    let tree = bare_metal();
    let mut why = worstcase(&["why", "rn-irq-affinity", "--profile", "isolated", "--isolate", "1", "--root"]);
    let (code, out, err) = shown(&why.arg(tree.path()).output().unwrap());
    assert!(code == Some(0) && out.contains("here         fails"), "{out}{err}");
    assert!(out.contains("and 191 more") && out.contains("(all: check --json)"), "{out}");
    assert!(out.lines().count() < 60, "{out}");
}

#[test]
fn a_program_is_not_read_as_a_guide() {
    let (code, out, err) = shown(&worstcase(&["check", "--recipe", "/bin/sh"]).output().unwrap());
    assert_eq!((code, out.as_str()), (Some(2), ""), "{err}");
    assert!(err.contains("not a text: it has bytes of zero"), "{err}");
}

#[test]
fn every_finding_of_check_is_whole_in_a_pipe() {
    let (_, out, err) = shown(&worstcase(&["check", "--all"]).output().unwrap());
    assert!(out.lines().count() > 50, "{out}{err}");
    let cut: Vec<&str> = out.lines().filter(|line| line.ends_with('~')).collect();
    assert!(cut.is_empty(), "{cut:?}");
}

/// What `check --kconfig CONFIG --kernel-source TREE` answers and says of it, for a source of Linux 6.12.3.
fn checked_by_source(config: &str) -> (String, String) {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = directory.path().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    file("Kconfig", "config EXPERT\n\tbool \"x\"\n");
    file("Makefile", "VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 3\nEXTRAVERSION =\n");
    let config = file("config", config);
    let tree = directory.path().display().to_string();
    let arguments = ["check", "--kconfig", &config, "--kernel-source", &tree, "--arch", "x86_64", "--json"];
    let (_, answer, errors) = shown(&worstcase(&arguments).output().unwrap());
    (answer, errors)
}

#[test]
fn a_sources_makefile_gives_the_version_and_a_conflict_is_said() {
    let (answer, errors) = checked_by_source("CONFIG_EXPERT=y\n");
    assert!(answer.contains("\"6.12.3\""), "{answer}");
    assert!(!errors.contains("warning"), "{errors}");
    let (answer, errors) = checked_by_source(
        "# Linux/x86 6.1.90 Kernel Configuration\nCONFIG_EXPERT=y\n# end of Kernel hacking\n",
    );
    assert!(errors.contains("was made by Linux 6.1.90"), "{errors}");
    assert!(!answer.contains("\"6.12.3\""), "{answer}");
}

/// CPUs that are offline can be isolated at the next boot; those that can never be cannot.
#[test]
fn a_recipe_is_judged_by_the_cpus_that_there_can_be() {
    let tree = tempfile::tempdir().unwrap();
    let cpus = tree.path().join("sys/devices/system/cpu");
    fs::create_dir_all(&cpus).unwrap();
    fs::write(cpus.join("online"), "0-3\n").unwrap();
    fs::write(cpus.join("possible"), "0-7\n").unwrap();
    for (line, code) in [("quiet isolcpus=5-6\n", 0), ("quiet isolcpus=8\n", 1)] {
        let recipe = tree.path().join("recipe");
        fs::write(&recipe, line).unwrap();
        let mut check = worstcase(&["check", "--recipe"]);
        let (found, out, err) = shown(&check.arg(&recipe).arg("--root").arg(tree.path()).output().unwrap());
        assert_eq!(found, Some(code), "{line}{out}{err}");
    }
}

#[test]
fn a_configuration_commands_no_terminal() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("config");
    fs::write(&path, "CONFIG_HZ=1000\nCONFIG_X=\u{1b}[2J\u{9b}31m\n\u{1b}]0;x\u{7}\n").unwrap();
    let (_, out, err) =
        shown(&worstcase(&["check", "--kconfig", &path.display().to_string()]).output().unwrap());
    assert!(err.contains("warning: "), "{err}");
    let obeyed = out.chars().chain(err.chars()).find(|c| c.is_control() && *c != '\n');
    assert_eq!(obeyed, None, "{err}");
}

#[test]
fn a_record_is_judged_anew_by_another_limit() {
    let first = record("first");
    let judged = |limit: &str| {
        let mut report = worstcase(&["report", "--limit", limit, "--format", "line"]);
        shown(&report.arg(&first).output().unwrap())
    };
    let (code, out, err) = judged("1us");
    assert!(code == Some(1) && out.starts_with("FAIL"), "{code:?}: {out}{err}");
    let (code, out, err) = judged("10s");
    assert!(code == Some(0) && out.starts_with("PASS"), "{code:?}: {out}{err}");
    let plain = worstcase(&["report", "--format", "line"]).arg(&first).output().unwrap();
    assert_eq!(plain.status.code(), Some(0), "without a limit nothing is judged");
}
