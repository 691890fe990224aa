//! Sleeping until another thread changes a word: futex(2).

use std::sync::atomic::AtomicU32;

/// Sleeps while `word` is `value`, at most `nanos`. May end sooner, for no reason: the caller looks again. Private to this
/// process. `FUTEX_WAIT`.
pub fn wait(word: &AtomicU32, value: u32, nanos: u64) {
    let time = libc::timespec {
        tv_sec: (nanos / 1_000_000_000) as _,
        tv_nsec: (nanos % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: the word and the time outlive the call; the kernel reads both. Every end of it is right for the caller.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
            value,
            &raw const time,
        );
    }
}

/// Wakes one thread that sleeps on `word`. `FUTEX_WAKE`.
pub fn wake(word: &AtomicU32) {
    // SAFETY: the word is an address to the kernel, which does not touch it.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;
    use std::time::{Duration, Instant};

    #[test]
    fn another_value_does_not_wait_and_a_waiter_is_woken() {
        let word = AtomicU32::new(0);
        wait(&word, 1, 3_600_000_000_000);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(10));
                word.store(1, Ordering::SeqCst);
                wake(&word);
            });
            let start = Instant::now();
            while word.load(Ordering::SeqCst) == 0 && start.elapsed() < Duration::from_secs(20) {
                wait(&word, 0, 3_600_000_000_000);
            }
        });
        assert_eq!(word.load(Ordering::SeqCst), 1);
    }
}
