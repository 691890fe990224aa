//! Real-time threads that leave ordinary ones no CPU: a run ends then, and only then.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::process::{Command, Output};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use guest_tests::Guests;
use record::{Record, ScenarioEnd, WarningId};
use sys::schedule::{self, Scheduling};

/// Before Linux 6.12, which has a server of CPU time for ordinary threads.
static GUEST: Guests = Guests::new("debian-6.1-amd64", "nowatchdog rcupdate.rcu_cpu_stall_suppress=1")
    .processors(2)
    .programs(&[env!("CARGO_BIN_EXE_worstcase")]);

/// Real-time threads may have all of a CPU: sched(7).
fn let_them_starve() {
    fs::write("/proc/sys/kernel/sched_rt_runtime_us", "-1").unwrap();
}

/// Threads below the measuring ones that keep every CPU busy for so long.
fn starve(length: Duration) -> Vec<JoinHandle<()>> {
    let hog = |cpu: &str| {
        let cpus = cpu.parse().unwrap();
        std::thread::spawn(move || {
            schedule::set_affinity(0, &cpus).unwrap();
            schedule::set(Scheduling::Fifo("50".parse().unwrap())).unwrap();
            let begun = Instant::now();
            while begun.elapsed() < length {}
        })
    };
    ["0", "1"].map(hog).into()
}

fn measure(words: &str) -> Command {
    let mut command = Command::new("worstcase");
    command.arg("measure").args(words.split_whitespace());
    command
}

fn ended(output: &Output, directory: &str) -> Record {
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    record::store::load(directory.as_ref()).unwrap()
}

#[test]
fn a_run_ends_where_ordinary_threads_have_no_cpu() {
    GUEST.run(|| {
        let_them_starve();
        let run = measure("--duration 60s --warm-up 100ms --fail-safe 1s --out starved").spawn().unwrap();
        while !fs::exists("starved/journal.ndjson").unwrap() {
            std::thread::sleep(Duration::from_millis(50));
        }
        std::thread::sleep(Duration::from_secs(1));
        starve(Duration::from_secs(8)).into_iter().for_each(|hog| hog.join().unwrap());
        let record = ended(&run.wait_with_output().unwrap(), "starved");
        assert_eq!(record.scenarios[0].end, ScenarioEnd::FailSafe);
        assert!(record.all_warnings().any(|warning| warning.id == WarningId::FailSafe));
        // At 1 ms; 60,000 a CPU were asked for, and the hogs were there for 8,000.
        let each = record.activations() / 2;
        assert!(each < 30_000, "{each} activations a CPU");
    });
}

#[test]
fn a_run_goes_on_without_ordinary_threads_where_that_is_asked_for() {
    GUEST.run(|| {
        let_them_starve();
        let run = measure("--duration 8s --warm-up 100ms --fail-safe off --out unwatched").spawn().unwrap();
        std::thread::sleep(Duration::from_secs(3));
        starve(Duration::from_secs(3)).into_iter().for_each(|hog| hog.join().unwrap());
        let record = ended(&run.wait_with_output().unwrap(), "unwatched");
        assert_eq!(record.scenarios[0].end, ScenarioEnd::Complete);
        assert_eq!(record.header.plan.fail_safe, None);
    });
}

/// Nine tenths of every CPU are the probe's own.
#[test]
fn threads_that_spin_leave_ordinary_ones_enough() {
    GUEST.run(|| {
        let_them_starve();
        let run = measure("--probe noise --duration 5s --warm-up 1s --fail-safe 1s --out spinning").output();
        let record = ended(&run.unwrap(), "spinning");
        assert_eq!(record.scenarios[0].end, ScenarioEnd::Complete);
    });
}
