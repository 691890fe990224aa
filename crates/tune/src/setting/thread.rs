//! Threads of the kernel: where they may run, at which priority
//! (Documentation/admin-guide/kernel-per-CPU-kthreads.rst).

use machine::tasks::{self, Task};
use sysroot::SysRoot;
use units::{CpuId, CpuList};

use super::{Expansion, Target, Thread};
use crate::plan::Threads;

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
