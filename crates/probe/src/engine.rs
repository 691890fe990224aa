//! The measuring loop.

use sys::shared::Word;

use crate::board::{self, Recorder};
use crate::source::Source;

/// What one thread's loop needs to know.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    /// The clock's reading at which the first activation of the warm-up is due.
    pub first: u64,
    /// The period in nanoseconds, at least 1.
    pub interval: u64,
    /// Activations to deliver in this phase; `u64::MAX`: until stopped.
    pub activations: u64,
    /// A latency in nanoseconds that stops all threads; `u64::MAX`: none.
    pub stop_at: u64,
    /// Whether the thread may change CPUs, and changes are to be counted.
    pub unpinned: bool,
}

/// Delivers `task.activations` activations and accounts for each: it woke the thread and its latency is recorded, or
/// the thread was still late when it was due and it is recorded as missed. Returns when the next one is due.
///
/// System calls: the one sleep of [`Source::sleep_until`], and the clock's where it has no vDSO path. No allocation,
/// no lock, no formatting, no panic path. A wake-up before its time is slept on; a step of the clock moves the ideal
/// times and is not a latency.
pub fn run<S: Source>(source: &mut S, task: &Task, board: &[Word], recorder: &mut Recorder<'_>) -> u64 {
    let interval = task.interval;
    let (mut due, mut activation) = (task.first, 0);
    let mut cpu = if task.unpinned { sys::schedule::current_cpu().0 } else { 0 };
    while activation < task.activations {
        source.sleep_until(due);
        let now = source.now();
        if board::is_stopped(board) {
            break;
        }
        let step = source.stepped(now);
        if step != 0 {
            recorder.clock_stepped();
            due = next_after(due.wrapping_add_signed(step), now, interval);
            continue;
        }
        if now < due {
            if !S::RESERVATION {
                recorder.early();
                continue;
            }
            recorder.rephased();
            due = now;
        }
        let latency = now - due;
        recorder.observed(activation, latency);
        let missed = (latency / interval).min(task.activations - activation - 1);
        if latency >= interval {
            recorder.late();
        }
        if missed > 0 {
            recorder.missed(latency, missed);
        }
        if latency >= task.stop_at {
            recorder.stopped_by_latency();
            board::stop(board);
        }
        if task.unpinned {
            let woken_on = sys::schedule::current_cpu().0;
            if std::mem::replace(&mut cpu, woken_on) != woken_on {
                recorder.migrated();
            }
        }
        activation += 1 + missed;
        due = if S::RESERVATION && latency >= interval {
            // The kernel begins a reservation anew that is a whole period behind.
            recorder.rephased();
            now + interval
        } else {
            due + (1 + latency / interval) * interval
        };
    }
    recorder.finish();
    due
}

/// The warm-up: as [`run`], but its wake-ups are only summed up, and the grid of a reservation's periods is found: the
/// earliest wake-up in it is the closest to when the kernel replenishes.
pub fn warm_up<S: Source>(source: &mut S, task: &Task, board: &[Word], recorder: &mut Recorder<'_>) -> u64 {
    let interval = task.interval;
    let (mut due, mut activation) = (task.first, 0);
    while activation < task.activations && !board::is_stopped(board) {
        source.sleep_until(due);
        let now = source.now();
        let step = source.stepped(now);
        if step != 0 {
            due = next_after(due.wrapping_add_signed(step), now, interval);
            continue;
        }
        if S::RESERVATION && (activation == 0 || now < due || now - due >= interval) {
            due = now;
        }
        if now < due {
            recorder.early();
            continue;
        }
        let (latency, missed) = (now - due, (now - due) / interval);
        recorder.warm_up(latency, missed);
        activation += 1 + missed;
        due += (1 + missed) * interval;
    }
    due
}

