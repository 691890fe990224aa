//! Timeouts: events that the machine keeps until they are due, read from the clock in each core's loop.

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering};

use crate::breakage::Breakage;
use crate::event::{Event, Header};
use crate::local::{Here, Local};
use crate::model::{Error, QueueId, Refused, TimeoutId};

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

const IDLE: u8 = 0;
const ARMED: u8 = 1;
/// The event is out, and is to be acknowledged.
const OUT: u8 = 2;
/// Cancelled while the event was out.
const ENDING: u8 = 3;

/// A timeout's place.
pub struct Timeout {
    phase: AtomicU8,
    pub exists: AtomicBool,
    event: AtomicPtr<Header>,
    /// Which setting of this timeout counts: entries of others in some core's heap are dead.
    setting: AtomicU32,
    core: AtomicU32,
    due: AtomicU64,
    period: AtomicU64,
    pub spec: std::sync::Mutex<Option<TimeoutSpec>>,
    queue: AtomicU32,
    resolution: AtomicU64,
    catches_up: AtomicBool,
    acknowledged: AtomicU64,
    late: AtomicU64,
    skipped: AtomicU64,
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
        *crate::shared::locked(&self.spec) = Some(spec);
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
            crate::local::free(event);
        }
    }

    fn moved(&self, from: u8, to: u8) -> bool {
        self.phase.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Ends it: the event, where it was armed.
    fn cancel(&self) -> Result<Event, Error> {
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
}

impl Here<'_> {
    fn timeout(&self, timeout: TimeoutId) -> Result<&Timeout, Error> {
        let place = self.shared().timeouts.get(timeout.index()).ok_or(Error::NoSuchThing)?;
        if place.exists.load(Ordering::Acquire) { Ok(place) } else { Err(Error::NoSuchThing) }
    }

    /// Sends `event` at `due`, ns of the machine's time; then each `period`, where that is not 0 and each event is
    /// acknowledged by [`Here::acknowledge`].
    ///
    /// # Errors
    /// [`Error::TooNear`] where the time is past or nearer than the timeout's least; the event comes back. No error handler
    /// is asked: this is a matter of time, not of programming.
    pub fn set_timeout(
        &self,
        timeout: TimeoutId,
        due: u64,
        period: u64,
        event: Event,
    ) -> Result<(), Refused> {
        let refused = |error, event| Err(Refused { error, event: Some(event) });
        let place = match self.timeout(timeout) {
            Ok(place) => place,
            Err(error) => return refused(error, event),
        };
        let Some(spec) = *crate::shared::locked(&place.spec) else {
            return refused(Error::NoSuchThing, event);
        };
        let now = self.local.read_clock();
        if due < now.saturating_add(spec.least) {
            return refused(Error::TooNear, event);
        }
        if due > now.saturating_add(spec.most) {
            return refused(Error::TooFar, event);
        }
        if place.phase.load(Ordering::Acquire) != IDLE {
            return refused(Error::WrongState, event);
        }
        event.header().timeout.set(timeout.0 + 1);
        place.period.store(period, Ordering::Relaxed);
        place.due.store(due, Ordering::Relaxed);
        let armed = self.local.arm(timeout.0, place, event.into_raw(), IDLE);
        armed.map_err(|event| Refused { error: Error::WrongState, event: Some(event) })
    }

    /// Acknowledges the event of a periodic timeout: its next time is one period after its last, whenever this is called.
    ///
    /// # Errors
    /// [`Error::Cancelled`] where it was cancelled meanwhile: the event is the caller's.
    pub fn acknowledge(&self, event: Event) -> Result<(), Refused> {
        let refused = |error, event| Err(Refused { error, event: Some(event) });
        let Some(timeout) = event.timeout() else { return refused(Error::NoSuchThing, event) };
        let place = match self.timeout(timeout) {
            Ok(place) => place,
            Err(error) => return refused(error, event),
        };
        if place.moved(ENDING, IDLE) {
            return refused(Error::Cancelled, event);
        }
        if place.phase.load(Ordering::Acquire) != OUT {
            return refused(Error::WrongState, event);
        }
        place.advance(self.local.read_clock(), self.shared().broken(Breakage::TimerDrifts));
        self.local.arm(timeout.0, place, event.into_raw(), OUT).map_err(|event| {
            // Cancelled between the look and the arming.
            place.moved(ENDING, IDLE);
            Refused { error: Error::Cancelled, event: Some(event) }
        })
    }

    /// Ends a timeout.
    ///
    /// # Errors
    /// [`Error::TooNear`] where its event is on its way, or out: one more comes, and its acknowledgement answers
    /// [`Error::Cancelled`].
    pub fn cancel(&self, timeout: TimeoutId) -> Result<Event, Error> {
        let place = self.timeout(timeout)?;
        let event = place.cancel()?;
        if place.core.load(Ordering::Relaxed) as usize == self.local.me {
            self.local.heap().remove(timeout.0);
        }
        event.header().timeout.set(0);
        Ok(event)
    }
}

