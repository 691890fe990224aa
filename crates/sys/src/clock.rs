//! Reading clocks and sleeping to a point on them: clock_gettime(2), clock_nanosleep(2).

use rustix::thread::{ClockId as SleepClock, clock_nanosleep_absolute};
use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::Errno;

/// A clock that threads can sleep on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// `CLOCK_MONOTONIC`: never set, stops in suspend.
    Monotonic,
    /// `CLOCK_REALTIME`: can be set.
    Realtime,
    /// `CLOCK_TAI`: moves with the real-time clock (Linux 3.10).
    Tai,
    /// `CLOCK_BOOTTIME`: never set, goes on in suspend (Linux 2.6.39).
    Boottime,
}

impl Clock {
    /// The kernel's number for it.
    pub const fn id(self) -> libc::clockid_t {
        match self {
            Self::Monotonic => libc::CLOCK_MONOTONIC,
            Self::Realtime => libc::CLOCK_REALTIME,
            Self::Tai => libc::CLOCK_TAI,
            Self::Boottime => libc::CLOCK_BOOTTIME,
        }
    }

    /// Nanoseconds since the clock's beginning. Through the vDSO where the clock source has a path there.
    #[inline]
    pub fn now(self) -> u64 {
        match self {
            Self::Monotonic => nanos(clock_gettime(ClockId::Monotonic)),
            Self::Realtime => nanos(clock_gettime(ClockId::Realtime)),
            Self::Tai => tai_now(),
            Self::Boottime => nanos(clock_gettime(ClockId::Boottime)),
        }
    }

    /// Sleeps until the clock reads `until` nanoseconds. `EINTR` where a signal handler ran.
    #[inline]
    pub fn sleep_until(self, until: u64) -> std::result::Result<(), Errno> {
        match self {
            Self::Monotonic => clock_nanosleep_absolute(SleepClock::Monotonic, &timespec(until)),
            Self::Realtime => clock_nanosleep_absolute(SleepClock::Realtime, &timespec(until)),
            Self::Tai => tai_sleep_until(until),
            Self::Boottime => clock_nanosleep_absolute(SleepClock::Boottime, &timespec(until)),
        }
    }

    /// Whether reading it is a system call. A child that may make no call but exit reads it: a child that is killed
    /// made one. Where seccomp is missing, the reading is
    /// timed against the bare system call.
    pub fn is_system_call(self) -> bool {
        self.now();
        survives_without_system_calls(|| {
            self.now();
        })
        .map_or_else(|| self.is_as_slow_as_a_system_call(), |survived| !survived)
    }

    fn is_as_slow_as_a_system_call(self) -> bool {
        const READINGS: u32 = 2_000;
        let time = |read: &dyn Fn()| {
            let start = std::time::Instant::now();
            (0..READINGS).for_each(|_| read());
            start.elapsed()
        };
        let mut bare = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let bare: *mut libc::timespec = &mut bare;
        let best = |read: &dyn Fn()| (0..5).map(|_| time(read)).min().unwrap_or_default();
        let ours = best(&|| {
            self.now();
        });
        // SAFETY: `bare` points to a timespec that outlives the calls.
        let call = best(&|| unsafe {
            libc::syscall(libc::SYS_clock_gettime, self.id(), bare);
        });
        ours * 10 > call * 8
    }
}

/// `CLOCK_TAI` has no name in rustix, so it goes through libc, whose seconds may be 32 bits wide.
fn tai_now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` outlives the call.
    unsafe { libc::clock_gettime(libc::CLOCK_TAI, &mut time) };
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

fn tai_sleep_until(until: u64) -> std::result::Result<(), Errno> {
    let until =
        libc::timespec { tv_sec: (until / 1_000_000_000) as _, tv_nsec: (until % 1_000_000_000) as _ };
    // SAFETY: a filled timespec; the rest of the time is not asked for.
    match unsafe { libc::clock_nanosleep(libc::CLOCK_TAI, libc::TIMER_ABSTIME, &until, std::ptr::null_mut()) }
    {
        0 => Ok(()),
        errno => Err(Errno::from_raw_os_error(errno)),
    }
}

/// Whether `action` ends in a child that is killed by any system call but exit. None where the kernel has no seccomp
/// filters, or no child could be made. seccomp(2): the strict mode would forbid reading the time-stamp counter too.
pub(crate) fn survives_without_system_calls(action: impl Fn()) -> Option<bool> {
    const NO_FILTER: libc::c_int = 77;
    // SAFETY: the child calls nothing but prctl, `action` and exit, and none of them takes a lock or allocates.
    let child = unsafe {
        let child = libc::fork();
        if child == 0 {
            if !allow_only_exit() {
                libc::syscall(libc::SYS_exit, NO_FILTER);
            }
            action();
            libc::syscall(libc::SYS_exit, 0);
        }
        child
    };
    let mut status = 0;
    // SAFETY: `status` outlives the call.
    while unsafe { libc::waitpid(child, &mut status, 0) } == -1 {
        if std::io::Error::last_os_error().kind() != std::io::ErrorKind::Interrupted {
            return None;
        }
    }
    let exited = libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status));
    match exited {
        Some(0) => Some(true),
        Some(_) => None,
        None => Some(false),
    }
}

/// From now on any system call of this process but exit kills it. False where the kernel has no such filters.
fn allow_only_exit() -> bool {
    const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const JUMP_IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let step = |code, jt, k| libc::sock_filter { code, jt, jf: 0, k };
    // `seccomp_data` begins with the number of the call.
    let mut steps = [
        step(LOAD, 0, 0),
        step(JUMP_IF_EQUAL, 1, libc::SYS_exit as u32),
        step(RETURN, 0, libc::SECCOMP_RET_KILL_PROCESS),
        step(RETURN, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    // SAFETY: the program outlives the call, and is as long as it says.
    unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program) == 0
    }
}

/// CPU time that the calling thread used, in nanoseconds.
pub fn thread_cpu_time() -> u64 {
    nanos(clock_gettime(ClockId::ThreadCPUTime))
}

/// CPU time that this process used, in nanoseconds.
pub fn process_cpu_time() -> u64 {
    nanos(clock_gettime(ClockId::ProcessCPUTime))
}

/// Seconds since 1970-01-01 UTC.
pub fn unix_seconds() -> u64 {
    Clock::Realtime.now() / 1_000_000_000
}

#[inline]
pub(crate) fn timespec(nanos: u64) -> Timespec {
    Timespec { tv_sec: (nanos / 1_000_000_000) as i64, tv_nsec: (nanos % 1_000_000_000) as _ }
}

#[inline]
fn nanos(time: Timespec) -> u64 {
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_never_ends_before_its_time() {
        for clock in [Clock::Monotonic, Clock::Realtime, Clock::Tai, Clock::Boottime] {
            let until = clock.now() + 2_000_000;
            clock.sleep_until(until).unwrap();
            assert!(clock.now() >= until, "{clock:?}");
        }
    }

    #[test]
    fn a_bare_system_call_is_distinguished_from_none() {
        let quiet = survives_without_system_calls(|| {
            std::hint::black_box(1 + 1);
        });
        // SAFETY: getppid takes nothing and cannot fail.
        let calling = survives_without_system_calls(|| unsafe {
            libc::syscall(libc::SYS_getppid);
        });
        match (quiet, calling) {
            (Some(quiet), Some(calling)) => assert!(quiet && !calling),
            _ => println!("skipped: no seccomp filters here"),
        }
    }
}
