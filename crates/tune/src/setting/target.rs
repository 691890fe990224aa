//! One thing that can be changed, by a name that outlives numbers.

use std::fmt;

use control::Kernel;
use machine::{latency_request, tasks};
use record::Fact;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use sysroot::SysRoot;
use units::Policy;

use super::partition::Programs;
use super::{Form, partition, service, swap};

/// One thing that can be changed.
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

/// A thread, told from another with a recycled id by its name and start.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Thread {
    /// As in /proc/PID/comm: `ktimers/1`.
    pub name: String,
    /// Its process.
    pub pid: i32,
    /// Its id.
    pub tid: i32,
    /// When it started, in clock ticks since boot.
    pub start: u64,
}

impl From<&tasks::Task> for Thread {
    fn from(task: &tasks::Task) -> Self {
        Self { name: task.name.clone(), pid: task.pid, tid: task.tid, start: task.start }
    }
}

impl Thread {
    /// It as it is now, if it is still there.
    pub(crate) fn task(&self, root: &SysRoot) -> Option<tasks::Task> {
        tasks::task(root, self.pid, self.tid)
            .filter(|task| task.start == self.start && task.name == self.name)
    }
}

impl Target {
    /// The file in which an interrupt's CPUs stand.
    pub(crate) fn affinity_file(number: u32) -> String {
        format!("/proc/irq/{number}/smp_affinity_list")
    }

    /// What the kernel says of it now, as it stands there.
    pub fn text(&self, root: &SysRoot) -> Fact<String> {
        let gone_or = |text: Option<String>| text.map_or(Fact::Absent, Fact::Value);
        match self {
            Self::File(path) => root.read(path),
            Self::Interrupt { number, .. } => root.read(&Self::affinity_file(*number)),
            Self::Affinity(thread) | Self::Freed(thread) => {
                gone_or(thread.task(root).map(|task| tasks::with_affinity(root, task).cpus.to_string()))
            }
            Self::Scheduling(thread) => {
                gone_or(thread.task(root).map(|task| format!("{} {}", task.policy, task.priority)))
            }
            Self::CpusetBelow(group) => root
                .read(&format!("{group}/cgroup.subtree_control"))
                .map(|text| if partition::has_cpuset(&text) { "on" } else { "off" }.to_owned()),
            Self::Group(group) => match root.exists(group) {
                Fact::Absent => Fact::Value("none".to_owned()),
                there => there.map(|()| "there".to_owned()),
            },
            Self::Programs(programs) => programs.text(root),
            Self::Swap(path) => swap::text(root, path),
            Self::Service { program, .. } => Fact::Value(service::text(root, program)),
            Self::LatencyLimit => latency_request::in_effect(root).map(|limit| limit.to_string()),
        }
    }

    /// The form of its value, where the kernel says `text`.
    pub fn form(&self, text: &str) -> Form {
        match self {
            Self::File(path) => Form::of(path, text),
            Self::Interrupt { .. } | Self::Affinity(_) | Self::Freed(_) => Form::List,
            Self::Scheduling(_) => Form::Fields,
            Self::CpusetBelow(_)
            | Self::Group(_)
            | Self::Programs(_)
            | Self::Swap(_)
            | Self::Service { .. } => Form::Whole,
            Self::LatencyLimit => Form::Lowest,
        }
    }

    /// Its value now, as it would be written.
    pub fn value(&self, root: &SysRoot) -> Fact<String> {
        self.text(root).map(|text| self.form(&text).value(&text))
    }

    /// Whether the value `now` is what was `wanted`.
    pub fn same(&self, now: &str, wanted: &str) -> bool {
        match self {
            Self::Programs(_) => Programs::same(now, wanted),
            _ => self.form(now).same(now, wanted),
        }
    }

