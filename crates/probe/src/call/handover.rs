//! A thread waits and another wakes it, or a clock does.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

use failure::Error;
use sys::Errno;
use sys::clock::Clock;
use sys::shared::Word;
use wakepath::{Ends, Wait};

use super::engine::Call;
use super::partner::{Partner, Standing};

/// How long a partner that does not yield to the waiting thread lets it get to sleep, in nanoseconds.
const SETTLE: u64 = 50_000;
/// How far ahead a clock is set, in nanoseconds.
const AHEAD: u64 = 100_000;

/// Another thread wakes: from its call until the woken thread runs.
pub(super) struct Handover {
    wait: Box<dyn Wait>,
    woken_from: Arc<Word>,
    waker: Partner,
}

impl Handover {
    pub fn begin((wait, trigger): Ends, standing: Standing) -> Result<Self, Error> {
        let woken_from = Arc::new(Word::default());
        let stamp = woken_from.clone();
        let work = move || {
            let clock = Clock::Monotonic;
            let _ = clock.sleep_until(clock.now() + SETTLE);
            stamp.publish(clock.now());
            trigger();
        };
        Ok(Self { wait, woken_from, waker: Partner::start("waker", standing, work)? })
    }
}

impl Call for Handover {
    fn once(&mut self) -> Result<u64, Errno> {
        self.waker.orders.give();
        self.wait.wait().map_err(|_| Errno::IO)?;
        Ok(Clock::Monotonic.now().saturating_sub(self.woken_from.observe()))
    }
}

/// A clock wakes: how late.
pub(super) struct Timed(pub Box<dyn Wait>);

impl Call for Timed {
    fn once(&mut self) -> Result<u64, Errno> {
        let due = Clock::Monotonic.now() + AHEAD;
        self.0.arm(due).map_err(|_| Errno::IO)?;
        self.0.wait().map_err(|_| Errno::IO)?;
        Ok(Clock::Monotonic.now().saturating_sub(due))
    }
}

/// A condition variable with its mutex, and whether what is waited for has come.
struct Condition(Arc<(Mutex<bool>, Condvar)>);

impl Wait for Condition {
    fn wait(&mut self) -> Result<(), Error> {
        let (has_come, changed) = &*self.0;
        let mut has_come = has_come.lock().unwrap_or_else(PoisonError::into_inner);
        while !*has_come {
            has_come = changed.wait(has_come).unwrap_or_else(PoisonError::into_inner);
        }
        *has_come = false;
        Ok(())
    }
}

/// Both ends of a condition variable.
pub(super) fn condition() -> Ends {
    let shared = Arc::new((Mutex::new(false), Condvar::new()));
    let theirs = shared.clone();
    let trigger = move || {
        *theirs.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        theirs.1.notify_one();
    };
    (Box::new(Condition(shared)), Box::new(trigger))
}
