use super::*;

const CPUS: usize = 2;

fn rule(proof: LoadProof, channels: usize) -> Rule {
    Rule { proof, channels, floor_permille: 250, cpus: CPUS, workers: CPUS, waits: false, everywhere: false }
}

/// What the truth is at a moment of a scripted load of one stressor with one worker a CPU.
#[derive(Clone, Copy, Default)]
struct Truth {
    /// Work of each worker in a millisecond.
    rate: [u64; CPUS],
    /// CPU time that each has, in per mille.
    cpu_permille: u64,
    /// CPU time that other programs have, in per mille of all CPUs.
    others_permille: u64,
    /// Whether the workers are ready: in state R, or D.
    ready: bool,
    /// Runnable threads of the machine.
    runnable: u64,
}

const RUNS: Truth =
    Truth { rate: [1000; CPUS], cpu_permille: 1000, others_permille: 0, ready: false, runnable: 2 };
const STOPPED: Truth =
    Truth { rate: [0; CPUS], cpu_permille: 0, others_permille: 0, ready: false, runnable: 0 };

/// Plays `truth` for `milliseconds`, looked at by a parent that comes when `looks` says so.
fn play(
    rule: Rule,
    milliseconds: u64,
    truth: impl Fn(u64) -> Truth,
    looks: impl Fn(u64) -> bool,
) -> (Exposure, Vec<(u64, LoadBlock)>) {
    let begin = Nanos::from_secs(77);
    let mut meter = Meter::new([rule].into_iter(), CPUS, begin);
    let (mut work, mut cpu_time, mut ready, mut idle) = ([0; CPUS], 0, 0, 0);
    let mut seconds = Vec::new();
    for time in 0..=milliseconds {
        let at = begin + Nanos::from_millis(time);
        let is_end = time == 0 || time == milliseconds;
        if is_end || looks(time) {
            let done = Done { work: Some(work.iter().sum()), channels: work.to_vec() };
            meter.done(at, &[done]);
            let ready = vec![Nanos(ready); CPUS];
            meter.watched(at, &[Watched { cpu_time: Nanos(cpu_time), ready, ..Watched::default() }]);
        }
        if is_end || time % 1000 == 0 {
            let all = Nanos::from_millis(time * CPUS as u64);
            meter.machine(
                at,
                all.saturating_sub(Nanos(idle)),
                [Nanos(idle); 2],
                Some(truth(time).runnable * 1000 / CPUS as u64),
            );
        }
        seconds.extend(meter.judge(at));
        let now = truth(time);
        work.iter_mut().zip(now.rate).for_each(|(sum, rate)| *sum += rate);
        cpu_time += 1000 * now.cpu_permille * CPUS as u64;
        ready += if now.ready { 1_000_000 } else { 0 };
        let used = (now.cpu_permille + now.others_permille).min(1000);
        idle += 1000 * (1000 - used) * CPUS as u64;
    }
    seconds.extend(meter.finish(begin + Nanos::from_millis(milliseconds)));
    (meter.exposures()[0], seconds)
}

fn often(time: u64) -> bool {
    time % 100 == 7
}

fn loaded(milliseconds: u64, truth: impl Fn(u64) -> Truth, looks: impl Fn(u64) -> bool) -> u64 {
    play(rule(LoadProof::Work, CPUS), milliseconds, truth, looks).0.loaded.0 / 1_000_000
}

fn stopped_between(from: u64, to: u64) -> impl Fn(u64) -> Truth {
    move |time| if (from..to).contains(&time) { STOPPED } else { RUNS }
}

#[test]
fn a_load_that_runs_all_the_time_is_loaded_all_the_time() {
    assert_eq!(loaded(4000, |_| RUNS, often), 4000);
    assert_eq!(loaded(4030, |_| RUNS, often), 4030, "the rest of a slot is judged like the others");
    assert_eq!(loaded(60, |_| RUNS, |_| false), 60);
}

#[test]
fn workers_stopped_for_3_2_of_4_seconds_are_loaded_for_0_8() {
    for (from, to) in [(0, 3200), (400, 3600), (800, 4000)] {
        let loaded = loaded(4000, stopped_between(from, to), often);
        assert!((700..=1000).contains(&loaded), "{from} to {to}: {loaded}");
    }
}

#[test]
fn one_of_two_workers_that_stops_is_half_of_the_load() {
    let half = Truth { rate: [1000, 0], cpu_permille: 500, ..RUNS };
    assert_eq!(loaded(4000, |_| half, often), 2000);
}

#[test]
fn late_looks_lose_nothing_and_take_nothing_for_unloaded() {
    // Nobody looks for 1.7 s at a time, as under real-time threads that leave the parent no CPU.
    assert_eq!(loaded(10_000, |_| RUNS, |time| time % 1700 == 3), 10_000);
    let (exposure, seconds) = play(rule(LoadProof::Work, CPUS), 10_000, |_| RUNS, |time| time % 1700 == 3);
    assert_eq!(exposure.coarsest, Nanos::from_millis(1700));
    let work: Vec<u64> = seconds.iter().map(|(_, block)| block.work[0]).collect();
    assert_eq!(work.len(), 10);
    assert_eq!(work.iter().sum::<u64>(), 10_000 * 2000);
    assert!(work.iter().all(|work| (1_999_000..=2_001_000).contains(work)), "{work:?}");
}

