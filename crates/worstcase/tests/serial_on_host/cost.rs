//! What operations take: slowed ones are found, those that cannot run are named, and nothing is left.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use record::cost::{Cost, Place, load};
use rustix::process::Signal;

use crate::evidence::Quota;
use crate::support::leftovers::Machine;
use crate::support::{self, Run, is_missing, is_root, skipped, wait_until};

const PROGRAM: &str = env!("CARGO_BIN_EXE_worstcase");

fn cost(directory: &Path, name: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.arg("cost").args(arguments).arg("--out").arg(directory.join(name)).current_dir(directory);
    command
}

fn done(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    output
}

/// Of a comparison: inconclusive where others use this machine too.
fn compared(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let shown = text(&output);
    let expected = if shown.contains("INCONCLUSIVE: ") { 3 } else { 0 };
    assert_eq!(output.status.code(), Some(expected), "{output:?}");
    shown
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn read(path: PathBuf) -> Cost {
    load(&path).unwrap().unwrap()
}

/// Names in a directory.
fn left_in(directory: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(directory).unwrap().flatten().map(|entry| entry.path()).collect()
}

#[test]
fn every_operation_is_measured_or_says_why_not() {
    let directory = tempfile::tempdir().unwrap();
    done(&mut cost(directory.path(), "all", &["--rounds", "1", "--sample", "1ms"]));
    let cost = read(directory.path().join("all"));
    assert!(cost.operations.len() > operation::operations().count(), "{} places", cost.operations.len());
    for one in &cost.operations {
        assert_eq!(one.samples.len() + one.failures.len(), 1, "{one:?}");
        assert!(one.samples.iter().all(|sample| sample.count > 0 && sample.time.0 > 0), "{one:?}");
    }
    let measured = cost.operations.iter().filter(|one| !one.samples.is_empty() && one.place == Place::OneCpu);
    assert!(measured.count() * 10 > operation::operations().count() * 8);
    assert_eq!(left_in(&directory.path().join("all")).len(), 2, "record and page");
    assert_eq!(left_in(directory.path()).len(), 1, "files of the operations are gone");
}

#[test]
fn a_call_that_was_made_slower_is_named_as_the_worst() {
    for _ in 0..ATTEMPTS {
        let directory = tempfile::tempdir().unwrap();
        let few =
            ["--only", "cpu-integer,getppid,pipe-self,futex-ping-pong", "--sample", "20ms", "--rounds", "14"];
        let mut before = cost(directory.path(), "before", &few);
        sys::injection::slow_down(&mut before, sys::injection::GETPPID, 0);
        let mut after = cost(directory.path(), "after", &["--against", "before"]);
        sys::injection::slow_down(&mut after, sys::injection::GETPPID, 4_000);
        done(&mut before);
        let shown = compared(&mut after);
        let is_found = shown.contains("Worst: getppid, ");
        assert!(is_found || shown.contains("INCONCLUSIVE: "), "{shown}");
        if is_found {
            return slowed_call_is_found_again_in(directory.path());
        }
    }
    skipped("others use the CPU: the runs of a record differ by more than what was made slower");
}

fn slowed_call_is_found_again_in(directory: &Path) {
    let report = |arguments: &[&str]| {
        let mut command = Command::new(PROGRAM);
        let command = command.arg("report").args(arguments).current_dir(directory);
        text(&done(command.args(["before", "after"])))
    };
    let again = report(&[]);
    assert!(again.contains("Worst: getppid, "), "{again}");
    let printed = report(&["--json"]);
    crate::support::schema::check("cost-comparison", &serde_json::from_str(&printed).unwrap());
    let worst = report::cost::against(&read(directory.join("before")), &read(directory.join("after")));
    assert!(worst.worst().unwrap().found.interval.0 > 1.0, "{worst:?}");
}

/// Time and CPU time of all samples.
fn times(cost: &Cost) -> (u64, u64) {
    let samples = || cost.operations.iter().flat_map(|operation| &operation.samples);
    (samples().map(|sample| sample.time.0).sum(), samples().map(|sample| sample.cpu_time.0).sum())
}

/// So often the quota is tried: where others use the CPU meanwhile, it is not what makes the loop longer.
const ATTEMPTS: u32 = 4;

#[test]
fn half_a_cpu_makes_a_loop_take_twice_as_long() {
    let Some(half) = is_root().then(|| Quota::of(5_000, 10_000)).flatten() else {
        return skipped("a CPU quota needs root and the cpu controller");
    };
    let mut seen = Vec::new();
    for _ in 0..ATTEMPTS {
        let directory = tempfile::tempdir().unwrap();
        // Many periods of the quota a sample, even where the machine was slow when its length was chosen: a sample can begin
        // with a period's whole quota and ends with the work, not with the period.
        let few = ["--only", "cpu-integer", "--sample", "500ms", "--rounds", "5"];
        done(&mut cost(directory.path(), "before", &few));
        let free = read(directory.path().join("before"));
        let mut limited = half.command(&["cost", "--against", "before", "--out", "after"]);
        let shown = compared(limited.current_dir(directory.path()));
        assert!(shown.contains("a control group limits the CPU time"), "{shown}");
        let limited = read(directory.path().join("after"));
        let ratio = report::cost::against(&free, &limited).rows[0].found.ratio;
        let [before, after] = [times(&free), times(&limited)].map(|(time, cpu)| time as f64 / cpu as f64);
        println!("{before} times its CPU time without a quota, {after} times with it; {ratio} times as long");
        // Within one run, because the machine itself can be faster or slower by the second.
        if before < 1.05 && (1.5..3.0).contains(&after) {
            assert!(ratio > 1.0, "{ratio}");
            return;
        }
        seen.push((before, after));
    }
    if seen.iter().all(|(before, _)| *before >= 1.05) {
        return skipped("others use the CPU: a quota would limit nothing");
    }
    panic!("{seen:?}");
}

const INTERVAL: &str = "/proc/sys/vm/stat_interval";

/// Values of [`INTERVAL`] that were read while `command` ran, and its output.
fn values_beside(command: &mut Command) -> (BTreeSet<String>, Output) {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let waits = std::thread::spawn(move || child.wait_with_output().unwrap());
    let mut seen = BTreeSet::new();
    while !waits.is_finished() {
        seen.insert(std::fs::read_to_string(INTERVAL).unwrap().trim().to_owned());
        std::thread::sleep(Duration::from_millis(1));
    }
    (seen, waits.join().unwrap())
}

#[test]
fn rounds_with_a_setting_and_without_it_come_in_turn_and_leave_the_machine_as_it_was() {
    if !is_root() {
        return skipped("settings need root");
    }
    let directory = tempfile::tempdir().unwrap();
    let before = std::fs::read_to_string(INTERVAL).unwrap().trim().to_owned();
    let other = if before == "17" { "18" } else { "17" };
    let setting = format!("{INTERVAL}={other}");
    let few =
        ["--only", "getppid", "--sample", "20ms", "--rounds", "7", "--state", "state", "--with", &setting];
    let (seen, output) = values_beside(&mut cost(directory.path(), "both", &few));
    assert!(matches!(output.status.code(), Some(0 | 3)), "{output:?}");
    assert_eq!(seen, BTreeSet::from([before.clone(), other.to_owned()]));
    let shown = text(&output);
    assert!(shown.contains(&format!("Before: without {setting}. After: with it.")), "{shown}");
    let [without, with] = ["both/without", "both/with"].map(|name| read(directory.path().join(name)));
    for (cost, on) in [(&without, false), (&with, true)] {
        assert_eq!(cost.turn.as_ref().map(|turn| turn.on), Some(on));
        assert_eq!((cost.rounds, cost.operations[0].samples.len()), (7, 7));
    }
    let mut again = Command::new(PROGRAM);
    let again = again.args(["report", "both/without", "both/with"]).current_dir(directory.path());
    assert!(text(&again.output().unwrap()).contains("Their rounds came in turn."));
    assert_eq!(std::fs::read_to_string(INTERVAL).unwrap().trim(), before);
    for refused in ["threadirqs", "/proc/sys/vm/nothing=1", &format!("{INTERVAL}={before}")] {
        let words = ["--rounds", "7", "--state", "state", "--with", refused];
        let output = cost(directory.path(), "refused", &words).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{refused}: {output:?}");
        assert!(!directory.path().join("refused").exists(), "{refused} left a record");
    }
}

/// Three rounds were measured with a setting and without, minutes long, and then compared nothing.
#[test]
fn too_few_rounds_for_a_comparison_are_refused_before_anything_is_changed() {
    let directory = tempfile::tempdir().unwrap();
    let setting = format!("{INTERVAL}=17");
    let words = ["--only", "getppid", "--rounds", "3", "--state", "state", "--with", &setting];
    let output = cost(directory.path(), "few", &words).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("--rounds 3") && said.contains("--rounds 5 or more"), "{said}");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "neither a record nor a journal");
}

