//! Threads of the kernel: where they may run, at which priority
//! (Documentation/admin-guide/kernel-per-CPU-kthreads.rst).

use std::fmt;

use control::Kernel;
use machine::tasks::{self, Task};
use record::Fact;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use sysroot::SysRoot;
use units::{CpuId, CpuList, Policy, Priority};

use super::{Expansion, Form, Found, Kind, Phase, Target};

/// Threads of the kernel, and what is to become of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Threads {
    /// Their names, with at most one `*` in each.
    pub named: Vec<String>,
    /// Names that are left out.
    pub except: Vec<String>,
    /// Where they may run.
    pub cpus: Option<CpuList>,
    /// Their priority, with FIFO.
    pub priority: Option<Priority>,
}

impl Threads {
    pub(crate) fn names(&self, name: &str) -> bool {
        let fits = |pattern: &String| match pattern.split_once('*') {
            Some((start, end)) => {
                name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
            }
            None => pattern == name,
        };
        self.named.iter().any(fits) && !self.except.iter().any(fits)
    }
}

/// The threads whose names fit, on `wanted.cpus`, at `wanted.priority`. A priority is for threads that serve one of
/// the CPUs `real_time` only, as their names tell.
pub(super) fn expand(root: &SysRoot, wanted: &Threads, real_time: &CpuList) -> Expansion {
    let mut expansion = Expansion::default();
    let all = tasks::all(root).into_iter().filter(|task| task.kernel && wanted.names(&task.name));
    let chosen: Vec<Task> = all.collect();
    if let Some(cpus) = &wanted.cpus {
        let (bound, movable): (Vec<&Task>, Vec<&Task>) = chosen.iter().partition(|task| task.bound);
        for task in movable {
            expansion.change(root, Target::Affinity(Thread::from(task)), &cpus.to_string());
        }
        if !bound.is_empty() {
            let what = format!("{} threads of the kernel", bound.len());
            expansion.refuse(what, "the kernel keeps them on their CPUs (PF_NO_SETAFFINITY)");
        }
    }
    if let Some(priority) = wanted.priority {
        let lower = |task: &&Task| !task.policy.is_real_time() || task.priority < u32::from(priority.get());
        for task in chosen.iter().filter(|task| serves(task, real_time)).filter(lower) {
            expansion.change(root, Target::Scheduling(Thread::from(task)), &format!("fifo {priority}"));
        }
    }
    expansion
}

/// Whether a name such as `ktimers/2` ends in one of the CPUs, or in none at all.
fn serves(task: &Task, cpus: &CpuList) -> bool {
    let cpu = task.name.rsplit_once('/').and_then(|(_, number)| number.parse().ok());
    cpu.is_none_or(|cpu| cpus.contains(CpuId(cpu)))
}

/// A thread, distinguished from another with a recycled id by its name and start time.
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

impl From<&Task> for Thread {
    fn from(task: &Task) -> Self {
        Self { name: task.name.clone(), pid: task.pid, tid: task.tid, start: task.start }
    }
}

impl Thread {
    /// It as it is now, if it is still there.
    fn task(&self, root: &SysRoot) -> Option<Task> {
        tasks::task(root, self.pid, self.tid).filter(|task| task.start == self.start)
    }

    fn text(&self, root: &SysRoot, text: fn(&SysRoot, Task) -> String) -> Fact<String> {
        self.task(root).map_or(Fact::Absent, |task| Fact::Value(text(root, task)))
    }

    /// So that another thread with the same id is never touched.
    fn if_there(&self, kernel: &dyn Kernel) -> Result<(), Errno> {
        self.task(&kernel.root()).map(drop).ok_or(Errno::SRCH)
    }

    pub(super) fn find(&self, root: &SysRoot, this: &Target) -> Found {
        match self.task(root) {
            Some(_) => Found::Here(this.clone()),
            None => Found::Gone("that thread has ended".to_owned()),
        }
    }

    /// The one thread of the kernel that has its name.
    fn successor(&self, root: &SysRoot) -> Option<Self> {
        let all = tasks::all(root).into_iter();
        let mut same = all.filter(|task| task.kernel && is_named_like(&task.name, &self.name));
        same.next().filter(|_| same.next().is_none()).map(|task| Self::from(&task))
    }
}

/// Whether a thread is called as another was: that of an interrupt by its handler, whatever its number is now.
fn is_named_like(name: &str, gone: &str) -> bool {
    let handler = |name: &str| Some(name.strip_prefix("irq/")?.split_once('-')?.1.to_owned());
    name == gone || handler(name).is_some_and(|one| Some(one) == handler(gone))
}

/// The CPUs on which a thread may run.
pub(super) struct Affinity<'a>(pub &'a Thread);

impl fmt::Display for Affinity<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CPUs of {} ({})", self.0.name, self.0.tid)
    }
}

impl Kind for Affinity<'_> {
    fn text(&self, root: &SysRoot) -> Fact<String> {
        self.0.text(root, |root, task| tasks::with_affinity(root, task).cpus.to_string())
    }

    fn write(&self, kernel: &mut dyn Kernel, value: &str) -> Result<(), Errno> {
        let cpus = value.parse().map_err(|_| Errno::INVAL)?;
        self.0.if_there(kernel)?;
        kernel.set_affinity(self.0.tid, &cpus)
    }

    fn form(&self, _text: &str) -> Form {
        Form::List
    }

    fn phase(&self) -> Phase {
        Phase::Threads
    }

    fn may_be_refused(&self) -> bool {
        true
    }

    fn can_end(&self) -> bool {
        true
    }

    fn find(&self, root: &SysRoot, this: &Target) -> Found {
        self.0.find(root, this)
    }

    fn successor(&self, root: &SysRoot) -> Option<Target> {
        self.0.successor(root).map(Target::Affinity)
    }
}

/// A thread's policy and priority.
pub(super) struct Scheduling<'a>(pub &'a Thread);

impl fmt::Display for Scheduling<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "priority of {} ({})", self.0.name, self.0.tid)
    }
}

impl Kind for Scheduling<'_> {
    fn text(&self, root: &SysRoot) -> Fact<String> {
        self.0.text(root, |_, task| format!("{} {}", task.policy, task.priority))
    }

    fn write(&self, kernel: &mut dyn Kernel, value: &str) -> Result<(), Errno> {
        let (policy, priority) = scheduling(value).ok_or(Errno::INVAL)?;
        self.0.if_there(kernel)?;
        kernel.set_scheduling(self.0.tid, policy, priority)
    }

    fn form(&self, _text: &str) -> Form {
        Form::Fields
    }

    fn phase(&self) -> Phase {
        Phase::Priorities
    }

    fn can_end(&self) -> bool {
        true
    }

    fn find(&self, root: &SysRoot, this: &Target) -> Found {
        self.0.find(root, this)
    }

    fn successor(&self, root: &SysRoot) -> Option<Target> {
        self.0.successor(root).map(Target::Scheduling)
    }

    fn one_way(&self, old: &str) -> Option<&'static str> {
        let is_lost = old.starts_with("deadline") || old.starts_with("unknown");
        is_lost.then_some("its policy could not be given back")
    }
}

fn scheduling(text: &str) -> Option<(Policy, u32)> {
    const POLICIES: [Policy; 5] = [Policy::Other, Policy::Fifo, Policy::Rr, Policy::Batch, Policy::Idle];
    let (name, priority) = text.split_once(' ')?;
    let policy = POLICIES.into_iter().find(|policy| policy.to_string() == name)?;
    Some((policy, priority.parse().ok()?))
}
