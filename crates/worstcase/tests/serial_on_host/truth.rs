//! Injected truth: a delay that we make must be found, and be what it was. And counts: what the run phase may cost.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use record::{Record, Series};
use sys::clock::Clock;
use sys::schedule::{self, Scheduling};
use units::{CpuId, CpuList, Nanos, Random, Seed};

use crate::support::wait_until;

const MS: u64 = 1_000_000;
const INTERVAL: u64 = MS;

/// A `worstcase measure` that writes a record.
struct Run {
    child: Child,
    directory: tempfile::TempDir,
}

impl Run {
    fn start(options: &[&str]) -> Self {
        Self::start_under(&[], options)
    }

    /// Under another program, such as strace.
    fn start_under(wrapper: &[&str], options: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let out = directory.path().join("record");
        let binary = env!("CARGO_BIN_EXE_worstcase");
        let words: Vec<&str> =
            wrapper.iter().copied().chain([binary, "measure", "--interval", "1ms"]).collect();
        let child = Command::new(words[0])
            .args(&words[1..])
            .args(options)
            .arg("--out")
            .arg(&out)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self { child, directory }
    }

    fn out(&self) -> PathBuf {
        self.directory.path().join("record")
    }

    /// Waits until the warm-up is over: the journal holds figures of a second.
    fn wait_measuring(&self) {
        let journal = self.out().join("journal.ndjson");
        wait_until("the first second", || {
            std::fs::read_to_string(&journal).is_ok_and(|text| text.contains("\"seconds\""))
        });
    }

    /// The probe's process: the child that was started as one.
    fn probe(&self) -> i32 {
        let parent = self.child.id().to_string();
        let mut found = None;
        wait_until("the probe's process", || {
            found = processes().find(|pid| {
                let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
                let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                let is_child =
                    stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1)) == Some(&parent);
                is_child && line.split(|&byte| byte == 0).nth(1) == Some(b"__probe")
            });
            found.is_some()
        });
        found.unwrap()
    }

    fn finish(mut self) -> (Record, tempfile::TempDir) {
        let status = self.child.wait().unwrap();
        assert!(matches!(status.code(), Some(0 | 3)), "{status}");
        (read(&self.out()), self.directory)
    }
}

fn read(out: &Path) -> Record {
    serde_json::from_slice(&std::fs::read(out.join("record.json")).unwrap()).unwrap()
}

