//! `--probe call`: inversion is shown where there is one, and a limit judges it.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use record::{Own, Record, Scenario};

use rustix::process::Signal;

use crate::support::leftovers::Machine;
use crate::support::{self, Run, guests, is_missing, is_root, skipped};

const BURST: u64 = 400_000;

/// What came of it: the exit code, and the record.
fn bench(directory: &Path, options: &[&str]) -> (Option<i32>, Record) {
    let out = directory.join("record");
    let output = Command::new(env!("CARGO_BIN_EXE_worstcase"))
        .args(["bench", "--probe", "call", "--loads", "idle", "--cpus", "0", "--warm-up", "100ms"])
        .args(["--interval", "3ms"])
        .args(options)
        .arg("--out")
        .arg(&out)
        .output()
        .unwrap();
    let record = record::store::load(&out).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    (output.status.code(), record)
}

fn shortest(scenario: &Scenario) -> u64 {
    scenario.series[0].observed.summary().minimum().unwrap().0
}

#[test]
fn a_mutex_without_inheritance_waits_for_the_thread_in_the_middle_and_fails_its_limit() {
    if !is_root() {
        return skipped("real-time priorities need root");
    }
    let directory = tempfile::tempdir().unwrap();
    let burst = format!("{}us", BURST / 1000);
    let calls =
        ["--calls", "mutex,pi-mutex", "--partners", "0", "--burst", &burst, "--limit", "200us", "-D", "1s"];
    let (code, record) = bench(directory.path(), &calls);
    assert_eq!(code, Some(1));
    let [plain, inherits] = &record.scenarios[..] else { panic!("{:?}", record.scenarios.len()) };
    assert_eq!(plain.head.planned.setup.to_string(), "mutex");
    assert!(plain.series.iter().all(|series| matches!(series.own, Own::Call(_))));
    // The burst begins before the wait does: by more where the host stops the CPU in between.
    let median = plain.series[0].observed.quantile(0.5).unwrap().0;
    assert!(median >= BURST * 9 / 10, "{median} ns beside bursts of {burst}");
    assert!(shortest(plain) > BURST / 2, "{} ns beside bursts of {burst}", shortest(plain));
    assert!(shortest(inherits) < BURST / 2, "{} ns beside bursts of {burst}", shortest(inherits));
}

#[test]
fn every_call_is_measured_and_shown() {
    if !is_root() {
        return skipped("real-time priorities need root");
    }
    let directory = tempfile::tempdir().unwrap();
    let (_, record) = bench(directory.path(), &["--calls", "all", "-D", "50ms"]);
    let made = probe::call::CALLS.iter().filter(|call| call.hindrance().is_none()).count();
    assert!(record.scenarios.len() >= made - 1, "{}", record.scenarios.len());
    for scenario in &record.scenarios {
        let count = scenario.series[0].observed.summary().count;
        assert!(count > 0, "{}: {:?}", scenario.head.planned.setup, scenario.end);
    }
    let page = std::fs::read_to_string(directory.path().join("record/report.html")).unwrap();
    assert!(page.contains("Longest call") && page.contains("pi-mutex"));
}

/// The first CPU alone, for a user without privileges.
const ALONE: [&str; 7] = ["taskset", "--cpu-list", "0", NOBODY[0], NOBODY[1], NOBODY[2], NOBODY[3]];

