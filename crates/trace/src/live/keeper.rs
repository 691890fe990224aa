//! What removes an instance whose process was killed.

use std::os::fd::OwnedFd;
use std::time::Duration;

use control::{Kernel, Live};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, WaitOptions, setsid, waitpid};

/// How often, and how long apart, a child tries to remove an instance that others still write to or read: they end too.
const TRIES: usize = 100;
const BETWEEN_TRIES: Duration = Duration::from_millis(50);

/// A child that waits for the end of this process. Dropped after the instance was removed, it finds nothing to do.
#[derive(Debug)]
pub(super) struct Keeper {
    leash: Option<OwnedFd>,
    child: Pid,
}

impl Keeper {
    /// Of the instance at `path`; none where this process has several threads, and therefore cannot be copied: what it
    /// leaves if it is killed is removed by [`super::clear`].
    /// `then` is done when the instance is gone.
    pub fn start(path: &str, then: impl FnOnce()) -> Option<Self> {
        let (end, leash) = pipe_with(PipeFlags::CLOEXEC).ok()?;
        let mut leash = Some(leash);
        let child = sys::process::fork(|| {
            drop(leash.take());
            sys::signal::ignore_terminal();
            let _ = setsid();
            // Nothing is ever written: this returns when nobody holds the other end any more.
            let _ = rustix::io::read(&end, &mut [0_u8; 1]);
            let status = remove(path);
            then();
            status
        });
        Some(Self { leash, child: child.ok()? })
    }
}

fn remove(path: &str) -> u8 {
    let mut kernel = Live::default();
    for _ in 0..TRIES {
        match kernel.remove_directory(path) {
            Err(Errno::BUSY) => std::thread::sleep(BETWEEN_TRIES),
            _ => return 0,
        }
    }
    1
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.leash.take());
        let _ = waitpid(Some(self.child), WaitOptions::empty());
    }
}