#[test]
fn a_setting_is_undone_where_measuring_with_it_is_killed() {
    if !is_root() {
        return skipped("settings need root");
    }
    let directory = tempfile::tempdir().unwrap();
    let value = || std::fs::read_to_string(INTERVAL).unwrap().trim().to_owned();
    let before = value();
    let other = if before == "17" { "18" } else { "17" };
    let setting = format!("{INTERVAL}={other}");
    for signal in [Signal::KILL, Signal::INT] {
        let name = format!("{signal:?}");
        let few = ["--only", "getppid", "--sample", "1s", "--state", "state", "--with", &setting];
        let mut command = cost(directory.path(), &name, &few);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        wait_until("the setting", || value() == other);
        support::kill(child.id() as i32, signal);
        let shown = child.wait_with_output().unwrap();
        wait_until("undo", || value() == before);
        if signal == Signal::INT {
            let shown = text(&shown);
            assert!(shown.starts_with("INCONCLUSIVE: the run was ended early by Ctrl-C"), "{shown}");
            let next = format!("Next  worstcase cost --sample 1s --only getppid --with {setting}");
            assert!(shown.contains(&next), "{shown}");
        }
    }
}

/// A machine that lacks something, and what cannot be measured there.
struct Lack {
    /// What is lacking.
    what: &'static str,
    /// The command that takes it away, and runs the rest.
    without: &'static [&'static str],
    only: &'static str,
    /// Operations without a figure, at any place; no others.
    missing: &'static [&'static str],
    /// The cause that each of them is given.
    why: &'static str,
}

