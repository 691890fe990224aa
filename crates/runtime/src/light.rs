//! Light threads: code with a stack of its own that a core switches to and from in user space.
//!
//! They have a level like queues and take turns with them. One runs until it yields, sleeps, or waits for a semaphore or an
//! event; nothing interrupts it. All of it is the core's alone: no lock, no system call.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use crate::event::Event;
use crate::model::{Error, HIGHEST, Level, QueueId};
use crate::state::threads::{Body, Light, LightId, SemaphoreId, Slot, Stack, State, Threads};
use crate::state::{Here, Local, Object};
use crate::switch;

impl Threads {
    /// Ends the sleep or the wait of a thread.
    pub fn wake(&self, local: &Local, number: usize) {
        let Some(slot) = self.slots.get(number) else { return };
        if matches!(slot.state.get(), State::Sleeping | State::Waiting(_) | State::Listening) {
            self.make_ready(local, number);
        }
    }

    fn make_ready(&self, local: &Local, number: usize) {
        let slot = &self.slots[number];
        slot.state.set(State::Ready);
        local.append((local.lists.len() + number) as u32, &slot.next, usize::from(slot.level.get()));
    }

    /// Runs a thread until it gives way. It was taken from what is ready.
    pub fn run(&self, local: &Local, number: usize) {
        let slot = &self.slots[number];
        self.current.set(Some(number));
        self.switches.set(self.switches.get() + 1);
        // SAFETY: the pointer is where this thread's stack ended when it gave way, or what `prepare` laid there; the
        // core's own place is written before the switch, and read by the thread's switch back.
        unsafe { switch::switch(self.core.as_ptr(), slot.pointer.get()) };
        self.current.set(None);
        match slot.state.get() {
            State::Ready => self.make_ready(local, number),
            State::Done => self.end(slot),
            _ => {}
        }
    }

    /// Its stack and its place are free again; a stack that overflowed is a fault that nobody can go on from.
    fn end(&self, slot: &Slot) {
        let stack = slot.stack.take();
        if stack.as_ref().is_some_and(|stack| !stack.is_whole()) {
            std::process::abort();
        }
        slot.mail.free();
        slot.state.set(State::Empty);
    }

    /// Back to the core's own stack.
    fn give_way(&self, number: usize, state: State) {
        let slot = &self.slots[number];
        slot.state.set(state);
        // SAFETY: `core` is where `run` left the core's stack, which stands still until this switch.
        unsafe { switch::switch(slot.pointer.as_ptr(), self.core.get()) };
    }

    fn spawn(&self, local: &Local, level: Level, stack: usize, body: Body) -> Result<LightId, Error> {
        let free = self.slots.iter().position(|slot| slot.state.get() == State::Empty);
        let number = free.ok_or(Error::NoRoom)?;
        let slot = &self.slots[number];
        let stack = Stack::new(stack);
        slot.level.set(level.min(HIGHEST));
        *slot.body.borrow_mut() = Some(body);
        // SAFETY: the top of a stack of at least `LEAST_STACK` bytes, aligned to 16.
        slot.pointer
            .set(unsafe { switch::prepare(stack.top(), enter, ptr::from_ref(local).cast_mut().cast()) });
        slot.stack.set(Some(stack));
        self.make_ready(local, number);
        Ok(LightId(number))
    }
}

/// The first function on a thread's stack.
extern "C" fn enter(local: *mut u8) -> ! {
    // SAFETY: `spawn` passed the core that runs this thread, which outlives it.
    let local = unsafe { &*local.cast::<Local>() };
    let number = local.threads.current.get().unwrap_or_default();
    let body = local.threads.slots[number].body.borrow_mut().take();
    let light = Light { here: Here { local }, number };
    let ended = body.map(|body| catch_unwind(AssertUnwindSafe(|| body(&light))));
    if ended.is_some_and(|ended| ended.is_err()) {
        local.threads.panics.set(local.threads.panics.get() + 1);
    }
    local.threads.give_way(number, State::Done);
    std::process::abort() // a thread that is done is not switched to
}

impl<'a> Here<'a> {
    /// Makes a light thread on this core, with a stack of so many bytes. It begins when its level's turn comes. Allocates.
    ///
    /// # Errors
    /// [`Error::NoRoom`] where there are [`THREADS`](crate::model::THREADS) already.
    pub fn spawn(
        self,
        level: Level,
        stack: usize,
        body: impl FnOnce(&Light<'_>) + Send + 'static,
    ) -> Result<LightId, Error> {
        self.local.threads.spawn(self.local, level, stack, Box::new(body))
    }

    /// Makes a semaphore on this core, with so many permits.
    pub fn semaphore(self, permits: u32) -> Result<SemaphoreId, Error> {
        let threads = &self.local.threads;
        let number = threads.semaphore_count.get();
        threads.semaphores.get(number).ok_or(Error::NoRoom)?.set(permits);
        threads.semaphore_count.set(number + 1);
        Ok(SemaphoreId(number))
    }

    /// One permit more. Who waits for it is made ready; the highest level first, then the lowest number.
    pub fn raise(self, semaphore: SemaphoreId) {
        let threads = &self.local.threads;
        let waits = |slot: &&(usize, &Slot)| slot.1.state.get() == State::Waiting(semaphore.0);
        let first = threads
            .slots
            .iter()
            .enumerate()
            .rev()
            .filter(|slot| waits(&slot))
            .max_by_key(|slot| slot.1.level.get());
        match first {
            Some((number, _)) => threads.wake(self.local, number),
            None => threads.semaphores[semaphore.0].set(threads.semaphores[semaphore.0].get() + 1),
        }
    }
}

impl<'a> Light<'a> {
    /// What objects may do too.
    pub fn here(&self) -> Here<'a> {
        self.here
    }

    /// Its number.
    pub fn id(&self) -> LightId {
        LightId(self.number)
    }

    fn threads(&self) -> &Threads {
        &self.here.local.threads
    }

    /// Lets others of its level run, and those above.
    pub fn give_way(&self) {
        self.threads().give_way(self.number, State::Ready);
    }

    /// Sleeps until `due`, ns of the machine's time.
    pub fn sleep_until(&self, due: u64) {
        let local = self.here.local;
        local.heap().set((local.shared().timeouts.len() + self.number) as u32, due);
        self.threads().give_way(self.number, State::Sleeping);
    }

    /// Takes a permit, or waits for one.
    pub fn wait(&self, semaphore: SemaphoreId) {
        let permits = &self.threads().semaphores[semaphore.0];
        match permits.get() {
            0 => self.threads().give_way(self.number, State::Waiting(semaphore.0)),
            some => permits.set(some - 1),
        }
    }

    /// The next event of its mailbox, waited for.
    pub fn receive(&self) -> Event {
        loop {
            if let Some(event) = self.threads().slots[self.number].mail.pop() {
                // SAFETY: the mailbox owned it.
                return unsafe { Event::from_raw(event) };
            }
            self.threads().give_way(self.number, State::Listening);
        }
    }
}

/// An object that puts what it receives into the mailbox of a light thread of one core. Its queues must be at home there.
pub struct Mailbox(pub LightId);

impl Object for Mailbox {
    fn receive(&self, here: &Here<'_>, event: Event, _: QueueId) {
        let threads = &here.local.threads;
        let slot = &threads.slots[self.0.0];
        slot.mail.push(event.into_raw());
        if slot.state.get() == State::Listening {
            threads.wake(here.local, self.0.0);
        }
    }
}