    /// Writes `value`.
    ///
    /// # Errors
    /// What the kernel answered; `EINVAL` for a value that is none.
    pub(crate) fn write(&self, kernel: &mut dyn Kernel, value: &str) -> Result<(), Errno> {
        match self {
            Self::File(path) => kernel.write_file(path, value),
            Self::Interrupt { number, .. } => kernel.write_file(&Self::affinity_file(*number), value),
            Self::Affinity(thread) | Self::Freed(thread) => {
                let cpus = value.parse().map_err(|_| Errno::INVAL)?;
                self.if_there(thread, kernel)?;
                kernel.set_affinity(thread.tid, &cpus)
            }
            Self::Scheduling(thread) => {
                let (policy, priority) = scheduling(value).ok_or(Errno::INVAL)?;
                self.if_there(thread, kernel)?;
                kernel.set_scheduling(thread.tid, policy, priority)
            }
            Self::CpusetBelow(group) => {
                let sign = if value == "on" { "+cpuset" } else { "-cpuset" };
                kernel.write_file(&format!("{group}/cgroup.subtree_control"), sign)
            }
            Self::Group(group) if value == "there" => kernel.make_directory(group),
            Self::Group(group) => partition::remove(kernel, group),
            Self::Programs(programs) => programs.write(kernel, value),
            Self::Swap(path) => kernel.swap(path, swap::priority(value).ok_or(Errno::INVAL)?),
            Self::Service { program, manager } => service::write(kernel, program, manager, value),
            Self::LatencyLimit => {
                let limit = value.parse::<u32>().map_err(|_| Errno::INVAL)?;
                let is_none = i64::from(limit) >= latency_request::NO_LIMIT;
                kernel.limit_latency((!is_none).then_some(limit))
            }
        }
    }

    /// Whether that the kernel refuses it is a fact about this machine and no failure: it keeps some interrupts and
    /// threads where they are, and does not always say so before.
    pub(crate) fn may_be_refused(&self) -> bool {
        matches!(self, Self::Interrupt { .. } | Self::Affinity(_) | Self::Freed(_))
    }

    /// So that another thread with the same id is never touched.
    fn if_there(&self, thread: &Thread, kernel: &dyn Kernel) -> Result<(), Errno> {
        thread.task(&kernel.root()).map(drop).ok_or(Errno::SRCH)
    }

    /// Whether the kernel writes it as well, so that it says neither what was there before nor what we wrote.
    pub fn is_reset_by_the_kernel(&self) -> bool {
        matches!(self, Self::Freed(_))
    }

    /// Whether something else than what was asked for is of no use: a partition that is not valid separates nothing.
    pub(crate) fn is_all_or_nothing(&self) -> bool {
        matches!(self, Self::File(path) if path.ends_with(partition::STATE))
    }

    /// The order that survives on real systems: who else changes the same is stopped first, CPUs and their partitions before threads and work queues, these before interrupts, these
    /// before clocks and idle states, and priorities last.
    pub(crate) fn phase(&self) -> u8 {
        match self {
            Self::File(path) if path.ends_with("/online") || path.ends_with("/smt/control") => 0,
            Self::Service { .. } | Self::Freed(_) => 0,
            Self::File(path) if path.contains(super::hazard::FAIR_SERVER) => 0,
            Self::CpusetBelow(_) | Self::Group(_) | Self::Programs(_) => 1,
            Self::File(path) if partition::is_file(path) => 1,
            Self::Affinity(_) => 2,
            Self::File(path) if path.contains("/workqueue/") => 3,
            Self::File(path) if path.ends_with("/default_smp_affinity") => 4,
            Self::Interrupt { .. } => 5,
            Self::File(path) if path.starts_with("/sys/devices/system/cpu/") => 6,
            Self::LatencyLimit => 7,
            Self::File(_) | Self::Swap(_) => 8,
            Self::Scheduling(_) => 9,
        }
    }
}

fn scheduling(text: &str) -> Option<(Policy, u32)> {
    const POLICIES: [Policy; 5] = [Policy::Other, Policy::Fifo, Policy::Rr, Policy::Batch, Policy::Idle];
    let (name, priority) = text.split_once(' ')?;
    let policy = POLICIES.into_iter().find(|policy| policy.to_string() == name)?;
    Some((policy, priority.parse().ok()?))
}

impl fmt::Display for Target {
    /// Where a reader would look: a path, `irq 24 virtio0-config`, `CPUs of rcu_preempt (15)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => f.write_str(path),
            Self::Interrupt { number, identity } => write!(f, "CPUs of irq {number} ({identity})"),
            Self::Affinity(thread) => write!(f, "CPUs of {} ({})", thread.name, thread.tid),
            Self::Freed(thread) => {
                write!(f, "CPUs of {} ({}), which a partition resets", thread.name, thread.tid)
            }
            Self::Scheduling(thread) => write!(f, "priority of {} ({})", thread.name, thread.tid),
            Self::CpusetBelow(group) => write!(f, "cpuset controller below {group}"),
            Self::Group(group) => write!(f, "control group {group}"),
            Self::Programs(programs) => write!(f, "programs of {} and {}", programs.from, programs.to),
            Self::Swap(path) => write!(f, "swap {path}"),
            Self::Service { program, manager } => write!(f, "service {program} by {manager}"),
            Self::LatencyLimit => f.write_str(latency_request::PATH),
        }
    }
}