const NOBODY: [&str; 4] = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];

const LACKS: [Lack; 6] = [
    Lack {
        what: "bytes for message queues",
        without: &["prlimit", "--msgqueue=0"],
        only: "queues,pipe-self",
        missing: &["mqueue-ping-pong", "mqueue-stream"],
        why: "(limits: ulimit -q, ulimit -n): Too many open files",
    },
    Lack {
        what: "processes beside those that take a sample",
        without: &[NOBODY[0], NOBODY[1], NOBODY[2], NOBODY[3], "prlimit", "--nproc=3"],
        only: "processes,pipe-self,pipe-ping-pong,futex-ping-pong,wake-under-load",
        missing: &[
            "pipe-ping-pong",
            "futex-ping-pong",
            "wake-under-load",
            "thread-create",
            "vfork",
            "fork",
            "exec",
        ],
        why: "Resource temporarily unavailable",
    },
    Lack {
        what: "threads for all workers",
        without: &[NOBODY[0], NOBODY[1], NOBODY[2], NOBODY[3], "prlimit", "--nproc=5"],
        only: "processes,futexes",
        missing: &["wake-under-load"],
        why: "Resource temporarily unavailable",
    },
    Lack {
        what: "processes for a sample",
        without: &[NOBODY[0], NOBODY[1], NOBODY[2], NOBODY[3], "prlimit", "--nproc=2"],
        only: "getppid",
        missing: &[record::cost::CONTROL, "getppid"],
        why: "Resource temporarily unavailable",
    },
    Lack {
        what: "a loopback device that is up",
        without: &["unshare", "-n"],
        only: "sockets",
        missing: &["udp-ping-pong", "tcp-ping-pong", "icmp-echo", "tcp-stream", "udp-stream"],
        why: "127.0.0.1",
    },
    Lack {
        what: "privileges, and the right to ping",
        without: &["unshare", "-n", NOBODY[0], NOBODY[1], NOBODY[2], NOBODY[3]],
        only: "signals,memory,futexes,queues,icmp-echo",
        missing: &["icmp-echo"],
        why: "make a socket for ICMP: Operation not permitted",
    },
];

