//! POSIX message queues without a name: mq_overview(7).

use std::ffi::CString;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::error::check;
use crate::{Errno, Error, Result};

/// A queue of messages of at most [`Queue::LONGEST`] bytes. Its name is gone before this is returned.
#[derive(Debug)]
pub struct Queue(OwnedFd);

impl Queue {
    /// The longest message, in bytes.
    pub const LONGEST: usize = 64;

    /// Makes one for `depth` messages. mq_open(3), mq_unlink(3).
    ///
    /// # Errors
    /// `ENOSYS` where the kernel has none; those of [`LIMITS`] above the limits of mq_overview(7).
    pub fn new(name: &str, depth: u32) -> Result<Self> {
        let path = CString::new(name).map_err(|_| Error::new("mq_open", Errno::INVAL))?;
        // SAFETY: zeros are a valid structure of numbers.
        let mut attributes: libc::mq_attr = unsafe { std::mem::zeroed() };
        attributes.mq_maxmsg = depth as _;
        attributes.mq_msgsize = Self::LONGEST as _;
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC;
        // SAFETY: a text that ends in a zero byte, and a structure that outlives the call.
        let made =
            unsafe { libc::syscall(libc::SYS_mq_open, path.as_ptr(), flags, 0o600, &raw const attributes) };
        check(made, "mq_open", "").map_err(with_limits)?;
        // SAFETY: a descriptor that the kernel has just given.
        let queue = Self(unsafe { OwnedFd::from_raw_fd(made as i32) });
        unlink(name)?;
        Ok(queue)
    }

    /// Puts a message into it; waits while it is full. mq_timedsend(2).
    pub fn send(&self, message: &[u8]) -> Result<()> {
        let none = std::ptr::null::<libc::timespec>();
        let (queue, start, length) = (self.0.as_raw_fd(), message.as_ptr(), message.len());
        // SAFETY: the kernel reads the message's bytes.
        check(unsafe { libc::syscall(libc::SYS_mq_timedsend, queue, start, length, 0, none) }, "mq_send", "")
            .map(drop)
    }

    /// Takes a message out of it, and says how long it is; waits while it is empty. mq_timedreceive(2).
    pub fn receive(&self, message: &mut [u8; Self::LONGEST]) -> Result<usize> {
        let (none, priority) = (std::ptr::null::<libc::timespec>(), std::ptr::null_mut::<u32>());
        let (queue, start, length) = (self.0.as_raw_fd(), message.as_mut_ptr(), message.len());
        // SAFETY: the kernel writes into the array, which is as long as the longest message.
        let received =
            unsafe { libc::syscall(libc::SYS_mq_timedreceive, queue, start, length, priority, none) };
        check(received, "mq_receive", "").map(|length| length as usize)
    }
}

/// What the kernel answers above which limits: `EMFILE` alone would have a user look for open files.
const LIMITS: [(Errno, &str); 3] = [
    (Errno::MFILE, "ulimit -q, ulimit -n"),
    (Errno::NOSPC, "fs.mqueue.queues_max"),
    (Errno::INVAL, "fs.mqueue.msg_max, fs.mqueue.msgsize_max"),
];

fn with_limits(error: Error) -> Error {
    match LIMITS.iter().find(|(errno, _)| *errno == error.errno) {
        Some((_, limits)) => Error { on: format!("(limits: {limits})"), ..error },
        None => error,
    }
}

/// Takes a queue's name away. `ENOENT` where there is none. mq_unlink(3).
pub fn unlink(name: &str) -> Result<()> {
    let path = CString::new(name).map_err(|_| Error::new("mq_unlink", Errno::INVAL))?;
    // SAFETY: a text that ends in a zero byte.
    check(unsafe { libc::syscall(libc::SYS_mq_unlink, path.as_ptr()) }, "mq_unlink", name).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_out_as_they_went_in_and_no_name_is_left() {
        let name = format!("worstcase-test-{}", std::process::id());
        let queue = Queue::new(&name, 4).unwrap();
        queue.send(b"first").unwrap();
        let mut message = [0; Queue::LONGEST];
        assert_eq!(queue.receive(&mut message), Ok(5));
        assert_eq!(unlink(&name).unwrap_err().errno, Errno::NOENT);
    }

    #[test]
    fn a_queue_above_a_limit_names_the_limit() {
        let name = format!("worstcase-test-deep-{}", std::process::id());
        let refused = Queue::new(&name, i32::MAX as u32).unwrap_err();
        assert!(refused.to_string().starts_with("mq_open (limits: "), "{refused}");
        assert_eq!(unlink(&name).unwrap_err().errno, Errno::NOENT);
    }
}
