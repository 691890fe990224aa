//! The loop on lines and a clock that a test scripts.

use std::collections::VecDeque;

use proptest::prelude::*;
use sys::shared::SharedWords;
use units::Nanos;

use super::*;
use crate::board::View;
use crate::gpio::tally;
use record::instrument::gpio::GpioSeries;

const ORIGIN: u64 = 1_000_000_000;

/// A test double of the kernel's interface: edges at times, and how long the thread needs to have each.
struct Scripted {
    now: u64,
    /// When each edge comes, its number, and how late the thread has it.
    edges: VecDeque<(u64, u32, u64)>,
    /// The level of the answer's line, and how often it fell.
    high: bool,
    fell: u64,
    /// The line fails after so many answers.
    fails_after: Option<u64>,
}

impl Pins for Scripted {
    fn edge(&mut self, until: u64) -> Result<Option<Event>, Errno> {
        match self.edges.front().copied() {
            Some((stamp, number, late)) if stamp <= until.max(self.now) => {
                self.edges.pop_front();
                self.now = self.now.max(stamp + late);
                Ok(Some(Event { stamp, rose: true, number: Some(number) }))
            }
            _ => {
                self.now = self.now.max(until);
                Ok(None)
            }
        }
    }

    fn now(&mut self) -> u64 {
        self.now += 100;
        self.now
    }

    fn drive(&mut self, high: bool) -> Result<(), Errno> {
        if !high && self.fails_after == Some(self.fell) {
            return Err(Errno::NODEV);
        }
        self.fell += u64::from(self.high && !high);
        self.high = high;
        Ok(())
    }
}

fn scripted(edges: &[(u64, u32, u64)]) -> Scripted {
    let edges = edges.iter().map(|&(at, number, late)| (ORIGIN + at, number, late)).collect();
    Scripted { now: ORIGIN, edges, high: true, fell: 0, fails_after: None }
}

fn task(length: u64) -> Task {
    Task { origin: ORIGIN, until: ORIGIN + length, delay: 0, stop_at: u64::MAX }
}

