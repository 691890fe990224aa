//! To which CPUs threads are bound right before a partition goes: the kernel forgets it as the partition goes (see
//! `setting::freed`), and somebody may have bound them since it was made.

use std::collections::BTreeMap;

use control::Kernel;
use machine::tasks::{self, Task};
use sysroot::SysRoot;
use units::CpuList;

use crate::journal::Taken;
use crate::setting::{Programs, Target, Thread, forgets_programs, is_of_partition, partitions_in};

/// Threads by id and start, with the CPUs to which somebody has bound them.
#[derive(Debug, Default)]
pub(super) struct Bindings(BTreeMap<(i32, u64), Task>);

impl Bindings {
    /// As they are now; nothing where undoing `taken` takes no partition away.
    pub fn take(root: &SysRoot, taken: &[Taken]) -> Self {
        if !taken.iter().any(|step| is_of_partition(&step.target)) {
            return Self::default();
        }
        let (set, own) = (sets_of_the_kernel(root, taken), ours(taken));
        let forgets_programs = forgets_programs(root);
        let is_bound = |task: &Task| {
            let is_ours = own.get(&(task.tid, task.start)).is_some_and(|own| own.contains(&task.cpus));
            !task.cpus.is_empty() && !set.contains(&task.cpus) && !is_ours
        };
        let is_forgotten = |task: &Task| if task.kernel { !task.bound } else { forgets_programs };
        let all = tasks::all(root).into_iter().filter(is_forgotten);
        let all = all.map(|task| tasks::with_affinity(root, task));
        Self(all.filter(is_bound).map(|task| ((task.tid, task.start), task)).collect())
    }

    /// To which CPUs somebody else has bound a thread.
    pub fn of(&self, target: &Target) -> Option<&CpuList> {
        let Target::Freed(Thread { tid, start, .. }) = target else { return None };
        self.0.get(&(*tid, *start)).map(|task| &task.cpus)
    }

    /// Whether somebody else has bound it.
    pub fn has(&self, task: &Task) -> bool {
        self.0.contains_key(&(task.tid, task.start))
    }

    /// Binds again those that the kernel has let go.
    pub fn restore(&self, kernel: &mut dyn Kernel) {
        for ((tid, start), Task { pid, cpus, .. }) in &self.0 {
            let root = kernel.root();
            let now = tasks::task(&root, *pid, *tid).filter(|now| now.start == *start);
            if now.is_some_and(|now| tasks::with_affinity(&root, now).cpus != *cpus) {
                // One that ended meanwhile needs no CPUs; others the kernel keeps where they are.
                let _ = kernel.set_affinity(*tid, cpus);
            }
        }
    }
}

/// The sets of CPUs that threads have whom nobody has bound.
fn sets_of_the_kernel(root: &SysRoot, taken: &[Taken]) -> Vec<CpuList> {
    let list = |name: &str| root.cpu_list(&format!("/sys/devices/system/cpu/{name}")).value().cloned();
    let whole: Vec<CpuList> = [list("online"), list("possible")].into_iter().flatten().collect();
    let partitions = partitions_of(taken);
    let left = whole.iter().flat_map(|all| partitions.iter().map(|cpus| all.difference(cpus)));
    let left: Vec<CpuList> = left.collect();
    [whole, partitions, left].concat()
}

/// The CPUs of each partition.
fn partitions_of(taken: &[Taken]) -> Vec<CpuList> {
    let held: Vec<_> = taken.iter().filter_map(Taken::as_held).collect();
    partitions_in(&held).into_iter().map(|(_, cpus)| cpus).collect()
}

/// What we have written for threads, and what they get back; in a partition of v1 what was left to those that were bound.
fn ours(taken: &[Taken]) -> BTreeMap<(i32, u64), Vec<CpuList>> {
    let mut all: BTreeMap<(i32, u64), Vec<CpuList>> = BTreeMap::new();
    let isolated = partitions_of(taken);
    for step in taken {
        match &step.target {
            // What is freed is written before the partition is: whoever is killed in between has left it so.
            Target::Affinity(thread) | Target::Freed(thread) => {
                let values = [step.ours(), Some(&step.old)].into_iter().flatten();
                let own = all.entry((thread.tid, thread.start)).or_default();
                own.extend(values.filter_map(|text| text.parse().ok()));
            }
            Target::Programs(_) => {
                for (tid, start, cpus) in Programs::bound(&step.old) {
                    let own = all.entry((tid, start)).or_default();
                    own.extend(isolated.iter().map(|isolated| cpus.difference(isolated)));
                    own.push(cpus);
                }
            }
            _ => {}
        }
    }
    all
}
