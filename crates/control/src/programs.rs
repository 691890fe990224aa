//! Programs that change the machine where the kernel has no file for it.

use std::io;
use std::process::{Command, Stdio};

use rustix::io::Errno;

/// What the kernel answered; `EIO` where it was not the kernel.
pub(crate) fn errno(error: io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}

/// Has systemd do something.
pub(crate) fn systemctl(words: &[&str]) -> Result<(), Errno> {
    run_silently("systemctl", &[&["--quiet"], words].concat())
}

/// Runs a program to its end: `EIO` where it failed.
pub(crate) fn run_silently(program: &str, words: &[&str]) -> Result<(), Errno> {
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if command.status().map_err(errno)?.success() { Ok(()) } else { Err(Errno::IO) }
}
