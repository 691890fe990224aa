//! Waits of the runtime: the thread is a core of an event machine, and what wakes it is a timeout of that machine, read from
//! the clock in its loop.

use record::Wake;
use runtime::{TimeoutId, TimeoutSpec};
use sys::Errno;
use sys::clock::Clock;

use super::source::Source;
use crate::event_core::EventCore;

/// A core with one object, which receives the event of one timeout.
pub struct Dispatched {
    core: EventCore,
    timeout: TimeoutId,
    clock: Clock,
}

impl Dispatched {
    /// All that it needs is made here: waiting allocates nothing.
    ///
    /// # Errors
    /// What the machine refuses.
    pub fn new(wake: Wake, clock: Clock) -> failure::Result<Self> {
        let core = EventCore::new(wake, 1)?;
        let timeout = core.machine().timeout(TimeoutSpec::new(core.queue()));
        let refused = |error| failure::Error::new(format!("make a timeout: {error:?}"), "");
        Ok(Self { timeout: timeout.map_err(refused)?, core, clock })
    }
}

impl Source for Dispatched {
    fn sleep_until(&mut self, due: u64) -> Result<(), Errno> {
        let (timeout, clock) = (self.timeout, self.clock);
        let set = self.core.with_event(|here, event| {
            // The machine's clock last: so the wake-up is late by the time between the two readings, and never early.
            let left = due.saturating_sub(clock.now());
            // What is due already comes back at once.
            here.set_timeout(timeout, here.now() + left, 0, event).err()?.event
        });
        set.map_err(|_| Errno::INVAL)?;
        self.core.wait();
        Ok(())
    }

    fn now(&mut self) -> u64 {
        self.clock.now()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_of_the_machine_wakes_the_thread_and_never_early() {
        for wake in [Wake::RuntimeSpin, Wake::RuntimeBlock] {
            let clock = Clock::Monotonic;
            let mut source = Dispatched::new(wake, clock).unwrap();
            let start = source.now();
            for number in 1..=20 {
                let due = start + number * 2_000_000;
                source.sleep_until(due).unwrap();
                assert!(source.now() >= due, "{wake:?} {number}");
            }
            // What is past wakes at once.
            source.sleep_until(start).unwrap();
        }
    }
}
