//! Random work on real threads: delays, an empty pool, panics, cores that stall, objects that stop and start, sets that change.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use runtime::{
    Config, CoresId, Event, Here, Kind, Limits, Machine, NORMAL, ObjectId, PoolId, QueueId, QueueSpec, Wait,
};
use units::Seed;

const CORES: usize = 2;
const EVENTS: usize = 256;
/// Word 0: draws of the event's own stream. Word 1: hops left. Words 2 and 3: sender and number, for the order.
const HOPS: u64 = 40;

struct Work {
    machine: Machine,
    pool: PoolId,
    queues: Vec<QueueId>,
    objects: Vec<ObjectId>,
    set: CoresId,
    received: Arc<AtomicU64>,
    panicked: Arc<AtomicU64>,
    disorder: Arc<AtomicU64>,
}

fn work(wait: Wait) -> (Work, Vec<runtime::Dispatcher>) {
    let config = Config { cores: CORES, events: EVENTS, wait, bursts: [4; 8], ..Config::default() };
    let (machine, dispatchers) = Machine::new(config).unwrap();
    let pool = machine.pool(EVENTS, 64).unwrap();
    let set = machine.cores(&[0, 1]).unwrap();
    let mut work = Work {
        machine,
        pool,
        set,
        queues: Vec::new(),
        objects: Vec::new(),
        received: Arc::default(),
        panicked: Arc::default(),
        disorder: Arc::default(),
    };
    let kinds = [
        Kind::Atomic,
        Kind::Parallel,
        Kind::Ordered,
        Kind::Atomic,
        Kind::Local,
        Kind::Ordered,
        Kind::Parallel,
    ];
    for (number, kind) in kinds.into_iter().enumerate() {
        let (received, panicked, all) = (Arc::clone(&work.received), Arc::clone(&work.panicked), kinds.len());
        let object = move |here: &Here<'_>, event: Event, _: QueueId| {
            received.fetch_add(1, Ordering::Relaxed);
            hop(here, event, all, pool, &panicked);
        };
        let object = work.machine.object("hop", object).unwrap();
        let cores = if number % 2 == 0 { set } else { runtime::ALL_CORES };
        let spec = QueueSpec::new("hop", kind).level((number as u8 * 3) % 8).cores(cores);
        work.queues.push(work.machine.queue(&spec, Some(object)).unwrap());
        work.machine.start(object).unwrap();
        work.objects.push(object);
    }
    (work, dispatchers)
}

/// One event's step: it waits a little, and goes on, ends, doubles, or panics.
fn hop(here: &Here<'_>, mut event: Event, queues: usize, pool: PoolId, panicked: &AtomicU64) {
    let mut random = units::Random::after(event.word(0), 0);
    let draw = random.next_u64();
    event.set_word(0, draw);
    (0..draw % 64).for_each(|_| std::hint::spin_loop());
    match draw % 10_007 {
        0 => std::thread::sleep(Duration::from_millis(1)), // the core stalls
        1..20 => {
            panicked.fetch_add(1, Ordering::Relaxed);
            std::panic::resume_unwind(Box::new("on purpose"));
        }
        20..300 => {
            // An empty pool is no fault.
            if let Ok(mut copy) = here.allocate(pool, 64) {
                copy.set_word(0, random.next_u64());
                copy.set_word(1, event.word(1) / 2);
                drop(here.send(copy, QueueId::from_number((draw >> 32) as u32 % queues as u32)));
            }
        }
        300..320 => here.end_order(),
        _ => {}
    }
    if event.word(1) > 0 {
        event.set_word(1, event.word(1) - 1);
        drop(here.send(event, QueueId::from_number((draw >> 16) as u32 % queues as u32)));
    }
}

impl Work {
    /// An atomic queue that looks at the order of what the outside sends.
    fn watch_order(&self) -> QueueId {
        let (disorder, last) = (Arc::clone(&self.disorder), AtomicU64::new(0));
        let object = move |_: &Here<'_>, event: Event, _: QueueId| {
            if last.swap(event.word(3), Ordering::Relaxed) >= event.word(3) {
                disorder.fetch_add(1, Ordering::Relaxed);
            }
        };
        let object = self.machine.object("order", object).unwrap();
        let spec = QueueSpec::new("order", Kind::Atomic).level(NORMAL).cores(self.set);
        let queue = self.machine.queue(&spec, Some(object)).unwrap();
        self.machine.start(object).unwrap();
        queue
    }

    /// Sends until `count` events were received; changes things meanwhile.
    fn drive(&self, count: u64, seed: u64) {
        let order = self.watch_order();
        let mut random = Seed(seed).stream("torture");
        let (mut number, mut step) = (0, 0);
        while self.received.load(Ordering::Relaxed) < count {
            step += 1;
            for _ in 0..8 {
                let Ok(mut event) = self.machine.allocate(self.pool, 64) else { break };
                number += 1;
                event.set_word(0, random.next_u64());
                event.set_word(1, HOPS);
                event.set_word(3, number);
                // Local queues have no outside.
                let to = if number % 4 == 0 { order } else { self.queues[random.below(4) as usize] };
                if self.machine.send(event, to).is_err() {
                    std::thread::yield_now();
                }
            }
            if step % 64 == 0 {
                self.change(random.below(3), random.below(3) as usize);
            }
            std::thread::yield_now();
        }
    }

    fn change(&self, what: u64, which: usize) {
        let sets: [&[usize]; 3] = [&[0], &[1], &[0, 1]];
        match what {
            0 => self.machine.change_cores(self.set, sets[which]).unwrap(),
            1 => {
                self.machine.stop(self.objects[which]).unwrap();
                self.machine.start(self.objects[which]).unwrap();
            }
            _ => drop(self.machine.reports()),
        }
    }
}

/// Runs and checks: nothing lost, nothing left, order kept, each panic seen.
fn torture(count: u64, wait: Wait) {
    let (work, dispatchers) = work(wait);
    let ending = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for mut dispatcher in dispatchers {
            let ending = &ending;
            scope.spawn(move || {
                while !ending.load(Ordering::Relaxed) {
                    dispatcher.dispatch(Limits { rounds: 1 << 12, idle_rounds: 1 << 6, ..Limits::default() });
                    std::thread::yield_now();
                }
            });
        }
        work.drive(count, 27);
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(60) {
            work.machine.flush().unwrap();
            if work.machine.free_events(work.pool) == EVENTS {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        ending.store(true, Ordering::Relaxed);
    });
    let machine = &work.machine;
    assert_eq!(machine.free_events(work.pool), EVENTS, "events are missing at the end");
    assert_eq!(machine.lost(), 0, "a ring was full");
    assert_eq!(work.disorder.load(Ordering::Relaxed), 0, "a sender's order was broken");
    assert_eq!(machine.panics(), work.panicked.load(Ordering::Relaxed), "a panic was not noticed");
    machine.end();
}

#[test]
fn random_work_loses_nothing_while_cores_spin() {
    torture(300_000, Wait::Spin);
}

#[test]
fn random_work_loses_nothing_while_cores_sleep() {
    torture(300_000, Wait::Block);
}

#[test]
#[ignore = "long: 100 million events, minutes"]
fn a_hundred_million_events_lose_nothing() {
    torture(100_000_000, Wait::Spin);
}
