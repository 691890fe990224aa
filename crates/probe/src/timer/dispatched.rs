//! Waits of the runtime: the thread is a core of an event machine, and what wakes it is a timeout of that machine, read from
//! the clock in its loop.

use std::sync::{Arc, Mutex, PoisonError};

use runtime::{
    Config, Dispatcher, Error, Event, Here, Kind, Limits, Machine, QueueId, QueueSpec, TimeoutId,
    TimeoutSpec, Wait,
};
use sys::Errno;
use sys::clock::Clock;

use super::source::Source;

/// The timeout's event while it is not under way.
type Slot = Arc<Mutex<Option<Event>>>;

/// A machine of one core with one object, which receives the event of one timeout.
pub struct Dispatched {
    machine: Machine,
    core: Dispatcher,
    timeout: TimeoutId,
    slot: Slot,
    clock: Clock,
}

impl Dispatched {
    /// All that it needs is made here: waiting allocates nothing.
    ///
    /// # Errors
    /// What the machine refuses.
    pub fn new(wait: Wait, clock: Clock) -> Result<Self, Error> {
        let config = Config {
            events: 1,
            queues: 1,
            objects: 1,
            groups: 1,
            timeouts: 1,
            ordered: 1,
            window: 4,
            wait,
            watch: false,
            ..Config::default()
        };
        let (machine, mut cores) = Machine::new(config)?;
        let core = cores.pop().ok_or(Error::NoSuchCore)?;
        let slot = Slot::default();
        let received = Arc::clone(&slot);
        let object = machine.object("woken", move |_: &Here<'_>, event: Event, _: QueueId| {
            put(&received, event);
        })?;
        let queue = machine.queue(&QueueSpec::new("due", Kind::Atomic), Some(object))?;
        machine.start(object)?;
        let timeout = machine.timeout(TimeoutSpec::new(queue))?;
        let pool = machine.pool(1, 8)?;
        put(&slot, machine.allocate(pool, 8)?);
        Ok(Self { machine, core, timeout, slot, clock })
    }

    fn is_back(&self) -> bool {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }
}

fn put(slot: &Slot, event: Event) {
    *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(event);
}

impl Source for Dispatched {
    fn sleep_until(&mut self, due: u64) -> Result<(), Errno> {
        let mut event = self.slot.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (slot, timeout, clock) = (&self.slot, self.timeout, self.clock);
        let mut set = |here: &Here<'_>| {
            let Some(event) = event.take() else { return };
            // The machine's clock last: so the wake-up is late by the time between the two readings, and never early.
            let left = due.saturating_sub(clock.now());
            if let Err(refused) = here.set_timeout(timeout, here.now() + left, 0, event) {
                // Due already.
                refused.event.into_iter().for_each(|event| put(slot, event));
            }
        };
        self.machine.on(0, &mut set).map_err(|_| Errno::INVAL)?;
        while !self.is_back() {
            self.core.dispatch(Limits { events: 1, ..Limits::default() });
        }
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
        for wait in [Wait::Spin, Wait::Block] {
            let clock = Clock::Monotonic;
            let mut source = Dispatched::new(wait, clock).unwrap();
            let start = source.now();
            for number in 1..=20 {
                let due = start + number * 2_000_000;
                source.sleep_until(due).unwrap();
                assert!(source.now() >= due, "{wait:?} {number}");
            }
            // What is past wakes at once.
            source.sleep_until(start).unwrap();
            assert!(source.is_back());
        }
    }
}
