//! Mutexes as C libraries make them, plain or with priority inheritance: one word, and futex(2) where somebody waits.
//!
//! The C library's own cannot be had with inheritance through the bindings; the system calls are the same.

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use crate::error::check;
use crate::{Errno, Result};

/// A plain mutex: nobody has it, somebody has it, somebody waits for it as well.
const FREE: u32 = 0;
const HELD: u32 = 1;
const WAITED_FOR: u32 = 2;

/// A wait for a plain mutex is begun anew after an hour, in nanoseconds: seconds may be 32 bits wide.
const HOUR: u64 = 3_600_000_000_000;

/// A mutex. With inheritance its word is the holder's thread id, and the kernel runs the holder at the priority of the first
/// of those who wait.
#[derive(Debug)]
pub struct Mutex {
    word: AtomicU32,
    inherits: bool,
}

/// A mutex that is held. To be dropped by the thread that locked it.
#[derive(Debug)]
pub struct Held<'a> {
    mutex: &'a Mutex,
    thread: u32,
    _of_this_thread: std::marker::PhantomData<*const ()>,
}

impl Mutex {
    /// An unlocked one.
    pub fn new(inherits: bool) -> Self {
        Self { word: AtomicU32::new(FREE), inherits }
    }

    /// Waits until it is this thread's, whose id is `thread` ([`crate::schedule::thread_id`]). `FUTEX_LOCK_PI` or
    /// `FUTEX_WAIT`, where it is not free.
    ///
    /// # Errors
    /// `ENOSYS` where the kernel has no futexes with inheritance; `EDEADLK` where this thread holds it.
    pub fn lock(&self, thread: i32) -> Result<Held<'_>> {
        let thread = thread as u32;
        let mine = if self.inherits { thread } else { HELD };
        if self.word.compare_exchange(FREE, mine, SeqCst, SeqCst).is_err() {
            if self.inherits {
                self.wait_with_inheritance()?;
            } else {
                while self.word.swap(WAITED_FOR, SeqCst) != FREE {
                    crate::futex::wait(&self.word, WAITED_FOR, HOUR);
                }
            }
        }
        Ok(Held { mutex: self, thread, _of_this_thread: std::marker::PhantomData })
    }

    fn wait_with_inheritance(&self) -> Result<()> {
        loop {
            match self.call(libc::FUTEX_LOCK_PI) {
                Err(error) if matches!(error.errno, Errno::INTR | Errno::AGAIN) => {}
                answer => return answer,
            }
        }
    }

    fn call(&self, operation: i32) -> Result<()> {
        let no_limit = std::ptr::null::<libc::timespec>();
        let operation = operation | libc::FUTEX_PRIVATE_FLAG;
        // SAFETY: the word outlives the call; the kernel changes it as an atomic does.
        check(
            unsafe { libc::syscall(libc::SYS_futex, self.word.as_ptr(), operation, 0, no_limit) },
            "futex",
            "",
        )
        .map(drop)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let word = &self.mutex.word;
        if self.mutex.inherits {
            if word.compare_exchange(self.thread, FREE, SeqCst, SeqCst).is_err() {
                let _ = self.mutex.call(libc::FUTEX_UNLOCK_PI);
            }
        } else if word.swap(FREE, SeqCst) == WAITED_FOR {
            crate::futex::wake(word);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::thread_id;

    #[test]
    fn a_mutex_lets_one_thread_in_at_a_time() {
        for inherits in [false, true] {
            let mutex = Mutex::new(inherits);
            let held = mutex.lock(thread_id()).unwrap();
            std::thread::scope(|scope| {
                let waiter = scope.spawn(|| drop(mutex.lock(thread_id()).unwrap()));
                std::thread::sleep(std::time::Duration::from_millis(5));
                assert!(!waiter.is_finished());
                drop(held);
            });
            drop(mutex.lock(thread_id()).unwrap());
        }
    }
}
