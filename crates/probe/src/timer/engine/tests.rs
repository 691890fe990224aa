//! The loop on a scripted machine.

use super::*;
use crate::NO_SLEEP;
use crate::board::View;
use crate::source::{ClockPair, Settable};
use proptest::prelude::*;
use record::Sweep;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use sys::shared::SharedWords;
use units::{Nanos, Seed};

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
    fn sleep_until(&mut self, due: u64) -> Result<(), Errno> {
        self.0.borrow_mut().sleep_until(due);
        Ok(())
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
    Task { grid: Grid::fixed(first, MS), activations, stop_at: u64::MAX }
}

fn measure(mut source: impl Source, task: &Task, check: impl FnOnce(View<'_>)) {
    let (board, _file) = SharedWords::create(board::words(1, false)).unwrap();
    let words = board::block(&board, 0, false);
    run(&mut source, task, &board, &mut Recorder::new(words, Nanos(task.grid.interval), false));
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
    for step in
        [3_600_000 * MS as i64, -(900_000 * MS as i64), 20 * MS as i64, -(20 * MS as i64), 200_000, -300_000]
    {
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
        fn sleep_until(&mut self, due: u64) -> Result<(), Errno> {
            self.0.sleep_until(due)
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

/// The stop is asked for at `at` ms, in the middle of a stall or of a sleep.
fn stopped(lateness: Vec<u64>, at: u64, sweep: bool, check: impl FnOnce(View<'_>, u64)) {
    struct StoppedAt<'a>(Scripted, &'a [Word], u64);
    impl Source for StoppedAt<'_> {
        fn sleep_until(&mut self, due: u64) -> Result<(), Errno> {
            let before = self.0.0.borrow().monotonic;
            self.0.sleep_until(due)?;
            let mut world = self.0.0.borrow_mut();
            if world.monotonic >= self.2 {
                board::stop(self.1, self.2);
                // Who sleeps is woken by a signal; who is held is not.
                world.monotonic = if due > self.2 { before.max(self.2 + 10_000) } else { world.monotonic };
            }
            Ok(())
        }
        fn now(&mut self) -> u64 {
            Source::now(&mut self.0)
        }
    }
    let world = world(lateness, vec![]);
    let mut task = task(&world, u64::MAX);
    task.grid.sweep = sweep.then(|| Sweep::new(Nanos(MS), Seed(3), "test"));
    let at = task.grid.origin + at;
    let (board, _file) = SharedWords::create(board::words(1, false)).unwrap();
    let words = board::block(&board, 0, false);
    let mut recorder = Recorder::new(words, Nanos(MS), false);
    run(&mut StoppedAt(world, &board, at), &task, &board, &mut recorder);
    let view = View(words);
    let until = at.max(view.finished().unwrap());
    check(view, task.grid.due_by(until));
}

#[test]
fn a_thread_that_is_held_over_the_end_accounts_for_the_stall() {
    let mut lateness = vec![5_000; 50];
    lateness[20] = 2_300 * MS;
    stopped(lateness, 2_000 * MS, false, |view, expected| {
        assert_eq!(view.summary().max, 2_300 * MS, "all of it, beyond the stop");
        assert_eq!((view.summary().count, view.missed_summary().count), (21, 1980));
        assert_eq!((expected, view.late()), (2001, 1));
    });
}

#[test]
fn a_thread_that_sleeps_at_the_stop_has_nothing_to_account_for() {
    stopped(vec![], 30 * MS + 500_000, false, |view, expected| {
        assert_eq!((view.accounted(), expected), (31, 31));
    });
}

#[test]
fn a_sleep_that_fails_ends_the_run_of_all_threads() {
    struct Refused(Scripted, Result<(), Errno>);
    impl Source for Refused {
        fn sleep_until(&mut self, due: u64) -> Result<(), Errno> {
            if self.0.0.borrow().wakes < 20 { self.0.sleep_until(due) } else { self.1 }
        }
        fn now(&mut self) -> u64 {
            self.0.0.borrow_mut().monotonic += 100;
            Source::now(&mut self.0)
        }
    }
    for (result, errno) in [(Err(Errno::NOSYS), Errno::NOSYS), (Ok(()), NO_SLEEP)] {
        let world = world(vec![], vec![]);
        let (board, _file) = SharedWords::create(board::words(1, false)).unwrap();
        let words = board::block(&board, 0, false);
        let mut recorder = Recorder::new(words, Nanos(MS), false);
        let task = task(&world, 1_000);
        run(&mut Refused(world, result), &task, &board, &mut recorder);
        assert_eq!((View(words).sleep_error(), View(words).summary().count), (Some(errno), 20));
        assert!(board::stopped_at(&board).is_some());
    }
}

#[test]
fn a_timer_with_a_grid_of_its_own_is_moved_with_the_ideal_times() {
    #[derive(Clone, Default)]
    struct Rearmed(Scripted, Rc<RefCell<Vec<u64>>>);
    impl Source for Rearmed {
        fn sleep_until(&mut self, due: u64) -> Result<(), Errno> {
            self.0.sleep_until(due)
        }
        fn rearm(&mut self, due: u64, _: u64) -> Result<(), Errno> {
            self.1.borrow_mut().push(due);
            Ok(())
        }
        fn now(&mut self) -> u64 {
            Source::now(&mut self.0)
        }
    }
    let world = world(vec![], vec![(30, -10_000 * MS as i64)]);
    let source = Rearmed(world.clone(), Rc::default());
    let mut task = task(&world, 250);
    task.grid.sweep = Some(Sweep::new(Nanos(MS), Seed(3), "test"));
    measure(Settable::new(source.clone(), world.clone()), &task, |view| {
        let moved = source.1.borrow();
        // At the start, after the step, and at the two ends of a block of 100.
        assert_eq!(moved.len(), 4, "{moved:?}");
        assert_eq!(moved[0], task.grid.due(0));
        assert!(moved[1] < moved[0], "the clock was set back");
        assert_eq!((view.accounted(), view.clock_steps()), (250, 1));
        assert!(view.summary().max < MS);
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
    assert_eq!(next, task.grid.origin + 10 * MS);
    assert_eq!(view.summary().count, 0);
}

/// Warms up and measures on a run that is stopped in its warm-up: when the thread has been woken `wakes` times, it loses
/// its CPU for `wait` nanoseconds, and the stop comes `stopped_after` from their begin.
#[track_caller]
fn nothing_is_due_after_a_stop(wakes: usize, stopped_after: u64, wait: u64) {
    struct Stopped<'a> {
        world: Scripted,
        board: &'a [Word],
        wakes: usize,
        stopped_after: u64,
        wait: u64,
    }
    impl Source for Stopped<'_> {
        fn sleep_until(&mut self, due: u64) -> Result<(), Errno> {
            self.world.sleep_until(due)
        }
        fn now(&mut self) -> u64 {
            let now = Source::now(&mut self.world);
            let mut world = self.world.0.borrow_mut();
            if world.wakes == self.wakes && board::stopped_at(self.board).is_none() {
                board::stop(self.board, now + self.stopped_after);
                world.monotonic += self.wait;
            }
            now
        }
    }
    let world = world(vec![], vec![]);
    let warm = task(&world, 10);
    let (board, _file) = SharedWords::create(board::words(1, false)).unwrap();
    let words = board::block(&board, 0, false);
    let mut recorder = Recorder::new(words, Nanos(MS), false);
    let mut source = Stopped { world, board: &board, wakes, stopped_after, wait };
    let origin = warm_up(&mut source, &warm, &board, &mut recorder);
    let grid = Grid::fixed(origin, MS);
    recorder.started(&grid);
    run(&mut source, &Task { grid, activations: 100, ..warm }, &board, &mut recorder);
    let view = View(words);
    let until = view.finished().unwrap().max(board::stopped_at(&board).unwrap());
    assert_eq!((grid.due_by(until), view.accounted()), (0, 0), "stopped at wake-up {wakes}");
}

#[test]
fn a_run_that_is_stopped_in_its_warm_up_owes_no_activation() {
    // The stop comes at once, or while the thread that has just been woken is kept from its CPU.
    for (stopped_after, wait) in [(0, 0), (0, 5 * MS), (3 * MS, 5 * MS), (3 * MS, 3 * MS + 10_000)] {
        nothing_is_due_after_a_stop(4, stopped_after, wait);
        nothing_is_due_after_a_stop(9, stopped_after, wait);
    }
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
    fn sleep_until(&mut self, _: u64) -> Result<(), Errno> {
        let lateness = self.lateness.get(self.wakes).copied().unwrap_or(4_000);
        self.wakes += 1;
        if lateness > MS {
            // The kernel begins anew from when it got to it.
            self.start = self.now + lateness;
        }
        let periods = (self.now.saturating_sub(self.start)) / MS + 1;
        self.now = self.start + periods * MS + if lateness > MS { 4_000 } else { lateness };
        Ok(())
    }
    fn now(&mut self) -> u64 {
        self.now
    }
}

#[test]
fn the_periods_of_a_reservation_are_found_in_the_warm_up() {
    let mut source =
        Replenished { now: 1_000 * MS, start: 999 * MS + 345_678, lateness: vec![90_000, 4_000], wakes: 0 };
    let grid = Grid::fixed(1_001 * MS, MS);
    let task = Task { grid, activations: 50, stop_at: u64::MAX };
    let (board, _file) = SharedWords::create(board::words(1, false)).unwrap();
    let words = board::block(&board, 0, false);
    let mut recorder = Recorder::new(words, Nanos(MS), false);
    let first = warm_up(&mut source, &task, &board, &mut recorder);
    assert_eq!(first % MS, 345_678 + 4_000);
    source.lateness = vec![4_000; 60];
    source.lateness.extend([70_000]);
    run(&mut source, &Task { grid: Grid::fixed(first, MS), ..task }, &board, &mut recorder);
    let view = View(words);
    assert_eq!((view.summary().count, view.summary().max, view.rephased()), (50, 66_000, 0));
}

#[test]
fn a_reservation_is_one_on_a_clock_that_can_be_set() {
    struct Shared(Rc<RefCell<Replenished>>);
    impl ClockPair for Shared {
        fn now(&mut self) -> u64 {
            self.0.borrow().now + 7_000 * MS
        }
        fn reference(&mut self) -> u64 {
            self.0.borrow().now
        }
    }
    impl Source for Shared {
        const RESERVATION: bool = true;
        fn sleep_until(&mut self, due: u64) -> Result<(), Errno> {
            self.0.borrow_mut().sleep_until(due)
        }
        fn now(&mut self) -> u64 {
            ClockPair::now(self)
        }
    }
    let world = Replenished { now: 1_000 * MS, start: 999 * MS + 345_678, lateness: vec![], wakes: 0 };
    let world = Rc::new(RefCell::new(world));
    let mut source = Settable::new(Shared(world.clone()), Shared(world));
    let (board, _file) = SharedWords::create(board::words(1, false)).unwrap();
    let words = board::block(&board, 0, false);
    let mut recorder = Recorder::new(words, Nanos(MS), false);
    let task = Task { grid: Grid::fixed(8_001 * MS, MS), activations: 50, stop_at: u64::MAX };
    let first = warm_up(&mut source, &task, &board, &mut recorder);
    assert_eq!(first % MS, 345_678 + 4_000, "its periods are found");
    run(&mut source, &Task { grid: Grid::fixed(first, MS), ..task }, &board, &mut recorder);
    assert_eq!((View(words).summary().count, View(words).summary().max, View(words).early()), (50, 0, 0));
}

proptest! {
    #[test]
    fn measured_and_missed_are_expected_whatever_happens(
        lateness in proptest::collection::vec(0..20 * MS, 1..80),
        steps in proptest::collection::vec((0..80_usize, -50 * MS as i64..50 * MS as i64), 0..4),
        activations in 1..300_u64,
        sweep: bool,
    ) {
        let world = world(lateness, steps);
        let mut task = task(&world, activations);
        task.grid.sweep = sweep.then(|| Sweep::new(Nanos(MS), Seed(3), "test"));
        measure(Settable::new(world.clone(), world.clone()), &task, |view| {
            assert_eq!(view.summary().count + view.missed_summary().count, activations);
            assert_eq!(view.observed().cell_count(), view.summary().count);
            assert_eq!(view.missed().cell_count(), view.missed_summary().count);
        });
    }

    #[test]
    fn whenever_it_is_stopped_measured_and_missed_are_what_was_due(
        lateness in proptest::collection::vec(0..20 * MS, 1..80), at in 0..400 * MS, sweep: bool,
    ) {
        stopped(lateness, at, sweep, |view, expected| assert_eq!(view.accounted(), expected));
    }

    #[test]
    fn without_steps_every_latency_is_the_true_one(
        lateness in proptest::collection::vec(0..5 * MS, 1..60), sweep: bool,
    ) {
        let world = world(lateness.clone(), vec![]);
        let mut task = task(&world, 150);
        task.grid.sweep = sweep.then(|| Sweep::new(Nanos(MS), Seed(3), "test"));
        let mut expected = histogram::Histogram::default();
        let (mut activation, grid) = (0, task.grid);
        for latency in lateness.iter().copied().chain(std::iter::repeat(5_000)) {
            let woken = grid.due(activation) + latency;
            while activation < 150 && grid.due(activation) <= woken {
                expected.record(Nanos(woken - grid.due(activation)));
                activation += 1;
            }
            if activation == 150 {
                break;
            }
        }
        measure(world.clone(), &task, |view| {
            let mut corrected = view.observed();
            corrected.merge(&view.missed());
            // Not whole histograms: a page of cells hides the one that differs.
            let [found, true_ones] = [&corrected, &expected].map(|of| of.cells().collect::<BTreeSet<_>>());
            let differing: Vec<_> = found.symmetric_difference(&true_ones).take(4).collect();
            assert!(differing.is_empty(), "cells and counts that one of both has: {differing:?}");
            assert_eq!(corrected.summary(), expected.summary());
        });
    }
}
