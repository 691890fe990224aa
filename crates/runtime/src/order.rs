//! The output of an ordered queue put back into the order of its events, by one core alone: no lock, no loop.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::event::Chain;

/// What events under way have sent, by their place. Only the core that the queue is at home on touches it.
pub struct Window {
    slots: Box<[Slot]>,
    next: Cell<u32>,
}

#[derive(Default)]
struct Slot {
    is_done: Cell<bool>,
    output: Chain,
}

// SAFETY: only the queue's home touches a window (the send's owner checks that, see `Local::settle`).
unsafe impl Sync for Window {}
// SAFETY: events in it are owned by it.
unsafe impl Send for Window {}

impl Window {
    /// For `capacity` events under way, a power of two.
    pub fn new(capacity: usize) -> Self {
        Self {
            slots: (0..capacity.next_power_of_two()).map(|_| Slot::default()).collect(),
            next: Cell::new(0),
        }
    }

    /// The event at `position` is done and sent `output`: gives on, in order, all that nothing is waited for any more.
    /// `released` counts the places that are free again.
    pub fn settle(&self, position: u32, output: Chain, released: &AtomicU32, mut send: impl FnMut(Chain)) {
        let slot = self.slot(position);
        slot.output.prepend_all(output);
        slot.is_done.set(true);
        loop {
            let next = self.slot(self.next.get());
            if !next.is_done.replace(false) {
                return;
            }
            send(next.output.take());
            self.next.set(self.next.get().wrapping_add(1));
            released.store(self.next.get(), Ordering::Release);
        }
    }

    /// Frees what is there.
    pub fn free(&self) {
        for slot in &self.slots {
            slot.output.free();
        }
    }

    fn slot(&self, position: u32) -> &Slot {
        &self.slots[position as usize & (self.slots.len() - 1)]
    }
}
