//! Threads whose CPUs the kernel forgets when it makes or takes away a partition: it lets every thread of the top group
//! run on all CPUs that are left (`cpuset_update_tasks_cpumask` in kernel/cgroup/cpuset.c). What a program has chosen
//! itself it remembers since 6.2 (`user_cpus_ptr`), what its own threads were bound to it does not.

use std::fmt;

use control::Kernel;
use machine::tasks;
use record::Fact;
use rustix::io::Errno;
use sysroot::SysRoot;
use units::{CpuList, KernelVersion};

use super::thread::Affinity;
use super::{Expansion, Form, Found, Kind, Phase, Step, Target, Thread, kernel_version};

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
pub(crate) fn forgets_programs(root: &SysRoot) -> bool {
    kernel_version(root).is_none_or(|version| version < KernelVersion::new(6, 2))
}

/// The CPUs of such a thread.
pub(super) struct Freed<'a>(pub Affinity<'a>);

impl fmt::Display for Freed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, which a partition resets", self.0)
    }
}

impl Kind for Freed<'_> {
    fn text(&self, root: &SysRoot) -> Fact<String> {
        self.0.text(root)
    }

    fn write(&self, kernel: &mut dyn Kernel, value: &str) -> Result<(), Errno> {
        self.0.write(kernel, value)
    }

    fn form(&self, text: &str) -> Form {
        self.0.form(text)
    }

    fn phase(&self) -> Phase {
        Phase::First
    }

    fn may_be_refused(&self) -> bool {
        true
    }

    fn is_reset_by_the_kernel(&self) -> bool {
        true
    }

    fn holds(&self, _now: &str, _ours: &str) -> bool {
        true
    }

    fn can_end(&self) -> bool {
        true
    }

    fn find(&self, root: &SysRoot, this: &Target) -> Found {
        self.0.find(root, this)
    }
}
