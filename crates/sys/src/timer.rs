//! Periodic timers that a thread waits on: timerfd_create(2), timer_create(2).

use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::clock::Clock;
use crate::error::check;
use crate::signal::set_of;
use crate::{Errno, Error, Result};

/// The signal of a POSIX timer; blocked, and awaited.
const EXPIRY: libc::c_int = libc::SIGALRM;

/// A timer descriptor.
#[derive(Debug)]
pub struct TimerFd(OwnedFd);

impl TimerFd {
    /// On `clock`, not armed yet.
    pub fn new(clock: Clock) -> Result<Self> {
        Self::create(clock, libc::TFD_CLOEXEC)
    }

    /// The next expiry at `first` on its clock, then each `interval`, both in nanoseconds. Expiries that were not read
    /// are forgotten.
    pub fn rearm(&self, first: u64, interval: u64) -> std::result::Result<(), Errno> {
        self.set(first, interval, libc::TFD_TIMER_ABSTIME)
    }

    /// Never expires, but can be read with ECANCELED when `CLOCK_REALTIME` is set: `TFD_TIMER_CANCEL_ON_SET`.
    pub fn on_clock_set() -> Result<Self> {
        let timer = Self::create(Clock::Realtime, libc::TFD_CLOEXEC | libc::TFD_NONBLOCK)?;
        timer.watch().map_err(|errno| Error::new("timerfd_settime", errno))?;
        Ok(timer)
    }

    /// Whether the clock was set since the last call; watches on.
    pub fn was_clock_set(&self) -> bool {
        let cancelled = self.wait() == Err(Errno::CANCELED);
        if cancelled {
            let _ = self.watch();
        }
        cancelled
    }

    fn watch(&self) -> std::result::Result<(), Errno> {
        const FAR: u64 = i32::MAX as u64 * 1_000_000_000;
        const TFD_TIMER_CANCEL_ON_SET: libc::c_int = 2;
        self.set(FAR, 0, libc::TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET)
    }

    fn create(clock: Clock, flags: libc::c_int) -> Result<Self> {
        // SAFETY: integers only; the descriptor is ours.
        let fd = unsafe { libc::timerfd_create(clock.id(), flags) };
        check(fd, "timerfd_create", format!("{clock:?}"))?;
        // SAFETY: as above.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    fn set(&self, first: u64, interval: u64, flags: libc::c_int) -> std::result::Result<(), Errno> {
        let times = itimerspec(first, interval);
        let fd = std::os::fd::AsRawFd::as_raw_fd(&self.0);
        // SAFETY: a filled itimerspec that is only read.
        match unsafe { libc::timerfd_settime(fd, flags, &times, std::ptr::null_mut()) } {
            0 => Ok(()),
            _ => Err(Error::last("timerfd_settime", "").errno),
        }
    }

    /// Sleeps until an expiry that was not yet read; returns how many there were.
    #[inline]
    pub fn wait(&self) -> std::result::Result<u64, Errno> {
        let mut count = [0_u8; 8];
        rustix::io::read(&self.0, &mut count)?;
        Ok(u64::from_ne_bytes(count))
    }
}

impl AsFd for TimerFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A POSIX timer that sends a blocked signal to the thread that made it.
#[derive(Debug)]
pub struct PosixTimer {
    id: libc::timer_t,
    set: libc::sigset_t,
}

impl PosixTimer {
    /// On `clock`, not armed yet. For the calling thread only.
    pub fn new(clock: Clock) -> Result<Self> {
        let set = set_of([EXPIRY].into_iter());
        let mut id: libc::timer_t = std::ptr::null_mut();
        // SAFETY: a zeroed sigevent is valid and filled below; the id is written by the call.
        let result = unsafe {
            libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
            let mut event: libc::sigevent = std::mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = EXPIRY;
            event.sigev_notify_thread_id = crate::schedule::thread_id();
            libc::timer_create(clock.id(), &mut event, &mut id)
        };
        check(result, "timer_create", format!("{clock:?}"))?;
        Ok(Self { id, set })
    }

    /// The next expiry at `first` on its clock, then each `interval`, both in nanoseconds. A signal that is pending
    /// stays so.
    pub fn rearm(&self, first: u64, interval: u64) -> std::result::Result<(), Errno> {
        let times = itimerspec(first, interval);
        // SAFETY: the timer is ours; a filled itimerspec that is only read.
        match unsafe { libc::timer_settime(self.id, libc::TIMER_ABSTIME, &times, std::ptr::null_mut()) } {
            0 => Ok(()),
            _ => Err(Error::last("timer_settime", "").errno),
        }
    }

    /// Sleeps until the next expiry. sigtimedwait(2) without a time.
    #[inline]
    pub fn wait(&self) -> std::result::Result<(), Errno> {
        // SAFETY: a filled set; the information is not asked for.
        match unsafe { libc::sigwaitinfo(&self.set, std::ptr::null_mut()) } {
            -1 => Err(Error::last("sigwaitinfo", "").errno),
            _ => Ok(()),
        }
    }
}

impl Drop for PosixTimer {
    fn drop(&mut self) {
        // SAFETY: the timer is ours and used no more.
        unsafe { libc::timer_delete(self.id) };
    }
}

fn itimerspec(first: u64, interval: u64) -> libc::itimerspec {
    let time = |nanos: u64| libc::timespec {
        tv_sec: (nanos / 1_000_000_000) as _,
        tv_nsec: (nanos % 1_000_000_000) as _,
    };
    libc::itimerspec { it_interval: time(interval), it_value: time(first.max(1)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_descriptor_counts_its_expiries() {
        let clock = Clock::Monotonic;
        let timer = TimerFd::new(clock).unwrap();
        timer.rearm(clock.now(), 1_000_000).unwrap();
        clock.sleep_until(clock.now() + 10_000_000).unwrap();
        assert!(timer.wait().unwrap() >= 10);
    }

    #[test]
    fn a_posix_timer_wakes_its_thread_again_and_again() {
        let clock = Clock::Monotonic;
        let start = clock.now();
        let timer = PosixTimer::new(clock).unwrap();
        timer.rearm(start + 1_000_000, 1_000_000).unwrap();
        (0..3).for_each(|_| timer.wait().unwrap());
        assert!(clock.now() >= start + 3_000_000);
    }

    #[test]
    fn a_clock_that_is_not_set_is_not_reported() {
        assert!(!TimerFd::on_clock_set().unwrap().was_clock_set());
    }
}
