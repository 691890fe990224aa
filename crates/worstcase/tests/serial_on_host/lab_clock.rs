//! What happens to the clocks of a guest in instruction time, where a latency is exact: steps of a clock that can be set,
//! and the kernel's tick.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use crate::support::guests;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use record::{Record, TickPhases};
use units::Nanos;

const PROGRAM: &str = env!("CARGO_BIN_EXE_worstcase");
/// Its tick comes at multiples of its period on CLOCK_MONOTONIC.
const KERNEL: &str = "debian-6.1-amd64";

/// Whether guests cannot run here; says why.
fn hindered() -> bool {
    guests::hindered(&["qemu-system-x86_64", "busybox", "date"], &[&["--flavour", "plain"]])
}

fn in_a_guest(out: &Path, with: &[&str], command: &[&str]) {
    let mut lab = Command::new(PROGRAM);
    lab.args(["lab", "run", "--kernel", KERNEL, "--timeout", "30m", "--out"]).arg(out);
    lab.args(with.iter().flat_map(|program| ["--with", program]));
    let ran = lab.arg("--").args(command).stdin(Stdio::null()).output().unwrap();
    assert_eq!(ran.status.code(), Some(0), "{}", String::from_utf8_lossy(&ran.stderr));
}

/// The ways of being woken, each on the clocks that it can wait on: the kernel has no timerfd on CLOCK_TAI.
const SETTABLE: [(&str, &str); 7] = [
    ("realtime", "nanosleep"),
    ("realtime", "timerfd"),
    ("realtime", "posix-timer"),
    ("realtime", "deadline"),
    ("tai", "nanosleep"),
    ("tai", "posix-timer"),
    ("tai", "deadline"),
];

/// Measures four seconds; the clock is set after one and a half, and back a second later.
fn stepped(clock: &str, wake: &str) -> String {
    format!(
        "worstcase measure --clock {clock} --wake {wake} --duration 4s --warm-up 100ms --seed 1 --out {clock}-{wake} \
         >said & \
         sleep 1.5; date -s '+0.0003 seconds'; sleep 1; date -s '-10 seconds'; wait $! || exit 1\n"
    )
}

#[test]
#[ignore = "long: a guest that measures seven times"]
fn no_step_of_a_clock_is_a_latency_however_a_thread_is_woken() {
    if hindered() {
        return;
    }
    /// The smaller of the two steps: 300 us, less what `date` takes to set the clock.
    const STEP: u64 = 300_000;
    let directory = tempfile::tempdir().unwrap();
    let script: String = SETTABLE.iter().map(|(clock, wake)| stepped(clock, wake)).collect();
    in_a_guest(directory.path(), &["busybox", "date"], &["sh", "-c", &script]);
    for (clock, wake) in SETTABLE {
        let record = record::store::load(&directory.path().join(format!("{clock}-{wake}"))).unwrap();
        let (scenario, series) = (&record.scenarios[0], &record.scenarios[0].series[0]);
        let latencies = series.observed.summary();
        println!("{clock}, {wake}: {latencies:?}");
        assert_eq!(scenario.evidence.threads[0].clock_steps, 2, "{clock}, {wake}");
        assert_eq!((series.expected(), series.accounted()), (4_000, 4_000), "{clock}, {wake}");
        let spread = latencies.max - latencies.min;
        // Zero is the earliest wake-up of its warm-up, not where a seed would have put the activation.
        assert!(wake != "deadline" || latencies.min <= spread, "{clock}: {latencies:?}");
        assert!(spread < STEP / 2, "{clock}, {wake}: the step is in the figures: {latencies:?}");
        assert!(
            series.timer().unwrap().tick_phases.value().is_none(),
            "{clock}, {wake}: that is not the tick's clock"
        );
    }
}

/// Latencies by where their activation was due against the tick: the first nanosecond of each part, below zero before
/// the tick, and what was measured there.
type ByPhase = BTreeMap<i64, Vec<u64>>;

