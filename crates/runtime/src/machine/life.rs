//! Objects' lives: made, started, stopped.

use std::sync::atomic::Ordering;

use super::deliver;
use crate::breakage::Breakage;
use crate::model::{Error, ObjectId, QueueId};
use crate::state::{Here, Machine, Object, State};
use crate::sync::locked;

impl Machine {
    /// An object, not started.
    pub fn object(&self, name: &str, object: impl Object) -> Result<ObjectId, Error> {
        self.boxed_object(name, Box::new(object))
    }

    /// As [`Machine::object`].
    pub fn boxed_object(&self, name: &str, object: Box<dyn Object>) -> Result<ObjectId, Error> {
        let _one = locked(&self.shared.control);
        let place =
            self.shared.objects.iter().position(|slot| slot.object.get().is_none()).ok_or(Error::NoRoom)?;
        let slot = &self.shared.objects[place];
        drop(slot.object.set(object));
        drop(slot.name.set(name.to_owned()));
        if let Some(published) = &self.shared.published {
            published.object(place, name);
        }
        slot.state.store(State::Created as u8, Ordering::Release);
        Ok(ObjectId(place as u32))
    }

    /// What an object is doing; none where there is none.
    pub fn state(&self, object: ObjectId) -> Option<State> {
        Some(self.shared.objects.get(object.index()).filter(|slot| slot.object.get().is_some())?.state())
    }

    /// Starts an object: its start function once, then its local one on each core. It runs when all were well; sends of
    /// these functions follow then. Waits for the cores.
    ///
    /// # Errors
    /// [`Error::StartFailed`] where one failed: no receive ever ran, and the object can be started again.
    pub fn start(&self, object: ObjectId) -> Result<(), Error> {
        let _one = locked(&self.shared.control);
        let slot = self.shared.objects.get(object.index()).ok_or(Error::NoSuchThing)?;
        if slot.state() != State::Created {
            return Err(Error::WrongState);
        }
        slot.state.store(State::Starting as u8, Ordering::Release);
        let started = self.run_start(object);
        let runs = started.is_ok() || self.shared.broken(Breakage::FailureIgnored);
        let state = if runs { State::Running } else { State::Created };
        let held_back = locked(&slot.held_back).take();
        slot.state.store(state as u8, Ordering::Release);
        if !runs {
            held_back.free();
            return started;
        }
        let outside = locked(&self.shared.outside);
        while let Some(event) = held_back.pop() {
            // SAFETY: the chain's events are ours.
            let queue = QueueId(unsafe { (*event).queue.get() });
            deliver(&self.shared, &outside, event, queue);
        }
        started
    }

    fn run_start(&self, object: ObjectId) -> Result<(), Error> {
        let mut outcome = Ok(());
        self.for_object(object, 0, &mut |behaviour, here| outcome = behaviour.start(here))?;
        for core in 0..self.shared.cores.len() {
            outcome.map_err(|_| Error::StartFailed)?;
            self.for_object(object, core, &mut |behaviour, here| outcome = behaviour.start_local(here))?;
        }
        outcome.map_err(|_| Error::StartFailed)
    }

    /// Runs a start or stop function on a core, its sends held back while it starts.
    fn for_object(
        &self,
        object: ObjectId,
        core: usize,
        work: &mut (dyn FnMut(&dyn Object, &Here<'_>) + Send),
    ) -> Result<(), Error> {
        let slot = &self.shared.objects[object.index()];
        let starting = if slot.state() == State::Starting { object.0 + 1 } else { 0 };
        let mut failed = false;
        self.on(core, &mut |here| {
            let current = &here.local.current;
            let outer = (current.object.replace(object.0 + 1), current.starting.replace(starting));
            if let Some(behaviour) = slot.object.get() {
                let run = std::panic::AssertUnwindSafe(|| work(behaviour.as_ref(), here));
                failed = std::panic::catch_unwind(run).is_err();
            }
            current.object.set(outer.0);
            current.starting.set(outer.1);
        })?;
        if failed { Err(Error::Panic) } else { Ok(()) }
    }

    /// Stops an object: no receive runs any more when its local stop functions do, and these are over when its stop
    /// function runs. Waits for the cores.
    pub fn stop(&self, object: ObjectId) -> Result<(), Error> {
        let _one = locked(&self.shared.control);
        let slot = self.shared.objects.get(object.index()).ok_or(Error::NoSuchThing)?;
        if slot.state() != State::Running {
            return Err(Error::WrongState);
        }
        if !self.shared.broken(Breakage::StopIgnored) {
            slot.state.store(State::Stopping as u8, Ordering::Release);
        }
        self.on_all(&mut |_| ())?;
        for core in 0..self.shared.cores.len() {
            self.for_object(object, core, &mut |behaviour, here| behaviour.stop_local(here))?;
        }
        self.for_object(object, 0, &mut |behaviour, here| behaviour.stop(here))?;
        if !self.shared.broken(Breakage::StopIgnored) {
            slot.state.store(State::Created as u8, Ordering::Release);
        }
        Ok(())
    }
}
