//! What cannot be put back while CPUs are away that were there when settings were applied: they were switched off, or SMT
//! was. No thread can be bound to them, and as a partition goes, kernels before 6.2 let every thread of the top group run on
//! the CPUs that are online at that moment, and on no others when they come back (`update_tasks_cpumask` in
//! kernel/cgroup/cpuset.c). So both stay in the journal.

use std::collections::BTreeSet;

use control::Kernel;
use machine::tasks::{self, Task};
use sysroot::SysRoot;
use units::CpuList;

use super::{Back, Undone, restore};
use crate::journal::State;
use crate::journal::{History, Lock, Outcome, Taken};
use crate::setting::{Target, Thread, is_of_partition};

/// The CPUs that are online, as the journal's first line keeps them.
pub fn online(root: &SysRoot) -> Option<String> {
    cpus(root, "online").map(|cpus| cpus.to_string())
}

fn cpus(root: &SysRoot, name: &str) -> Option<CpuList> {
    root.cpu_list(&format!("/sys/devices/system/cpu/{name}")).value().cloned()
}

/// Puts back what `history` lists. What only CPUs that are away keep from being put back is open, and stands in the journal.
pub fn undo(state: &State, lock: &Lock, history: &History, kernel: &mut dyn Kernel) -> Vec<Undone> {
    let away = away(&kernel.root(), history);
    if away.is_empty() {
        return restore(kernel, &history.steps);
    }
    let unbound = match history.steps.iter().any(|step| is_of_partition(&step.target)) {
        true => Unbound::take(&kernel.root(), &history.steps),
        false => Unbound::default(),
    };
    let mut undone = restore(kernel, &history.steps);
    undone.iter_mut().for_each(|undone| wait_for(undone, &away));
    let narrowed = unbound.narrowed(&kernel.root(), &away);
    // Where the journal cannot be written any more, it is left open all the same.
    let _ = state.resume(lock, history).and_then(|mut journal| journal.add(&narrowed));
    let waiting = narrowed.into_iter().map(|Taken { target, old, .. }| Undone {
        target,
        old,
        back: Back::Waits(away.to_string()),
    });
    undone.extend(waiting);
    undone
}

/// CPUs that were online when settings were applied, and are not now. Journals of former versions do not say.
fn away(root: &SysRoot, history: &History) -> CpuList {
    let then = history.begin.as_ref().and_then(|begin| begin.online.as_ref()?.parse::<CpuList>().ok());
    match (then, cpus(root, "online")) {
        (Some(then), Some(now)) => then.difference(&now),
        _ => CpuList::new(),
    }
}

/// A list of CPUs that lacks nothing but those that are away can be put back once they are there.
fn wait_for(undone: &mut Undone, away: &CpuList) {
    let Back::Differs(now) = &undone.back else { return };
    if let (Ok(old), Ok(now)) = (undone.old.parse::<CpuList>(), now.parse::<CpuList>()) {
        let lacking = old.difference(&now);
        if now.difference(&old).is_empty() && !lacking.is_empty() && lacking.difference(away).is_empty() {
            undone.back = Back::Waits(lacking.to_string());
        }
    }
}

/// Threads that nobody had bound to fewer CPUs than there are, by id and start.
#[derive(Default)]
struct Unbound(BTreeSet<(i32, u64)>);

impl Unbound {
    fn take(root: &SysRoot, taken: &[Taken]) -> Self {
        let bound = super::bindings::Bindings::take(root, taken);
        let own = |task: &Task| {
            let is_it = |thread: &Thread| (thread.tid, thread.start) == (task.tid, task.start);
            taken.iter().any(|step| matches!(&step.target, Target::Affinity(thread) | Target::Freed(thread) if is_it(thread)))
        };
        let all = tasks::all(root).into_iter().filter(|task| !task.bound && !bound.has(task) && !own(task));
        Self(all.map(|task| (task.tid, task.start)).collect())
    }

    /// Those that the kernel keeps off the CPUs that are away from now on: from which CPUs to which it moved them.
    fn narrowed(&self, root: &SysRoot, away: &CpuList) -> Vec<Taken> {
        let Some(now) = cpus(root, "online") else { return Vec::new() };
        let all = tasks::all(root).into_iter().filter(|task| self.0.contains(&(task.tid, task.start)));
        let all = all.map(|task| tasks::with_affinity(root, task)).filter(|task| task.cpus == now);
        let narrowed = all.map(|task| Taken {
            rules: Vec::new(),
            target: Target::Affinity(Thread::from(&task)),
            old: now.union(away).to_string(),
            new: now.to_string(),
            outcome: Some(Outcome::Exact),
        });
        narrowed.collect()
    }
}
