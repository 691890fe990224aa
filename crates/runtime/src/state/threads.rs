//! A core's light threads: their places, stacks and mailboxes. What runs and wakes them is in `light`.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cell::{Cell, RefCell};
use std::ptr;

use super::{Here, NOTHING};
use crate::event::Chain;
use crate::model::{Level, SEMAPHORES, THREADS};

/// The least stack, bytes.
pub const LEAST_STACK: usize = 16 * 1024;

/// What a light thread is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// There is none.
    Empty,
    /// Among what is ready, or running.
    Ready,
    /// Until its time comes.
    Sleeping,
    /// Until the semaphore is raised.
    Waiting(usize),
    /// Until an event comes.
    Listening,
    Done,
}

/// A light thread's number on its core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LightId(pub(crate) usize);

/// A semaphore of a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SemaphoreId(pub(crate) usize);

/// What it does.
pub type Body = Box<dyn FnOnce(&Light<'_>) + Send>;

/// A light thread's place.
pub struct Slot {
    pub state: Cell<State>,
    pub level: Cell<Level>,
    pub next: Cell<u32>,
    pub stack: Cell<Option<Stack>>,
    /// Where its stack ends while it does not run.
    pub pointer: Cell<*mut u8>,
    pub body: RefCell<Option<Body>>,
    pub mail: Chain,
}

/// All light threads of a core.
pub struct Threads {
    pub slots: Box<[Slot]>,
    pub current: Cell<Option<usize>>,
    /// Where the core's own stack ends while a light thread runs.
    pub core: Cell<*mut u8>,
    pub semaphores: [Cell<u32>; SEMAPHORES],
    pub semaphore_count: Cell<usize>,
    pub switches: Cell<u64>,
    pub panics: Cell<u64>,
}

/// Memory of a stack. No guard page: its size is the application's promise, as with any operating system of this kind; the
/// lowest word is looked at after each switch.
pub struct Stack {
    memory: *mut u8,
    layout: Layout,
}

/// What stands in the lowest word of each stack.
const CANARY: u64 = 0x5afe_57ac_c0de_d00d;

impl Stack {
    pub fn new(size: usize) -> Self {
        let layout = Layout::from_size_align(size.max(LEAST_STACK).next_multiple_of(16), 16)
            .unwrap_or_else(|_| Layout::new::<[u128; 1024]>());
        // SAFETY: the layout has a size.
        let memory = unsafe { alloc(layout) };
        if memory.is_null() {
            handle_alloc_error(layout);
        }
        // Touched now, so that it does not fault later.
        // SAFETY: `size` bytes from `memory` are ours.
        unsafe {
            ptr::write_bytes(memory, 0, layout.size());
            memory.cast::<u64>().write(CANARY);
        }
        Self { memory, layout }
    }

    pub fn top(&self) -> *mut u8 {
        // SAFETY: one past the end of the memory.
        unsafe { self.memory.add(self.layout.size()) }
    }

    pub fn is_whole(&self) -> bool {
        // SAFETY: the first word of the memory.
        unsafe { self.memory.cast::<u64>().read_volatile() == CANARY }
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout; no thread runs on it any more.
        unsafe { dealloc(self.memory, self.layout) };
    }
}

// SAFETY: a stack is memory; what runs on it moves between OS threads only with the core that owns it.
unsafe impl Send for Stack {}

/// A light thread's own view: what it may do.
pub struct Light<'a> {
    pub(crate) here: Here<'a>,
    pub(crate) number: usize,
}

impl Threads {
    pub fn new() -> Self {
        let slot = |_| Slot {
            state: Cell::new(State::Empty),
            level: Cell::new(0),
            next: Cell::new(NOTHING),
            stack: Cell::new(None),
            pointer: Cell::new(ptr::null_mut()),
            body: RefCell::new(None),
            mail: Chain::default(),
        };
        Self {
            slots: (0..THREADS).map(slot).collect(),
            current: Cell::new(None),
            core: Cell::new(ptr::null_mut()),
            semaphores: std::array::from_fn(|_| Cell::new(0)),
            semaphore_count: Cell::new(0),
            switches: Cell::new(0),
            panics: Cell::new(0),
        }
    }

    pub fn next_of(&self, number: usize) -> &Cell<u32> {
        &self.slots[number].next
    }

    /// Forgets all threads. What lives on their stacks is not dropped: they never come back.
    pub fn free(&self) {
        for slot in &self.slots {
            slot.mail.free();
            if slot.state.get() != State::Empty {
                slot.state.set(State::Empty);
                drop(slot.stack.take());
            }
        }
    }
}
