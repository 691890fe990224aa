//! The run phase allocates nothing: counted by the allocator itself, on a real clock.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use probe::board::{self, Recorder, View};
use probe::engine::{self, Task};
use probe::source::{Nanosleep, Settable, Source, SystemClocks};
use sys::clock::Clock;
use sys::shared::SharedWords;
use units::Nanos;

/// Counts what the thread under watch asks for.
struct Counting;

static ASKED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static WATCHED: Cell<bool> = const { Cell::new(false) };
}

// SAFETY: hands everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note();
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        note();
        unsafe { System.dealloc(pointer, layout) }
    }
}

fn note() {
    if WATCHED.with(Cell::get) {
        ASKED.fetch_add(1, Ordering::Relaxed);
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn watched(action: impl FnOnce()) -> u64 {
    let before = ASKED.load(Ordering::Relaxed);
    WATCHED.with(|watched| watched.set(true));
    action();
    WATCHED.with(|watched| watched.set(false));
    ASKED.load(Ordering::Relaxed) - before
}

fn allocations(mut source: impl Source, clock: Clock, every_sample: bool) -> u64 {
    const INTERVAL: u64 = 200_000;
    let (words, _file) = SharedWords::create(board::words(1, every_sample)).unwrap();
    let block = board::block(&words, 0, every_sample);
    let mut recorder = Recorder::new(block, Nanos(INTERVAL), every_sample);
    let first = clock.now() + INTERVAL;
    // Long enough for a second to end, and with the worst samples, the missed ones and a stall on the way.
    let task = Task { first, interval: INTERVAL, activations: 6_000, stop_at: u64::MAX, unpinned: true };
    let asked = watched(|| {
        let first = engine::warm_up(&mut source, &Task { activations: 10, ..task }, &words, &mut recorder);
        engine::run(&mut source, &Task { first: first - 50 * INTERVAL, ..task }, &words, &mut recorder);
    });
    let view = View(block);
    assert!(view.missed_summary().count >= 40, "the stall was there");
    assert_eq!(view.summary().count + view.missed_summary().count, 6_000);
    asked
}

#[test]
fn the_run_phase_allocates_nothing() {
    assert!(watched(|| drop(std::hint::black_box(Box::new(1)))) > 0, "the count counts");
    assert_eq!(allocations(Nanosleep(Clock::Monotonic), Clock::Monotonic, false), 0);
    assert_eq!(allocations(Nanosleep(Clock::Monotonic), Clock::Monotonic, true), 0);
    let settable = Settable::new(Nanosleep(Clock::Realtime), SystemClocks(Clock::Realtime));
    assert_eq!(allocations(settable, Clock::Realtime, false), 0);
}
