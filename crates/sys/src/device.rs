//! A character device that every system has.

use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};

use crate::Errno;
use crate::error::{Named, Result};

/// `/dev/zero` (zero(4)): its driver does nothing but give bytes, so that a read is the way into a driver and back.
#[derive(Debug)]
pub struct Zero(OwnedFd);

impl Zero {
    /// Opens it.
    ///
    /// # Errors
    /// `ENOENT` in a root without device files, `EACCES` where a sandbox forbids it.
    pub fn open() -> Result<Self> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        rustix::fs::open("/dev/zero", flags, Mode::empty()).map(Self).named("open /dev/zero")
    }

    /// Reads some bytes: a system call.
    ///
    /// # Errors
    /// What read(2) answered.
    pub fn read(&self, bytes: &mut [u8]) -> std::result::Result<usize, Errno> {
        rustix::io::read(&self.0, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_device_gives_zeros() {
        let mut bytes = [7; 64];
        assert_eq!(Zero::open().unwrap().read(&mut bytes), Ok(64));
        assert_eq!(bytes, [0; 64]);
    }
}
