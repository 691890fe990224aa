//! Threads of EVL, a real-time core that Dovetail puts beside Linux and that preempts it wherever it stands. What it runs is called out of
//! band; a thread that makes an ordinary system call, or faults, is back in Linux's hands, in band, until it calls the core again.
//!
//! The interface is the one that libevl 0.47 uses: `/dev/evl` and its ioctls (include/uapi/evl of a kernel with EVL), and calls out of band
//! as prctl(2) with a bit of their own (include/uapi/asm-generic/dovetail.h).

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use rustix::fs::{Mode, OFlags};
use rustix::ioctl::{Opcode, opcode};
use units::Policy;

use crate::error::Named;
use crate::ioctl::call;
use crate::{Errno, Error, Result, schedule};

#[cfg(all(feature = "injection", target_arch = "x86_64"))]
pub mod double;

/// The version of the interface that is spoken here.
pub const ABI: u32 = 32;

const CONTROL: &str = "/dev/evl/control";
const CLOCK: &str = "/dev/evl/clock/monotonic";
const THREADS: &str = "/dev/evl/thread/clone";

/// `sys_evl_ioctl` and `__OOB_SYSCALL_BIT`.
const OUT_OF_BAND_IOCTL: libc::c_int = 2 | 0x1000_0000;

/// `struct evl_core_info`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Core {
    abi_base: u32,
    abi_current: u32,
    fpu_features: u32,
    shared_memory: u64,
}

/// `struct evl_clone_req`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Request {
    name: u64,
    attributes: u64,
    flags: u32,
    minor: u32,
    handle: u32,
    state_offset: u32,
    descriptor: u32,
}

/// `struct evl_sched_attrs`, whose union is that of policies that are not used here.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Attributes {
    policy: i32,
    priority: i32,
    others: [i64; 2],
}

/// `struct evl_thread_state`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct State {
    attributes: Attributes,
    cpu: u32,
    state: u32,
    in_band_switches: u32,
    context_switches: u32,
    system_calls: u32,
    remote_wakeups: u32,
    cpu_time: u64,
}

/// `struct __evl_timespec`: 64 bits each on every architecture.
#[repr(C)]
#[derive(Clone, Copy)]
struct Time {
    seconds: i64,
    nanoseconds: i64,
}

/// What the core counts of a thread; both wrap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// How often it fell back in band.
    pub in_band_switches: u32,
    /// How often it was switched to, out of band.
    pub context_switches: u32,
}

/// The calling thread, attached to the core until this is dropped.
#[derive(Debug)]
pub struct Thread {
    thread: OwnedFd,
    clock: OwnedFd,
}

impl Thread {
    /// Attaches the calling thread, with the policy and priority that it has. It needs locked memory, and a CPU that is one of the core's
    /// (`/sys/devices/virtual/evl/control/cpus`).
    ///
    /// # Errors
    /// `ENOENT` where the kernel has no EVL, `ENOEXEC` where its interface is of another version, `ENXIO` where the core was stopped,
    /// `EINVAL` for a CPU that is not the core's, `EBUSY` for a thread that is attached.
    pub fn attach(name: &std::ffi::CStr) -> Result<Self> {
        check_version(&open(CONTROL)?)?;
        let clock = open(CLOCK)?;
        let mut request = Request { name: name.as_ptr() as u64, ..Request::default() };
        let factory = open(THREADS)?;
        call(&factory, opcode::read_write::<Request>(b'f', 0), &mut request, "EVL_IOC_CLONE", THREADS)?;
        // SAFETY: the core made this descriptor for us.
        let thread = unsafe { OwnedFd::from_raw_fd(request.descriptor as RawFd) };
        rustix::io::fcntl_setfd(&thread, rustix::io::FdFlags::CLOEXEC).named("fcntl")?;
        let attached = Self { thread, clock };
        attached.take_priority()?;
        Ok(attached)
    }

