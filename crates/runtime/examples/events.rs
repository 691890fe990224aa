//! What an event costs, in ticks of the counter: `cargo xtask bench events` builds and runs this. Nothing passes or fails.
//!
//! Each figure is the least and the median of windows of 200000 events: the least is what the code costs, the rest what else
//! runs on this machine.

#![allow(clippy::print_stdout, reason = "a benchmark prints")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use runtime::{
    Config, Dispatcher, Event, Here, Kind, Limits, Machine, Overheads, QueueId, QueueSpec, counter,
};

/// Windows of a figure.
const WINDOWS: usize = 41;
const EVENTS: u64 = 200_000;

fn main() {
    if counter().is_none() {
        println!("skipped: this CPU has no counter that programs may read");
        return;
    }
    if std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() < 2) {
        println!("this program has one CPU: rows of two cores are of cores that share it");
    }
    println!("ticks of the counter, least / median of {WINDOWS} windows");
    println!("{:<58}{:>8}{:>9}   {:<10}em-odp, its facts' figure", "", "least", "median", "budget");
    line(
        "loop: send, schedule, receive, one core, no watch",
        &pairs(1, false, 32, false),
        "40",
        "48.5 / 50.3 (91 checked)",
    );
    line("  with the watch (two readings of the clock)", &pairs(1, true, 32, false), "75", "-");
    line("  bursts of 1, no watch: the real-time profile", &pairs(1, false, 1, false), "-", "-");
    line("two cores, per core: each pair at home on one", &pairs(2, false, 32, false), "60", "61.6 / 69.5");
    line("two cores, per core: every event crosses", &pairs(2, false, 32, true), "-", "-");
    line("alloc and free, one core", &allocation(), "-", "-");
    let frequency = runtime::Clock::of_this_machine().frequency().unwrap_or(1e9);
    let nanos = |ticks: &[f64]| ticks.iter().map(|ticks| ticks / frequency * 1e9).collect::<Vec<_>>();
    println!("ns:");
    line("light thread switch, to the core and on to the next", &nanos(&light_switch()), "30", "-");
    line("message between two cores, one way", &nanos(&message()), "150", "175 avg (2 cores)");
    line("  one word between two cores, one way: the hardware's floor", &nanos(&word()), "-", "-");
}

fn line(what: &str, windows: &[f64], budget: &str, theirs: &str) {
    let mut sorted = windows.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |index: usize| sorted.get(index).copied().unwrap_or(f64::NAN);
    println!("{what:<58}{:>8.1}{:>9.1}   {budget:<10}{theirs}", at(0), at(sorted.len() / 2));
}

fn config(cores: usize, watch: bool, burst: u8) -> Config {
    Config { cores, watch, bursts: [burst; 8], overheads: Overheads::default(), ..Config::default() }
}

/// Objects that send each event on to a partner: 64 pairs, 16 events each. Partners are at home on the same core, or not.
fn pairs(cores: usize, watch: bool, burst: u8, crosses: bool) -> Vec<f64> {
    let Ok((machine, dispatchers)) = Machine::new(config(cores, watch, burst)) else { return Vec::new() };
    let Ok(pool) = machine.pool(4096, 64) else { return Vec::new() };
    let homes: Vec<_> = (0..cores).filter_map(|core| machine.cores(&[core]).ok()).collect();
    for pair in 0..64 {
        let partners: Arc<[AtomicU64; 2]> = Arc::default();
        let queues: Vec<QueueId> = (0..2)
            .filter_map(|side| {
                let partners = Arc::clone(&partners);
                let object = move |here: &Here<'_>, mut event: Event, _: QueueId| {
                    let bytes = event.bytes_mut();
                    bytes[0] = bytes[0].wrapping_add(1);
                    let to = QueueId::from_number(partners[side].load(Ordering::Relaxed) as u32);
                    drop(here.send(event, to));
                };
                let object = machine.object("side", object).ok()?;
                let home = *homes.get((pair + usize::from(crosses) * side) % cores)?;
                let spec = QueueSpec::new("side", Kind::Atomic).cores(home);
                let queue = machine.queue(&spec, Some(object)).ok()?;
                machine.start(object).ok()?;
                Some(queue)
            })
            .collect();
        partners[0].store(u64::from(queues[1].number()), Ordering::Relaxed);
        partners[1].store(u64::from(queues[0].number()), Ordering::Relaxed);
        for number in 0..16 {
            if let Ok(event) = machine.allocate(pool, 64) {
                drop(machine.send(event, queues[number % 2]));
            }
        }
    }
    run(&machine, dispatchers, EVENTS)
}