#[test]
fn calls_that_one_cpu_cannot_make_are_named_with_the_reason() {
    if !is_root() || ["taskset", "setpriv"].into_iter().any(is_missing) {
        return skipped("nothing can be taken away here");
    }
    let run = |calls: &str, more: &[&str]| {
        let mut command = Command::new(ALONE[0]);
        let options = ["measure", "--probe", "call", "--calls", calls, "--warm-up", "0s"];
        Run::start_as(command.args(&ALONE[1..]).arg(support::BINARY).args(options).args(more)).end()
    };
    let why = "this process may use CPU 0 alone";
    for calls in ["runtime-spin", "futex,shootdown"] {
        let ended = run(calls, &["-D", "100ms"]);
        assert_eq!(ended.code(), Some(2), "{calls}: {}", ended.err);
        assert!(ended.err.contains(why) && ended.out.is_empty(), "{calls}: {} {}", ended.out, ended.err);
    }
    let ended = run("all", &["-D", "20ms", "--format", "json"]);
    let record: record::Record = serde_json::from_str(&ended.out).unwrap();
    let left_out: Vec<_> =
        record.warnings.iter().filter(|one| one.id == record::WarningId::CallsLeftOut).collect();
    assert!(left_out.iter().any(|one| one.evidence.contains(why)), "{left_out:?}");
    // Nothing is measured where no call fits in, and no limit is met.
    let ended = run("futex", &["-D", "1s", "-i", "5s", "--limit", "1s"]);
    assert_eq!(ended.code(), Some(2), "{}", ended.err);
    assert!(ended.err.contains("no call is made in 1s at an interval of 5s"), "{}", ended.err);
}

/// Ends a run in the midst of a call. Then the machine is as it was.
fn end_in(call: &str, signal: Signal, delay: Duration, machine: &Machine) {
    let what = format!("{signal:?} in {call}");
    let before = machine.state();
    let words = ["--probe", "call", "--calls", call, "--cpus", "0", "--warm-up", "0s", "-D", "20s"];
    let mut run = Run::measure(&words);
    run.wait_until(&what, |run| support::open_scenario(&run.journal()).is_some());
    std::thread::sleep(delay);
    run.signal(signal);
    run.assert_nothing_survives(&what);
    machine.is_again(&before, &what);
    let code = run.end().status.code();
    assert!(
        if signal == Signal::KILL { code.is_none() } else { matches!(code, Some(3 | 130)) },
        "{what}: {code:?}"
    );
}

#[test]
fn a_run_that_ends_in_any_call_leaves_the_machine_as_it_was() {
    let machine = Machine::new();
    let signals = [Signal::INT, Signal::TERM, Signal::KILL].into_iter().cycle();
    let calls = probe::call::CALLS.into_iter().filter(|call| call.hindrance().is_none());
    for ((call, signal), number) in calls.zip(signals).zip(0..) {
        end_in(call.name, signal, Duration::from_millis(3 * (number % 11)), &machine);
    }
}

/// What takes something away, a call that needs it, and the cause and the cure that are given.
const LACKS: [(&[&str], &str, [&str; 2]); 3] = [
    (&["prlimit", "--msgqueue=0"], "mqueue", ["mq_open", "ulimit -q"]),
    (
        &[NOBODY[0], NOBODY[1], NOBODY[2], NOBODY[3], "prlimit", "--nproc=1"],
        "pipe",
        ["could not be started", "ulimit -u"],
    ),
    (
        &[NOBODY[0], NOBODY[1], NOBODY[2], NOBODY[3], "prlimit", "--nproc=4"],
        "pi-mutex",
        ["start a thread", "ulimit -u"],
    ),
];

const NOBODY: [&str; 4] = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];

#[test]
fn a_call_that_cannot_be_made_where_something_lacks_is_one_error_with_its_cause() {
    if !is_root() || ["prlimit", "setpriv"].into_iter().any(is_missing) {
        return skipped("nothing can be taken away here");
    }
    for (without, call, causes) in LACKS {
        let words =
            ["measure", "--probe", "call", "--calls", call, "--cpus", "0", "-D", "100ms", "--out", "record"];
        let mut command = Command::new(without[0]);
        let ended = Run::start_as(command.args(&without[1..]).arg(support::BINARY).args(words)).end();
        assert_eq!(ended.code(), Some(2), "{call}: {}", ended.err);
        assert_eq!(ended.err.matches("error: ").count(), 1, "{call}: {}", ended.err);
        assert!(causes.iter().all(|cause| ended.err.contains(cause)), "{call}: {}", ended.err);
        assert!(!ended.out.contains("max"), "{call}: {}", ended.out);
    }
}

#[test]
fn a_call_of_many_threads_at_once_is_made_by_each() {
    if !is_root() {
        return skipped("real-time priorities need root");
    }
    for _ in 0..6 {
        let ended =
            Run::measure(&["--probe", "call", "--calls", "mqueue", "--warm-up", "0s", "-D", "20ms"]).end();
        assert!(!ended.err.contains("error: "), "{}", ended.err);
    }
}

