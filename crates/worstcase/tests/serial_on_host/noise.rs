//! The noise probe: gaps that we make must be found, on the CPU on which they were made, and be as long as they were.

use std::fs::File;

use record::samples::Reader;
use record::verdict::Verdict;
use record::{Fact, Record, Series, WarningId};
use rustix::process::Signal;
use sys::clock::Clock;
use sys::schedule::{self, Scheduling};
use units::{CpuId, CpuList, Nanos, Seed};

use crate::support::{self, Run};

const MS: u64 = 1_000_000;
const WINDOW: u64 = 100 * MS;
const SPIN: u64 = 90 * MS;

/// When a hog had its CPU, by its own readings of the clock.
#[derive(Clone, Copy, Debug)]
struct Hold {
    cpu: CpuId,
    start: u64,
    end: u64,
}

impl Hold {
    fn length(self) -> u64 {
        self.end - self.start
    }
}

/// A gap as the samples file has it, on the monotonic clock.
#[derive(Clone, Copy, Debug)]
struct Gap {
    cpu: CpuId,
    begin: u64,
    length: u64,
}

fn now() -> u64 {
    Clock::Monotonic.now()
}

fn cpus() -> Vec<CpuId> {
    schedule::affinity(0).unwrap().iter().take(2).collect()
}

/// Holds `cpu` with a thread of the highest priority for `length`, from `at` on.
fn hog(cpu: CpuId, at: u64, length: u64) -> std::thread::JoinHandle<Result<Hold, sys::Error>> {
    std::thread::spawn(move || {
        schedule::set_affinity(0, &CpuList::from_iter([cpu]))?;
        schedule::set(Scheduling::Fifo("99".parse().unwrap()))?;
        let _ = Clock::Monotonic.sleep_until(at);
        let start = now();
        while now() < start + length {
            std::hint::spin_loop();
        }
        let end = now();
        // Lets go at once: the end of a thread takes a while, at this priority too.
        let _ = Clock::Monotonic.sleep_until(end + 5 * MS);
        Ok(Hold { cpu, start, end })
    })
}

/// Runs the noise probe while `inject` does its work; the record, every gap, and what was injected. None without rights.
fn watched(
    inject: impl FnOnce(&[CpuId]) -> Result<Vec<Hold>, sys::Error>,
) -> Option<(Record, Vec<Gap>, Vec<Hold>)> {
    let cpus = cpus();
    let list: CpuList = cpus.iter().copied().collect();
    let list = list.to_string();
    let mut run = Run::measure(&["--probe", "noise", "--cpus", &list, "--samples-file", "samples"]);
    run.wait_measured("idle", 1);
    let holds = match inject(&cpus) {
        Ok(holds) => holds,
        Err(error) => {
            support::skipped(&error.to_string());
            return None;
        }
    };
    run.signal(Signal::INT);
    let ended = run.end();
    let record = ended.record();
    let gaps = gaps(&ended.path("samples"), &record);
    Some((record, gaps, holds))
}

fn gaps(file: &std::path::Path, record: &Record) -> Vec<Gap> {
    let series = &record.scenarios[0].series;
    let reader = Reader::new(File::open(file).unwrap()).unwrap();
    let of = |block: record::samples::Block| {
        let series = &series[usize::from(block.series)];
        let (cpu, origin) = (series.cpu.unwrap(), series.noise().unwrap().began.0);
        let gap = move |(at, length): (u64, Nanos)| Gap { cpu, begin: origin + at, length: length.0 };
        block.samples.into_iter().map(gap)
    };
    reader.flat_map(|block| of(block.unwrap())).collect()
}

fn series(record: &Record, cpu: CpuId) -> &Series {
    record.scenarios[0].series.iter().find(|series| series.cpu == Some(cpu)).unwrap()
}

/// Whether the hold lay within the time in which the probe spun, with room at both ends.
fn was_watched(record: &Record, hold: Hold) -> bool {
    let began = series(record, hold.cpu).noise().unwrap().began.0;
    (hold.start - began) % WINDOW + hold.length() + MS < SPIN && (hold.start - began) % WINDOW > MS
}

/// The gap that covers the hold.
fn found(gaps: &[Gap], hold: Hold) -> Option<Gap> {
    let covers =
        |gap: &&Gap| gap.cpu == hold.cpu && gap.begin <= hold.start && gap.begin + gap.length >= hold.end;
    gaps.iter().find(covers).copied()
}

#[test]
fn gaps_on_two_cpus_at_once_are_found_on_the_right_cpu() {
    let Some((record, gaps, holds)) = watched(|cpus| {
        let mut holds = Vec::new();
        for turn in 0..12 {
            let at = now() + 60 * MS + turn * 7 * MS % (40 * MS);
            let both: Vec<_> =
                cpus.iter().zip([3 * MS, 7 * MS]).map(|(&cpu, length)| hog(cpu, at, length)).collect();
            for hog in both {
                holds.push(hog.join().unwrap()?);
            }
        }
        Ok(holds)
    }) else {
        return;
    };
    let watched: Vec<Hold> = holds.into_iter().filter(|&hold| was_watched(&record, hold)).collect();
    assert!(watched.len() >= 8, "{} holds lay in a window", watched.len());
    for hold in watched {
        let gap = found(&gaps, hold);
        assert!(gap.is_some(), "{hold:?} was not found on its CPU");
    }
    for series in &record.scenarios[0].series {
        let noise = series.noise().unwrap();
        assert!(noise.counted.stretches > 0 && matches!(noise.counted.sum, Fact::Value(_)), "{noise:?}");
        assert_eq!(noise.around_worst.len(), series.worst.len());
        assert!(noise.preemptions > 0, "the hogs preempted it");
    }
}

