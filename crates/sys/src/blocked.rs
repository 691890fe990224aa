//! Which system call a thread is blocked in, of the numbers in /proc/PID/task/TID/syscall (proc(5)).

/// The number of a system call.
pub type Number = libc::c_long;

/// A call in which a thread waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocked {
    /// nanosleep, `clock_nanosleep`.
    Sleep,
    /// A futex that is waited for, perhaps with a time limit.
    Futex {
        /// Whether it has a time limit.
        timed: bool,
    },
    /// A futex whose priority is inherited.
    InheritingFutex,
    /// poll, ppoll: descriptors in an array of the process's memory.
    Poll {
        /// Where the array begins.
        array: u64,
        /// How many it has.
        count: u64,
        /// Whether it has a time limit.
        timed: bool,
    },
    /// select, pselect.
    Select {
        /// Whether it has a time limit.
        timed: bool,
    },
    /// `epoll_wait` and its kin.
    Epoll {
        /// The set.
        fd: i32,
        /// Whether it has a time limit.
        timed: bool,
    },
    /// read, recv and their kin on a descriptor.
    Read(i32),
    /// sigtimedwait, sigsuspend, pause.
    Signal,
    /// `mq_timedreceive`.
    Queue,
    /// `io_uring_enter`.
    Ring,
    /// Any other, by its number.
    Other(Number),
}

/// Numbers of this architecture, as libc has them: those without a time of 64 bits, then those with one.
#[cfg(target_pointer_width = "64")]
mod numbers {
    use super::Number;
    use libc::{
        SYS_clock_nanosleep, SYS_futex, SYS_mq_timedreceive, SYS_ppoll, SYS_pselect6, SYS_rt_sigtimedwait,
    };

    pub const SLEEPS: [Number; 1] = [SYS_clock_nanosleep];
    pub const FUTEXES: [Number; 1] = [SYS_futex];
    pub const QUEUES: [Number; 1] = [SYS_mq_timedreceive];
    pub const POLLS: [Number; 1] = [SYS_ppoll];
    pub const SELECTS: [Number; 1] = [SYS_pselect6];
    pub const SIGNALS: [Number; 1] = [SYS_rt_sigtimedwait];
}

/// The same for 32 bits. The numbers of calls with a time of 64 bits are those of all architectures.
#[cfg(target_pointer_width = "32")]
mod numbers {
    use super::Number;
    use libc::{
        SYS_clock_nanosleep, SYS_futex, SYS_mq_timedreceive, SYS_ppoll, SYS_pselect6, SYS_rt_sigtimedwait,
    };

    pub const SLEEPS: [Number; 2] = [SYS_clock_nanosleep, 407];
    pub const FUTEXES: [Number; 2] = [SYS_futex, 422];
    pub const QUEUES: [Number; 2] = [SYS_mq_timedreceive, 419];
    pub const POLLS: [Number; 2] = [SYS_ppoll, 414];
    pub const SELECTS: [Number; 2] = [SYS_pselect6, 413];
    pub const SIGNALS: [Number; 2] = [SYS_rt_sigtimedwait, 421];
}

const EPOLL_PWAIT2: Number = 441;
const IO_URING_ENTER: Number = 426;

impl Blocked {
    /// What a thread waits in, by the number of its call and the six arguments.
    pub fn of(number: Number, arguments: [u64; 6]) -> Self {
        use numbers::{FUTEXES, POLLS, QUEUES, SELECTS, SIGNALS, SLEEPS};
        let [first, second, third, fourth, fifth, _] = arguments;
        let fd = first as i32;
        match number {
            one if SLEEPS.contains(&one) || one == libc::SYS_nanosleep => Self::Sleep,
            one if FUTEXES.contains(&one) => futex(second, fourth != 0),
            one if POLLS.contains(&one) => Self::Poll { array: first, count: second, timed: third != 0 },
            one if SELECTS.contains(&one) => Self::Select { timed: fifth != 0 },
            EPOLL_PWAIT2 => Self::Epoll { fd, timed: fourth != 0 },
            libc::SYS_epoll_pwait => Self::Epoll { fd, timed: fourth as i32 > 0 },
            libc::SYS_read
            | libc::SYS_readv
            | libc::SYS_recvmsg
            | libc::SYS_recvfrom
            | libc::SYS_recvmmsg => Self::Read(fd),
            one if SIGNALS.contains(&one) || one == libc::SYS_rt_sigsuspend => Self::Signal,
            one if QUEUES.contains(&one) => Self::Queue,
            IO_URING_ENTER => Self::Ring,
            _ => older(number, arguments),
        }
    }
}

/// FUTEX_WAIT, FUTEX_WAIT_BITSET; FUTEX_LOCK_PI, FUTEX_WAIT_REQUEUE_PI, FUTEX_LOCK_PI2 (futex(2)).
fn futex(operation: u64, timed: bool) -> Blocked {
    const COMMAND: u64 = 0x7f;
    match operation & COMMAND {
        6 | 11 | 13 => Blocked::InheritingFutex,
        _ => Blocked::Futex { timed },
    }
}

/// Calls that only older architectures have.
#[cfg(any(
    target_arch = "x86_64",
    target_arch = "x86",
    target_arch = "arm",
    target_arch = "powerpc64",
    target_arch = "powerpc"
))]
fn older(number: Number, [first, second, third, fourth, ..]: [u64; 6]) -> Blocked {
    match number {
        libc::SYS_poll => Blocked::Poll { array: first, count: second, timed: third as i32 > 0 },
        libc::SYS_epoll_wait => Blocked::Epoll { fd: first as i32, timed: fourth as i32 > 0 },
        libc::SYS_pause => Blocked::Signal,
        _ => Blocked::Other(number),
    }
}

#[cfg(not(any(
    target_arch = "x86_64",
    target_arch = "x86",
    target_arch = "arm",
    target_arch = "powerpc64",
    target_arch = "powerpc"
)))]
fn older(number: Number, _: [u64; 6]) -> Blocked {
    Blocked::Other(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_known_by_their_numbers_and_arguments() {
        let of = |number: Number, arguments| Blocked::of(number, arguments);
        assert_eq!(of(libc::SYS_clock_nanosleep, [1; 6]), Blocked::Sleep);
        assert_eq!(of(libc::SYS_futex, [1, 128 | 9, 0, 7, 0, 0]), Blocked::Futex { timed: true });
        assert_eq!(of(libc::SYS_futex, [1, 128 | 6, 0, 7, 0, 0]), Blocked::InheritingFutex);
        assert_eq!(
            of(libc::SYS_ppoll, [64, 2, 0, 0, 0, 0]),
            Blocked::Poll { array: 64, count: 2, timed: false }
        );
        assert_eq!(
            of(libc::SYS_epoll_pwait, [5, 0, 1, u64::from(u32::MAX), 0, 0]),
            Blocked::Epoll { fd: 5, timed: false }
        );
        assert_eq!(of(libc::SYS_read, [3, 0, 0, 0, 0, 0]), Blocked::Read(3));
        assert_eq!(of(libc::SYS_openat, [0; 6]), Blocked::Other(libc::SYS_openat));
    }
}
