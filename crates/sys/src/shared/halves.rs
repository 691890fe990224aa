//! For CPUs without 64-bit atomics (32-bit PowerPC, MIPS): two halves under a sequence number.
#![cfg_attr(target_has_atomic = "64", allow(dead_code))]

use std::sync::atomic::{AtomicU32, Ordering, fence};

/// Readings before a reader takes it that the writer has been stopped in the middle: killed, or kept off its CPU by the
/// very reader.
const TRIES: usize = 1000;
/// How often the reader lets others run then, before it takes what stands there.
const PAUSES: usize = 10;

/// A 64-bit number with one writer and any number of readers, in this process or another.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Word {
    sequence: AtomicU32,
    high: AtomicU32,
    low: AtomicU32,
}

impl Word {
    /// Reads it; waits out a writer that is in the middle of it, but not for ever: a writer that was killed there left
    /// halves of two numbers. Threads with a real-time policy read what others write by [`Word::observe_now`].
    #[inline]
    pub fn get(&self) -> u64 {
        for _ in 0..PAUSES {
            if let Some(value) = self.observe_now() {
                return value;
            }
            std::thread::sleep(std::time::Duration::from_micros(100));
        }
        self.halves()
    }

    fn halves(&self) -> u64 {
        u64::from(self.high.load(Ordering::Relaxed)) << 32 | u64::from(self.low.load(Ordering::Relaxed))
    }

    /// Writes it. One writer only.
    #[inline]
    pub fn set(&self, value: u64) {
        let sequence = self.sequence.load(Ordering::Relaxed);
        self.sequence.store(sequence.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::Release);
        self.high.store((value >> 32) as u32, Ordering::Relaxed);
        self.low.store(value as u32, Ordering::Relaxed);
        self.sequence.store(sequence.wrapping_add(2), Ordering::Release);
    }

    /// Reads it and all that its writer wrote before publishing it.
    #[inline]
    pub fn observe(&self) -> u64 {
        self.get()
    }

    /// As [`Word::observe`], without waiting for the writer longer than a write takes: none where it is in the middle.
    #[inline]
    pub fn observe_now(&self) -> Option<u64> {
        for _ in 0..TRIES {
            let before = self.sequence.load(Ordering::Acquire);
            let value = self.halves();
            fence(Ordering::Acquire);
            if before % 2 == 0 && before == self.sequence.load(Ordering::Relaxed) {
                return Some(value);
            }
            std::hint::spin_loop();
        }
        None
    }

    /// Writes it after all that was written before. One writer only.
    #[inline]
    pub fn publish(&self, value: u64) {
        fence(Ordering::Release);
        self.set(value);
    }

    /// Raises it as a flag, after all that was written before: one half, without a sequence. It is used for nothing else.
    #[inline]
    pub fn raise(&self) {
        self.low.store(1, Ordering::Release);
    }

    /// Whether it was raised; then all is seen that was written before. Never waits.
    #[inline]
    pub fn is_raised(&self) -> bool {
        self.low.load(Ordering::Acquire) != 0
    }

    /// Takes a word that is zero for the caller; of several callers, in any process, exactly one gets `true`.
    /// Such a word is used for nothing else.
    pub fn claim(&self) -> bool {
        self.low.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writer_that_was_stopped_in_the_middle_holds_nobody_up() {
        let word = Word::default();
        word.set(7 << 32 | 5);
        assert_eq!((word.get(), word.observe_now()), (7 << 32 | 5, Some(7 << 32 | 5)));
        word.sequence.store(3, Ordering::Relaxed);
        word.high.store(8, Ordering::Relaxed);
        assert_eq!(word.observe_now(), None, "it is being written");
        assert_eq!(word.get(), 8 << 32 | 5, "and stays so");
    }

    #[test]
    fn a_flag_is_seen_whoever_raises_it() {
        let word = Word::default();
        assert!(!word.is_raised());
        std::thread::scope(|scope| (0..2).for_each(|_| drop(scope.spawn(|| word.raise()))));
        assert!(word.is_raised());
    }

    #[test]
    fn readers_see_whole_numbers() {
        let word = Word::default();
        std::thread::scope(|scope| {
            scope.spawn(|| (0..100_000_u64).for_each(|n| word.set(n << 32 | n)));
            for _ in 0..100_000 {
                if let Some(value) = word.observe_now() {
                    assert_eq!(value >> 32, value & u64::from(u32::MAX));
                }
            }
        });
    }
}