/// The value below which one in so many lie.
fn fraction(values: impl Iterator<Item = u64>, parts: usize) -> u64 {
    let mut values: Vec<u64> = values.collect();
    values.sort_unstable();
    values[values.len() / parts]
}

#[test]
fn a_hog_is_as_long_as_its_own_time_stamps_say() {
    const LENGTHS: [u64; 6] = [50_000, 200_000, MS, 3 * MS, 8 * MS, 20 * MS];
    // So many of each length, because some lie in a pause of the probe; and so many in all where the host is busy.
    const OF_EACH: usize = 10;
    const AT_MOST: usize = 300;
    let mut random = Seed(now()).stream("hogs");
    let Some((record, gaps, holds)) = watched(|cpus| {
        let mut holds = Vec::new();
        let mut missing = LENGTHS.map(|_| OF_EACH);
        for turn in 0..AT_MOST {
            let length = turn % LENGTHS.len();
            let planned = LENGTHS[length];
            if missing[length] == 0 {
                continue;
            }
            let at = now() + 20 * MS + random.below(60 * MS);
            let hold = hog(cpus[turn / LENGTHS.len() % cpus.len()], at, planned).join().unwrap()?;
            // The machine below can take the CPU from the hog too: then it is not what was planned.
            if hold.length() <= planned + planned / 10 {
                holds.push(hold);
                missing[length] -= 1;
            }
        }
        Ok(holds)
    }) else {
        return;
    };
    let planned_of = |hold: &Hold| LENGTHS.into_iter().rfind(|length| *length <= hold.length()).unwrap();
    let watched: Vec<Hold> = holds.into_iter().filter(|&hold| was_watched(&record, hold)).collect();
    assert!(watched.len() >= 15, "{} holds lay in a window", watched.len());
    for length in LENGTHS {
        let was_met = watched.iter().any(|hold| planned_of(hold) == length);
        assert!(was_met, "no hold of {length} ns lay in a window: {watched:?}");
    }
    let beyond_of = |hold: &Hold| {
        let gap = found(&gaps, *hold).unwrap_or_else(|| panic!("{hold:?} was not found"));
        (planned_of(hold), gap.length - hold.length())
    };
    let beyond: Vec<(u64, u64)> = watched.iter().map(beyond_of).collect();
    // Two switches, as the quarter that was disturbed least shows them: the rest of a gap is the hog's own time.
    let two_switches = fraction(beyond.iter().map(|one| one.1), 4);
    // Another disturbance beside a hog makes one gap of both: on a busy host it meets many, and not three of four of any length.
    for length in LENGTHS {
        let of_it = beyond.iter().filter(|one| one.0 == length).map(|one| one.1);
        let least = fraction(of_it.clone(), 4);
        println!(
            "{length} ns: {} gaps, the quarter disturbed least {least} ns longer ({two_switches} ns)",
            of_it.count()
        );
        assert!(least <= length / 20 + 4 * two_switches, "{length} ns: {beyond:?}");
    }
}

#[test]
fn pauses_are_no_noise_and_a_tenth_of_the_time_is_left_to_others() {
    let ended = Run::measure(&["--probe", "noise", "--duration", "2s"]).end();
    let record = ended.record();
    for series in &record.scenarios[0].series {
        let noise = series.noise().unwrap();
        assert_eq!(noise.windows + noise.windows_missed, 20, "{noise:?}");
        let most = Nanos(20 * SPIN + series.observed.summary().max);
        assert!(noise.watched <= most && noise.watched >= Nanos(15 * SPIN), "{noise:?}");
        assert!(noise.resolution > Nanos::ZERO && noise.readings > 1_000);
        let pauses = series.worst.iter().filter(|gap| gap.latency == Nanos(WINDOW - SPIN)).count();
        assert_eq!(pauses, 0);
    }
    assert_eq!(record.judgement.verdict, Verdict::Measured, "{:?}", record.judgement);
    assert!(record.all_warnings().all(|warning| warning.id != WarningId::Throttled), "nothing was throttled");
}

#[test]
fn a_gap_above_the_limit_fails_and_one_that_has_not_ended_counts() {
    let Some(limit) = above_limit() else { return };
    assert_eq!(limit.judgement.verdict, Verdict::Fail, "{:?}", limit.judgement);
    let mut run =
        Run::measure(&["--probe", "noise", "--duration", "2s", "--warm-up", "100ms", "--limit", "60s"]);
    run.wait_measured("idle", 1);
    let probe = run.helper("__probe");
    support::kill(probe.pid, Signal::STOP);
    // Past its end, and long enough for a second signal to be the one that gives it up.
    std::thread::sleep(std::time::Duration::from_millis(2_500));
    run.signal(Signal::INT);
    std::thread::sleep(std::time::Duration::from_millis(500));
    run.signal(Signal::INT);
    let ended = run.end();
    support::kill(probe.pid, Signal::KILL);
    let record = ended.record();
    for series in &record.scenarios[0].series {
        let censored = series.censored.expect("the gap had not ended");
        assert!(censored.latency >= Nanos(2_500 * MS), "{censored:?}");
        assert!(series.is_bound(series.observed.summary().maximum().unwrap()));
    }
    assert_eq!(record.judgement.verdict, Verdict::Inconclusive, "{:?}", record.judgement);
}

/// A run whose limit an injected hog exceeds.
fn above_limit() -> Option<Record> {
    let cpu = cpus()[0];
    let mut run = Run::measure(&["--probe", "noise", "--duration", "3s", "--limit", "4ms"]);
    run.wait_measured("idle", 1);
    for _ in 0..5 {
        if let Err(error) = hog(cpu, now() + 30 * MS, 6 * MS).join().unwrap() {
            support::skipped(&error.to_string());
            return None;
        }
    }
    Some(run.end().record())
}