impl Timeout {
    /// Sets the next due time of a periodic timeout.
    fn advance(&self, now: u64, drifts: bool) {
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

impl Local {
    /// The event comes back where the phase is not `from` any more.
    fn arm(&self, number: u32, place: &Timeout, event: *mut Header, from: u8) -> Result<(), Event> {
        place.event.store(event, Ordering::Release);
        place.core.store(self.me as u32, Ordering::Relaxed);
        place.setting.fetch_add(1, Ordering::Relaxed);
        let resolution = place.resolution.load(Ordering::Relaxed);
        let due = place.due.load(Ordering::Relaxed).next_multiple_of(resolution);
        self.heap().set(
            number,
            if self.shared().broken(Breakage::TimerEarly) { due - due.min(200_000) } else { due },
        );
        if place.moved(from, ARMED) {
            return Ok(());
        }
        self.heap().remove(number);
        // SAFETY: it was not armed, so nobody but this took the event.
        Err(unsafe { Event::from_raw(place.event.swap(ptr::null_mut(), Ordering::Acquire)) })
    }

    /// Sends what is due. Each timeout fires at most once a call, since an event must be acknowledged first.
    #[inline]
    pub fn expire(&self) {
        if self.heap().next().is_none() {
            return;
        }
        let now = self.read_clock();
        while let Some((_, number)) = self.heap().pop_due(now) {
            match self.shared().timeouts.get(number as usize) {
                Some(place) => self.fire(place),
                None => self.threads.wake(self, number as usize - self.shared().timeouts.len()),
            }
        }
    }

    fn fire(&self, place: &Timeout) {
        // Cancelled elsewhere, or set anew on another core: its entry here is dead.
        if place.core.load(Ordering::Relaxed) as usize != self.me {
            return;
        }
        let is_periodic = place.period.load(Ordering::Relaxed) > 0;
        if !place.moved(ARMED, if is_periodic { OUT } else { IDLE }) {
            return;
        }
        let header = place.event.swap(ptr::null_mut(), Ordering::Acquire);
        let queue = QueueId(place.queue.load(Ordering::Relaxed));
        // SAFETY: who changes the phase from armed has the event.
        let event = unsafe { Event::from_raw(header) };
        if event.header().timeout.get() == 0 {
            return;
        }
        // A contract's refusal drops the event of a one-shot timeout, and acknowledges a periodic one without its object.
        match crate::local::admit(self.shared(), queue, event.header()) {
            Ok(()) => {
                event.header().sent.set(place.due.load(Ordering::Relaxed).max(1));
                self.deliver_to_queue(event.into_raw(), queue);
            }
            Err(_) if is_periodic => drop(Here { local: self }.acknowledge(event)),
            Err(_) => drop(event),
        }
    }
}
