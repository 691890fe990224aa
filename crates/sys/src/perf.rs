//! Counters of the CPU's performance monitoring unit and of the kernel: perf_event_open(2).

use std::os::fd::{FromRawFd, OwnedFd};

use crate::error::check;
use crate::{Errno, Error, Result};

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Instructions that were retired.
    Instructions,
    /// Cycles in which the CPU was not halted.
    Cycles,
    /// Accesses that the last cache did not hold.
    CacheMisses,
    /// Reads whose page the data TLB did not hold.
    TlbMisses,
    /// Context switches, counted by the kernel: there without a PMU too.
    ContextSwitches,
}

/// What is counted on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A thread, wherever it runs, by its kernel thread id; 0 for the calling one.
    Thread(i32),
    /// A CPU, whoever runs there.
    Cpu(u32),
}

/// A counter that counts until it is dropped. One of a thread keeps its count when the thread has ended.
#[derive(Debug)]
pub struct Counter(OwnedFd);

/// The first version of the kernel's `struct perf_event_attr`, which all kernels know.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint: u32,
    config1: u64,
}

const PERF_FLAG_FD_CLOEXEC: libc::c_ulong = 8;
/// `PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING`.
const TIMES: u64 = 1 | 2;

impl Event {
    /// `type` and `config`.
    fn number(self) -> (u32, u64) {
        const HARDWARE: u32 = 0;
        const SOFTWARE: u32 = 1;
        const CACHE: u32 = 3;
        match self {
            Self::Cycles => (HARDWARE, 0),
            Self::Instructions => (HARDWARE, 1),
            Self::CacheMisses => (HARDWARE, 3),
            // The data TLB (3), reads (0), misses (1).
            Self::TlbMisses => (CACHE, 3 | 1 << 16),
            Self::ContextSwitches => (SOFTWARE, 3),
        }
    }
}

impl Counter {
    /// Begins to count `event` on `target`. Where the target runs on another CPU, that one is interrupted once.
    ///
    /// # Errors
    /// Those of perf_event_open(2): `ENOENT` and `EOPNOTSUPP` where the CPU has no such counter, `EACCES` and `EPERM` where
    /// `kernel.perf_event_paranoid` forbids it.
    pub fn open(event: Event, target: Target) -> Result<Self> {
        let (kind, config) = event.number();
        let size = size_of::<Attributes>() as u32;
        let attributes = Attributes { kind, size, config, read_format: TIMES, ..Attributes::default() };
        let (thread, cpu, on) = match target {
            Target::Thread(id) => (id, -1, format!("thread {id}")),
            Target::Cpu(cpu) => {
                (-1, libc::c_int::try_from(cpu).unwrap_or(libc::c_int::MAX), format!("CPU {cpu}"))
            }
        };
        // SAFETY: the structure is as long as it says and lives during the call; the rest are integers.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                &raw const attributes,
                thread,
                cpu,
                -1_i32,
                PERF_FLAG_FD_CLOEXEC,
            )
        };
        check(fd, "perf_event_open", on)?;
        // SAFETY: the kernel has just made this descriptor for us.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd as i32) }))
    }

    /// The count so far; where the PMU had fewer counters than were asked of it, the kernel counted for a part of the time,
    /// and this is what all of the time comes to at the same rate. None where it counted at no time.
    pub fn read(&self) -> Result<Option<u64>> {
        let mut bytes = [0_u8; 24];
        let length = rustix::io::read(&self.0, &mut bytes).map_err(|errno| Error::new("read", errno))?;
        if length != bytes.len() {
            return Err(Error { call: "read", on: "a counter".into(), errno: Errno::IO });
        }
        let word = |at: usize| {
            let bytes = bytes.get(8 * at..8 * at + 8).and_then(|bytes| bytes.try_into().ok());
            u64::from_ne_bytes(bytes.unwrap_or_default())
        };
        let (count, enabled, running) = (word(0), word(1), word(2));
        Ok(scaled(count, enabled, running))
    }
}

fn scaled(count: u64, enabled: u64, running: u64) -> Option<u64> {
    let whole = (u128::from(count) * u128::from(enabled)).checked_div(u128::from(running))?;
    Some(u64::try_from(whole).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_of_part_of_the_time_stands_for_all_of_it() {
        assert_eq!(scaled(700, 10, 10), Some(700));
        assert_eq!(scaled(700, 10, 5), Some(1400));
        assert_eq!(scaled(0, 10, 0), None);
        assert_eq!(scaled(u64::MAX, 10, 1), Some(u64::MAX));
    }

    #[test]
    fn a_known_number_of_context_switches_is_counted() {
        let counter = match Counter::open(Event::ContextSwitches, Target::Thread(0)) {
            Ok(counter) => counter,
            Err(error) => return eprintln!("skipped: {error}"),
        };
        // One that ran before, since a thread that never ran has no time in which it counted.
        std::hint::black_box(counter.read().unwrap());
        let before = counter.read().unwrap().unwrap();
        for _ in 0..50 {
            std::thread::sleep(std::time::Duration::from_micros(200));
        }
        let counted = counter.read().unwrap().unwrap() - before;
        assert!(counted >= 50, "{counted} for 50 sleeps");
    }

    #[test]
    fn a_counter_of_a_thread_that_is_not_there_is_refused() {
        assert_eq!(
            Counter::open(Event::ContextSwitches, Target::Thread(i32::MAX)).unwrap_err().errno,
            Errno::SRCH
        );
    }
}
