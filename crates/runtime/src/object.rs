//! What passes for an object: functions.

use crate::event::Event;
use crate::model::QueueId;
use crate::state::{Here, Object};

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
