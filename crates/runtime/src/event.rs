//! Events: owned, moved, and returned to their pool when they are dropped (`local` has the `Drop`, for that takes the core).

pub mod pool;

use std::cell::Cell;
use std::fmt;
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU32;

use crate::model::TimeoutId;
use pool::Pool;

/// What stands before an event's bytes: a line of cache of its own, so that two events never share one.
#[repr(C, align(64))]
pub struct Header {
    /// The next event of a chain, while the machine has it.
    pub next: Cell<*mut Header>,
    pub pool: *const Pool,
    /// Number within the pool.
    pub index: u32,
    /// Bytes in use.
    pub length: Cell<u32>,
    /// The queue it was sent to.
    pub queue: Cell<u32>,
    /// Its place in an ordered queue.
    pub position: Cell<u32>,
    /// Event group and cycle: number + 1 in the upper half, cycle in the lower; 0 without a group.
    pub group: Cell<u64>,
    /// When it was sent, ns of the machine's clock; 0 where nobody asked.
    pub sent: Cell<u64>,
    /// Timeout + 1 that it comes from.
    pub timeout: Cell<u32>,
    /// The next batch of the pool's shared stack. Read by others after it was taken: atomic.
    pub batch: AtomicU32,
}

/// A piece of memory that travels between objects. Whoever has it owns it: one that was sent cannot be touched, none can be
/// sent or freed twice. Dropping it returns it to its pool.
pub struct Event(pub(crate) NonNull<Header>);

// SAFETY: an event is in one place at a time; its header and bytes are touched only by who has it.
unsafe impl Send for Event {}

impl Event {
    pub(crate) fn header(&self) -> &Header {
        // SAFETY: the pool's memory outlives its events (`Pool::drop` keeps it while any is out).
        unsafe { self.0.as_ref() }
    }

    pub(crate) fn into_raw(self) -> *mut Header {
        let raw = self.0.as_ptr();
        std::mem::forget(self);
        raw
    }

    /// # Safety
    /// `raw` came from [`Event::into_raw`] and nobody else makes an event of it.
    pub(crate) unsafe fn from_raw(raw: *mut Header) -> Self {
        // SAFETY: into_raw gives no null.
        Self(unsafe { NonNull::new_unchecked(raw) })
    }

    /// The event as an address, for C: whoever has it owns the event.
    pub fn into_address(self) -> *mut u8 {
        self.into_raw().cast()
    }

    /// # Safety
    /// `address` came from [`Event::into_address`], and no event was made of it since.
    pub unsafe fn from_address(address: *mut u8) -> Self {
        // SAFETY: the caller's promise.
        unsafe { Self::from_raw(address.cast()) }
    }

    fn payload(&self) -> *mut u8 {
        // SAFETY: the pool lays the bytes behind the header.
        unsafe { self.0.as_ptr().cast::<u8>().add(size_of::<Header>()) }
    }

    /// Its bytes, as many as were asked for. A new event holds what the last one left.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the pool lays at least `length` initialised bytes there, and self owns them.
        unsafe { std::slice::from_raw_parts(self.payload(), self.header().length.get() as usize) }
    }

    /// Its bytes, to be written.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above; &mut self makes it the only access.
        unsafe { std::slice::from_raw_parts_mut(self.payload(), self.header().length.get() as usize) }
    }

    /// The `number`th word of eight bytes in the CPU's order; 0 beyond the end.
    pub fn word(&self, number: usize) -> u64 {
        let bytes = self.bytes().get(number * 8..number * 8 + 8);
        bytes.and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_ne_bytes)
    }

    /// Writes the `number`th word. Nothing happens beyond the end.
    pub fn set_word(&mut self, number: usize, word: u64) {
        if let Some(bytes) = self.bytes_mut().get_mut(number * 8..number * 8 + 8) {
            bytes.copy_from_slice(&word.to_ne_bytes());
        }
    }

    /// Bytes in use.
    pub fn len(&self) -> usize {
        self.header().length.get() as usize
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The timeout that it comes from.
    pub fn timeout(&self) -> Option<TimeoutId> {
        self.header().timeout.get().checked_sub(1).map(TimeoutId)
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Event({}, {} bytes)", self.header().index, self.len())
    }
}

/// Events one behind the other, linked by their headers: it never allocates. Who drops one loses its events.
pub struct Chain {
    head: Cell<*mut Header>,
    tail: Cell<*mut Header>,
}

// SAFETY: a chain owns its events as an `Event` owns one.
unsafe impl Send for Chain {}

impl Default for Chain {
    fn default() -> Self {
        Self { head: Cell::new(ptr::null_mut()), tail: Cell::new(ptr::null_mut()) }
    }
}

impl Chain {
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.head.get().is_null()
    }

    #[inline(always)]
    pub fn push(&self, event: *mut Header) {
        // SAFETY: the chain owns its events, so both headers are nobody else's.
        unsafe {
            (*event).next.set(ptr::null_mut());
            if self.is_empty() {
                self.head.set(event);
            } else {
                (*self.tail.get()).next.set(event);
            }
        }
        self.tail.set(event);
    }

    #[inline(always)]
    pub fn push_front(&self, event: *mut Header) {
        // SAFETY: as above.
        unsafe { (*event).next.set(self.head.get()) };
        if self.is_empty() {
            self.tail.set(event);
        }
        self.head.set(event);
    }

    #[inline(always)]
    pub fn pop(&self) -> Option<*mut Header> {
        let head = self.head.get();
        if head.is_null() {
            return None;
        }
        // SAFETY: as above.
        self.head.set(unsafe { (*head).next.get() });
        Some(head)
    }

    /// The first event, which stays.
    #[inline(always)]
    pub fn first(&self) -> Option<&Header> {
        // SAFETY: as above; the reference does not outlive the chain.
        unsafe { self.head.get().as_ref() }
    }

    /// All of it, and nothing is left.
    pub fn take(&self) -> Self {
        let head = self.head.replace(ptr::null_mut());
        Self { head: Cell::new(head), tail: Cell::new(self.tail.get()) }
    }

    /// What [`Chain::into_raw`] gave.
    ///
    /// # Safety
    /// `head` came from there, and nobody else makes a chain of it. Nothing may be pushed: the end is unknown.
    pub unsafe fn from_raw(head: *mut Header) -> Self {
        Self { head: Cell::new(head), tail: Cell::new(ptr::null_mut()) }
    }

    pub fn into_raw(self) -> *mut Header {
        self.head.get()
    }

    /// Puts `front` before all that is there.
    pub fn prepend(&self, front: &Self) {
        if front.is_empty() {
            return;
        }
        if self.is_empty() {
            self.tail.set(front.tail.get());
        } else {
            // SAFETY: as above.
            unsafe { (*front.tail.get()).next.set(self.head.get()) };
        }
        self.head.set(front.head.replace(ptr::null_mut()));
    }

    /// Becomes `other`, whose end may be unknown. It must be empty.
    pub fn prepend_all(&self, other: Self) {
        self.head.set(other.head.get());
        self.tail.set(other.tail.get());
    }

    /// Returns all events to their pools.
    pub fn free(&self) -> usize {
        // SAFETY: the chain's events are ours.
        std::iter::from_fn(|| self.pop()).map(|event| drop(unsafe { Event::from_raw(event) })).count()
    }
}
