//! Messages to the measuring thread: through threads, or to a core of an event machine, which it is.

use std::sync::Arc;

use failure::Error;
use record::Wake;
use wakepath::{Ends, Wait};

use super::partner::{Orders, Partner, Standing};
use crate::event_core;

/// How many have a message, one after the other, in a chain.
pub(super) const STAGES: u8 = 3;

/// The last of a chain of threads, which waits for the one before it.
struct Last {
    orders: Arc<Orders>,
    seen: u32,
    /// They end with it.
    _before: Vec<Partner>,
}

impl Wait for Last {
    fn wait(&mut self) -> Result<(), Error> {
        self.orders.next(&mut self.seen);
        Ok(())
    }
}

/// A chain of threads, each of which wakes the next by a futex; all have the measuring thread's CPU and priority.
///
/// # Errors
/// A thread cannot be started.
pub(super) fn through_threads() -> Result<Ends, Error> {
    let last = Arc::new(Orders::default());
    let (mut next, mut before) = (last.clone(), Vec::new());
    for _ in 1..STAGES {
        let standing = Standing { cpu: None, below: 0, is_ordinary: false };
        let stage = Partner::start("stage", standing, move || next.give())?;
        next = stage.orders.clone();
        before.push(stage);
    }
    let first = next;
    Ok((Box::new(Last { orders: last, seen: 0, _before: before }), Box::new(move || first.give())))
}

/// A core of the event machine, whose objects pass the message on.
#[cfg(target_has_atomic = "64")]
impl Wait for event_core::EventCore {
    fn wait(&mut self) -> Result<(), Error> {
        self.wait();
        Ok(())
    }
}

/// To a core of the event machine, through so many objects.
///
/// # Errors
/// This CPU cannot wait so.
#[cfg(target_has_atomic = "64")]
pub(super) fn to_core(name: &str, wake: Wake, stages: u8) -> Result<Ends, Error> {
    if let Some(why) = event_core::hindrance(wake) {
        return Err(event_core::refused(&format!("--calls {name}"), why));
    }
    let core = event_core::EventCore::new(wake, stages)?;
    let sender = core.sender();
    Ok((Box::new(core), Box::new(move || sender.send())))
}

/// To a core of the event machine, which this CPU cannot run.
#[cfg(not(target_has_atomic = "64"))]
pub(super) fn to_core(name: &str, _: Wake, _: u8) -> Result<Ends, Error> {
    Err(event_core::refused(&format!("--calls {name}"), event_core::NARROW))
}
