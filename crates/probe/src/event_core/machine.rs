//! A machine of one core: its objects, and the event that they pass on.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use record::Wake;
use runtime::{
    Config, Dispatcher, Event, Here, Kind, Limits, Machine, QueueId, QueueSpec, Source, SourceSpec, Wait,
};

/// Where the event is while it is not under way.
#[derive(Default)]
struct Place {
    event: Option<Event>,
    /// Whether the last object put it there, and the core has not seen that yet.
    has_come: bool,
}

type Slot = Arc<Mutex<Place>>;

/// A machine of one core and one event. It is made by the thread that will be the core; waiting allocates nothing.
pub struct EventCore {
    machine: Machine,
    core: Dispatcher,
    /// The first stage's.
    queue: QueueId,
    slot: Slot,
    _source: Option<Source>,
}

/// Sends the event from another thread.
pub struct Sender {
    machine: Machine,
    queue: QueueId,
    slot: Slot,
}

impl EventCore {
    /// With so many objects: each passes the event to the next, the last keeps it.
    ///
    /// # Errors
    /// What the machine refuses.
    pub fn new(wake: Wake, stages: u8) -> failure::Result<Self> {
        Self::made(wait_of(wake), stages, 1).map_err(refused)
    }

    fn made(wait: Wait, stages: u8, events: usize) -> Result<Self, runtime::Error> {
        let stages = usize::from(stages.max(1));
        let config = Config {
            events,
            queues: stages + events - 1,
            objects: stages + events - 1,
            groups: 1,
            timeouts: 1,
            ordered: 1,
            window: 4,
            wait,
            watch: false,
            ..Config::default()
        };
        let (machine, mut cores) = Machine::new(config)?;
        let core = cores.pop().ok_or(runtime::Error::NoSuchCore)?;
        let slot = Slot::default();
        let mut queue = last(&machine, &slot)?;
        for _ in 1..stages {
            queue = before(&machine, queue)?;
        }
        let pool = machine.pool(1, 8)?;
        let mut event = machine.allocate(pool, 8)?;
        event.set_word(0, 0);
        locked(&slot).event = Some(event);
        Ok(Self { machine, core, queue, slot, _source: None })
    }

    /// With one object, to which each read of `from` comes, of so many bytes; before each wait for it `before` is called.
    ///
    /// # Errors
    /// What the machine refuses, or no thread is left.
    pub fn of_source(
        wake: Wake,
        from: OwnedFd,
        bytes: usize,
        before: impl FnMut() -> std::io::Result<()> + Send + 'static,
    ) -> failure::Result<Self> {
        let mut core = Self::made(wait_of(wake), 1, 2).map_err(refused)?;
        let pool = core.machine.pool(1, 16 + bytes.next_multiple_of(8)).map_err(refused)?;
        let queue = arrives(&core.machine, &core.slot).map_err(refused)?;
        let spec = SourceSpec { name: "source".into(), pool, bytes, queue };
        let started = Source::start(&core.machine, spec, from, before);
        let failed =
            |error| failure::Error::new(format!("start a thread: {error}"), sys::process::RAISE_LIMIT);
        core._source = Some(started.map_err(failed)?);
        Ok(core)
    }

    /// The machine.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Where events for the first object are sent.
    pub fn queue(&self) -> QueueId {
        self.queue
    }

    /// What other threads send it by.
    pub fn sender(&self) -> Sender {
        Sender { machine: self.machine.clone(), queue: self.queue, slot: Arc::clone(&self.slot) }
    }

    /// Does `work` as the core, with the event. What it gives back has come.
    ///
    /// # Errors
    /// The machine has no such core.
    pub fn with_event(
        &self,
        mut work: impl FnMut(&Here<'_>, Event) -> Option<Event> + Send,
    ) -> Result<(), runtime::Error> {
        let mut event = take(&self.slot);
        self.machine.on(0, &mut |here: &Here<'_>| {
            let back = event.take().and_then(|event| work(here, event));
            back.into_iter().for_each(|event| put(&self.slot, event));
        })
    }

