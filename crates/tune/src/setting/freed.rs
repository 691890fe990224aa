//! Threads whose CPUs the kernel forgets when it makes or takes away a partition: it lets every thread of the top group
//! run on all CPUs that are left (`cpuset_update_tasks_cpumask` in kernel/cgroup/cpuset.c). What a program has chosen
//! itself it remembers since 6.2 (`user_cpus_ptr`), what its own threads were bound to it does not.

use machine::tasks;
use sysroot::SysRoot;
use units::{CpuList, KernelVersion};

use super::{Expansion, Target, Thread, kernel_version};
use crate::plan::Step;

/// Each such thread that is bound to some CPUs, on those that the partition of `isolated` leaves.
pub(super) fn expand(root: &SysRoot, expansion: &mut Expansion, isolated: &CpuList) {
    let online = root.cpu_list("/sys/devices/system/cpu/online");
    let Some(all) = online.value() else { return };
    let left = all.difference(isolated);
    let is_forgotten = |task: &tasks::Task| if task.kernel { !task.bound } else { forgets_programs(root) };
    for task in tasks::all(root).into_iter().filter(is_forgotten) {
        let thread = Thread::from(&task);
        let cpus = tasks::with_affinity(root, task).cpus;
        if !cpus.is_empty() && !all.difference(&cpus).is_empty() {
            let step = Step::new(Target::Freed(thread), cpus.to_string(), left.to_string());
            expansion.steps.push(step);
        }
    }
}

/// Whether this kernel is older than 6.2.
fn forgets_programs(root: &SysRoot) -> bool {
    kernel_version(root).is_none_or(|version| version < KernelVersion::new(6, 2))
}