#[test]
fn what_cannot_be_measured_where_something_lacks_is_named_with_its_cause_and_has_no_figure() {
    if !is_root() || ["unshare", "prlimit", "setpriv"].into_iter().any(is_missing) {
        return skipped("nothing can be taken away here");
    }
    for lack in &LACKS {
        let words = ["cost", "--only", lack.only, "--rounds", "1", "--sample", "1ms", "--out", "record"];
        let mut command = Command::new(lack.without[0]);
        let ended = Run::start_as(command.args(&lack.without[1..]).arg(PROGRAM).args(words)).end();
        let cost = read(ended.path("record"));
        let is_measured = cost.operations.iter().any(|one| !one.samples.is_empty());
        assert_eq!(ended.code(), Some(if is_measured { 0 } else { 3 }), "{}: {}", lack.what, ended.err);
        let without: Vec<_> = cost.operations.iter().filter(|one| one.samples.is_empty()).collect();
        let names: BTreeSet<_> = without.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, lack.missing.iter().copied().collect(), "{}: {}", lack.what, ended.out);
        let shown = ended.out.split_whitespace().collect::<Vec<_>>().join(" ");
        for one in without {
            let why = one.failures.iter().find(|failure| failure.why.contains(lack.why));
            assert!(why.is_some() && shown.contains(&one.words()), "{}: {one:?}: {shown}", lack.what);
        }
        assert!(shown.contains("Not measured: ") && shown.contains(lack.why), "{}: {shown}", lack.what);
    }
}

#[test]
fn with_one_cpu_partners_on_another_are_named_as_not_measured() {
    let directory = tempfile::tempdir().unwrap();
    let cpu = sys::schedule::affinity(0).unwrap().first().unwrap().to_string();
    let few = ["--only", "pipes", "--rounds", "1", "--sample", "1ms"];
    let group = is_root().then(|| Quota::of_one_cpu(&cpu)).flatten();
    let confined = group.iter().map(|group| {
        let mut command = group.command(&[&["cost", "--out", "confined"], &few[..]].concat());
        command.current_dir(directory.path());
        command
    });
    let chosen = cost(directory.path(), "chosen", &[&["--cpus", &cpu], &few[..]].concat());
    for mut command in confined.chain([chosen]) {
        let shown = text(&done(&mut command));
        assert!(shown.contains("there is no second CPU beside"), "{shown}");
    }
}

#[test]
fn on_a_full_disk_what_writes_is_named_as_not_measured() {
    let directory = tempfile::tempdir().unwrap();
    let full = directory.path().join("full");
    std::fs::create_dir(&full).unwrap();
    let mount = ["mount", "-t", "tmpfs", "-o", "size=16k", "none"];
    if !is_root() || !Command::new(mount[0]).args(&mount[1..]).arg(&full).status().unwrap().success() {
        return skipped("nothing can be mounted here");
    }
    let _ = std::fs::write(full.join("filled"), vec![1; 64 << 10]);
    let few = ["--only", "files", "--directory", "full", "--rounds", "1", "--sample", "1ms"];
    let output = cost(directory.path(), "record", &few).output().unwrap();
    let left = left_in(&full).len();
    assert!(Command::new("umount").arg(&full).status().unwrap().success());
    let shown = text(&output);
    assert!(shown.contains("Not measured: ") && shown.contains("No space left"), "{shown}");
    assert_eq!((output.status.code(), left), (Some(0), 1));
}

