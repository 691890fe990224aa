//! Futexes: what locks and condition variables are made of.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use sys::futex::{wait, wake};
use sys::mutex::Mutex;

use super::{ALONE, BOTH, Operation};
use crate::work::{At, Kit, Result, Work};

/// No wait of a partner is longer.
const LONG: u64 = 1_000_000_000;
/// The schbench-like crowd: workers, and the turns of a loop that each computes for a request.
const WORKERS: u32 = 4;
const COMPUTING: u32 = 10_000;

pub const OPERATIONS: &[Operation] = &[
    Operation {
        name: "futex-ping-pong",
        title: "futex ping-pong RTT",
        unit: "1 wake-up there and back",
        bytes: 0,
        places: BOTH,
        source: "perf bench futex, rt-tests ptsematest",
        stands_for: "threads that hand over by locks, condition variables and semaphores",
        begin: ping_pong,
    },
    Operation {
        name: "pi-mutex",
        title: "PI mutex uncontended",
        unit: "1 lock and unlock",
        bytes: 0,
        places: ALONE,
        source: "lmbench lat_sem",
        stands_for: "locks of real-time programs that nobody else wants",
        begin: pi_mutex,
    },
    Operation {
        name: "wake-under-load",
        title: "wake-up under load",
        unit: "1 request to each of 4 workers that compute for it",
        bytes: 0,
        places: BOTH,
        source: "schbench",
        stands_for: "a server whose dispatcher wakes more workers than there are CPUs",
        begin: under_load,
    },
];

/// Waits until the word is `value`.
fn until(word: &AtomicU32, value: u32) {
    loop {
        match word.load(SeqCst) {
            now if now == value => return,
            now => wait(word, now, LONG),
        }
    }
}

fn ping_pong(kit: &Kit) -> Result<Box<dyn Work>> {
    let word = Arc::new(AtomicU32::new(0));
    let theirs = word.clone();
    let turn = |word: &AtomicU32, own: u32| {
        word.store(1 - own, SeqCst);
        wake(word);
        until(word, own);
    };
    kit.partner(move || {
        until(&theirs, 1);
        loop {
            turn(&theirs, 1);
        }
    })?;
    Ok(Box::new(move || {
        turn(&word, 0);
        Ok(())
    }))
}

fn pi_mutex(_: &Kit) -> Result<Box<dyn Work>> {
    let mutex = Mutex::new(true);
    let own = sys::schedule::thread_id();
    Ok(Box::new(move || mutex.lock(own).at("lock").map(drop)))
}

/// Each worker has a word of its own: the number of requests it was given. All count what they have done in one.
fn under_load(kit: &Kit) -> Result<Box<dyn Work>> {
    let done = Arc::new(AtomicU32::new(0));
    let requests: Vec<Arc<AtomicU32>> = (0..WORKERS).map(|_| Arc::new(AtomicU32::new(0))).collect();
    for request in &requests {
        let (request, done) = (request.clone(), done.clone());
        kit.partner(move || {
            for number in 1_u32.. {
                until(&request, number);
                compute();
                done.fetch_add(1, SeqCst);
                wake(&done);
            }
        })?;
    }
    let mut number = 0;
    Ok(Box::new(move || {
        number += 1;
        for request in &requests {
            request.store(number, SeqCst);
            wake(request);
        }
        until(&done, number.wrapping_mul(WORKERS));
        Ok(())
    }))
}

fn compute() {
    let mut state = 1_u32;
    for _ in 0..COMPUTING {
        state = std::hint::black_box(state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
    }
}
