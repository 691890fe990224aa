//! Waiting for a descriptor, unless one is to stop, and reading it.

use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use crate::error::Named;
use crate::{Errno, Result};

/// Ends another thread's wait.
#[derive(Debug)]
pub struct Bell(OwnedFd);

impl Bell {
    /// One that has not rung. eventfd(2); `EMFILE` at the limit of descriptors.
    pub fn new() -> Result<Self> {
        eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).named("eventfd").map(Self)
    }

    /// Rings: whoever waits, now or later, comes back.
    pub fn ring(&self) {
        // Full is rung.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    /// Waits until `other` can be read, is in error or hung up, for `nanoseconds` at most; whether it is. Comes back early, with false, where
    /// the bell has rung or a signal came. poll(2).
    ///
    /// # Errors
    /// `ENOMEM`; nothing else is expected.
    pub fn wait_with(&self, other: impl AsFd, nanoseconds: u64) -> std::result::Result<bool, Errno> {
        let mut both = [PollFd::new(&other, PollFlags::IN), PollFd::new(&self.0, PollFlags::IN)];
        let limit = Timespec {
            tv_sec: (nanoseconds / 1_000_000_000) as i64,
            tv_nsec: (nanoseconds % 1_000_000_000) as _,
        };
        match poll(&mut both, Some(&limit)) {
            Err(Errno::INTR) => Ok(false),
            Err(errno) => Err(errno),
            Ok(_) => Ok(both[1].revents().is_empty() && !both[0].revents().is_empty()),
        }
    }
}

/// read(2): bytes that were read; 0 at the end of what it reads from.
///
/// # Errors
/// What the driver behind it answers.
pub fn read(descriptor: impl AsFd, bytes: &mut [u8]) -> std::result::Result<usize, Errno> {
    rustix::io::read(descriptor, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_with_what_can_be_read_with_the_bell_or_with_its_time() {
        let (from, to) = rustix::pipe::pipe().unwrap();
        let bell = Bell::new().unwrap();
        assert_eq!(bell.wait_with(&from, 1_000), Ok(false));
        rustix::io::write(&to, b"x").unwrap();
        assert_eq!(bell.wait_with(&from, u64::MAX >> 2), Ok(true));
        bell.ring();
        assert_eq!(bell.wait_with(&from, u64::MAX >> 2), Ok(false));
        let mut bytes = [0; 4];
        assert_eq!((read(&from, &mut bytes), bytes[0]), (Ok(1), b'x'));
    }
}
