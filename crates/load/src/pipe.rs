//! Pipes that are read without waiting.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use sys::Errno;

/// Reads what has come through a non-blocking pipe; true where the writers are gone.
pub(crate) fn read_available(pipe: BorrowedFd<'_>, into: &mut Vec<u8>) -> bool {
    let mut chunk = [0_u8; 4096];
    loop {
        match rustix::io::read(pipe, &mut chunk) {
            Ok(0) => return true,
            Ok(length) => into.extend_from_slice(&chunk[..length]),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return false,
            Err(_) => return true,
        }
    }
}

/// A pipe, both ends closed on exec, the reading end non-blocking. pipe2(2).
pub(crate) fn pipe() -> sys::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
        .map_err(|errno| sys::Error::new("pipe2", errno))?;
    let _ = rustix::fs::fcntl_setfl(read.as_fd(), rustix::fs::OFlags::NONBLOCK);
    Ok((read, write))
}
