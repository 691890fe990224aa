//! An allocator that counts what a thread asks for: for tests of what must not allocate.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, counting for threads that run [`count`]. To be made a test's `#[global_allocator]`.
pub struct Counting;

thread_local! {
    /// Requests so far; none while nobody counts.
    static REQUESTS: Cell<Option<u64>> = const { Cell::new(None) };
}

/// How often `action` allocates and frees. Always 0 where [`Counting`] is not the allocator.
pub fn count(action: impl FnOnce()) -> u64 {
    REQUESTS.set(Some(0));
    action();
    REQUESTS.take().unwrap_or_default()
}

fn note() {
    REQUESTS.set(REQUESTS.get().map(|requests| requests + 1));
}

// SAFETY: hands everything on to the system's allocator; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note();
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        note();
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}