/// Parts of the tick's period that are distinguished: shorter than what the tick does to its neighbours.
const PART: i64 = 2_000;

/// A run under the load `cpu`, and its latencies by phase.
fn beside_the_tick(seed: u32, options: &[&str]) -> (Record, TickPhases, ByPhase) {
    let directory = tempfile::tempdir().unwrap();
    let seed = seed.to_string();
    let bench =
        ["bench", "--loads", "cpu", "--warm-up", "200ms", "--samples-file", "samples", "--seed", &seed];
    in_a_guest(directory.path(), &[], &[&bench[..], &["--out", "."], options].concat());
    let record = record::store::load(directory.path()).unwrap();
    let phases = *record.scenarios[0].series[0].timer().unwrap().tick_phases.value().unwrap();
    let mut samples = Command::new(PROGRAM);
    let printed = samples.arg("samples").arg(directory.path().join("samples")).output().unwrap();
    let tick = phases.tick.0 as i64;
    let mut by_phase = ByPhase::new();
    for line in String::from_utf8(printed.stdout).unwrap().lines().skip(1) {
        let numbers: Vec<i64> = line.split(',').filter_map(|field| field.parse().ok()).collect();
        let [.., due, latency] = numbers[..] else { panic!("{line}") };
        let phase = (phases.first.0 as i64 + due + tick / 2) % tick - tick / 2;
        by_phase.entry(phase.div_euclid(PART) * PART).or_default().push(latency as u64);
    }
    (record, phases, by_phase)
}

fn median(latencies: &[u64]) -> u64 {
    let mut sorted = latencies.to_vec();
    sorted.sort_unstable();
    sorted[sorted.len() / 2]
}

/// The median of all samples; the part of the tick with the greatest median, and that.
fn worst_part(by_phase: &ByPhase) -> (u64, i64, u64) {
    let all: Vec<u64> = by_phase.values().flatten().copied().collect();
    let of_parts = by_phase.iter().map(|(&part, latencies)| (median(latencies), part));
    let (worst, part) = of_parts.max().unwrap();
    (median(&all), part, worst)
}

/// A fixed phase a tenth of a millisecond or more away from the tick never meets what the tick delays; a swept minute meets
/// it whatever phase it begins at.
#[test]
#[ignore = "long: 20 guests, ten of them for a minute under load"]
fn a_sweep_finds_what_is_due_just_before_the_tick_each_time() {
    if hindered() {
        return;
    }
    let mut fixed_runs = 0;
    for seed in 1..=10 {
        let (record, phases, by_phase) = beside_the_tick(seed, &["--duration", "61s"]);
        let (typical, part, worst) = worst_part(&by_phase);
        println!("seed {seed}: swept from {}: {worst} at {part}, elsewhere {typical}", phases.first);
        assert!(phases.is_whole() && !phases.is_stuck(), "seed {seed}: {phases:?}");
        assert!((-3 * PART..0).contains(&part), "seed {seed}: {part} ns from the tick");
        assert!(worst * 10 > typical * 12, "seed {seed}: {worst} and {typical}");
        assert!(
            record.scenarios[0].warnings.iter().all(|warning| warning.id != record::WarningId::FewPhases)
        );

        let (_, phases, by_phase) = beside_the_tick(seed, &["--duration", "4s", "--phase", "random"]);
        let past = phases.first.0 % phases.spacing.0;
        let (_, _, met) = worst_part(&by_phase);
        println!("seed {seed}: fixed {phases}: {met}");
        assert!(phases.is_stuck() && phases.covered_permille == 4, "seed {seed}: {phases:?}");
        if (100_000..900_000).contains(&past) {
            fixed_runs += 1;
            assert!(met * 10 < worst * 9, "seed {seed}: {met} at {}, {worst} swept", Nanos(past));
        }
    }
    assert!(fixed_runs >= 5, "{fixed_runs} phases were away from the tick");
}
