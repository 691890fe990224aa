//! One task in several ways: each has a record of its own, and a core that keeps its CPU and one that sleeps are distinguished.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use record::ways::{Way, Ways};
use record::{Record, WarningId};

use crate::support::{is_missing, is_root, skipped};

fn ways(directory: &Path, options: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_worstcase"));
    command.current_dir(directory).args(["ways", "--out", "out"]).args(options);
    command.output().unwrap()
}

fn way<'a>(all: &'a Ways, name: &str) -> &'a Way {
    all.ways.iter().find(|way| way.name == name).unwrap_or_else(|| panic!("no {name}"))
}

/// How often a way's thread gave its CPU away, and how often it woke.
fn switches(directory: &Path, way: &Way) -> (u64, u64, Record) {
    let record = record::store::load(&directory.join("out").join(way.record.as_ref().unwrap())).unwrap();
    let scenario = &record.scenarios[0];
    let switches = scenario.evidence.threads.iter().map(|thread| thread.voluntary_switches).sum();
    (switches, scenario.series[0].observed.summary().count, record)
}

#[test]
fn a_core_that_spins_never_sleeps_and_one_that_blocks_does_each_time() {
    if !is_root() {
        return skipped("real-time priorities need root");
    }
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return skipped("a core that keeps its CPU needs a second one beside it");
    }
    let directory = tempfile::tempdir().unwrap();
    let output = ways(
        directory.path(),
        &["--only", "fifo,runtime-block,runtime-spin,kvm,evl", "--loads", "idle", "-D", "2s", "--json"],
    );
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let all: Ways = serde_json::from_slice(&output.stdout).unwrap();
    let names: Vec<&str> = all.ways.iter().map(|way| way.name.as_str()).collect();
    assert_eq!(names, ["fifo", "runtime-block", "runtime-spin", "evl", "kvm"], "in the order of the table");
    let absent = way(&all, "evl");
    assert!(absent.record.is_none() && absent.why_not.is_some() && absent.figures.is_empty(), "{absent:?}");
    // What a machine with /dev/kvm makes of it, a test in guests says.
    let guest = way(&all, "kvm");
    assert!(guest.why_not.is_some() == guest.figures.is_empty(), "{guest:?}");
    assert!(guest.why_not.is_some() || Path::new("/dev/kvm").exists(), "{guest:?}");
    for name in ["fifo", "runtime-block"] {
        let (switches, woken, _) = switches(directory.path(), way(&all, name));
        assert!(woken > 0 && switches * 2 > woken, "{name}: {switches} switches in {woken} wake-ups");
    }
    let spins = way(&all, "runtime-spin");
    let (switches, woken, record) = switches(directory.path(), spins);
    assert!(woken > 0 && switches * 20 < woken, "{switches} switches in {woken} wake-ups");
    assert!(!record.all_warnings().any(|warning| warning.id == WarningId::DidNotSleep), "it is not to sleep");
    assert_eq!((spins.cpus_taken, &all.partition), (1, &None));
    assert!(spins.notes.iter().any(|note| note.contains("is not a partition")), "{:?}", spins.notes);
    // The median of a run that nobody disturbs: no wake-up of the kernel is in it.
    let median = |name: &str| way(&all, name).figures[0].median.unwrap();
    assert!(median("runtime-spin") < median("fifo"), "{} {}", median("runtime-spin"), median("fifo"));

    // What lies in the directory is shown again as it was.
    let shown = Command::new(env!("CARGO_BIN_EXE_worstcase"))
        .current_dir(directory.path())
        .args(["report", "out", "--json"])
        .output()
        .unwrap();
    assert_eq!(serde_json::from_slice::<Ways>(&shown.stdout).unwrap(), all);
}

#[test]
fn ways_that_a_user_without_privileges_is_refused_say_what_they_need() {
    if !is_root() || ["setpriv", "prlimit", "taskset"].into_iter().any(is_missing) {
        return skipped("nothing can be taken away here");
    }
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out");
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let mut command = Command::new("taskset");
    command.args(["--cpu-list", "0", "prlimit", "--rtprio=0", "--memlock=0", "setpriv", "--reuid=65534"]);
    command.args(["--regid=65534", "--clear-groups", env!("CARGO_BIN_EXE_worstcase"), "ways", "--out"]);
    let output = command.arg(&out).args(["--loads", "idle", "-D", "200ms", "--json"]).output().unwrap();
    let all: Ways = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    let other = way(&all, "other");
    assert!(other.figures.len() == 1 && other.notes.iter().any(|note| note.contains("memory-not-locked")));
    for one in all.ways.iter().filter(|one| one.name != "other") {
        assert!(one.figures.is_empty() && one.why_not.is_some(), "{one:?}");
    }
    for refused in ["fifo", "runtime-block"] {
        let why_not = way(&all, refused).why_not.as_ref().unwrap();
        assert!(why_not.contains("refused SCHED_FIFO") && why_not.contains("RTPRIO"), "{why_not}");
    }
    let spins = way(&all, "runtime-spin").why_not.as_ref().unwrap();
    assert!(spins.contains("would leave none"), "{spins}");
}