/// Ticks an event and core, in windows of so many events.
fn run(machine: &Machine, dispatchers: Vec<Dispatcher>, events: u64) -> Vec<f64> {
    let windows = std::thread::scope(|scope| {
        let threads: Vec<_> = dispatchers
            .into_iter()
            .map(|mut dispatcher| {
                scope.spawn(move || {
                    pin(dispatcher.core());
                    (0..WINDOWS)
                        .filter_map(|_| {
                            let start = counter()?;
                            let outcome = dispatcher.dispatch(Limits {
                                events,
                                nanos: 2_000_000_000,
                                ..Limits::default()
                            });
                            Some((counter()? - start) as f64 / outcome.events.max(1) as f64)
                        })
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect()
    });
    machine.end();
    windows
}

fn pin(core: usize) {
    if let Ok(cpus) = core.to_string().parse() {
        drop(sys::schedule::set_affinity(0, &cpus));
    }
}

fn allocation() -> Vec<f64> {
    let Ok((machine, _dispatchers)) = Machine::new(config(1, false, 32)) else { return Vec::new() };
    let Ok(pool) = machine.pool(4096, 64) else { return Vec::new() };
    let mut windows = Vec::new();
    let mut work = |here: &Here<'_>| {
        for _ in 0..WINDOWS {
            let start = counter().unwrap_or(0);
            (0..EVENTS).for_each(|_| drop(std::hint::black_box(here.allocate(pool, 64))));
            windows.push((counter().unwrap_or(0) - start) as f64 / EVENTS as f64);
        }
    };
    let _ = machine.on(0, &mut work);
    machine.end();
    windows
}

/// Two light threads that give way to each other.
fn light_switch() -> Vec<f64> {
    let Ok((machine, mut dispatchers)) = Machine::new(config(1, false, 1)) else { return Vec::new() };
    let spawn = |here: &Here<'_>| {
        for _ in 0..2 {
            let _ = here.spawn(4, 64 << 10, |light| {
                loop {
                    light.give_way()
                }
            });
        }
    };
    let _ = machine.on(0, &mut |here| spawn(here));
    let windows = (0..WINDOWS)
        .filter_map(|_| {
            let start = counter()?;
            let outcome = dispatchers[0].dispatch(Limits { events: EVENTS, ..Limits::default() });
            Some((counter()? - start) as f64 / outcome.events.max(1) as f64)
        })
        .collect();
    machine.end();
    windows
}

/// One event to and fro between two cores, half of its way.
fn message() -> Vec<f64> {
    let Ok((machine, dispatchers)) = Machine::new(config(2, false, 1)) else { return Vec::new() };
    let Ok(pool) = machine.pool(64, 64) else { return Vec::new() };
    let other: Arc<[AtomicU64; 2]> = Arc::default();
    let mut queues = Vec::new();
    for core in 0..2 {
        let (other, Ok(cores)) = (Arc::clone(&other), machine.cores(&[core])) else { return Vec::new() };
        let object = move |here: &Here<'_>, event: Event, _: QueueId| {
            let to = other[core].load(Ordering::Relaxed) as u32;
            drop(here.send(event, QueueId::from_number(to)));
        };
        let Ok(object) = machine.object("end", object) else { return Vec::new() };
        let Ok(queue) = machine.queue(&QueueSpec::new("end", Kind::Atomic).cores(cores), Some(object)) else {
            return Vec::new();
        };
        let _ = machine.start(object);
        queues.push(queue);
    }
    other[0].store(u64::from(queues[1].number()), Ordering::Relaxed);
    other[1].store(u64::from(queues[0].number()), Ordering::Relaxed);
    if let Ok(event) = machine.allocate(pool, 64) {
        drop(machine.send(event, queues[0]));
    }
    // A core's event comes back after two ways.
    run(&machine, dispatchers, 20_000).into_iter().map(|ticks| ticks / 2.0).collect()
}

/// One line of cache, to and fro between two threads, half of its way: no message can be quicker.
fn word() -> Vec<f64> {
    #[repr(align(128))]
    #[derive(Default)]
    struct Line(AtomicU64);
    const WAYS: u64 = 5_000;
    let lines: [Line; 2] = Default::default();
    let answers = |line: &Line, value: u64| {
        while line.0.load(Ordering::Acquire) < value {
            std::hint::spin_loop();
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            pin(1);
            (1..=WAYS * WINDOWS as u64).for_each(|value| {
                answers(&lines[0], value);
                lines[1].0.store(value, Ordering::Release);
            });
        });
        let asks = scope.spawn(|| {
            pin(0);
            let window = |window: u64| {
                let start = counter().unwrap_or(0);
                (1..=WAYS).for_each(|value| {
                    lines[0].0.store(window * WAYS + value, Ordering::Release);
                    answers(&lines[1], window * WAYS + value);
                });
                (counter().unwrap_or(0) - start) as f64 / WAYS as f64 / 2.0
            };
            (0..WINDOWS as u64).map(window).collect()
        });
        asks.join().unwrap_or_default()
    })
}
