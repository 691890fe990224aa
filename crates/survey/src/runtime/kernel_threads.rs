//! Threads of the kernel that may run on CPUs for real time although they could run elsewhere
//! (Documentation/admin-guide/kernel-per-CPU-kthreads.rst).

use machine::tasks::{self, Task};

use super::isolation::placed;
use crate::survey::{NamedFact, Survey, fact};
use crate::value::{Reading, list, unsupported};

pub(super) const FACTS: &[NamedFact] = &[
    fact(
        "kernel-threads.on-isolated",
        "threads of the kernel that can be moved and may run on CPUs set apart",
        |survey| movable(survey, |task| !is_of_rcu(task)),
    ),
    fact("rcu-threads.on-isolated", "the same of RCU's threads", |survey| movable(survey, is_of_rcu)),
];

/// RCU's threads that wait for grace periods and call back for offloaded CPUs (kernel/rcu).
fn is_of_rcu(task: &Task) -> bool {
    task.name.starts_with("rcu")
}

/// Threads of the kernel that it lets others move, except those of interrupts, which follow their interrupts.
fn movable(survey: &Survey, wanted: impl Fn(&Task) -> bool) -> Reading {
    const FROM: &str = "/proc/*/status";
    if survey.isolated.is_empty() {
        return unsupported(FROM);
    }
    let threads = tasks::all(&survey.root).into_iter();
    let movable = threads.filter(|task| task.kernel && !task.bound && !task.name.starts_with("irq/"));
    list(placed(&survey.root, movable.filter(|task| wanted(task)), &survey.isolated), FROM)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Isolated, shown, thread};
    use sysroot::FakeTree;

    const KERNEL: u64 = 0x0020_0000;
    const BOUND: u64 = 0x0400_0000;

    #[test]
    fn only_what_can_be_moved_is_reported() {
        let tree = FakeTree::empty();
        thread(&tree, (2, 2), "kthreadd", KERNEL, (0, 0), "0-3");
        thread(&tree, (3, 3), "kswapd0", KERNEL, (0, 0), "0-1");
        thread(&tree, (4, 4), "ksoftirqd/2", KERNEL | BOUND, (0, 0), "2");
        thread(&tree, (5, 5), "irq/24-eth0", KERNEL, (1, 50), "2");
        thread(&tree, (6, 6), "rcuop/3", KERNEL, (0, 0), "0-3");
        thread(&tree, (7, 7), "shell", 0, (0, 0), "0-3");
        let isolated = Isolated::Cpus("2-3");
        assert_eq!(shown(&tree, isolated, "kernel-threads.on-isolated"), "kthreadd (2): 2-3");
        assert_eq!(shown(&tree, isolated, "rcu-threads.on-isolated"), "rcuop/3 (6): 2-3");
        assert_eq!(shown(&tree, Isolated::None, "rcu-threads.on-isolated"), "unknown");
    }
}
