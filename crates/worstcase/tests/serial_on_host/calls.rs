//! `--probe call`: inversion is shown where there is one, and a limit judges it.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::path::Path;
use std::process::Command;

use record::{Own, Record, Scenario};

use crate::support::{is_root, skipped};

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
    assert!(shortest(plain) >= BURST * 9 / 10, "{} ns beside bursts of {burst}", shortest(plain));
    assert!(shortest(inherits) < BURST / 2, "{} ns beside bursts of {burst}", shortest(inherits));
}

#[test]
fn every_call_is_measured_and_shown() {
    if !is_root() {
        return skipped("real-time priorities need root");
    }
    let directory = tempfile::tempdir().unwrap();
    let (_, record) = bench(directory.path(), &["--calls", "all", "-D", "50ms"]);
    assert!(record.scenarios.len() >= probe::call::CALLS.len() - 1, "{}", record.scenarios.len());
    for scenario in &record.scenarios {
        let count = scenario.series[0].observed.summary().count;
        assert!(count > 0, "{}: {:?}", scenario.head.planned.setup, scenario.end);
    }
    let page = std::fs::read_to_string(directory.path().join("record/report.html")).unwrap();
    assert!(page.contains("Longest call") && page.contains("pi-mutex"));
}
