//! Pools: memory that is allocated once, a shared stack of batches of free events, and a cache for each core.
//!
//! A core takes and frees from its cache; every [`BATCH`] events it exchanges a batch with the shared stack by one
//! compare-and-swap of a number with a tag, so that a stack that changed twice in between is noticed.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};

use super::{Chain, Event, Header};

/// Events of a batch at most.
const BATCH: u32 = 32;

/// Memory for events of one size.
pub struct Pool {
    memory: *mut u8,
    stride: usize,
    /// Its number in the machine.
    pub number: usize,
    pub capacity: usize,
    /// Bytes of an event at most.
    pub size: usize,
    /// Events that a core keeps for itself at most.
    keep: u32,
    /// Number + 1 of the first batch's first event in the lower half, a tag in the upper.
    batches: AtomicU64,
    /// Events in the shared stack.
    shared: AtomicI64,
    /// Events in each core's cache, written by it alone.
    cached: Box<[AtomicU32]>,
    /// For the machine that is broken on purpose.
    pub was_empty: AtomicU32,
}

// SAFETY: memory of free events is reached by whoever took them from the stack, which the compare-and-swap makes one.
unsafe impl Send for Pool {}
// SAFETY: as above; all shared fields are atomics.
unsafe impl Sync for Pool {}

/// A core's free events of one pool.
#[derive(Default)]
pub struct Cache {
    chain: Chain,
    count: Cell<u32>,
}

impl Pool {
    pub fn new(number: usize, capacity: usize, size: usize, cores: usize) -> Self {
        let stride = (size_of::<Header>() + size).next_multiple_of(align_of::<Header>());
        let layout = layout(stride, capacity);
        // SAFETY: the layout has a size, for a header has.
        let memory = unsafe { alloc_zeroed(layout) };
        if memory.is_null() {
            handle_alloc_error(layout);
        }
        let keep = (capacity / (4 * cores)).min(2 * BATCH as usize) as u32;
        let cached = (0..cores).map(|_| AtomicU32::new(0)).collect();
        Self {
            memory,
            stride,
            number,
            capacity,
            size,
            keep,
            batches: AtomicU64::new(0),
            shared: AtomicI64::new(0),
            cached,
            was_empty: AtomicU32::new(0),
        }
    }

    /// Writes the headers. The pool stays where it is from now on.
    pub fn fill(&self) {
        for index in 0..self.capacity as u32 {
            // SAFETY: within the memory, which nobody else knows yet; zeros are valid in all other fields.
            unsafe {
                let header = self.header(index);
                (&raw mut (*header).pool).write(self);
                (&raw mut (*header).index).write(index);
            }
            self.put(self.header(index));
        }
    }

    fn header(&self, index: u32) -> *mut Header {
        // SAFETY: indices are below the capacity.
        unsafe { self.memory.add(index as usize * self.stride).cast() }
    }

    /// Takes an event, through `cache` where a core has one.
    #[inline]
    pub fn take(&self, cache: Option<(usize, &Cache)>) -> Option<Event> {
        let header = match cache {
            Some((core, cache)) => {
                if cache.chain.is_empty() {
                    self.refill(core, cache)?;
                }
                self.note(core, cache, cache.count.get() - 1);
                cache.chain.pop()?
            }
            None => {
                let batch = self.take_batch()?;
                let header = batch.pop()?;
                self.put_batch(&batch);
                header
            }
        };
        // SAFETY: it was free, and is out of the stack and the caches.
        let event = unsafe { Event::from_raw(header) };
        let fields = event.header();
        fields.group.set(0);
        fields.timeout.set(0);
        fields.sent.set(0);
        Some(event)
    }

    #[cold]
    fn refill(&self, core: usize, cache: &Cache) -> Option<()> {
        let batch = self.take_batch()?;
        while let Some(header) = batch.pop() {
            cache.chain.push_front(header);
            cache.count.set(cache.count.get() + 1);
        }
        self.note(core, cache, cache.count.get());
        Some(())
    }

