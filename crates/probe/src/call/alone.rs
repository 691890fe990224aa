//! Calls that need no other thread: a read of a device, and the first use of the floating-point unit.

use std::hint::black_box;

use failure::Error;
use sys::Errno;
use sys::clock::Clock;
use sys::device::Zero;

use super::engine::Call;

/// Bytes of a read.
const READ: usize = 64;

/// A read of a character device.
pub(super) struct Device(Zero);

impl Device {
    pub fn begin() -> Result<Self, Error> {
        Ok(Self(Zero::open()?))
    }
}

impl Call for Device {
    fn once(&mut self) -> Result<u64, Errno> {
        let mut bytes = [0; READ];
        let before = Clock::Monotonic.now();
        self.0.read(&mut bytes)?;
        Ok(Clock::Monotonic.now().saturating_sub(before))
    }
}

/// The first floating-point operation since the thread slept: where the kernel gives the unit back only when it is used, it
/// traps then.
pub(super) struct FloatingPoint(f64);

impl FloatingPoint {
    pub fn begin() -> Self {
        Self(1.5)
    }
}

impl Call for FloatingPoint {
    fn once(&mut self) -> Result<u64, Errno> {
        let before = Clock::Monotonic.now();
        self.0 = black_box(black_box(self.0) * 1.000_000_1).clamp(1.0, 2.0);
        Ok(Clock::Monotonic.now().saturating_sub(before))
    }
}
