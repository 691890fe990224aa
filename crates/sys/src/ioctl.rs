//! ioctl(2) with numbers that name the length of their structure.

use std::os::fd::{AsRawFd, OwnedFd};

use rustix::ioctl::Opcode;

use crate::Result;
use crate::error::check;

/// Makes the call that is called `name` on `fd`, which is `on` in errors.
pub(crate) fn call<T>(
    fd: &OwnedFd,
    number: Opcode,
    argument: &mut T,
    name: &'static str,
    on: &str,
) -> Result<()> {
    // SAFETY: the number names the size of the structure, which outlives the call.
    let result = unsafe { libc::ioctl(fd.as_raw_fd(), number as _, std::ptr::from_mut(argument)) };
    check(result, name, on).map(drop)
}