    /// Has the core schedule this thread as Linux does.
    fn take_priority(&self) -> Result<()> {
        let (_, priority) = schedule::get()?;
        let policy = if priority > 0 { Policy::Fifo } else { Policy::Other };
        let mut attributes =
            Attributes { policy: policy.number() as i32, priority: priority as i32, ..Attributes::default() };
        let number = opcode::write::<Attributes>(b'T', 1);
        out_of_band(&self.thread, number, &raw mut attributes)
            .map_err(|errno| Error::new("EVL_THRIOC_SET_SCHEDPARAM", errno))
    }

    /// Sleeps out of band until `CLOCK_MONOTONIC` reads `until` nanoseconds. A thread that was in band is out of band afterwards.
    ///
    /// # Errors
    /// `EINTR` where it was woken before its time.
    #[inline]
    pub fn sleep_until(&self, until: u64) -> std::result::Result<(), Errno> {
        // Both fit: u64::MAX / 10^9 is below 2^63.
        let mut time =
            Time { seconds: (until / 1_000_000_000) as i64, nanoseconds: (until % 1_000_000_000) as i64 };
        out_of_band(&self.clock, opcode::write::<Time>(b'c', 0), &raw mut time)
    }

    /// What the core has counted of this thread so far. A thread that was in band is out of band afterwards.
    ///
    /// # Errors
    /// What the core answered.
    pub fn counts(&self) -> Result<Counts> {
        let mut state = State::default();
        out_of_band(&self.thread, opcode::read::<State>(b'T', 4), &raw mut state)
            .map_err(|errno| Error::new("EVL_THRIOC_GET_STATE", errno))?;
        let State { in_band_switches, context_switches, .. } = state;
        Ok(Counts { in_band_switches, context_switches })
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        // SAFETY: an ioctl without an argument, by the thread that attached itself.
        unsafe { libc::ioctl(self.thread.as_raw_fd(), opcode::none(b'T', 7) as _) };
    }
}

fn open(path: &'static str) -> Result<OwnedFd> {
    rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).on("open", path)
}

fn check_version(device: &OwnedFd) -> Result<()> {
    let mut core = Core::default();
    let asked = call(device, opcode::read::<Core>(b'C', 0), &mut core, "EVL_CTLIOC_GET_COREINFO", CONTROL);
    let other = |on: String| Error { call: "EVL_CTLIOC_GET_COREINFO", on, errno: Errno::NOEXEC };
    match asked {
        // The length of the structure is part of the number: libevl takes this for another version, too.
        Err(error) if error.errno == Errno::NOTTY => Err(other(format!("of a core without ABI {ABI}"))),
        Err(error) => Err(error),
        Ok(()) if (core.abi_base..=core.abi_current).contains(&ABI) => Ok(()),
        Ok(()) => {
            Err(other(format!("of a core with ABI {} to {}, not {ABI}", core.abi_base, core.abi_current)))
        }
    }
}

/// `oob_ioctl` of libevl.
#[inline]
fn out_of_band<T>(device: &OwnedFd, number: Opcode, argument: *mut T) -> std::result::Result<(), Errno> {
    // SAFETY: an ioctl of this device with a structure of the length that its own number says, and that outlives the call.
    let result = unsafe { libc::prctl(OUT_OF_BAND_IOCTL, device.as_raw_fd(), number as usize, argument, 0) };
    if result == -1 { Err(Error::last("prctl", "").errno) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_pointer_width = "64")]
    fn structures_are_as_long_as_the_cores() {
        // In the order of include/uapi/evl: the lengths stand in the numbers of the calls.
        assert_eq!((size_of::<Core>(), size_of::<Request>()), (24, 40));
        assert_eq!((size_of::<Attributes>(), size_of::<State>(), size_of::<Time>()), (24, 56, 16));
    }

    #[test]
    fn without_a_core_the_missing_device_is_named() {
        if std::path::Path::new("/dev/evl").exists() {
            return;
        }
        let error = Thread::attach(c"nobody").unwrap_err();
        assert_eq!((error.call, error.on.as_str(), error.errno), ("open", CONTROL, Errno::NOENT));
    }
}