    #[inline]
    fn note(&self, core: usize, cache: &Cache, count: u32) {
        cache.count.set(count);
        self.cached[core].store(count, Ordering::Relaxed);
    }

    /// Takes an event back through a core's cache.
    #[inline]
    pub fn give(&self, core: usize, cache: &Cache, header: *mut Header) {
        cache.chain.push_front(header);
        self.note(core, cache, cache.count.get() + 1);
        if cache.count.get() > self.keep {
            self.spill(core, cache);
        }
    }

    #[cold]
    fn spill(&self, core: usize, cache: &Cache) {
        let batch = Chain::default();
        let count = cache.count.get().min(BATCH);
        (0..count).filter_map(|_| cache.chain.pop()).for_each(|header| batch.push(header));
        self.note(core, cache, cache.count.get() - count);
        self.put_batch(&batch);
    }

    /// Gives all that a core keeps to the others.
    pub fn flush(&self, core: usize, cache: &Cache) {
        while cache.count.get() > 0 {
            self.spill(core, cache);
        }
    }

    /// Takes an event back without a core's cache.
    pub fn put(&self, header: *mut Header) {
        let single = Chain::default();
        single.push(header);
        self.put_batch(&single);
    }

    fn put_batch(&self, batch: &Chain) {
        let Some(first) = batch.first() else { return };
        let mut count = 0;
        let mut header: *const Header = first;
        while !header.is_null() {
            count += 1;
            // SAFETY: the chain is ours until the exchange below.
            header = unsafe { (*header).next.get() };
        }
        self.shared.fetch_add(count, Ordering::Relaxed);
        let mut seen = self.batches.load(Ordering::Relaxed);
        loop {
            first.batch.store(seen as u32, Ordering::Relaxed);
            let next = ((seen >> 32) + 1) << 32 | u64::from(first.index + 1);
            match self.batches.compare_exchange_weak(seen, next, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => break,
                Err(now) => seen = now,
            }
        }
        let _ = batch.take();
    }

    fn take_batch(&self) -> Option<Chain> {
        let mut seen = self.batches.load(Ordering::Acquire);
        loop {
            let number = (seen as u32).checked_sub(1)?;
            let header = self.header(number);
            // SAFETY: headers stay where they are; `batch` is atomic, and where another one took this batch in the
            // meantime, the tag has changed and what was read is not used.
            let after = unsafe { (*header).batch.load(Ordering::Relaxed) };
            let next = ((seen >> 32) + 1) << 32 | u64::from(after);
            match self.batches.compare_exchange_weak(seen, next, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => return Some(self.counted(header)),
                Err(now) => seen = now,
            }
        }
    }

    /// The batch that begins at `header`, with its end known.
    fn counted(&self, header: *mut Header) -> Chain {
        let batch = Chain::default();
        let mut header = header;
        while !header.is_null() {
            // SAFETY: the exchange made the batch ours.
            let next = unsafe { (*header).next.get() };
            batch.push(header);
            self.shared.fetch_sub(1, Ordering::Relaxed);
            header = next;
        }
        batch
    }

    /// Events that nobody has. Exact while nobody allocates or frees.
    pub fn free_count(&self) -> usize {
        let cached: u32 = self.cached.iter().map(|count| count.load(Ordering::Relaxed)).sum();
        (self.shared.load(Ordering::Relaxed).max(0) as usize) + cached as usize
    }
}

impl Drop for Pool {
    /// Where events are still out, their memory stays: they may be read, and are never returned.
    fn drop(&mut self) {
        if self.free_count() == self.capacity {
            // SAFETY: allocated with this layout, and no event points into it any more.
            unsafe { dealloc(self.memory, layout(self.stride, self.capacity)) };
        }
        self.memory = ptr::null_mut();
    }
}

fn layout(stride: usize, capacity: usize) -> Layout {
    let bytes = stride.saturating_mul(capacity.max(1));
    Layout::from_size_align(bytes, align_of::<Header>()).unwrap_or_else(|_| Layout::new::<Header>())
}
