//! Timeouts: events that the machine keeps until they are due, read from the clock in each core's loop.

use std::ptr;
use std::sync::atomic::Ordering;

use crate::breakage::Breakage;
use crate::event::{Event, Header};
use crate::failure::Refused;
use crate::local::admit;
use crate::model::{Error, QueueId, TimeoutId};
use crate::state::{Here, Local};
use crate::sync::locked;
use crate::timeout::{ARMED, ENDING, IDLE, OUT, Timeout};

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
        let Some(spec) = *locked(&place.spec) else {
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
        match admit(self.shared(), queue, event.header()) {
            Ok(()) => {
                event.header().sent.set(place.due.load(Ordering::Relaxed).max(1));
                self.deliver_to_queue(event.into_raw(), queue);
            }
            Err(_) if is_periodic => drop(Here { local: self }.acknowledge(event)),
            Err(_) => drop(event),
        }
    }
}
