//! Timeouts: their places. What cores do with them is in `timer`.

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering};

use crate::event::{Event, Header};
use crate::model::{Error, QueueId};
use crate::sync::locked;

/// What a timeout is made with.
#[derive(Clone, Copy, Debug)]
pub struct TimeoutSpec {
    /// Where its events go; a scheduled queue.
    pub queue: QueueId,
    /// Due times are rounded up to multiples of this, ns: never early, at most this much late.
    pub resolution: u64,
    /// The least time ahead, ns.
    pub least: u64,
    /// The greatest time ahead, ns.
    pub most: u64,
    /// Whether periods that were missed are made up for, one event each, rather than skipped.
    pub catches_up: bool,
}

impl TimeoutSpec {
    /// To this queue, with the clock's resolution, at any time ahead; missed periods are skipped.
    pub fn new(queue: QueueId) -> Self {
        Self { queue, resolution: 1, least: 0, most: u64::MAX >> 1, catches_up: false }
    }
}

/// Not set.
pub const IDLE: u8 = 0;
/// The event waits for its time.
pub const ARMED: u8 = 1;
/// The event is out, and is to be acknowledged.
pub const OUT: u8 = 2;
/// Cancelled while the event was out.
pub const ENDING: u8 = 3;

/// A timeout's place.
pub struct Timeout {
    pub phase: AtomicU8,
    pub exists: AtomicBool,
    pub event: AtomicPtr<Header>,
    /// Which setting of this timeout counts: entries of others in some core's heap are dead.
    pub setting: AtomicU32,
    pub core: AtomicU32,
    pub due: AtomicU64,
    pub period: AtomicU64,
    pub spec: std::sync::Mutex<Option<TimeoutSpec>>,
    pub queue: AtomicU32,
    pub resolution: AtomicU64,
    pub catches_up: AtomicBool,
    pub acknowledged: AtomicU64,
    pub late: AtomicU64,
    pub skipped: AtomicU64,
}

/// What a timeout counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeoutFigures {
    /// Events of a periodic timeout that were acknowledged.
    pub acknowledged: u64,
    /// Of these, after the next one was due.
    pub late: u64,
    /// Periods without an event.
    pub skipped: u64,
}

impl Timeout {
    pub fn new() -> Self {
        Self {
            phase: AtomicU8::new(IDLE),
            exists: AtomicBool::new(false),
            event: AtomicPtr::new(ptr::null_mut()),
            setting: AtomicU32::new(0),
            core: AtomicU32::new(0),
            due: AtomicU64::new(0),
            period: AtomicU64::new(0),
            spec: std::sync::Mutex::new(None),
            queue: AtomicU32::new(0),
            resolution: AtomicU64::new(1),
            catches_up: AtomicBool::new(false),
            acknowledged: AtomicU64::new(0),
            late: AtomicU64::new(0),
            skipped: AtomicU64::new(0),
        }
    }

    pub fn create(&self, spec: TimeoutSpec) {
        self.queue.store(spec.queue.0, Ordering::Relaxed);
        self.resolution.store(spec.resolution.max(1), Ordering::Relaxed);
        self.catches_up.store(spec.catches_up, Ordering::Relaxed);
        [&self.acknowledged, &self.late, &self.skipped]
            .into_iter()
            .for_each(|count| count.store(0, Ordering::Relaxed));
        *locked(&self.spec) = Some(spec);
        self.exists.store(true, Ordering::Release);
    }

    /// Only while it is idle.
    pub fn delete(&self) -> Result<(), Error> {
        if self.phase.load(Ordering::Acquire) != IDLE {
            return Err(Error::WrongState);
        }
        self.exists.store(false, Ordering::Release);
        Ok(())
    }

    pub fn figures(&self) -> TimeoutFigures {
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        TimeoutFigures {
            acknowledged: count(&self.acknowledged),
            late: count(&self.late),
            skipped: count(&self.skipped),
        }
    }

    pub fn free(&self) {
        let event = self.event.swap(ptr::null_mut(), Ordering::Acquire);
        if !event.is_null() {
            // SAFETY: who takes the pointer out has the event.
            drop(unsafe { Event::from_raw(event) });
        }
    }

    pub fn moved(&self, from: u8, to: u8) -> bool {
        self.phase.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Ends it: the event, where it was armed.
    pub fn cancel(&self) -> Result<Event, Error> {
        if self.moved(ARMED, IDLE) {
            let event = self.event.swap(ptr::null_mut(), Ordering::Acquire);
            // SAFETY: who changes the phase from armed has the event.
            return Ok(unsafe { Event::from_raw(event) });
        }
        if self.period.load(Ordering::Relaxed) > 0 {
            self.moved(OUT, ENDING);
        }
        Err(Error::TooNear)
    }

    /// Sets the next due time of a periodic timeout.
    pub fn advance(&self, now: u64, drifts: bool) {
        let period = self.period.load(Ordering::Relaxed).max(1);
        let mut due = self.due.load(Ordering::Relaxed) + period;
        self.acknowledged.fetch_add(1, Ordering::Relaxed);
        if due < now {
            self.late.fetch_add(1, Ordering::Relaxed);
            if !self.catches_up.load(Ordering::Relaxed) {
                let missed = (now - due).div_ceil(period);
                self.skipped.fetch_add(missed, Ordering::Relaxed);
                due += missed * period;
            }
        }
        self.due.store(if drifts { now + period } else { due }, Ordering::Relaxed);
    }
}
