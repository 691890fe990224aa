//! Threads that a call needs beside the one that measures: on which CPU, at which priority, and their end.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::thread::JoinHandle;

use failure::Error;
use sys::futex;
use sys::schedule::{self, Scheduling};
use units::{CpuId, CpuList, Policy, Priority};

/// No thread waits longer for its next order, in nanoseconds.
const PATIENCE: u64 = 100_000_000;

/// Says that something is to be done once more.
#[derive(Default)]
pub(super) struct Orders {
    number: AtomicU32,
    ended: AtomicBool,
}

impl Orders {
    /// One more.
    pub fn give(&self) {
        self.number.fetch_add(1, SeqCst);
        futex::wake(&self.number);
    }

    /// Waits for the next after `known`; false at the end.
    pub fn next(&self, known: &mut u32) -> bool {
        while self.number.load(SeqCst) == *known {
            if self.ended.load(SeqCst) {
                return false;
            }
            futex::wait(&self.number, *known, PATIENCE);
        }
        *known = self.number.load(SeqCst);
        !self.ended.load(SeqCst)
    }

    fn end(&self) {
        self.ended.store(true, SeqCst);
        self.give();
    }
}

/// A thread that does something at each order.
pub(super) struct Partner {
    pub orders: Arc<Orders>,
    thread: Option<JoinHandle<()>>,
}

/// Where a partner runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    /// The CPU that it is pinned to; none: not pinned.
    pub cpu: Option<CpuId>,
    /// How far below the measuring thread's its priority is.
    pub below: u8,
    /// It is an ordinary thread (SCHED_OTHER): threads that handle interrupts run before it.
    pub is_ordinary: bool,
}

impl Partner {
    /// Starts a thread that does `work` at each order.
    ///
    /// # Errors
    /// It cannot be started, or not where it should stand.
    pub fn start(
        name: &'static str,
        standing: Standing,
        mut work: impl FnMut() + Send + 'static,
    ) -> Result<Self, Error> {
        let scheduling = match standing.is_ordinary {
            true => Some(Scheduling::new(Policy::Other, None)),
            false => scheduling_below(standing.below)?,
        };
        let orders = Arc::new(Orders::default());
        let (theirs, (says, hears)) = (orders.clone(), std::sync::mpsc::channel());
        let body = move || {
            let stands = stand(standing.cpu, scheduling);
            let is_there = stands.is_ok();
            let _ = says.send(stands);
            let mut known = 0;
            while is_there && theirs.next(&mut known) {
                work();
            }
        };
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(body);
        let thread = thread
            .map_err(|error| Error::new(format!("start a thread: {error}"), sys::process::RAISE_LIMIT))?;
        let stands = hears.recv().unwrap_or_else(|_| Err(Error::new(format!("{name} ended early"), "")));
        stands.map(|()| Self { orders, thread: Some(thread) })
    }
}

impl Drop for Partner {
    fn drop(&mut self) {
        self.orders.end();
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// The policy of the calling thread, at a priority so much lower; none for a policy without.
pub(super) fn scheduling_below(below: u8) -> Result<Option<Scheduling>, Error> {
    let (policy, priority) = schedule::get()?;
    if !policy.is_real_time() {
        return Ok(None);
    }
    let lower = u8::try_from(priority).ok().and_then(|priority| priority.checked_sub(below));
    let lower = lower.and_then(|priority| Priority::try_from(priority).ok());
    let lower = lower.ok_or_else(|| {
        let message = format!("a thread {below} below priority {priority} has none left");
        Error::new(message, "measure at a higher priority: --priority")
    })?;
    Ok(Some(Scheduling::new(policy, Some(lower))))
}

fn stand(cpu: Option<CpuId>, scheduling: Option<Scheduling>) -> Result<(), Error> {
    if let Some(cpu) = cpu {
        schedule::set_affinity(0, &CpuList::from_iter([cpu]))?;
    }
    sys::memory::touch_stack();
    scheduling.map_or(Ok(()), |scheduling| schedule::set(scheduling).map_err(Error::from))
}
