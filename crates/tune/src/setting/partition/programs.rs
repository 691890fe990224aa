//! All programs of one group of cgroup v1, moved into another: thousands of threads, one entry of the journal.
//!
//! A thread that changes its cpuset forgets to which CPUs it was bound (before Linux 6.2; cgroup-v1/cpusets.rst, section
//! 2.3). So those that were bound are named in the value, and are bound again after each move.

use std::collections::BTreeMap;
use std::fmt;

use control::Kernel;
use machine::tasks::{self, Task, with_affinity};
use record::Fact;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use sysroot::SysRoot;
use units::CpuList;

use crate::setting::{Kind, Phase};

/// Programs fork while they are moved: so often everything is looked through for more of them.
const PASSES: usize = 20;

/// The programs of a group, and the group that they are moved into. Threads of the kernel stay.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Programs {
    /// Where they were.
    pub from: String,
    /// Where they are to be, and nobody else was.
    pub to: String,
}

impl Programs {
    /// The value where nobody is in the other group. It goes on with the bound threads: `412@9123=0-1`.
    pub const TOGETHER: &str = "together";
    /// The value where all are.
    pub const APART: &str = "apart";

    /// The bound threads that a value names: id, start, CPUs.
    pub(crate) fn bound(value: &str) -> impl Iterator<Item = (i32, u64, CpuList)> {
        value.split_whitespace().filter_map(Bound::parse).map(|bound| (bound.tid, bound.start, bound.cpus))
    }
}

/// Where the programs of [`Programs`] are.
pub(in crate::setting) struct Moved<'a>(pub &'a Programs);

impl fmt::Display for Moved<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "programs of {} and {}", self.0.from, self.0.to)
    }
}

impl Kind for Moved<'_> {
    fn text(&self, root: &SysRoot) -> Fact<String> {
        let Programs { from, to } = self.0;
        let here = threads(root, from);
        match here {
            Fact::Value(here) if threads(root, to).value().is_none_or(Vec::is_empty) => {
                Fact::Value(Programs::TOGETHER.to_owned() + &bound(root, here))
            }
            here => here.map(|here| match here.len() {
                0 => Programs::APART.to_owned(),
                left => format!("{} but for {left}", Programs::APART),
            }),
        }
    }

    /// Moves them there or back: what the kernel answered where nobody could be moved any more.
    fn write(&self, kernel: &mut dyn Kernel, value: &str) -> Result<(), Errno> {
        let Programs { from, to } = self.0;
        let mut words = value.split_whitespace();
        match words.next() {
            Some(Programs::APART) => moved(kernel, from, to),
            Some(Programs::TOGETHER) => {
                // Bound threads first: who is killed in between finds others that are still to be moved, and begins anew.
                let bound: Vec<Bound> = words.filter_map(Bound::parse).collect();
                for bound in &bound {
                    bound.restore(kernel, to, from);
                }
                moved(kernel, to, from)
            }
            _ => Err(Errno::INVAL),
        }
    }

    fn phase(&self) -> Phase {
        Phase::Groups
    }

    /// Both mean the same: threads come and go.
    fn same(&self, now: &str, wanted: &str) -> bool {
        now.split_whitespace().next() == wanted.split_whitespace().next()
    }

    /// Those that came later belong to the others too.
    fn holds(&self, now: &str, ours: &str) -> bool {
        now == ours
    }
}

/// The threads of programs in a group.
fn threads(root: &SysRoot, group: &str) -> Fact<Vec<Task>> {
    root.read(&format!("{group}/tasks")).map(|text| {
        let mut all: BTreeMap<i32, Task> =
            tasks::all(root).into_iter().filter(|task| !task.kernel).map(|task| (task.tid, task)).collect();
        text.lines().filter_map(|line| all.remove(&line.trim().parse().ok()?)).collect()
    })
}

