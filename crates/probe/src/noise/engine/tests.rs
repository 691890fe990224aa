//! The loop on a clock that a test scripts.

use std::collections::BTreeMap;

use proptest::prelude::*;
use sys::shared::SharedWords;
use units::Nanos;

use super::*;
use crate::board::View;

/// What a turn of the loop takes.
const TURN: u64 = 40;

/// A clock that moves on by a turn at each reading, and by as much more as a gap that begins then.
struct Scripted {
    clock: u64,
    /// Gaps, by when they begin at the earliest.
    gaps: BTreeMap<u64, u64>,
    /// How much later than asked each sleep ends.
    oversleeps: u64,
}

impl Source for Scripted {
    fn sleep_until(&mut self, due: u64) -> Result<(), Errno> {
        self.clock = self.clock.max(due + self.oversleeps);
        Ok(())
    }

    fn now(&mut self) -> u64 {
        self.clock += TURN;
        if let Some((begin, length)) = self.gaps.pop_first() {
            if begin <= self.clock {
                self.clock += length;
            } else {
                self.gaps.insert(begin, length);
            }
        }
        self.clock
    }
}

fn task(windows: u64) -> Task {
    let (origin, window, spin) = (1_000_000_000, 1_000_000, 900_000);
    Task { origin, window, spin, threshold: 1_000, windows, stop_at: u64::MAX }
}

fn watched(task: &Task, gaps: &[(u64, u64)], oversleeps: u64, check: impl FnOnce(View<'_>)) {
    let (words, _file) = SharedWords::create(board::words(1, false)).unwrap();
    let block = board::block(&words, 0, false);
    let mut recorder = Recorder::new(block, Nanos(1), false);
    let gaps = gaps.iter().map(|&(at, length)| (task.origin + at, length)).collect();
    let mut source = Scripted { clock: task.origin - 500, gaps, oversleeps };
    recorder.started(&record::Grid::fixed(task.origin, 1));
    run(&mut source, task, &words, &mut recorder);
    check(View(block));
}

#[test]
fn a_quiet_cpu_has_no_gap_and_its_turns_are_the_resolution() {
    watched(&task(10), &[], 0, |view| {
        let noise = view.noise();
        assert_eq!((view.summary().count, noise.windows, noise.windows_missed), (0, 10, 0));
        assert_eq!(noise.resolution, Nanos(TURN));
        assert!((9_000_000 - 10 * TURN..=9_000_000 + 10 * TURN).contains(&noise.watched.0), "{noise:?}");
        assert_eq!(noise.turn(Nanos::ZERO), Some(Nanos(TURN)));
    });
}

#[test]
fn gaps_are_found_with_their_times_and_lengths_and_what_is_shorter_is_not() {
    watched(&task(10), &[(100_000, 5_000), (2_500_000, 800), (7_200_000, 60_000)], 0, |view| {
        let worst = view.worst(&record::Grid::fixed(task(10).origin, 1));
        let lengths: Vec<u64> = worst.iter().map(|sample| sample.latency.0).collect();
        assert_eq!(lengths, [60_000 + TURN, 5_000 + TURN]);
        let near = |at: u64, expected: u64| at.abs_diff(expected) <= 2 * TURN;
        assert!(near(worst[0].due.0, 7_200_000) && near(worst[1].due.0, 100_000), "{worst:?}");
        assert_eq!(view.summary().sum, 65_000 + 2 * TURN);
        assert!(view.noise().bookkeeping > Nanos::ZERO);
    });
}

#[test]
fn a_gap_over_several_windows_counts_whole_and_they_are_not_missed() {
    watched(&task(10), &[(800_000, 4_000_000)], 0, |view| {
        let noise = view.noise();
        assert_eq!((view.summary().count, view.summary().max), (1, 4_000_000 + TURN));
        assert_eq!((noise.windows, noise.windows_missed), (6, 0), "windows 0 and 5 to 9");
    });
}

#[test]
fn what_has_the_cpu_through_a_pause_costs_windows_and_is_no_gap() {
    watched(&task(10), &[], 950_000, |view| {
        let noise = view.noise();
        assert_eq!((noise.windows, noise.windows_missed, view.summary().count), (0, 10, 0));
        assert_eq!(noise.watched, Nanos::ZERO);
    });
}

#[test]
fn a_gap_at_the_threshold_of_the_run_stops_everybody() {
    watched(&Task { stop_at: 50_000, ..task(u64::MAX) }, &[(3_100_000, 50_000)], 0, |view| {
        assert!(view.stopped_by_latency());
        assert_eq!((view.summary().count, view.noise().windows), (1, 4));
    });
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    /// Whatever takes the CPU: the time of all windows is watched, missed, or covered by gaps.
    #[test]
    fn watched_time_and_missed_windows_are_all_there_is(
        gaps in proptest::collection::vec((0_u64..10_000_000, 1_000_u64..3_000_000), 0..12),
        oversleeps in 0_u64..1_500_000,
    ) {
        watched(&task(10), &gaps, oversleeps, |view| {
            let (noise, gaps) = (view.noise(), view.summary());
            assert!(noise.windows + noise.windows_missed <= 10);
            assert!(gaps.sum <= noise.watched.0 + gaps.count * TURN, "{gaps:?} {noise:?}");
            assert_eq!(noise.readings > 0, noise.windows > 0);
        });
    }
}