/// A core that spins is handed a message without a wake-up, and passes it on without one.
#[test]
fn messages_from_another_cpu_reach_threads_and_cores() {
    if !is_root() {
        return skipped("real-time priorities need root");
    }
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return skipped("messages come from a second CPU");
    }
    for (task, calls) in [("message", ["futex", "runtime-spin"]), ("stages", ["chain", "runtime-spin-chain"])]
    {
        let directory = tempfile::tempdir().unwrap();
        let options =
            ["--task", task, "--only", "fifo,runtime-spin", "--loads", "idle", "-D", "2s", "--json"];
        let output = ways(directory.path(), &options);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let all: Ways = serde_json::from_slice(&output.stdout).unwrap();
        let median = |name: &str| way(&all, name).figures[0].median.unwrap();
        assert!(
            median("runtime-spin") < median("fifo"),
            "{task}: {} {}",
            median("runtime-spin"),
            median("fifo")
        );
        for (name, call) in ["fifo", "runtime-spin"].into_iter().zip(calls) {
            let (_, received, record) = switches(directory.path(), way(&all, name));
            assert!(received > 100, "{name}: {received} messages");
            assert_eq!(record.scenarios[0].head.planned.setup.to_string(), format!("{call} across"));
        }
    }
}

/// What is asked for and cannot be had leaves nothing behind; what is interrupted keeps what it had.
#[test]
fn what_cannot_begin_leaves_no_directory_and_what_was_interrupted_is_kept() {
    let directory = tempfile::tempdir().unwrap();
    for (options, said) in [
        (["--cpu", "99999"], "--cpu names CPU 99999"),
        (["--loads", "bogus"], "no load `bogus`"),
        (["--only", "bogus"], "no way `bogus`"),
    ] {
        let output = ways(directory.path(), &options);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(said), "{text}");
        assert!(!directory.path().join("out").exists(), "{options:?}");
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_worstcase"));
    command.current_dir(directory.path()).args(["ways", "--out", "out", "--only", "other,fifo"]);
    command.args(["--loads", "idle", "-D", "2s"]).stderr(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    // The first way is measured; the second one has begun.
    assert!(lines.any(|line| line.starts_with("fifo: ")));
    std::thread::sleep(Duration::from_millis(1_500));
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::INT)
        .unwrap();
    lines.for_each(drop);
    assert_eq!(child.wait().unwrap().code(), Some(3));
    let all = record::ways::load(&directory.path().join("out")).unwrap().unwrap();
    assert!(all.interrupted && way(&all, "other").record.is_some(), "{all:?}");
}

#[test]
fn threads_that_keep_their_cpus_are_refused_every_cpu() {
    if !is_root() {
        return skipped("real-time priorities need root");
    }
    let directory = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_worstcase"))
        .current_dir(directory.path())
        .args(["bench", "--wake", "runtime-spin", "--loads", "idle", "-D", "1s"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("would leave none to everything else") && said.contains("--cpus"), "{said}");
}

/// Figures that were measured are shown, whether they could be kept or not.
#[test]
fn on_a_full_disk_the_table_is_shown_and_the_loss_is_the_exit_code() {
    if !is_root() {
        return skipped("mounting needs root");
    }
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("disk")).unwrap();
    // A mount of its own namespace goes with it. The last thing written is the table's file, and there is no room for it.
    let script = format!(
        "mount -t tmpfs -o size=16k none disk && cd disk && exec {} ways --out out --only other,fifo --loads idle -D 1s",
        env!("CARGO_BIN_EXE_worstcase")
    );
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", &script]).current_dir(directory.path());
    let output = command.output().unwrap();
    let (table, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if said.contains("mount:") || said.contains("unshare:") {
        return skipped("nothing can be mounted here");
    }
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("No space left on device"), "{said}");
    assert!(table.lines().any(|line| line.starts_with("fifo ")), "{table} {said}");
}
