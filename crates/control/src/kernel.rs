//! The trait through which a machine is changed.

use rustix::io::Errno;
use sysroot::SysRoot;
use units::{CpuList, Policy};

use crate::slice_property::SliceProperty;

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
