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

/// Where there is KVM.
#[cfg(target_arch = "x86_64")]
#[test]
fn entering_a_guest_allocates_nothing() {
    if let Ok(mut guest) = probe::timer::guest::InGuest::new() {
        guest.begin();
        assert_eq!(allocations(guest, Clock::Monotonic, false), 0);
    }
}

/// Answers on the loopback, each third frame not, until its thread is gone.
fn peer() -> String {
    let manner = wire::echo::Manner { drop_each: Some(3), ..Default::default() };
    let echo = wire::echo::Echo::udp(([127, 0, 0, 1], 0).into(), manner).unwrap();
    let address = echo.local().unwrap().to_string();
    std::thread::spawn(move || echo.serve());
    address
}

#[test]
fn waiting_for_answers_allocates_nothing() {
    use probe::response::engine::{self, Flight, Task};
    use probe::response::{line::Network, tally, tally::Tally};
    const INTERVAL: u64 = 2_000_000;
    for spins in [false, true] {
        let options = wire::LinkOptions {
            size: 64,
            priority: None,
            busy_poll: None,
            by_card: false,
            carrier: wire::Carrier::Plain,
            run: 7,
            thread: 0,
        };
        let link = wire::Link::open(&wire::Peer::new(&peer(), None).unwrap(), options).unwrap();
        let (words, _file) = SharedWords::create(board::words(1, false)).unwrap();
        let (tallied, _file) = SharedWords::create(tally::WORDS).unwrap();
        let mut recorder = Recorder::new(board::block(&words, 0, false), Nanos(INTERVAL), false);
        let (mut line, mut flight) = (Network::new(link, None, spins), Flight::new());
        let first = Clock::Monotonic.now();
        let task = Task {
            grid: Grid::fixed(first, INTERVAL),
            cycles: 600,
            frames: 2,
            patience: INTERVAL / 4,
            stop_at: u64::MAX,
        };
        let mut tally = Tally::new(&tallied);
        // The peer is another thread of this process: it allocates when it starts, and by now it has answered.
        let asked = allocation::count(|| {
            engine::run(&mut line, &task, &mut flight, &words, &mut recorder, &mut tally);
        });
        let frames = tally::read(&tallied, &[], &[]).frames;
        assert!(frames.answered > 0 && frames.lost > 0, "{frames:?}");
        assert_eq!(asked, 0);
    }
}
