//! What applications are made of: objects that receive.

use crate::event::Event;
use crate::local::Here;
use crate::model::{Error, Failure, Handled, QueueId};

/// An execution object: functions that run to their end on a core and are never interrupted by another one.
///
/// Several cores may be in [`Object::receive`] at once where the object has parallel or ordered queues, or atomic ones of
/// different homes; [`Exclusive`] makes an object of what wants `&mut self`.
pub trait Object: Send + Sync + 'static {
    /// Once, before all else. Sends are held back until the object runs.
    fn start(&self, _here: &Here<'_>) -> Result<(), Error> {
        Ok(())
    }

    /// On each core, after [`Object::start`].
    fn start_local(&self, _here: &Here<'_>) -> Result<(), Error> {
        Ok(())
    }

    /// An event of one of its queues.
    fn receive(&self, here: &Here<'_>, event: Event, queue: QueueId);

    /// Events at most that [`Object::receive_many`] takes at once; 0: they come one at a time.
    fn batch(&self) -> usize {
        0
    }

    /// Several events of one queue and one event group. What is left in `events` is freed.
    fn receive_many(&self, here: &Here<'_>, events: &mut Vec<Event>, queue: QueueId) {
        events.drain(..).for_each(|event| self.receive(here, event, queue));
    }

    /// On each core, when no core is in [`Object::receive`] any more.
    fn stop_local(&self, _here: &Here<'_>) {}

    /// Once, after all else.
    fn stop(&self, _here: &Here<'_>) {}

    /// A call of this object failed.
    fn failed(&self, _failure: &mut Failure) -> Handled {
        Handled::Pass
    }
}

/// Any function is an object.
impl<F: Fn(&Here<'_>, Event, QueueId) + Send + Sync + 'static> Object for F {
    fn receive(&self, here: &Here<'_>, event: Event, queue: QueueId) {
        self(here, event, queue);
    }
}

/// Makes an object of a function that changes what it holds. All its queues must be atomic and of one atomic group (one home);
/// an event that comes while another one is received is a fault of the configuration, and panics.
pub struct Exclusive<F>(std::sync::Mutex<F>);

impl<F: FnMut(&Here<'_>, Event, QueueId) + Send + 'static> Exclusive<F> {
    /// Of this function.
    pub fn new(function: F) -> Self {
        Self(std::sync::Mutex::new(function))
    }
}

impl<F: FnMut(&Here<'_>, Event, QueueId) + Send + 'static> Object for Exclusive<F> {
    #[allow(
        clippy::panic,
        reason = "the fault is reported with object, queue and core, and the others go on"
    )]
    fn receive(&self, here: &Here<'_>, event: Event, queue: QueueId) {
        // Never waits: an atomic group runs on one core.
        match self.0.try_lock() {
            Ok(mut function) => function(here, event, queue),
            Err(std::sync::TryLockError::Poisoned(poisoned)) => poisoned.into_inner()(here, event, queue),
            Err(std::sync::TryLockError::WouldBlock) => panic!("an exclusive object has queues on two cores"),
        }
    }
}
