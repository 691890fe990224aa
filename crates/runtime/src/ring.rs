//! A bounded ring from one thread to one other: no lock, no allocation after it was made, both ends wait-free.
//!
//! Each end keeps a copy of where the other one was when it last looked, so that a line of cache moves between cores only
//! where the copy does not suffice.

use std::cell::Cell;
use std::mem::MaybeUninit;

use crate::sync::{Arc, AtomicUsize, Ordering, UnsafeCell};

/// Keeps two ends on lines of their own; two lines, since CPUs fetch them in pairs.
#[repr(align(128))]
struct Apart<T>(T);

struct Shared<T> {
    slots: Box<[UnsafeCell<MaybeUninit<T>>]>,
    /// Values written so far, by the sender alone.
    written: Apart<AtomicUsize>,
    /// Values read so far, by the receiver alone.
    read: Apart<AtomicUsize>,
}

// SAFETY: a slot is written by the sender only while `written - read < capacity` says that the receiver is done with it,
// and read by the receiver only once `written` says so; both counts are stored with release and loaded with acquire.
unsafe impl<T: Send> Sync for Shared<T> {}
// SAFETY: values of T move between threads with the ring, which T: Send allows.
unsafe impl<T: Send> Send for Shared<T> {}

/// The end that writes. One thread at a time; on lines of its own, for it is written with each value.
#[repr(align(128))]
pub struct Sender<T> {
    shared: Arc<Shared<T>>,
    written: Cell<usize>,
    read: Cell<usize>,
}

/// The end that reads. One thread at a time; on lines of its own likewise.
#[repr(align(128))]
pub struct Receiver<T> {
    shared: Arc<Shared<T>>,
    read: Cell<usize>,
    written: Cell<usize>,
}

/// A ring that holds `capacity` values, rounded up to a power of two.
pub fn ring<T: Copy + Send>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    let capacity = capacity.max(1).next_power_of_two();
    let shared = Arc::new(Shared {
        slots: (0..capacity).map(|_| UnsafeCell::new(MaybeUninit::uninit())).collect(),
        written: Apart(AtomicUsize::new(0)),
        read: Apart(AtomicUsize::new(0)),
    });
    let sender = Sender { shared: Arc::clone(&shared), written: Cell::new(0), read: Cell::new(0) };
    (sender, Receiver { shared, read: Cell::new(0), written: Cell::new(0) })
}

impl<T: Copy + Send> Sender<T> {
    /// Puts `value` behind the others; gives it back where the ring is full.
    #[inline]
    pub fn push(&self, value: T) -> Result<(), T> {
        let written = self.written.get();
        let capacity = self.shared.slots.len();
        if written.wrapping_sub(self.read.get()) == capacity {
            self.read.set(self.shared.read.0.load(Ordering::Acquire));
            if written.wrapping_sub(self.read.get()) == capacity {
                return Err(value);
            }
        }
        // SAFETY: the receiver has read this slot's last value, and looks again only after the store below.
        self.shared.slots[written & (capacity - 1)].with_mut(|slot| unsafe { (*slot).write(value) });
        self.written.set(written.wrapping_add(1));
        self.shared.written.0.store(written.wrapping_add(1), Ordering::Release);
        Ok(())
    }
}

impl<T: Copy + Send> Receiver<T> {
    /// The oldest value; none where there is none.
    #[inline]
    pub fn pop(&self) -> Option<T> {
        let read = self.read.get();
        if read == self.written.get() {
            self.written.set(self.shared.written.0.load(Ordering::Acquire));
            if read == self.written.get() {
                return None;
            }
        }
        let slot = &self.shared.slots[read & (self.shared.slots.len() - 1)];
        // SAFETY: `written` was loaded with acquire and lies beyond this slot, so its value is there.
        let value = slot.with(|slot| unsafe { (*slot).assume_init_read() });
        self.read.set(read.wrapping_add(1));
        self.shared.read.0.store(read.wrapping_add(1), Ordering::Release);
        Some(value)
    }

    /// Whether nothing is there to be read now.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.read.get() == self.shared.written.0.load(Ordering::Acquire)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_full_ring_gives_the_value_back_and_takes_one_again_after_a_read() {
        let (sender, receiver) = ring(2);
        assert!(receiver.is_empty());
        assert_eq!((sender.push(1), sender.push(2), sender.push(3)), (Ok(()), Ok(()), Err(3)));
        assert_eq!(receiver.pop(), Some(1));
        assert_eq!(sender.push(3), Ok(()));
        assert_eq!((receiver.pop(), receiver.pop(), receiver.pop()), (Some(2), Some(3), None));
    }

    #[test]
    fn values_cross_threads_in_order_and_none_is_lost() {
        let (sender, receiver) = ring(8);
        let count = if cfg!(miri) { 200 } else { 200_000 };
        std::thread::scope(|scope| {
            scope.spawn(move || {
                (0..count).for_each(|value| {
                    while sender.push(value).is_err() {
                        std::thread::yield_now()
                    }
                });
            });
            let mut expected = 0;
            while expected < count {
                match receiver.pop() {
                    Some(value) => {
                        assert_eq!(value, expected);
                        expected += 1;
                    }
                    None => std::thread::yield_now(),
                }
            }
        });
    }
}

/// All orders in which two threads can take turns, by loom: `RUSTFLAGS="--cfg loom" cargo test -p runtime --lib models`.
#[cfg(all(test, loom))]
mod models {
    use super::*;

    #[test]
    fn no_value_is_lost_doubled_or_read_before_it_is_written() {
        loom::model(|| {
            let (sender, receiver) = ring::<u32>(2);
            let writer = loom::thread::spawn(move || {
                let mut value = 0;
                while value < 3 {
                    match sender.push(value) {
                        Ok(()) => value += 1,
                        Err(_) => loom::thread::yield_now(),
                    }
                }
            });
            let mut expected = 0;
            while expected < 3 {
                match receiver.pop() {
                    Some(value) => {
                        assert_eq!(value, expected);
                        expected += 1;
                    }
                    None => loom::thread::yield_now(),
                }
            }
            writer.join().unwrap();
            assert!(receiver.is_empty());
        });
    }
}
