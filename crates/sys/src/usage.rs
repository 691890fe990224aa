//! What a thread or process has used: getrusage(2), clock_getcpuclockid(3).

use std::io;
use std::time::Duration;

use units::Nanos;

/// Page faults and context switches of the calling thread since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Faults without I/O.
    pub minor_faults: u64,
    /// Faults with I/O.
    pub major_faults: u64,
    /// Switches by sleeping.
    pub voluntary: u64,
    /// Switches by being pre-empted.
    pub involuntary: u64,
}

/// Of the calling thread. `RUSAGE_THREAD`, getrusage(2).
pub fn thread() -> Usage {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel fills the structure; zeros are valid where it does not.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init()
    };
    Usage {
        minor_faults: usage.ru_minflt as u64,
        major_faults: usage.ru_majflt as u64,
        voluntary: usage.ru_nvcsw as u64,
        involuntary: usage.ru_nivcsw as u64,
    }
}

/// For how long the calling thread has been ready to run without a CPU, since it began: the second figure of
/// /proc/thread-self/schedstat (proc(5)).
///
/// # Errors
/// Those of reading it; `InvalidData` where it holds no such figure, `Unsupported` where the kernel does not count.
pub fn waited() -> io::Result<Nanos> {
    waited_of(&std::fs::read_to_string("/proc/thread-self/schedstat")?)
}

fn waited_of(text: &str) -> io::Result<Nanos> {
    let figures: Vec<u64> = text.split_whitespace().map_while(|word| word.parse().ok()).collect();
    match figures[..] {
        // A kernel that keeps no such figures prints zeros; a thread that runs has had a slice.
        [_, _, 0] => Err(io::ErrorKind::Unsupported.into()),
        [_, waited, _] => Ok(Nanos(waited)),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// What this process took so far, its threads and the children that it waited for together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Together {
    /// CPU time, in the kernel and outside of it.
    pub cpu_time: Nanos,
    /// Context switches, voluntary and involuntary.
    pub switches: u64,
}

/// Of this process. `RUSAGE_SELF` and `RUSAGE_CHILDREN`, getrusage(2).
pub fn together() -> Together {
    let mut sum = Together::default();
    for who in [libc::RUSAGE_SELF, libc::RUSAGE_CHILDREN] {
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: the kernel fills the structure; zeros are valid where it does not.
        let usage = unsafe {
            libc::getrusage(who, usage.as_mut_ptr());
            usage.assume_init()
        };
        sum.cpu_time += crate::process::length(usage.ru_utime) + crate::process::length(usage.ru_stime);
        sum.switches += (usage.ru_nvcsw + usage.ru_nivcsw) as u64;
    }
    sum
}

/// The CPU time that all threads of process `pid` had so far; none where there is no such process.
/// clock_getcpuclockid(3).
pub fn cpu_time_of(pid: u32) -> Option<Duration> {
    let mut clock: libc::clockid_t = 0;
    // SAFETY: the pointer is to a variable of the type that is written.
    if unsafe { libc::clock_getcpuclockid(libc::pid_t::try_from(pid).ok()?, &raw mut clock) } != 0 {
        return None;
    }
    let mut time = std::mem::MaybeUninit::<libc::timespec>::zeroed();
    // SAFETY: the kernel fills the structure where it reports success.
    let time = unsafe { (libc::clock_gettime(clock, time.as_mut_ptr()) == 0).then(|| time.assume_init()) }?;
    Some(Duration::new(u64::try_from(time.tv_sec).ok()?, u32::try_from(time.tv_nsec).ok()?))
}

impl std::ops::Sub for Usage {
    type Output = Self;
    fn sub(self, before: Self) -> Self {
        Self {
            minor_faults: self.minor_faults.saturating_sub(before.minor_faults),
            major_faults: self.major_faults.saturating_sub(before.major_faults),
            voluntary: self.voluntary.saturating_sub(before.voluntary),
            involuntary: self.involuntary.saturating_sub(before.involuntary),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_that_of_the_process_asked_for() {
        let before = cpu_time_of(std::process::id()).unwrap();
        let mut sum = 0_u64;
        while cpu_time_of(std::process::id()).unwrap() == before {
            sum = std::hint::black_box(sum + 1);
        }
        assert_eq!(cpu_time_of(u32::MAX), None);
    }

    #[test]
    fn a_kernel_that_does_not_count_waiting_is_not_one_without_waiting() {
        assert_eq!(waited_of("0 0 0\n").unwrap_err().kind(), io::ErrorKind::Unsupported);
        assert_eq!(waited_of("700 0 1\n").unwrap(), Nanos(0));
        assert_eq!(waited_of("700 42 9\n").unwrap(), Nanos(42));
        assert_eq!(waited_of("700\n").unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn touching_new_memory_is_counted_as_faults() {
        let before = thread();
        let mut pages = vec![0_u8; 4 << 20];
        pages.iter_mut().step_by(4096).for_each(|byte| *byte = std::hint::black_box(1));
        assert!((thread() - before).minor_faults >= 2);
        drop(std::hint::black_box(pages));
    }
}
