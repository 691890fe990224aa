//! The narrow door through which the machine is changed.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rustix::io::Errno;
use sysroot::SysRoot;
use units::{CpuList, Policy};

use crate::holder;

/// What can be done to a machine. One call is one change.
pub trait Hand {
    /// The machine, to be read.
    fn root(&self) -> SysRoot;

    /// Writes `value` into a file of the kernel, in one write.
    ///
    /// # Errors
    /// What the kernel answered.
    fn write_file(&mut self, path: &str, value: &str) -> Result<(), Errno>;

    /// Lets a thread run on `cpus` only.
    ///
    /// # Errors
    /// What the kernel answered: `EINVAL` for a thread that it keeps where it is.
    fn set_affinity(&mut self, tid: i32, cpus: &CpuList) -> Result<(), Errno>;

    /// Gives a thread a policy and a priority.
    ///
    /// # Errors
    /// What the kernel answered.
    fn set_scheduling(&mut self, tid: i32, policy: Policy, priority: u32) -> Result<(), Errno>;

    /// Makes a control group.
    ///
    /// # Errors
    /// What the kernel answered.
    fn make_group(&mut self, path: &str) -> Result<(), Errno>;

    /// Takes a control group away.
    ///
    /// # Errors
    /// What the kernel answered: `EBUSY` where something is in it.
    fn remove_group(&mut self, path: &str) -> Result<(), Errno>;

    /// Swaps memory to a partition or a file with that priority, or no longer. A negative priority the kernel chooses.
    ///
    /// # Errors
    /// What the kernel answered: `ENOMEM` where memory does not suffice.
    fn swap(&mut self, path: &str, priority: Option<i32>) -> Result<(), Errno>;

    /// Starts or stops a service, and returns when that is done. `manager` is a unit of systemd, or a script that knows
    /// `start` and `stop`.
    ///
    /// # Errors
    /// `ENOENT` where there is nobody to ask, `EIO` where it failed.
    fn service(&mut self, manager: &str, run: bool) -> Result<(), Errno>;

    /// Has somebody hold a limit on exit latencies, in microseconds; none lets go of it.
    ///
    /// # Errors
    /// What the kernel answered the holder, `ESRCH` where no holder came up.
    fn limit_latency(&mut self, microseconds: Option<u32>) -> Result<(), Errno>;
}

/// The running system.
#[derive(Debug)]
pub struct Live {
    state: PathBuf,
}

impl Live {
    /// With the state directory in which a holder announces itself.
    pub fn new(state: impl Into<PathBuf>) -> Self {
        Self { state: state.into() }
    }
}

fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

impl Hand for Live {
    fn root(&self) -> SysRoot {
        SysRoot::live()
    }

    fn write_file(&mut self, path: &str, value: &str) -> Result<(), Errno> {
        let path = self.root().path(path);
        let text = format!("{value}\n");
        let written = OpenOptions::new().write(true).open(path).and_then(|mut file| {
            match file.write(text.as_bytes())? {
                length if length == text.len() => Ok(()),
                _ => Err(std::io::ErrorKind::WriteZero.into()),
            }
        });
        written.map_err(|error| errno(&error))
    }

    fn set_affinity(&mut self, tid: i32, cpus: &CpuList) -> Result<(), Errno> {
        sys::schedule::set_affinity(tid, cpus).map_err(|error| error.errno)
    }

    fn set_scheduling(&mut self, tid: i32, policy: Policy, priority: u32) -> Result<(), Errno> {
        sys::schedule::set_policy(tid, policy, priority).map_err(|error| error.errno)
    }

    fn make_group(&mut self, path: &str) -> Result<(), Errno> {
        std::fs::create_dir(self.root().path(path)).map_err(|error| errno(&error))
    }

    fn remove_group(&mut self, path: &str) -> Result<(), Errno> {
        std::fs::remove_dir(self.root().path(path)).map_err(|error| errno(&error))
    }

    fn swap(&mut self, path: &str, priority: Option<i32>) -> Result<(), Errno> {
        let done = match priority {
            None => sys::machine::swap_off(path),
            Some(priority) => sys::machine::swap_on(path, u16::try_from(priority).ok()),
        };
        done.map_err(|error| error.errno)
    }

    fn service(&mut self, manager: &str, run: bool) -> Result<(), Errno> {
        let verb = if run { "start" } else { "stop" };
        let (program, words) = match manager.starts_with('/') {
            true => (manager, vec![verb]),
            false => ("systemctl", vec![verb, "--quiet", manager]),
        };
        let mut command = Command::new(program);
        command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        match command.status() {
            Ok(status) if status.success() => Ok(()),
            Ok(_) => Err(Errno::IO),
            Err(error) => Err(errno(&error)),
        }
    }

    fn limit_latency(&mut self, microseconds: Option<u32>) -> Result<(), Errno> {
        match microseconds {
            Some(limit) => holder::start(&self.state, holder::Role::Latency(limit)),
            None => holder::end(&self.state, holder::Kind::Latency),
        }
    }
}