fn answered(pins: &mut Scripted, task: &Task, check: impl FnOnce(View<'_>, GpioSeries, bool)) {
    let (words, _file) = SharedWords::create(board::words(1, false) + tally::WORDS).unwrap();
    let (board, own) = words.split_at(board::words(1, false));
    let block = board::block(board, 0, false);
    let mut recorder = Recorder::new(block, Nanos(1), false);
    recorder.started(&Grid::fixed(task.origin, 1));
    run(pins, task, board, &mut recorder, &mut Tally::new(own));
    check(View(block), tally::read(own), board::stopped_at(board).is_some());
}

#[test]
fn an_answer_counts_from_the_stamp_and_its_parts_sum_to_it() {
    let mut pins = scripted(&[(1_000, 1, 5_000), (50_000, 2, 40_000)]);
    answered(&mut pins, &task(1_000_000), |view, gpio, _| {
        assert_eq!((view.summary().count, gpio.expected), (2, 2));
        let (wake, answer) = (gpio.wake.summary(), gpio.answer.summary());
        assert!(wake.min >= 5_000 && wake.max >= 40_000 && wake.max < 41_000, "{wake:?}");
        assert_eq!(view.summary().sum, wake.sum + answer.sum);
        assert_eq!((gpio.backlog, gpio.unstamped, gpio.line_failed), (0, 0, None));
    });
    assert_eq!((pins.fell, pins.high), (2, true), "one falling edge an answer, and the line is back");
}

#[test]
fn edges_that_the_kernel_lost_are_missed_and_at_least_as_late_as_the_thread() {
    let mut pins = scripted(&[(1_000, 1, 0), (500_000, 5, 200_000)]);
    answered(&mut pins, &task(1_000_000), |view, gpio, _| {
        let missed = view.missed();
        assert_eq!((gpio.expected, view.summary().count, missed.summary().count), (5, 2, 3));
        assert!(missed.summary().min >= 200_000, "{missed:?}");
    });
}

#[test]
fn an_edge_before_the_last_answer_and_a_stamp_of_another_clock_are_counted() {
    let mut pins = scripted(&[(1_000, 1, 30_000), (2_000, 2, 0), (80_000, 3, 0)]);
    answered(&mut pins, &task(1_000_000), |_, gpio, _| assert_eq!(gpio.backlog, 1));
    // The stamp is of the future.
    let mut pins = scripted(&[(1_000, 1, 0)]);
    pins.edges[0].0 += 400_000_000_000;
    let mut long = task(u64::MAX - ORIGIN);
    long.until = u64::MAX;
    long.stop_at = 1;
    let future = std::mem::take(&mut pins.edges);
    let mut broken = Broken { inner: pins, event: future[0].0, given: false };
    let (words, _file) = SharedWords::create(board::words(1, false) + tally::WORDS).unwrap();
    let (board, own) = words.split_at(board::words(1, false));
    let mut recorder = Recorder::new(board::block(board, 0, false), Nanos(1), false);
    run(&mut broken, &long, board, &mut recorder, &mut Tally::new(own));
    let gpio = tally::read(own);
    assert_eq!((gpio.unstamped, gpio.wake.summary().count), (1, 0));
}

/// Gives one event whose stamp the clock has not reached, then its line fails.
struct Broken {
    inner: Scripted,
    event: u64,
    given: bool,
}

impl Pins for Broken {
    fn edge(&mut self, _: u64) -> Result<Option<Event>, Errno> {
        if std::mem::replace(&mut self.given, true) {
            return Err(Errno::NODEV);
        }
        Ok(Some(Event { stamp: self.event, rose: true, number: None }))
    }

    fn now(&mut self) -> u64 {
        self.inner.now()
    }

    fn drive(&mut self, high: bool) -> Result<(), Errno> {
        self.inner.drive(high)
    }
}

#[test]
fn a_line_that_fails_ends_the_run_with_its_error() {
    let mut pins = Scripted { fails_after: Some(1), ..scripted(&[(1_000, 1, 0), (9_000, 2, 0)]) };
    answered(&mut pins, &task(1_000_000), |view, gpio, stopped| {
        assert_eq!((view.summary().count, stopped), (1, true));
        assert_eq!(gpio.line_failed.as_deref(), Some("No such device"));
        assert!(view.finished().is_some());
    });
}

#[test]
fn an_injected_delay_is_in_the_answer_and_not_in_the_wake_up() {
    let delayed = Task { delay: 70_000, ..task(1_000_000) };
    answered(&mut scripted(&[(1_000, 1, 5_000)]), &delayed, |_, gpio, _| {
        assert!(gpio.wake.summary().max < 6_000);
        assert!((70_000..72_000).contains(&gpio.answer.summary().max), "{:?}", gpio.answer.summary());
    });
}

#[test]
fn an_answer_as_late_as_asked_for_stops_the_run() {
    let late = Task { stop_at: 40_000, ..task(10_000_000) };
    let mut pins = scripted(&[(1_000, 1, 0), (50_000, 2, 45_000), (200_000, 3, 0)]);
    answered(&mut pins, &late, |view, _, stopped| assert_eq!((view.summary().count, stopped), (2, true)));
}

#[test]
fn edges_after_the_end_are_not_answered_in_the_run_and_are_while_it_lingers() {
    let mut pins = scripted(&[(1_000, 1, 0), (2_000_000, 2, 0)]);
    let task = task(1_000_000);
    answered(&mut pins, &task, |view, _, _| assert_eq!(view.summary().count, 1));
    assert_eq!(pins.fell, 1);
    linger(&mut pins, &task, 5_000_000);
    assert_eq!(pins.fell, 2);
}

proptest! {
    #[test]
    fn measured_and_missed_are_all_edges_that_the_kernel_counted(
        gaps in proptest::collection::vec((1_u64..400_000, 1_u32..4, 0_u64..300_000), 1..40),
    ) {
        let (mut at, mut number) = (0, 0);
        let edges: Vec<_> = gaps.iter().map(|&(gap, step, late)| {
            (at, number) = (at + gap, number + step);
            (at, number, late)
        }).collect();
        let first = edges[0].1;
        answered(&mut scripted(&edges), &task(1_000_000_000), |view, gpio, _| {
            let accounted = view.summary().count + view.missed().summary().count;
            assert_eq!(accounted, gpio.expected);
            assert_eq!(gpio.expected, u64::from(number - first + 1));
        });
    }
}
