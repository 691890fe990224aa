//! The trait through which a machine is changed, and the running machine.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::process::{Command, Stdio};

use rustix::io::Errno;
use sysroot::SysRoot;
use units::{CpuList, Policy};

use crate::latency::{KeepLatency, LatencyRequest};
use crate::slice::{self, SliceProperty};

/// What can be changed of a running kernel, or of one that a test makes up. One call is one change.
///
/// Errors are what the kernel answered.
#[allow(clippy::missing_errors_doc)]
pub trait Kernel {
    /// The machine, to be read.
    fn root(&self) -> SysRoot;

    /// Writes `value` and a newline into a file of the kernel, in one write.
    fn write_file(&mut self, path: &str, value: &str) -> Result<(), Errno>;

    /// Makes a directory: a control group, an instance of the trace.
    fn make_directory(&mut self, path: &str) -> Result<(), Errno>;

    /// Removes one; `EBUSY` where something is in it or reads it.
    fn remove_directory(&mut self, path: &str) -> Result<(), Errno>;

    /// Lets a thread run on `cpus` only; `EINVAL` for a thread that the kernel keeps where it is.
    fn set_affinity(&mut self, tid: i32, cpus: &CpuList) -> Result<(), Errno>;

    /// Gives a thread a policy and a priority.
    fn set_scheduling(&mut self, tid: i32, policy: Policy, priority: u32) -> Result<(), Errno>;

    /// Swaps memory to a partition or a file with that priority, or no longer; `ENOMEM` where memory does not suffice
    /// for what was swapped out. The kernel chooses a negative priority itself.
    fn swap(&mut self, path: &str, priority: Option<i32>) -> Result<(), Errno>;

    /// Starts or stops a service, and returns when that is done. `manager` is a unit of systemd, or a script that takes
    /// `start` and `stop`. `ENOENT` where there is no such program, `EIO` where it failed.
    fn service(&mut self, manager: &str, run: bool) -> Result<(), Errno>;

    /// Sets a property of the slice of systemd whose control group is `group`, until the next boot, and starts it; an
    /// empty `value` takes it back, and ends the slice where nothing is in it. `EIO` where systemd refuses.
    fn slice(&mut self, group: &str, property: SliceProperty, value: &str) -> Result<(), Errno>;

    /// Limits exit latencies of idle states, in microseconds; none ends the limit.
    fn limit_latency(&mut self, microseconds: Option<u32>) -> Result<(), Errno>;
}

/// The running kernel.
#[derive(Debug)]
pub struct Live {
    latency: Box<dyn KeepLatency>,
}

/// A limit on exit latencies lasts as long as this value.
impl Default for Live {
    fn default() -> Self {
        Self::keeping_latency_by(None::<LatencyRequest>)
    }
}

impl Live {
    /// With somebody else who keeps the limit on exit latencies, beyond the end of this process.
    pub fn keeping_latency_by(keeper: impl KeepLatency + 'static) -> Self {
        Self { latency: Box::new(keeper) }
    }
}

/// What the kernel answered, without the number that the standard library adds.
pub fn in_words(errno: i32) -> String {
    let text = io::Error::from_raw_os_error(errno).to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

fn errno(error: io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}

/// Has systemd do something.
pub(crate) fn systemctl(words: &[&str]) -> Result<(), Errno> {
    run_silently("systemctl", &[&["--quiet"], words].concat())
}

/// Runs a program to its end: `EIO` where it failed.
fn run_silently(program: &str, words: &[&str]) -> Result<(), Errno> {
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if command.status().map_err(errno)?.success() { Ok(()) } else { Err(Errno::IO) }
}

impl Kernel for Live {
    fn root(&self) -> SysRoot {
        SysRoot::live()
    }

    fn write_file(&mut self, path: &str, value: &str) -> Result<(), Errno> {
        let text = format!("{value}\n");
        let file = OpenOptions::new().write(true).open(self.root().path(path));
        match file.and_then(|mut file| file.write(text.as_bytes())).map_err(errno)? {
            length if length == text.len() => Ok(()),
            _ => Err(Errno::IO),
        }
    }

    fn make_directory(&mut self, path: &str) -> Result<(), Errno> {
        std::fs::create_dir(self.root().path(path)).map_err(errno)
    }

    fn remove_directory(&mut self, path: &str) -> Result<(), Errno> {
        std::fs::remove_dir(self.root().path(path)).map_err(errno)
    }

    fn set_affinity(&mut self, tid: i32, cpus: &CpuList) -> Result<(), Errno> {
        sys::schedule::set_affinity(tid, cpus).map_err(|error| error.errno)
    }

    fn set_scheduling(&mut self, tid: i32, policy: Policy, priority: u32) -> Result<(), Errno> {
        sys::schedule::set_policy(tid, policy, priority).map_err(|error| error.errno)
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
        match manager.starts_with('/') {
            true => run_silently(manager, &[verb]),
            false => systemctl(&[verb, manager]),
        }
    }

    fn slice(&mut self, group: &str, property: SliceProperty, value: &str) -> Result<(), Errno> {
        slice::set(self, group, property, value)
    }

    fn limit_latency(&mut self, microseconds: Option<u32>) -> Result<(), Errno> {
        self.latency.limit(microseconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(directory: &tempfile::TempDir, name: &str) -> String {
        directory.path().join(name).to_str().unwrap().to_owned()
    }

    #[test]
    fn a_value_is_written_over_what_is_there_and_no_file_is_made() {
        let directory = tempfile::tempdir().unwrap();
        let file = path(&directory, "file");
        assert_eq!(Live::default().write_file(&file, "1"), Err(Errno::NOENT));
        std::fs::write(&file, "before").unwrap();
        Live::default().write_file(&file, "1").unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "1\nfore", "nothing is cut off first");
    }

    #[test]
    fn directories_are_made_once_and_removed() {
        let directory = tempfile::tempdir().unwrap();
        let group = path(&directory, "group");
        let mut kernel = Live::default();
        kernel.make_directory(&group).unwrap();
        assert_eq!(kernel.make_directory(&group), Err(Errno::EXIST));
        kernel.remove_directory(&group).unwrap();
        assert_eq!(kernel.remove_directory(&group), Err(Errno::NOENT));
    }

    #[test]
    fn a_service_without_its_script_is_not_there_and_one_that_fails_is_an_error() {
        let mut kernel = Live::default();
        assert_eq!(kernel.service("/no/such/script", true), Err(Errno::NOENT));
        assert_eq!(kernel.service("/bin/false", false), Err(Errno::IO));
        assert_eq!(kernel.service("/bin/true", false), Ok(()));
    }
}