/// Moves each thread on its own, since those of one process may be in several groups, and binds it again.
fn moved(kernel: &mut dyn Kernel, from: &str, to: &str) -> Result<(), Errno> {
    let mut last = Ok(());
    for _ in 0..PASSES {
        let left = threads(&kernel.root(), from).value().cloned().unwrap_or_default();
        if left.is_empty() {
            return Ok(());
        }
        let (before, after) = (cpus_of(&kernel.root(), from), cpus_of(&kernel.root(), to));
        for task in left {
            let task = with_affinity(&kernel.root(), task);
            match kernel.write_file(&format!("{to}/tasks"), &task.tid.to_string()) {
                Ok(()) => bind_again(kernel, &task, &before, &after),
                Err(Errno::SRCH) => {}
                Err(errno) => last = Err(errno),
            }
        }
    }
    last
}

/// A thread that was bound to fewer CPUs than its group has is bound to those of them that the new one has.
fn bind_again(kernel: &mut dyn Kernel, task: &Task, before: &CpuList, after: &CpuList) {
    let was_bound = !before.difference(&task.cpus).is_empty();
    let kept = task.cpus.intersection(after);
    if was_bound && !kept.is_empty() && kept != *after {
        // Where it has ended meanwhile, nothing is to be done.
        let _ = kernel.set_affinity(task.tid, &kept);
    }
}

fn cpus_of(root: &SysRoot, group: &str) -> CpuList {
    let lists = ["cpuset.cpus", "cpus"].map(|name| root.cpu_list(&format!("{group}/{name}")));
    lists.into_iter().find_map(|list| list.value().cloned()).unwrap_or_default()
}

/// The threads that may not run on all CPUs, each after a blank.
fn bound(root: &SysRoot, threads: Vec<Task>) -> String {
    let all = root.cpu_list("/sys/devices/system/cpu/online").value().cloned().unwrap_or_default();
    let bound = threads.into_iter().map(|task| with_affinity(root, task));
    let bound = bound.filter(|task| !task.cpus.is_empty() && !all.difference(&task.cpus).is_empty());
    bound.map(|task| format!(" {}@{}={}", task.tid, task.start, task.cpus)).collect()
}

/// A thread, identified by id and start time, and the CPUs to which it was bound.
struct Bound {
    tid: i32,
    start: u64,
    cpus: CpuList,
}

impl Bound {
    fn parse(text: &str) -> Option<Self> {
        let (thread, cpus) = text.split_once('=')?;
        let (tid, start) = thread.split_once('@')?;
        Some(Self { tid: tid.parse().ok()?, start: start.parse().ok()?, cpus: cpus.parse().ok()? })
    }

    /// Moves it, if it is in `from`, and binds it. One that has ended needs neither.
    fn restore(&self, kernel: &mut dyn Kernel, from: &str, to: &str) {
        // In /proc a thread's own id leads to its process too.
        let is_it = |task: &Task| task.start == self.start;
        if !tasks::task(&kernel.root(), self.tid, self.tid).as_ref().is_some_and(is_it) {
            return;
        }
        let tid = self.tid.to_string();
        let inside = kernel.root().read(&format!("{from}/tasks"));
        if inside.value().is_some_and(|text| text.lines().any(|line| line == tid)) {
            let _ = kernel.write_file(&format!("{to}/tasks"), &tid);
        }
        let _ = kernel.set_affinity(self.tid, &self.cpus);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn where_programs_are_is_one_word_whoever_is_bound_or_late() {
        let programs = Programs { from: "/a".to_owned(), to: "/b".to_owned() };
        let moved = Moved(&programs);
        assert!(moved.same("together 4@5=0", "together"));
        assert!(moved.same("apart but for 3", "apart"));
        assert!(!moved.same("apart", "together 4@5=0"));
    }

    proptest! {
        #[test]
        fn any_value_of_a_journal_is_answered_without_a_panic(text in "[0-9@=, a-z-]{0,24}") {
            let _ = text.split_whitespace().filter_map(Bound::parse).count();
        }

        #[test]
        fn a_bound_thread_reads_as_it_was_written(tid in 1..i32::MAX, start: u64, cpu in 0..64_u32) {
            let bound = Bound::parse(&format!("{tid}@{start}={cpu}")).unwrap();
            prop_assert_eq!((bound.tid, bound.start, bound.cpus.to_string()), (tid, start, cpu.to_string()));
        }
    }
}