fn processes() -> impl Iterator<Item = i32> {
    std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

fn signal(pid: i32, name: &str) {
    assert!(Command::new("kill").args([name, &pid.to_string()]).status().unwrap().success());
}

fn now() -> u64 {
    Clock::Monotonic.now()
}

fn first_cpu() -> CpuId {
    schedule::affinity(0).unwrap().first().unwrap()
}

/// What a series must hold after a stall of between `least` and `most` ns: all activations accounted for, the stall in
/// one observed sample, and its missed activations.
fn check_stall(series: &Series, expected: u64, least: u64, most: u64) {
    let (observed, missed) = (series.observed.summary(), series.missed().summary());
    assert_eq!(observed.count + missed.count, series.expected());
    assert!(
        series.expected().abs_diff(expected) <= 1,
        "{} activations, {expected} were due",
        series.expected()
    );
    let stall = observed.max;
    assert!((least..=most).contains(&stall), "stalled for {least} to {most} ns, found {stall}");
    assert_eq!(series.observed.at_least(Nanos(least)), 1, "one observed sample of that length");
    let of_the_stall = stall / INTERVAL;
    assert!(
        missed.count >= of_the_stall,
        "{} missed, the stall alone swallowed {of_the_stall}",
        missed.count
    );
    // The latencies that the stall's missed activations would have had come down from its length, a period each: those
    // above half of it are half of them, and nothing but the stall is that long.
    let upper_half = series.missed().at_least(Nanos(stall / 2));
    assert!(
        upper_half.abs_diff(of_the_stall / 2) <= of_the_stall / 100 + 1,
        "{upper_half} of {of_the_stall}"
    );
}

#[test]
fn a_stopped_process_is_one_late_wake_up_and_its_missed_activations() {
    let run = Run::start(&["--duration", "5s"]);
    let probe = run.probe();
    run.wait_measuring();
    let before = now();
    signal(probe, "-STOP");
    let stopped = now();
    std::thread::sleep(Duration::from_secs(1));
    let continuing = now();
    signal(probe, "-CONT");
    let after = now();
    let (record, _directory) = run.finish();
    // A stop reaches a process within the time that kill(1) takes, and a machine under load adds to its end.
    let (least, most) = (continuing - stopped - 2 * INTERVAL, after - before + 500 * MS);
    for series in &record.scenarios[0].series {
        check_stall(series, 5_000, least, most);
    }
}

/// A thread of the highest priority on `cpu`, which holds it for `length` and says when it began and ended.
fn hog(cpu: CpuId, length: u64) -> Result<(u64, u64), sys::Error> {
    let hold = move || {
        schedule::set_affinity(0, &CpuList::from_iter([cpu]))?;
        schedule::set(Scheduling::Fifo("99".parse().unwrap()))?;
        let start = now();
        while now() < start + length {
            std::hint::spin_loop();
        }
        let end = now();
        // Lets go at once: the end of a thread takes a while, at this priority too.
        let _ = Clock::Monotonic.sleep_until(end + 10 * MS);
        Ok((start, end))
    };
    std::thread::spawn(hold).join().unwrap()
}

#[test]
fn a_hog_of_higher_priority_is_one_late_wake_up_and_its_missed_activations() {
    let cpu = first_cpu();
    let run = Run::start(&["--duration", "5s", "--cpus", &cpu.to_string()]);
    run.wait_measuring();
    // Below the 950 ms after which RT throttling would stop hog and probe alike.
    let (start, end) = match hog(cpu, 900 * MS) {
        Ok(times) => times,
        Err(error) => return println!("skipped: {error}"),
    };
    let (record, _directory) = run.finish();
    check_stall(&record.scenarios[0].series[0], 5_000, end - start - 2 * INTERVAL, end - start + 50 * MS);
}

/// Holds of 5 ms at random times, and how many had to be repeated.
fn hogs(cpu: CpuId, count: usize, random: &mut Random) -> Result<(Vec<(u64, u64)>, u32), sys::Error> {
    const LENGTH: u64 = 5 * MS;
    let (mut held, mut repeated) = (Vec::new(), 0);
    while held.len() < count {
        Clock::Monotonic.sleep_until(now() + 40 * MS + random.below(60 * MS)).unwrap();
        let (start, end) = hog(cpu, LENGTH)?;
        // The machine below can take the CPU from the hog too: then it is not what was planned.
        if end - start > LENGTH + LENGTH / 10 { repeated += 1 } else { held.push((start, end)) }
    }
    Ok((held, repeated))
}

const HOGS: usize = 30;

/// What came of [`HOGS`] hogs.
struct Found {
    /// Within a longer latency: something else held the CPU when the hog began.
    swallowed: usize,
    /// Whose latencies are not theirs within the tolerance.
    beyond: usize,
}

impl Found {
    /// The machine below can take the CPU before a hog, and between its end and the wake-up.
    fn is_undisturbed(&self) -> bool {
        self.swallowed * 10 <= HOGS && self.beyond * 10 <= HOGS
    }
}

#[test]
fn short_hogs_at_random_times_are_all_found_and_as_long_as_they_were() {
    const ATTEMPTS: u32 = 4;
    for attempt in 1..=ATTEMPTS {
        let found = match short_hogs() {
            Ok(found) => found,
            Err(error) => return println!("skipped: {error}"),
        };
        if found.is_undisturbed() {
            return;
        }
        let Found { swallowed, beyond } = found;
        println!(
            "attempt {attempt}: {swallowed} of {HOGS} within a longer latency, {beyond} longer than the hog"
        );
    }
    panic!("{ATTEMPTS} times, latencies of more than a tenth of the hogs were not the hogs'");
}

/// Each hog must be found, in a latency of its own or within a longer one.
fn short_hogs() -> Result<Found, sys::Error> {
    let (cpu, mut random) = (first_cpu(), Seed(now()).stream("hogs"));
    let samples = tempfile::tempdir().unwrap();
    let file = samples.path().join("samples");
    let run = Run::start(&["--cpus", &cpu.to_string(), "--samples-file", file.to_str().unwrap()]);
    run.wait_measuring();
    let (held, repeated) = hogs(cpu, HOGS, &mut random)?;
    signal(run.child.id() as i32, "-INT");
    let (record, _directory) = run.finish();
    let series = &record.scenarios[0].series[0];
    let latencies = latencies(&file);
    let median = series.observed.quantile(0.5).unwrap().0;
    let tolerance = (3 * median).max(100_000);
    let (mut worst_error, mut found) = (0, Found { swallowed: 0, beyond: 0 });
    for (start, end) in held {
        let activation = (start - series.timer().unwrap().first_due.0).div_ceil(INTERVAL);
        let due = series.timer().unwrap().first_due.0 + activation * INTERVAL;
        let Some(latency) = latencies.get(&activation).copied() else {
            assert!(
                is_within_a_longer_one(&latencies, activation),
                "no sample of activation {activation}, due during a hog"
            );
            found.swallowed += 1;
            continue;
        };
        let error = latency.abs_diff(end - due);
        worst_error = error.max(worst_error);
        println!("held {} us: expected {} ns, found {latency} ns", (end - start) / 1000, end - due);
        found.beyond += usize::from(error > tolerance);
    }
    println!("{repeated} repeated, worst error {worst_error} ns, tolerance {tolerance} ns");
    Ok(found)
}

/// Whether the thread was still late from an earlier activation when this one was due: the machine below held the CPU
/// before the hog did, and the hog's activation is missed, within a latency that was found.
fn is_within_a_longer_one(latencies: &BTreeMap<u64, u64>, activation: u64) -> bool {
    let before = latencies.range(..activation).next_back();
    before.is_some_and(|(earlier, latency)| earlier * INTERVAL + latency >= activation * INTERVAL)
}

/// Latency by activation, of the one series in the file.
fn latencies(file: &Path) -> BTreeMap<u64, u64> {
    let reader = record::samples::Reader::new(std::fs::File::open(file).unwrap()).unwrap();
    reader
        .flat_map(|block| block.unwrap().samples)
        .map(|(activation, latency)| (activation, latency.0))
        .collect()
}

#[test]
fn the_run_phase_costs_one_system_call_an_activation_and_no_fault_and_no_migration() {
    if Command::new("strace").arg("-V").output().is_err() {
        return println!("skipped: needs package strace (apt-get install)");
    }
    for wake in ["nanosleep", "timerfd", "posix-timer"] {
        // Beginning and ending differ by the locks that happen to be waited for, but not with the activations.
        let (few, many) = (calls_beside_wake_ups(wake, 500), calls_beside_wake_ups(wake, 1_500));
        for (few, many) in few.iter().zip(&many) {
            assert!(few.abs_diff(*many) <= 8, "{wake}: {few} calls beside 500 wake-ups, {many} beside 1500");
        }
    }
    let (record, _directory) = Run::start(&["--samples", "1000"]).finish();
    for thread in &record.scenarios[0].evidence.threads {
        assert_eq!((thread.minor_faults, thread.major_faults, thread.migrations), (0, 0, 0));
        assert!(thread.memory_locked);
    }
}

/// System calls of each measuring thread's whole life, as strace sees them, less one for each wake-up: what a thread
/// needs to begin and to end.
fn calls_beside_wake_ups(wake: &str, samples: u64) -> Vec<i64> {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("calls");
    let strace = ["strace", "-f", "-o", log.to_str().unwrap()];
    let (record, _directory) =
        Run::start_under(&strace, &["--samples", &samples.to_string(), "--wake", wake]).finish();
    let text = std::fs::read_to_string(&log).unwrap();
    let scenario = &record.scenarios[0];
    let threads = scenario.evidence.threads.iter().zip(&scenario.series);
    threads
        .map(|(thread, series)| {
            // A call that strace saw in two halves is counted by its first.
            let own =
                |line: &&str| line.starts_with(&format!("{} ", thread.tid)) && !line.contains("resumed>");
            let is_call =
                |line: &&str| line.contains('(') && !line.contains("--- ") && !line.contains("+++ ");
            let calls = text.lines().filter(own).filter(is_call).count() as i64;
            let wake_ups = series.observed.summary().count
                + series.timer().unwrap().warm_up.observed.count
                + thread.early_wakes;
            assert!(calls >= wake_ups as i64 && wake_ups >= samples / 2);
            calls - wake_ups as i64
        })
        .collect()
}

#[test]
fn a_live_look_names_the_same_threads_as_the_end() {
    let mut run = Command::new(env!("CARGO_BIN_EXE_worstcase"))
        .args(["measure", "--format", "cyclictest", "--duration", "3s", "--warm-up", "0s"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(1_500));
    signal(run.id() as i32, "-USR1");
    assert!(run.wait().unwrap().code().is_some_and(|code| code == 0 || code == 3));
    let text = |pipe: &mut dyn std::io::Read| std::io::read_to_string(pipe).unwrap();
    let (end, live) = (text(&mut run.stdout.take().unwrap()), text(&mut run.stderr.take().unwrap()));
    // `T: 0 ( 4711) P:98 ...`: up to the bracket stand the thread's number and its id.
    let threads = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| line.starts_with("T:"));
        lines.filter_map(|line| line.split_once(')').map(|(head, _)| head.to_owned())).collect()
    };
    assert_eq!(threads(&live), threads(&end), "{live}");
    assert!(!threads(&live).is_empty());
}