/// The first of `due`, `due + interval`, ... that lies after `now`.
fn next_after(due: u64, now: u64, interval: u64) -> u64 {
    if due > now { due } else { due + ((now - due) / interval + 1) * interval }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::View;
    use crate::source::{ClockPair, Settable};
    use proptest::prelude::*;
    use std::cell::RefCell;
    use std::rc::Rc;
    use sys::shared::SharedWords;
    use units::Nanos;

    const MS: u64 = 1_000_000;

    /// A scripted machine: how late each wake-up is, and by how much the settable clock is set before it.
    #[derive(Default)]
    struct World {
        monotonic: u64,
        set_by: i64,
        wakes: usize,
        lateness: Vec<u64>,
        steps: Vec<(usize, i64)>,
    }

    impl World {
        fn clock(&self) -> u64 {
            self.monotonic.wrapping_add_signed(self.set_by)
        }

        /// Sleeps as the kernel does: a clock that is set ahead ends the sleep at once, one set back is noticed by a
        /// signal shortly after.
        fn sleep_until(&mut self, due: u64) {
            let wake = self.wakes;
            self.wakes += 1;
            let remaining = due.saturating_sub(self.clock());
            if let Some((_, step)) = self.steps.iter().find(|(at, _)| *at == wake) {
                self.monotonic += remaining / 2;
                self.set_by += step;
                self.monotonic += MS / 10;
            } else {
                self.monotonic += remaining + self.lateness.get(wake).copied().unwrap_or(5_000);
            }
        }
    }

    #[derive(Clone, Default)]
    struct Scripted(Rc<RefCell<World>>);

    impl Source for Scripted {
        fn sleep_until(&mut self, due: u64) {
            self.0.borrow_mut().sleep_until(due);
        }
        fn now(&mut self) -> u64 {
            self.0.borrow().clock()
        }
    }

    impl ClockPair for Scripted {
        fn now(&mut self) -> u64 {
            self.0.borrow().clock()
        }
        fn reference(&mut self) -> u64 {
            self.0.borrow().monotonic
        }
    }

    fn world(lateness: Vec<u64>, steps: Vec<(usize, i64)>) -> Scripted {
        let base = 1_000_000 * MS;
        Scripted(Rc::new(RefCell::new(World { monotonic: base, lateness, steps, ..World::default() })))
    }

    fn task(world: &Scripted, activations: u64) -> Task {
        let first = world.0.borrow().clock() + MS;
        Task { first, interval: MS, activations, stop_at: u64::MAX, unpinned: false }
    }

    fn measure(mut source: impl Source, task: &Task, check: impl FnOnce(View<'_>)) {
        let (board, _file) = SharedWords::create(board::words(1, false)).unwrap();
        let words = board::block(&board, 0, false);
        run(&mut source, task, &board, &mut Recorder::new(words, Nanos(task.interval), false));
        check(View(words));
    }

    #[test]
    fn every_activation_is_a_wake_up_when_nothing_is_late() {
        let world = world(vec![], vec![]);
        measure(world.clone(), &task(&world, 100), |view| {
            assert_eq!((view.summary().count, view.missed_summary().count), (100, 0));
            assert_eq!((view.summary().min, view.summary().max), (5_000, 5_000));
        });
        assert_eq!(world.0.borrow().wakes, 100);
    }

    #[test]
    fn a_stall_is_one_late_wake_up_and_the_missed_activations_in_phase() {
        let mut lateness = vec![5_000; 20];
        lateness[10] = 1_000 * MS + 300_000;
        let world = world(lateness, vec![]);
        measure(world.clone(), &task(&world, 2_000), |view| {
            assert_eq!((view.summary().count, view.missed_summary().count), (1_000, 1_000));
            assert_eq!((view.summary().max, view.late()), (1_000 * MS + 300_000, 1));
            let missed = view.missed_summary();
            assert_eq!((missed.min, missed.max), (300_000, 999 * MS + 300_000));
            assert_eq!(view.summary().min, 5_000);
        });
    }

    #[test]
    fn a_stall_past_the_end_misses_no_more_than_was_planned() {
        let world = world(vec![5_000, 50 * MS], vec![]);
        measure(world.clone(), &task(&world, 10), |view| {
            assert_eq!((view.summary().count, view.missed_summary().count), (2, 8));
        });
    }

    #[test]
    fn a_clock_that_is_set_cannot_make_a_latency() {
        for step in [
            3_600_000 * MS as i64,
            -(900_000 * MS as i64),
            20 * MS as i64,
            -(20 * MS as i64),
            200_000,
            -300_000,
        ] {
            let world = world(vec![], vec![(30, step), (60, -step)]);
            let task = task(&world, 100);
            measure(Settable::new(world.clone(), world.clone()), &task, |view| {
                assert_eq!(view.clock_steps(), 2, "{step}");
                assert_eq!(view.summary().count + view.missed_summary().count, 100);
                assert!(view.summary().max < MS, "{step}: {}", view.summary().max);
            });
        }
    }

    #[test]
    fn a_clock_that_runs_backwards_by_itself_is_slept_on() {
        // Not settable, so nobody looks for steps: the wake-up simply comes before its time, twice.
        struct Backwards(Scripted, u32);
        impl Source for Backwards {
            fn sleep_until(&mut self, due: u64) {
                self.0.sleep_until(due);
            }
            fn now(&mut self) -> u64 {
                self.1 += 1;
                Source::now(&mut self.0) - if self.1 == 10 || self.1 == 11 { 500 * MS } else { 0 }
            }
        }
        let world = world(vec![], vec![]);
        measure(Backwards(world.clone(), 0), &task(&world, 50), |view| {
            assert_eq!((view.early(), view.summary().count), (2, 50));
            assert!(view.summary().max < MS);
        });
    }

    #[test]
    fn a_latency_at_the_threshold_stops_everybody() {
        let mut lateness = vec![5_000; 50];
        lateness[20] = 400_000;
        let world = world(lateness, vec![]);
        let task = Task { stop_at: 400_000, ..task(&world, 1_000) };
        measure(world.clone(), &task, |view| {
            assert!(view.stopped_by_latency());
            assert_eq!(view.summary().count, 21);
        });
    }

    #[test]
    fn the_warm_up_is_reported_apart() {
        let world = world(vec![3 * MS + 7, 9_000], vec![]);
        let task = task(&world, 10);
        let (board, _file) = SharedWords::create(board::words(1, false)).unwrap();
        let words = board::block(&board, 0, false);
        let mut recorder = Recorder::new(words, Nanos(MS), false);
        let next = warm_up(&mut world.clone(), &task, &board, &mut recorder);
        let view = View(words);
        assert_eq!((view.warm_up().observed.count, view.warm_up().missed), (7, 3));
        assert_eq!(view.warm_up().observed.max, 3 * MS + 7);
        assert_eq!(next, task.first + 10 * MS);
        assert_eq!(view.summary().count, 0);
    }

    /// A reservation wakes at its own period starts, wherever the plan thought them to be.
    struct Replenished {
        now: u64,
        start: u64,
        lateness: Vec<u64>,
        wakes: usize,
    }

    impl Source for Replenished {
        const RESERVATION: bool = true;
        fn sleep_until(&mut self, _: u64) {
            let lateness = self.lateness.get(self.wakes).copied().unwrap_or(4_000);
            self.wakes += 1;
            if lateness > MS {
                // The kernel begins anew from when it got to it.
                self.start = self.now + lateness;
            }
            let periods = (self.now.saturating_sub(self.start)) / MS + 1;
            self.now = self.start + periods * MS + if lateness > MS { 4_000 } else { lateness };
        }
        fn now(&mut self) -> u64 {
            self.now
        }
    }

    #[test]
    fn the_periods_of_a_reservation_are_found_in_the_warm_up() {
        let mut source = Replenished {
            now: 1_000 * MS,
            start: 999 * MS + 345_678,
            lateness: vec![90_000, 4_000],
            wakes: 0,
        };
        let task =
            Task { first: 1_001 * MS, interval: MS, activations: 50, stop_at: u64::MAX, unpinned: false };
        let (board, _file) = SharedWords::create(board::words(1, false)).unwrap();
        let words = board::block(&board, 0, false);
        let mut recorder = Recorder::new(words, Nanos(MS), false);
        let first = warm_up(&mut source, &task, &board, &mut recorder);
        assert_eq!(first % MS, 345_678 + 4_000);
        source.lateness = vec![4_000; 60];
        source.lateness.extend([70_000]);
        run(&mut source, &Task { first, ..task }, &board, &mut recorder);
        let view = View(words);
        assert_eq!((view.summary().count, view.summary().max, view.rephased()), (50, 66_000, 0));
    }

    proptest! {
        #[test]
        fn measured_and_missed_are_expected_whatever_happens(
            lateness in proptest::collection::vec(0..20 * MS, 1..80),
            steps in proptest::collection::vec((0..80_usize, -50 * MS as i64..50 * MS as i64), 0..4),
            activations in 1..300_u64,
        ) {
            let world = world(lateness, steps);
            let task = task(&world, activations);
            measure(Settable::new(world.clone(), world.clone()), &task, |view| {
                assert_eq!(view.summary().count + view.missed_summary().count, activations);
                assert_eq!(view.observed().cell_count(), view.summary().count);
                assert_eq!(view.missed().cell_count(), view.missed_summary().count);
            });
        }

        #[test]
        fn without_steps_every_latency_is_the_true_one(lateness in proptest::collection::vec(0..5 * MS, 1..60)) {
            let mut expected = histogram::Histogram::default();
            let mut left = 100;
            for latency in lateness.iter().copied().chain(std::iter::repeat(5_000)) {
                for period in 0..=(latency / MS).min(left - 1) {
                    expected.record(Nanos(latency - period * MS));
                }
                left = left.saturating_sub(1 + latency / MS);
                if left == 0 {
                    break;
                }
            }
            let world = world(lateness, vec![]);
            measure(world.clone(), &task(&world, 100), |view| {
                let mut corrected = view.observed();
                corrected.merge(&view.missed());
                assert_eq!(corrected, expected);
            });
        }
    }
}
