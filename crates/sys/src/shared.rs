//! Memory shared between processes: 64-bit words with one writer each and any number of readers.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{MemfdFlags, Mode, OFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags};

use crate::error::Named;
use crate::{Errno, Error, Result};

#[cfg(not(target_has_atomic = "64"))]
pub use halves::Word;
#[cfg(target_has_atomic = "64")]
pub use word::Word;

/// A mapping of shared words, zero at first. The file behind it has no name and ends with its last holder.
#[derive(Debug)]
pub struct SharedWords {
    start: *mut Word,
    words: usize,
}

// SAFETY: the mapping lives as long as the value, and `Word` is all atomics.
unsafe impl Send for SharedWords {}
// SAFETY: as above.
unsafe impl Sync for SharedWords {}

impl SharedWords {
    /// Creates a file without a name for `words` words and maps it. The descriptor is closed on exec: a child that
    /// is to map it gets it by [`crate::process::pass_on`].
    /// memfd_create(2) where the kernel has it (3.17), else an unnamed file in /dev/shm.
    pub fn create(words: usize) -> Result<(Self, OwnedFd)> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create("worstcase", flags).or_else(|_| {
            let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
            rustix::fs::open("/dev/shm", flags, Mode::RUSR | Mode::WUSR)
        });
        let file = file.on("memfd_create", "for shared memory")?;
        rustix::fs::ftruncate(&file, Self::bytes(words) as u64).on("ftruncate", "of shared memory")?;
        // Whoever shortened it would end all who have it mapped, by SIGBUS. A file of /dev/shm cannot be sealed: EINVAL.
        let _ = rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL);
        Ok((Self::open(file.as_fd(), words)?, file))
    }

    /// Maps `words` words of a file made by [`SharedWords::create`]. mmap(2).
    pub fn open(file: BorrowedFd<'_>, words: usize) -> Result<Self> {
        let size = rustix::fs::fstat(file).named("fstat")?.st_size;
        if usize::try_from(size).is_ok_and(|size| size < Self::bytes(words)) {
            return Err(Error {
                call: "mmap",
                on: "shared memory that is too short".into(),
                errno: Errno::INVAL,
            });
        }
        let prot = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice, checked to lie within the file.
        let start = unsafe {
            rustix::mm::mmap(std::ptr::null_mut(), Self::bytes(words).max(1), prot, MapFlags::SHARED, file, 0)
        };
        Ok(Self { start: start.on("mmap", "shared memory")?.cast(), words })
    }

    /// Writes to every page, and leaves what stands there. Locking reads shared pages in and writes to none of them
    /// (mlock(2)); where the CPU does not mark pages as written by itself (Arm before version 8.1), the first write to
    /// each is a page fault still. The last word of a page must have no other writer meanwhile.
    pub fn touch(&self) {
        const PAGE: usize = 4096 / size_of::<Word>();
        for word in self.chunks(PAGE).filter_map(<[Word]>::last) {
            word.set(word.get());
        }
    }

    fn bytes(words: usize) -> usize {
        words * size_of::<Word>()
    }
}

impl std::ops::Deref for SharedWords {
    type Target = [Word];

    fn deref(&self) -> &[Word] {
        // SAFETY: the mapping holds `words` words for as long as `self` lives; zero bytes are a valid `Word`.
        unsafe { std::slice::from_raw_parts(self.start, self.words) }
    }
}

impl Drop for SharedWords {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and nothing borrows from it any more.
        let _ = unsafe { rustix::mm::munmap(self.start.cast(), Self::bytes(self.words).max(1)) };
    }
}

#[cfg(target_has_atomic = "64")]
mod word {
    use std::sync::atomic::{AtomicU64, Ordering};

    /// A 64-bit number with one writer and any number of readers, in this process or another.
    #[derive(Debug, Default)]
    #[repr(transparent)]
    pub struct Word(AtomicU64);

    impl Word {
        /// Reads it; what was written before it by others may not be visible yet.
        #[inline]
        pub fn get(&self) -> u64 {
            self.0.load(Ordering::Relaxed)
        }

        /// Writes it. One writer only.
        #[inline]
        pub fn set(&self, value: u64) {
            self.0.store(value, Ordering::Relaxed);
        }

        /// Reads it and all that its writer wrote before publishing it.
        #[inline]
        pub fn observe(&self) -> u64 {
            self.0.load(Ordering::Acquire)
        }

        /// Writes it after all that was written before. One writer only.
        #[inline]
        pub fn publish(&self, value: u64) {
            self.0.store(value, Ordering::Release);
        }

        /// As [`Word::observe`], without ever waiting for the writer: none where it is in the middle of writing, which
        /// only CPUs without 64-bit atomics know.
        #[inline]
        pub fn observe_now(&self) -> Option<u64> {
            Some(self.observe())
        }

        /// Raises it as a flag, after all that was written before. It is used for nothing else.
        #[inline]
        pub fn raise(&self) {
            self.publish(1);
        }

        /// Whether it was raised; then all is seen that was written before. Never waits.
        #[inline]
        pub fn is_raised(&self) -> bool {
            self.observe() != 0
        }

        /// Takes a word that is zero for the caller; of several callers, in any process, exactly one gets `true`.
        pub fn claim(&self) -> bool {
            self.0.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        }
    }
}

#[cfg(any(test, not(target_has_atomic = "64")))]
mod halves;

impl Word {
    /// Adds to it and returns the sum; stays at 2^64 - 1 where it would not fit. One writer only: this is a read and a
    /// write, not an atomic addition.
    #[inline]
    pub fn add(&self, amount: u64) -> u64 {
        let sum = self.get().saturating_add(amount);
        self.set(sum);
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_mappings_of_one_file_see_the_same_words() {
        let (ours, file) = SharedWords::create(3).unwrap();
        let theirs = SharedWords::open(file.as_fd(), 3).unwrap();
        ours[2].publish(u64::MAX - 1);
        ours[2].add(1);
        assert_eq!(theirs[2].observe(), u64::MAX);
        assert_eq!(theirs[0].get(), 0);
    }

    #[test]
    fn shared_memory_keeps_its_size() {
        let (_ours, file) = SharedWords::create(3).unwrap();
        if rustix::fs::fcntl_get_seals(&file).is_err() {
            return; // A kernel before 3.17: nothing can be sealed.
        }
        for bytes in [0, 1 << 20] {
            assert_eq!(rustix::fs::ftruncate(&file, bytes), Err(Errno::PERM));
        }
    }

    #[test]
    fn a_sum_that_does_not_fit_stays_at_the_greatest_number() {
        let word = Word::default();
        word.set(u64::MAX - 1);
        assert_eq!((word.add(5), word.add(1)), (u64::MAX, u64::MAX));
    }

    #[test]
    fn a_word_is_claimed_once() {
        let word = Word::default();
        assert_eq!([word.claim(), word.claim()], [true, false]);
    }

    #[test]
    fn touching_changes_no_word() {
        let (words, _file) = SharedWords::create(1500).unwrap();
        words.iter().zip(0..).for_each(|(word, value)| word.set(value));
        words.touch();
        assert!(words.iter().zip(0..).all(|(word, value)| word.get() == value));
    }

    #[test]
    fn a_file_that_is_too_short_is_refused() {
        let (_words, file) = SharedWords::create(3).unwrap();
        assert_eq!(SharedWords::open(file.as_fd(), 1000).unwrap_err().errno, Errno::INVAL);
    }
}