#[test]
fn a_starved_load_is_held_back_where_its_cpus_are_idle() {
    // A quota of a tenth: the work is even, and nobody else has the CPUs.
    let starved = Truth { rate: [100; CPUS], cpu_permille: 100, ..RUNS };
    let (exposure, _) = play(rule(LoadProof::Work, CPUS), 4000, |_| starved, often);
    assert_eq!((exposure.loaded, exposure.held_back), (Nanos::ZERO, Nanos::from_secs(4)));
}

#[test]
fn competition_that_lowers_work_evenly_is_no_unloaded_time() {
    let shared = Truth { rate: [100; CPUS], cpu_permille: 100, others_permille: 900, runnable: 20, ..RUNS };
    assert_eq!(loaded(4000, |_| shared, often), 4000);
    // Others come and go.
    let sometimes = |time| {
        let shared =
            Truth { rate: [250; CPUS], cpu_permille: 250, others_permille: 750, runnable: 8, ..RUNS };
        if (1000..3000).contains(&time) { shared } else { RUNS }
    };
    assert_eq!(loaded(4000, sometimes, often), 4000);
}

#[test]
fn a_worker_that_waits_for_its_turn_on_a_busy_cpu_is_not_stopped() {
    // It has 10 ms of every 330.
    let turns = |ready| {
        move |time: u64| {
            let rate = if time % 330 < 10 { [3000; CPUS] } else { [0; CPUS] };
            Truth { rate, cpu_permille: 30, others_permille: 970, ready, runnable: 60 }
        }
    };
    assert_eq!(loaded(9900, turns(true), often), 9900);
    assert!(loaded(9900, turns(false), often) < 7000, "asleep it is no load");
}

#[test]
fn a_worker_among_hundreds_may_wait_for_its_turn_for_longer_than_a_second() {
    // It has 4 ms of every 1600.
    let turns = |runnable, ready| {
        move |time: u64| {
            let rate = if time % 1600 < 4 { [3000; CPUS] } else { [0; CPUS] };
            Truth { rate, cpu_permille: 2, others_permille: 998, ready, runnable }
        }
    };
    assert_eq!(loaded(8000, turns(800, true), often), 8000);
    assert!(loaded(8000, turns(800, false), often) < 1000, "asleep it is no load");
    assert_eq!(loaded(8000, turns(20, true), often), 0, "among few a turn is due");
}

#[test]
fn a_quota_far_below_a_fair_share_is_found_where_nothing_is_idle() {
    let starved =
        Truth { rate: [10; CPUS], cpu_permille: 10, others_permille: 990, ready: true, runnable: 10 };
    let (exposure, _) = play(rule(LoadProof::Work, CPUS), 4000, |_| starved, often);
    assert_eq!((exposure.loaded, exposure.held_back), (Nanos::ZERO, Nanos::from_secs(4)));
}

#[test]
fn a_wait_for_a_device_is_work_for_a_load_that_stresses_one() {
    // A sync that takes 3.9 s.
    let syncs =
        |ready| move |time| Truth { rate: [u64::from(time == 3900), 0], cpu_permille: 0, ready, ..RUNS };
    let waits =
        |waits, ready| play(Rule { waits, ..rule(LoadProof::Work, CPUS) }, 4000, syncs(ready), often).0;
    assert_eq!(
        (waits(true, true).loaded, waits(true, true).ready),
        (Nanos::from_secs(4), Nanos::from_secs(4))
    );
    assert_eq!(waits(true, false).loaded, Nanos::ZERO);
    assert_eq!(waits(false, true).loaded, Nanos::ZERO, "ready, and held back");
}

#[test]
fn a_supervisor_that_is_gone_proves_nothing() {
    let begin = Nanos::from_secs(1);
    let mut meter = Meter::new([rule(LoadProof::Cpu, 1)].into_iter(), CPUS, begin);
    let watched = |time| Watched { cpu_time: time, channels: Some(vec![time.0]), ..Watched::default() };
    let mut known = 0;
    for time in (0..=60_000).step_by(100).map(Nanos::from_millis) {
        // It is there for the first 20 s.
        if time <= Nanos::from_secs(20) {
            meter.watched(begin + time, &[watched(time.saturating_mul(2))]);
        }
        meter.done(begin + time, &[Done::default()]);
        meter.machine(begin + time, Nanos::ZERO, [time.saturating_mul(2); 2], Some(500));
        known += meter.judge(begin + time).len();
    }
    assert!(known >= 25, "what does not come is not waited for: {known}");
    meter.finish(begin + Nanos::from_secs(60));
    let exposure = meter.exposures()[0];
    assert_eq!((exposure.planned.0, exposure.loaded.0), (60_000_000_000, 20_000_000_000));
}

#[test]
fn a_load_without_stressors_has_a_timeline_and_no_exposure() {
    let begin = Nanos::from_secs(1);
    let mut meter = Meter::new(std::iter::empty(), CPUS, begin);
    let mut seconds = Vec::new();
    for time in (0..=5).map(Nanos::from_secs) {
        meter.machine(begin + time, Nanos(time.0 / 2), [time; 2], None);
        seconds.extend(meter.judge(begin + time));
    }
    seconds.extend(meter.finish(begin + Nanos::from_secs(5)));
    assert_eq!(seconds.len(), 5);
    assert!(
        seconds.iter().all(|(_, block)| block.busy_permille == 250 && block.work.is_empty()),
        "{seconds:?}"
    );
    assert_eq!(meter.exposures(), []);
}