    /// Waits, as the core, until the last object has the event.
    pub fn wait(&mut self) {
        while !std::mem::take(&mut locked(&self.slot).has_come) {
            self.core.dispatch(Limits { events: 1, ..Limits::default() });
        }
    }
}

impl Sender {
    /// Sends the event, if it is not under way already.
    pub fn send(&self) {
        // A queue without a contract refuses no event.
        let _ = take(&self.slot).map(|event| self.machine.send(event, self.queue));
    }
}

fn refused(error: runtime::Error) -> failure::Error {
    failure::Error::new(format!("make an event machine: {error:?}"), "")
}

fn wait_of(wake: Wake) -> Wait {
    match wake {
        Wake::RuntimePause => Wait::Pause,
        Wake::RuntimeBlock => Wait::Block,
        _ => Wait::Spin,
    }
}

/// The object that keeps the event: its queue.
fn last(machine: &Machine, slot: &Slot) -> Result<QueueId, runtime::Error> {
    let slot = Arc::clone(slot);
    let object = machine.object("keeps", move |_: &Here<'_>, mut event: Event, _: QueueId| {
        received(&mut event);
        put(&slot, event);
    })?;
    let queue = machine.queue(&QueueSpec::new("keeps", Kind::Atomic), Some(object))?;
    machine.start(object)?;
    Ok(queue)
}

/// An object to which a source's events come: its queue.
fn arrives(machine: &Machine, slot: &Slot) -> Result<QueueId, runtime::Error> {
    let slot = Arc::clone(slot);
    let object = machine.object("arrives", move |_: &Here<'_>, event: Event, _: QueueId| {
        drop(event);
        locked(&slot).has_come = true;
    })?;
    let queue = machine.queue(&QueueSpec::new("arrives", Kind::Atomic), Some(object))?;
    machine.start(object)?;
    Ok(queue)
}

/// An object that passes the event on to the queue `next`: its own queue.
fn before(machine: &Machine, next: QueueId) -> Result<QueueId, runtime::Error> {
    let object = machine.object("passes", move |here: &Here<'_>, mut event: Event, _: QueueId| {
        received(&mut event);
        // A queue without a contract refuses no event.
        let _ = here.send(event, next);
    })?;
    let queue = machine.queue(&QueueSpec::new("passes", Kind::Atomic), Some(object))?;
    machine.start(object)?;
    Ok(queue)
}

/// An object uses what it receives: it counts.
fn received(event: &mut Event) {
    event.set_word(0, event.word(0) + 1);
}

fn locked(slot: &Slot) -> MutexGuard<'_, Place> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

fn take(slot: &Slot) -> Option<Event> {
    locked(slot).event.take()
}

fn put(slot: &Slot, event: Event) {
    *locked(slot) = Place { event: Some(event), has_come: true };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_descriptor_has_comes_to_the_core() {
        let (from, to) = std::os::unix::net::UnixDatagram::pair().unwrap();
        let mut core = EventCore::of_source(Wake::RuntimeBlock, from.into(), 8, || Ok(())).unwrap();
        for number in 0..20_u64 {
            to.send(&number.to_ne_bytes()).unwrap();
            core.wait();
        }
    }

    #[test]
    fn an_event_of_another_thread_comes_through_all_stages() {
        for (wake, stages) in [(Wake::RuntimeSpin, 1), (Wake::RuntimeBlock, 1), (Wake::RuntimeBlock, 3)] {
            let mut core = EventCore::new(wake, stages).unwrap();
            let sender = core.sender();
            let (begin, begins) = std::sync::mpsc::channel();
            let thread = std::thread::spawn(move || begins.into_iter().for_each(|()| sender.send()));
            for _ in 0..20 {
                begin.send(()).unwrap();
                core.wait();
            }
            drop(begin);
            thread.join().unwrap();
            let received = locked(&core.slot).event.as_ref().unwrap().word(0);
            assert_eq!(received, 20 * u64::from(stages), "{wake:?}, {stages} stages");
        }
    }
}
