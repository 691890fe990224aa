//! What can be changed, and the list of its kinds: each is a file here that says how its settings are planned, read,
//! written, compared and found again ([`Kind`]). What is asked for is a variant of [`Change`], what is written one of
//! [`Target`]; nobody else takes them apart by kind but for who else owns a setting (`conflict`).

mod expansion;
mod file;
mod form;
mod freed;
mod frequency;
mod hazard;
mod idle;
mod interrupt;
mod kind;
mod partition;
mod service;
mod swap;
mod thread;

use serde::{Deserialize, Serialize};
use sysroot::SysRoot;
use units::{CpuList, KernelVersion};

pub use control::is_setting as is_of_kernel;
use expansion::Expansion;
pub use expansion::{Refusal, Step};
pub use file::{file_of_sysctl, is_setting};
pub use form::Form;
pub(crate) use freed::forgets_programs;
pub(crate) use frequency::order_limits;
pub use interrupt::Handlers;
pub(crate) use kind::{Found, Kind, Phase};
pub use partition::NAME as PARTITION;
pub(crate) use partition::Programs;
use partition::Slice;
pub(crate) use partition::{effective_cpus, is_of_partition, partitions_in};
pub use thread::{Thread, Threads};

/// The version of the kernel that runs; none where it cannot be read.
fn kernel_version(root: &SysRoot) -> Option<KernelVersion> {
    root.read("/proc/sys/kernel/osrelease").value()?.parse().ok()
}

/// A change of the running system, not yet of any object of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A value into files.
    Files {
        /// Their path; `*` stands for any part of one name.
        path: String,
        /// What to write.
        value: String,
    },
    /// The same where somebody has named the files: just that value, stricter or not, in files of any CPU.
    Named {
        /// Their path; `*` stands for any part of one name.
        path: String,
        /// What to write.
        value: String,
    },
    /// Threads of the kernel.
    Threads(Threads),
    /// Threads and interrupts that somebody has named.
    Handlers(Handlers),
    /// A program that runs as a service is stopped, by the name that the kernel keeps of it.
    Stop(String),
    /// Nothing is swapped anywhere.
    SwapOff,
    /// CPUs taken out of load balancing, in a partition of control groups.
    Partition(CpuList),
}

/// The changes that `change` comes to on the machine at `root`. Files of single CPUs are changed for the CPUs
/// `real_time` only.
pub(crate) fn expand(root: &SysRoot, change: &Change, real_time: &CpuList) -> Expansion {
    match change {
        Change::Files { path, value } if path.ends_with(idle::LIMIT) => idle::expand(root, value, real_time),
        Change::Files { path, value } if path.ends_with(frequency::GOVERNOR) => {
            frequency::expand(root, value, real_time)
        }
        Change::Files { path, value } if path.as_str() == interrupt::FILES => interrupt::expand(root, value),
        Change::Files { path, value } => file::expand(root, path, value, real_time),
        Change::Named { path, value } => file::named(root, path, value),
        Change::Partition(cpus) => partition::expand(root, cpus),
        Change::Threads(threads) => thread::expand(root, threads, real_time),
        Change::Stop(program) => service::expand(root, program),
        Change::SwapOff => swap::expand(root),
        Change::Handlers(handlers) => interrupt::handlers(root, handlers),
    }
}

/// One thing that can be changed, by a name that outlives numbers. Journals hold it, so that a variant's form stays.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    /// A file of the kernel.
    File(String),
    /// The CPUs that may be given an interrupt.
    Interrupt {
        /// Its number now.
        number: u32,
        /// Controller, source and handler, which tell it from another that has its number later.
        identity: String,
    },
    /// The CPUs on which a thread may run.
    Affinity(Thread),
    /// The same of a thread whose CPUs the kernel forgets when it makes or takes away a partition.
    Freed(Thread),
    /// A thread's policy and priority: `fifo 50`, `other 0`.
    Scheduling(Thread),
    /// Whether groups right below that one have the cpuset controller: `on` or `off`.
    CpusetBelow(String),
    /// What a slice of systemd has of its own: CPUs, memory nodes; empty for nothing.
    Slice(Slice),
    /// A control group: `there` or `none`.
    Group(String),
    /// The programs of a control group of v1, in it or in another one.
    Programs(Programs),
    /// Memory swapped to a partition or a file: `priority -2`, or `off`.
    Swap(String),
    /// A program that runs as a service: `running` or `stopped`.
    Service {
        /// The name that the kernel keeps of it.
        program: String,
        /// The unit of systemd, or the script, that starts and stops it.
        manager: String,
    },
    /// The limit on exit latencies of idle states for all CPUs, in microseconds, held by an open file.
    LatencyLimit,
}

impl Target {
    /// What its kind makes of it.
    pub(crate) fn kind(&self) -> Box<dyn Kind + '_> {
        match self {
            Self::File(path) => Box::new(file::File(path)),
            Self::Interrupt { number, identity } => Box::new(interrupt::Cpus { number: *number, identity }),
            Self::Affinity(thread) => Box::new(thread::Affinity(thread)),
            Self::Freed(thread) => Box::new(freed::Freed(thread::Affinity(thread))),
            Self::Scheduling(thread) => Box::new(thread::Scheduling(thread)),
            Self::CpusetBelow(group) => Box::new(partition::CpusetBelow(group)),
            Self::Slice(slice) => Box::new(partition::Owned(slice)),
            Self::Group(group) => Box::new(partition::Group(group)),
            Self::Programs(programs) => Box::new(partition::Moved(programs)),
            Self::Swap(path) => Box::new(swap::Swap(path)),
            Self::Service { program, manager } => Box::new(service::Service { program, manager }),
            Self::LatencyLimit => Box::new(idle::LatencyLimit),
        }
    }
}
