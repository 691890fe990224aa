//! What is changed for as long as a process measures. Another process changes it, and puts it back when the first has ended, also
//! when that was killed.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use sys::Errno;
use sys::process::{self, Pid};
use sys::signal::{Signal, Signals};

/// The process that puts back what it changed when this one has ended, or when this is dropped.
#[derive(Debug)]
pub(crate) struct Keeper(Pid);

impl Keeper {
    /// For a process that has no second thread yet. Both closures run in the other process: one makes the change, `what`
    /// by its system call, and returns what the other needs to put it back.
    ///
    /// # Errors
    /// What the kernel answered to the change, or to fork(2).
    pub fn start<T>(
        what: &'static str,
        change: impl FnOnce() -> sys::Result<T>,
        put_back: impl FnOnce(T),
    ) -> sys::Result<Self> {
        let failed = |call, error: std::io::Error| {
            sys::Error::new(call, Errno::from_io_error(&error).unwrap_or(Errno::CHILD))
        };
        let (mut here, mut there) = UnixStream::pair().map_err(|error| failed("socketpair", error))?;
        let own = process::own_pid();
        let keep = || {
            // Before anything can ask it to end.
            let signals = Signals::take();
            // Where the process that measures is gone already there is nothing to change.
            let (Ok(signals), Ok(())) = (signals, process::end_with(own)) else { return 1 };
            let changed = change();
            let answer = changed.as_ref().err().map_or(0, sys::Error::number);
            let _ = there.write_all(&answer.to_ne_bytes());
            let Ok(changed) = changed else { return 0 };
            while signals.wait() != Some(Signal::Terminate) {}
            put_back(changed);
            0
        };
        let child = process::fork(keep);
        drop(there);
        let keeper = Self(child?);
        let mut answer = [0; 4];
        here.read_exact(&mut answer).map_err(|error| failed("read", error))?;
        match i32::from_ne_bytes(answer) {
            0 => Ok(keeper),
            errno => Err(sys::Error::new(what, Errno::from_raw_os_error(errno))),
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        let _ = process::end(self.0);
        let _ = process::wait(self.0);
    }
}
