//! What is freed when a machine ends.

use std::sync::OnceLock;

use crate::event::Chain;
use crate::event::pool::Pool;
use crate::group::Fork;
use crate::order::Window;
use crate::state::{Local, Shared};
use crate::sync::locked;
use crate::timeout::Timeout;

impl Drop for Shared {
    /// Pools whose events are all back are freed; the others stay, since who has an event may still read it.
    fn drop(&mut self) {
        for core in &mut self.cores {
            core.local.get_mut().free_all();
        }
        for slot in &self.objects {
            locked(&slot.held_back).free();
        }
        for queue in &self.queues {
            locked(&queue.waiting).free();
        }
        self.windows.iter().filter_map(OnceLock::get).for_each(Window::free);
        self.timeouts.iter().for_each(Timeout::free);
        self.forks.iter().for_each(Fork::free);
        for pool in self.pools.iter().filter_map(OnceLock::get) {
            if pool.free_count() == pool.capacity {
                // SAFETY: made by Box::leak; no event of it is out, and this is the last that knows it.
                drop(unsafe { Box::from_raw(std::ptr::from_ref::<Pool>(pool).cast_mut()) });
            }
        }
    }
}

impl Local {
    /// Returns all that is here to the pools: the machine ends.
    pub fn free_all(&mut self) {
        for list in &self.lists {
            list.events.free();
        }
        self.own.free();
        self.staged.free();
        self.batch.take().clear();
        for ring in &self.from {
            while let Some(parcel) = ring.pop() {
                if !parcel.event.is_null() {
                    // SAFETY: a parcel's events are the receiver's; one event has no next one.
                    let chain = unsafe { Chain::from_raw(parcel.event) };
                    chain.free();
                }
            }
        }
        self.threads.free();
    }
}