/// The shortest waits for a plain mutex and for one with inheritance in a guest, in instructions, beside bursts of `burst`.
fn waits_in_guest(directory: &Path, kernel: &str, burst: &str) -> [u64; 2] {
    let out = directory.join(format!("{kernel}-{burst}"));
    let output = Command::new(env!("CARGO_BIN_EXE_worstcase"))
        .args(["lab", "run", "--kernel", kernel, "--out"])
        .arg(&out)
        .args(["--", "bench", "--probe", "call", "--calls", "mutex,pi-mutex", "--partners", "0", "--loads"])
        .args(["idle", "--duration", "300ms", "--interval", "12ms", "--seed", "1", "--burst", burst])
        .output()
        .unwrap();
    let record = record::store::load(&out).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    let [plain, inherits] = &record.scenarios[..] else { panic!("{:?}", record.scenarios.len()) };
    [shortest(plain), shortest(inherits)]
}

/// A device's interrupt comes late by some instructions, in every kernel; on PREEMPT_RT its handler is a thread, which adds thousands.
#[test]
fn in_guests_interrupts_of_devices_take_longer_where_their_handlers_are_threads() {
    const KERNELS: [(&str, &[&str]); 2] = [
        ("debian-6.1-amd64", &["--version", "6.1"]),
        ("debian-6.1-rt-amd64", &["--version", "6.1", "--flavour", "rt"]),
    ];
    if guests::hindered(&["qemu-system-x86_64"], &KERNELS.map(|(_, words)| words)) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    for (device, calls) in [("edu-uio", "uio,uio-event"), ("edu-vfio", "vfio"), ("hpet", "hpet")] {
        let [plain, threaded] = KERNELS.map(|(kernel, _)| {
            let out = directory.path().join(format!("{kernel}-{device}"));
            let output = Command::new(env!("CARGO_BIN_EXE_worstcase"))
                .args(["lab", "run", "--kernel", kernel, "--device", device, "--out"])
                .arg(&out)
                .args(["--", "bench", "--probe", "call", "--calls", calls, "--partners", "0", "--loads"])
                .args(["idle", "--duration", "200ms", "--interval", "5ms", "--seed", "1"])
                .output()
                .unwrap();
            let record = record::store::load(&out).unwrap_or_else(|error| panic!("{error}: {output:?}"));
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(!said.contains("lab explain"), "a call is no wake-up that it could explain: {said}");
            record.scenarios.iter().map(shortest).collect::<Vec<_>>()
        });
        assert_eq!((plain.len(), threaded.len()), (calls.split(',').count(), plain.len()));
        for (plain, threaded) in plain.into_iter().zip(threaded) {
            assert!(plain > 1_000 && threaded > plain + 1_000, "{calls}: {plain}, {threaded}");
        }
    }
}

/// Where a nanosecond is an instruction, the wait for a plain mutex grows by the whole burst of the thread in the middle. With
/// inheritance it stays within a hundredth of a burst: what the ticks that fall into it take.
#[test]
fn in_guests_a_burst_lengthens_the_wait_for_a_plain_mutex_alone() {
    const KERNELS: [(&str, &[&str]); 2] = [
        ("debian-6.1-amd64", &["--version", "6.1"]),
        ("debian-6.1-rt-amd64", &["--version", "6.1", "--flavour", "rt"]),
    ];
    const BURST: u64 = 2_000_000;
    if guests::hindered(&["qemu-system-x86_64", "mke2fs"], &KERNELS.map(|(_, words)| words)) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    for (kernel, _) in KERNELS {
        let [plain, inherits] = waits_in_guest(directory.path(), kernel, "0us");
        let [longer, bounded] = waits_in_guest(directory.path(), kernel, "2ms");
        assert!((BURST..BURST + BURST / 100).contains(&(longer - plain)), "{kernel}: {plain}, {longer}");
        assert!(bounded < inherits + BURST / 100, "{kernel}: {inherits}, {bounded}");
    }
}
