//! The high precision event timer by its character device (`/dev/hpet`, Documentation/timers/hpet.rst): interrupts of a device that says
//! itself when each was due.

use std::os::fd::{AsRawFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::ioctl::opcode;
use rustix::mm::{MapFlags, ProtFlags};

use crate::error::{Named, check};
use crate::{Errno, Result};

const PATH: &str = "/dev/hpet";
const PAGE: usize = 4096;

/// `struct hpet_info`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Information {
    frequency: libc::c_ulong,
    flags: libc::c_ulong,
    hpet: u16,
    timer: u16,
}

/// Its registers, in bytes from the first: IA-PC HPET Specification 1.0a, 2.3.
mod register {
    /// Femtoseconds of a tick.
    pub const PERIOD: usize = 0x004;
    /// The lower half of the main counter.
    pub const COUNTER: usize = 0x0f0;
    /// The lower half of the comparator of timer 0, and how far apart those of the others are.
    pub const COMPARATOR: usize = 0x108;
    pub const APART: usize = 0x20;
}

/// An interrupt that does not come for so long does not come: a hundred periods and more.
const PATIENCE: Timespec = Timespec { tv_sec: 2, tv_nsec: 0 };
/// Half of what the counter's lower word can count: what is further ahead lies behind.
const HALF: u32 = 1 << 31;
/// Of a nanosecond.
const FEMTOSECONDS: u128 = 1_000_000;

/// A timer of it, whose interrupt comes periodically.
#[derive(Debug)]
pub struct Hpet {
    file: OwnedFd,
    registers: *const u32,
    comparator: usize,
    /// Femtoseconds of a tick.
    tick: u32,
}

// SAFETY: nothing of it belongs to a thread.
unsafe impl Send for Hpet {}

/// Whether there is one.
pub fn is_there() -> bool {
    std::path::Path::new(PATH).exists()
}

impl Hpet {
    /// Takes a timer of it and lets its interrupt come so often in a second.
    ///
    /// # Errors
    /// `ENOENT` where there is none, `EBUSY` where all its timers are taken, `EACCES` above `dev.hpet.max-user-freq` without
    /// CAP_SYS_RESOURCE, `ENXIO` for one without periodic interrupts, `EINVAL` or `ENOSYS` where the kernel does not let its registers be read
    /// (`hpet_mmap=0`).
    pub fn open(frequency: u32) -> Result<Self> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = rustix::fs::open(PATH, flags, Mode::empty()).on("open", PATH)?;
        // SAFETY: a new mapping at an address of the kernel's choice; of a device's registers, which are only read, volatile.
        let page = unsafe {
            rustix::mm::mmap(std::ptr::null_mut(), PAGE, ProtFlags::READ, MapFlags::SHARED, &file, 0)
        };
        let registers: *const u32 = page.on("mmap", PATH)?.cast_const().cast();
        let mut timer = Self { file, registers, comparator: 0, tick: 0 };
        let mut information = Information::default();
        timer.control("HPET_INFO", opcode::read::<Information>(b'h', 3), &raw mut information as usize)?;
        timer.control("HPET_IRQFREQ", opcode::write::<libc::c_ulong>(b'h', 6), frequency as usize)?;
        timer.control("HPET_EPI", opcode::none(b'h', 4), 0)?;
        timer.control("HPET_IE_ON", opcode::none(b'h', 1), 0)?;
        timer.comparator = register::COMPARATOR + usize::from(information.timer) * register::APART;
        timer.tick = timer.register(register::PERIOD).max(1);
        Ok(timer)
    }

    fn control(&self, name: &'static str, number: rustix::ioctl::Opcode, argument: usize) -> Result<()> {
        // SAFETY: an ioctl of this device with a number, or with a structure of the length that its own number says.
        let result = unsafe { libc::ioctl(self.file.as_raw_fd(), number as _, argument) };
        check(result, name, PATH).map(drop)
    }

    fn register(&self, place: usize) -> u32 {
        // SAFETY: within the page that is mapped: the largest is that of timer 31.
        unsafe { self.registers.add((place / 4).min(PAGE / 4 - 1)).read_volatile() }
    }

    /// Waits by poll(2) for the next interrupt that is not due yet: how late it and a read return, in nanoseconds. What has come already is
    /// taken away first; what is due meanwhile is no answer.
    ///
    /// # Errors
    /// `ETIMEDOUT` where none came for [`PATIENCE`]; what poll(2) or read(2) answered.
    pub fn wait(&self) -> std::result::Result<u64, Errno> {
        if self.has_come(Timespec::default())? {
            self.read()?;
        }
        let due = self.register(self.comparator);
        while self.has_come(PATIENCE)? {
            self.read()?;
            if let Some(ticks) = passed(due, self.register(register::COUNTER)) {
                let late = u128::from(ticks) * u128::from(self.tick) / FEMTOSECONDS;
                return Ok(u64::try_from(late).unwrap_or(u64::MAX));
            }
        }
        Err(Errno::TIMEDOUT)
    }

    fn has_come(&self, limit: Timespec) -> std::result::Result<bool, Errno> {
        let mut wanted = [PollFd::new(&self.file, PollFlags::IN)];
        poll(&mut wanted, Some(&limit)).map(|ready| ready > 0)
    }

    /// The number of interrupts since the last one. Of those that came while none could be handled there is one: what was due is known
    /// by the comparator, not by this number.
    fn read(&self) -> std::result::Result<(), Errno> {
        rustix::io::read(&self.file, &mut [0; size_of::<libc::c_ulong>()]).map(drop)
    }
}

impl Drop for Hpet {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and nothing borrows from it.
        let _ = unsafe { rustix::mm::munmap(self.registers.cast_mut().cast(), PAGE) };
    }
}

/// Ticks since `due`; none where that is still to come.
fn passed(due: u32, now: u32) -> Option<u32> {
    Some(now.wrapping_sub(due)).filter(|passed| *passed < HALF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_due_later_has_not_passed_and_the_counter_may_wrap() {
        assert_eq!(passed(1_000, 1_050), Some(50));
        assert_eq!(passed(1_000, 1_000), Some(0));
        assert_eq!(passed(1_000, 999), None);
        assert_eq!(passed(u32::MAX - 9, 40), Some(50));
        assert_eq!(passed(40, u32::MAX - 9), None);
    }

    #[test]
    fn a_machine_without_it_says_so() {
        if let Err(error) = Hpet::open(100) {
            assert!(error.to_string().contains(PATH) || error.to_string().contains("HPET_"), "{error}");
        }
    }
}
