//! Which side of a partition threads are on: those of its processes may run on its CPUs alone, those of all other
//! programs never.

use std::collections::{BTreeSet, VecDeque};

use record::Fact;
use sysroot::SysRoot;
use units::CpuList;

use crate::tasks::{self, Task, with_affinity};

/// The CPUs that the machine has, online or not.
pub fn present(root: &SysRoot) -> Fact<CpuList> {
    root.cpu_list("/sys/devices/system/cpu/present")
}

/// The processes of a control group and of all groups below it.
pub fn processes_below(root: &SysRoot, group: &str) -> BTreeSet<i32> {
    let mut waiting = VecDeque::from([group.to_owned()]);
    let mut processes = BTreeSet::new();
    while let Some(group) = waiting.pop_front() {
        let inside = root.read(&format!("{group}/cgroup.procs"));
        let inside = inside.value().into_iter().flat_map(|text| text.lines());
        processes.extend(inside.filter_map(|line| line.trim().parse::<i32>().ok()));
        let below = root.directories(&group).value().cloned().unwrap_or_default();
        waiting.extend(below.iter().map(|name| format!("{group}/{name}")));
    }
    processes
}

/// Threads of programs on the wrong side of the partition at `group`, which has `cpus`: outside of it and allowed on one
/// of them, or inside and allowed elsewhere. Threads of the kernel are left out: it binds its own.
pub fn misplaced(root: &SysRoot, group: &str, cpus: &CpuList) -> Vec<Task> {
    let look = || {
        let inside = processes_below(root, group);
        let programs = tasks::all(root).into_iter().filter(|task| !task.kernel);
        let is_misplaced = move |task: &Task| match inside.contains(&task.pid) {
            true => !task.cpus.difference(cpus).is_empty(),
            false => !task.cpus.intersection(cpus).is_empty(),
        };
        programs.map(|task| with_affinity(root, task)).filter(is_misplaced).collect::<Vec<Task>>()
    };
    let first = look();
    if first.is_empty() {
        return first;
    }
    // A process that was moved or started between the two readings is where it should be at the second look.
    let again = look();
    let is_same = |task: &Task| again.iter().any(|other| (other.tid, other.start) == (task.tid, task.start));
    first.into_iter().filter(is_same).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sysroot::FakeTree;

    fn tree(threads: &[(i32, u64, &str)]) -> FakeTree {
        let tree = FakeTree::new(&[("/group/cgroup.procs", "7\n"), ("/group/inner/cgroup.procs", "8\n")]);
        for (pid, flags, cpus) in threads {
            let place = format!("/proc/{pid}/task/{pid}");
            let rest = "0 0 0 0 0 0 0 0 20 0 1 0 40 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0";
            tree.write(&format!("{place}/stat"), format!("{pid} (some) S 1 1 1 0 -1 {flags} {rest}\n"));
            tree.write(&format!("{place}/status"), format!("Cpus_allowed_list:\t{cpus}\n"));
        }
        tree
    }

    #[test]
    fn a_thread_on_the_wrong_side_of_a_partition_is_found() {
        const KERNEL: u64 = 0x0020_0000;
        let tree = tree(&[
            (2, KERNEL, "2"),
            (5, 0, "0-1"),
            (6, 0, "0-3"),
            (7, 0, "2-3"),
            (8, 0, "3"),
            (9, 0, "1-2"),
        ]);
        let found = misplaced(&tree.root, "/group", &"2-3".parse().unwrap());
        assert_eq!(found.iter().map(|task| task.pid).collect::<Vec<_>>(), [6, 9]);
        tree.write("/proc/8/task/8/status", "Cpus_allowed_list:\t0-3\n");
        let found = misplaced(&tree.root, "/group", &"2-3".parse().unwrap());
        assert_eq!(found.iter().map(|task| task.pid).collect::<Vec<_>>(), [6, 8, 9]);
        assert_eq!(processes_below(&tree.root, "/group"), [7, 8].into());
    }
}
