//! A lock that a thread of the lowest real-time priority holds while the waiter wants it: priority inversion, unless the
//! waiter's priority is inherited.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;
use std::thread::JoinHandle;

use failure::{Error, Result};
use sys::clock::Clock;
use sys::futex;
use sys::mutex::Mutex;
use sys::schedule::{set_policy, thread_id};
use sys::shared::Word;
use units::Policy;

use crate::wait::Wait;

/// The priority of the thread that holds the lock: a hog of a higher one takes the CPU from it.
const LOWEST: u32 = 1;
/// How much of its critical section is left when the waiter wants the lock, in nanoseconds.
pub(crate) const LEFT: u64 = 100_000;
const PATIENCE: u64 = 1_000_000_000;

struct Shared {
    mutex: Mutex,
    /// Raised with each order.
    number: AtomicU32,
    /// When the waiter will want the lock; 0 at the end.
    due: Word,
}

/// Wants the lock at a time at which another thread has it.
pub(crate) struct Locking {
    shared: Arc<Shared>,
    holder: Option<JoinHandle<()>>,
}

impl Locking {
    /// Starts the thread that will hold the lock, on the CPU of the calling one.
    pub fn begin(inherits: bool) -> Result<Self> {
        let shared = Shared { mutex: Mutex::new(inherits), number: AtomicU32::new(0), due: Word::default() };
        shared.due.set(u64::MAX);
        let shared = Arc::new(shared);
        let own = shared.clone();
        let holder = std::thread::Builder::new().spawn(move || hold(&own));
        let holder = holder
            .map_err(|error| Error::new(format!("start a thread: {error}"), sys::process::RAISE_LIMIT))?;
        Ok(Self { shared, holder: Some(holder) })
    }

    fn order(&self, due: u64) {
        self.shared.due.publish(due);
        self.shared.number.fetch_add(1, SeqCst);
        futex::wake(&self.shared.number);
    }
}

impl Wait for Locking {
    fn arm(&mut self, due: u64) -> Result<()> {
        self.order(due);
        Ok(())
    }

    fn wait(&mut self) -> Result<()> {
        let due = self.shared.due.observe();
        let slept = Clock::Monotonic.sleep_until(due);
        slept.map_err(|errno| Error::new(format!("clock_nanosleep: {errno}"), ""))?;
        self.shared.mutex.lock(thread_id()).map(drop).map_err(|error| Error::new(error, ""))
    }
}

impl Drop for Locking {
    fn drop(&mut self) {
        self.order(0);
        let _ = self.holder.take().map(JoinHandle::join);
    }
}

fn hold(shared: &Shared) {
    // Without the right to it the waiter's priority was refused before.
    let _ = set_policy(0, Policy::Fifo, LOWEST);
    let (clock, own, mut known) = (Clock::Monotonic, thread_id(), 0);
    loop {
        while shared.number.load(SeqCst) == known {
            futex::wait(&shared.number, known, PATIENCE);
        }
        known = shared.number.load(SeqCst);
        let due = shared.due.observe();
        if due == 0 {
            return;
        }
        let Ok(_held) = shared.mutex.lock(own) else { return };
        while clock.now() < due + LEFT {}
    }
}