#[test]
fn a_run_that_ends_early_keeps_its_rounds() {
    for (number, signal) in [Signal::INT, Signal::TERM, Signal::KILL, Signal::KILL].into_iter().enumerate() {
        let only = "fifo-stream,mqueue-stream,file-create,fork,exec,tcp-stream";
        let mut run = Run::start(&[&["cost", "--only", only, "--sample", "2ms"], &ENDLESS[..]].concat());
        let record = run.path("record");
        run.wait_until("two rounds", |_| {
            load(&record).is_some_and(|cost| cost.is_ok_and(|cost| cost.rounds > 1))
        });
        std::thread::sleep(Duration::from_millis(7 * number as u64));
        run.signal(signal);
        run.assert_nothing_survives(only);
        let ended = run.end();
        assert_eq!(ended.status.code(), (signal != Signal::KILL).then_some(3), "{signal:?}");
        let kept = read(ended.path("record"));
        assert!(kept.rounds > 1 && kept.operations.iter().all(|one| one.samples.len() > 1), "{signal:?}");
        assert_eq!(kept.interrupted.is_some(), signal != Signal::KILL);
    }
}

const ENDLESS: [&str; 4] = ["--rounds", "1000", "--out", "record"];
/// What ends a run.
const ENDS: [Signal; 3] = [Signal::INT, Signal::TERM, Signal::KILL];

/// Every operation, alone on a CPU and, where it has a partner, across two.
fn every_operation() -> Vec<(&'static str, bool)> {
    let has_second = sys::schedule::affinity(0).unwrap().len() > 1;
    let places = |one: &'static operation::Operation| {
        let across = (has_second && one.places.contains(&Place::TwoCpus)).then_some((one.name, true));
        std::iter::once((one.name, false)).chain(across)
    };
    operation::operations().flat_map(places).collect()
}

/// Whether both processes of a sample of it are there: the one that works, and the one that takes away what it leaves.
fn is_in(run: &Run, name: &str, across: bool) -> bool {
    let is_sample = |words: &[String]| {
        let order: serde_json::Value = serde_json::from_str(words.get(2)?).ok()?;
        let is_there = order["operation"] == name && (order["cpu"] != order["partner"]) == across;
        (words[1] == operation::process::ARGUMENT && is_there).then_some(())
    };
    run.processes().iter().filter_map(|process| is_sample(&process.words)).count() > 1
}

/// Ends a run in the midst of an operation. Then the machine is as it was, and the files are those of the record.
fn end_in((name, across): (&str, bool), signal: Signal, delay: Duration, machine: &Machine) {
    let what = format!("{signal:?} in {name}, across: {across}");
    let before = machine.state();
    let mut run = Run::start(&[&["cost", "--only", name, "--sample", "100ms"], &ENDLESS[..]].concat());
    run.wait_until(&what, |run| is_in(run, name, across));
    std::thread::sleep(delay);
    run.signal(signal);
    run.assert_nothing_survives(&what);
    machine.is_again(&before, &what);
    let left =
        left_in(&run.path("")).into_iter().filter_map(|path| path.file_name()?.to_str().map(str::to_owned));
    assert_eq!(
        left.collect::<BTreeSet<_>>(),
        ["record", "stderr", "stdout"].map(str::to_owned).into(),
        "{what}"
    );
    let code = run.end().status.code();
    assert!(
        if signal == Signal::KILL { code.is_none() } else { matches!(code, Some(3 | 130)) },
        "{what}: {code:?}"
    );
}

#[test]
fn a_run_that_ends_in_any_operation_leaves_the_machine_as_it_was() {
    let machine = Machine::new();
    for (number, operation) in every_operation().into_iter().enumerate() {
        let delay = Duration::from_millis(7 * (number as u64 % 9));
        end_in(operation, ENDS[number % ENDS.len()], delay, &machine);
    }
}

#[test]
fn each_signal_that_ends_a_run_in_any_operation_leaves_the_machine_as_it_was() {
    let machine = Machine::new();
    for (number, operation) in every_operation().into_iter().enumerate() {
        let delay = Duration::from_millis(5 * (number as u64 % 13));
        ENDS.into_iter().for_each(|signal| end_in(operation, signal, delay, &machine));
    }
}

#[test]
fn a_record_of_a_run_is_no_record_of_costs() {
    let directory = tempfile::tempdir().unwrap();
    let output = cost(directory.path(), "x", &["--against", "."]).output().unwrap();
    let words = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(words.contains("--against .: there is no cost.json") && words.contains("hint: "), "{words}");
}
