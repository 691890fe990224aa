//! The run phase allocates nothing: counted by the allocator itself, on a real clock.
#![allow(clippy::unwrap_used)]

use probe::board::{self, Recorder, View};
use probe::engine::{self, Task};
use probe::source::{Nanosleep, Settable, Source, SystemClocks};
use record::{Grid, Sweep};
use sys::allocation::{self, Counting};
use sys::clock::Clock;
use sys::shared::SharedWords;
use units::{Nanos, Seed};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(mut source: impl Source, clock: Clock, every_sample: bool) -> u64 {
    const INTERVAL: u64 = 200_000;
    let (words, _file) = SharedWords::create(board::words(1, every_sample)).unwrap();
    let block = board::block(&words, 0, every_sample);
    let mut recorder = Recorder::new(block, Nanos(INTERVAL), every_sample);
    let first = clock.now() + INTERVAL;
    // Long enough for a second to end, and with the worst samples, the missed ones and a stall on the way.
    let grid =
        |origin| Grid { origin, interval: INTERVAL, sweep: Some(Sweep::new(Nanos(INTERVAL), Seed(1), "")) };
    let task = Task { grid: grid(first), activations: 6_000, stop_at: u64::MAX };
    let asked = allocation::count(|| {
        let first = engine::warm_up(&mut source, &Task { activations: 10, ..task }, &words, &mut recorder);
        engine::run(&mut source, &Task { grid: grid(first - 50 * INTERVAL), ..task }, &words, &mut recorder);
    });
    let view = View(block);
    assert!(view.missed_summary().count >= 40, "the stall was there");
    assert_eq!(view.summary().count + view.missed_summary().count, 6_000);
    asked
}

#[test]
fn the_run_phase_allocates_nothing() {
    assert!(allocation::count(|| drop(std::hint::black_box(Box::new(1)))) > 0, "the count counts");
    assert_eq!(allocations(Nanosleep(Clock::Monotonic), Clock::Monotonic, false), 0);
    assert_eq!(allocations(Nanosleep(Clock::Monotonic), Clock::Monotonic, true), 0);
    let settable = Settable::new(Nanosleep(Clock::Realtime), SystemClocks(Clock::Realtime));
    assert_eq!(allocations(settable, Clock::Realtime, false), 0);
}
