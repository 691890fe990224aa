//! Which control group owns a CPU that this process may not use (Documentation/admin-guide/cgroup-v2.rst, "Cpuset";
//! cgroup-v1/cpusets.rst).

use std::collections::VecDeque;

use units::{CpuId, CpuList};

use crate::SysRoot;
use crate::cgroups::{is_v1, is_v2};
use crate::mounts::mounts;

/// Groups looked at before giving up: a machine with more has other worries.
const MOST_GROUPS: usize = 10_000;

/// The directory of the group that owns `cpu`: a partition of cgroup v2, or an exclusive cpuset of v1, the innermost
/// where they are nested. None if nobody does, or it cannot be seen.
pub fn partition_of(root: &SysRoot, cpu: CpuId) -> Option<String> {
    let mounts = mounts(root);
    mounts.iter().find_map(|mount| {
        let owns: fn(&SysRoot, &str, CpuId) -> bool = match mount {
            mount if is_v2(mount) => is_partition_with,
            mount if is_v1(mount, "cpuset") => is_exclusive_with,
            _ => return None,
        };
        let groups = groups(root, &mount.point.to_string_lossy());
        groups.into_iter().rev().find(|group| owns(root, group, cpu))
    })
}

/// A partition of cgroup v2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Its directory.
    pub group: String,
    /// What the kernel calls it: `isolated`, `root`, or `isolated invalid (why)`.
    pub state: String,
    /// The CPUs that it has.
    pub cpus: CpuList,
    /// How many processes are in it.
    pub processes: usize,
}

/// The partitions of cgroup v2 below the top group, the valid and the invalid ones.
pub fn partitions(root: &SysRoot) -> Vec<Partition> {
    let tops = mounts(root).into_iter().filter(is_v2);
    let groups = tops.flat_map(|mount| groups(root, &mount.point.to_string_lossy()));
    groups.filter_map(|group| partition(root, group)).collect()
}

fn partition(root: &SysRoot, group: String) -> Option<Partition> {
    let state = root.read(&format!("{group}/cpuset.cpus.partition"));
    let state = state.value().filter(|state| *state != "member")?.clone();
    let cpus = root.cpu_list(&format!("{group}/cpuset.cpus.effective"));
    let processes = root.read(&format!("{group}/cgroup.procs"));
    let processes = processes.value().map_or(0, |text| text.lines().count());
    Some(Partition { state, cpus: cpus.value().cloned().unwrap_or_default(), processes, group })
}

/// The groups below the top one, from the outer to the inner ones.
fn groups(root: &SysRoot, top: &str) -> Vec<String> {
    let mut waiting = VecDeque::from([top.trim_end_matches('/').to_owned()]);
    let mut groups = Vec::new();
    while let Some(group) = waiting.pop_front().filter(|_| groups.len() < MOST_GROUPS) {
        let below = root.directories(&group).value().cloned().unwrap_or_default();
        waiting.extend(below.iter().map(|name| format!("{group}/{name}")));
        groups.push(group);
    }
    groups.split_off(1)
}

/// A valid partition reads `root` or `isolated`, one that lost its CPUs `isolated invalid (why)`.
fn is_partition_with(root: &SysRoot, group: &str, cpu: CpuId) -> bool {
    let partition = root.read(&format!("{group}/cpuset.cpus.partition"));
    partition.value().is_some_and(|state| matches!(state.as_str(), "root" | "isolated"))
        && holds(root, &format!("{group}/cpuset.cpus.effective"), cpu)
}

/// The names lack `cpuset.` where the hierarchy is mounted with `noprefix`.
fn is_exclusive_with(root: &SysRoot, group: &str, cpu: CpuId) -> bool {
    ["cpuset.", ""].iter().any(|prefix| {
        root.number(&format!("{group}/{prefix}cpu_exclusive")).value() == Some(&1_u8)
            && holds(root, &format!("{group}/{prefix}cpus"), cpu)
    })
}

fn holds(root: &SysRoot, list: &str, cpu: CpuId) -> bool {
    root.cpu_list(list).value().is_some_and(|cpus| cpus.contains(cpu))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::FakeTree;

    fn owner(mounts: &str, files: &[(&str, &str)], cpu: u32) -> Option<String> {
        let tree = FakeTree::new(files);
        tree.write("/proc/self/mountinfo", mounts);
        partition_of(&tree.root, CpuId(cpu))
    }

    #[test]
    fn a_partition_of_v2_owns_its_effective_cpus() {
        let mounts = "1 1 0:1 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw";
        let files = [
            ("/sys/fs/cgroup/user/cpuset.cpus.partition", "member"),
            ("/sys/fs/cgroup/user/cpuset.cpus.effective", "0-1"),
            ("/sys/fs/cgroup/rt/cpuset.cpus.partition", "isolated"),
            ("/sys/fs/cgroup/rt/cpuset.cpus.effective", "2"),
            ("/sys/fs/cgroup/rt/inner/cpuset.cpus.partition", "root"),
            ("/sys/fs/cgroup/rt/inner/cpuset.cpus.effective", "3"),
            (
                "/sys/fs/cgroup/lost/cpuset.cpus.partition",
                "isolated invalid (Cpu list in cpuset.cpus not exclusive)",
            ),
            ("/sys/fs/cgroup/lost/cpuset.cpus.effective", "1"),
        ];
        assert_eq!(owner(mounts, &files, 2), Some("/sys/fs/cgroup/rt".into()));
        assert_eq!(owner(mounts, &files, 3), Some("/sys/fs/cgroup/rt/inner".into()));
        assert_eq!(owner(mounts, &files, 1), None);
    }

    #[test]
    fn partitions_are_listed_with_what_is_in_them() {
        let tree = FakeTree::new(&[
            ("/proc/self/mountinfo", "1 1 0:1 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw"),
            ("/sys/fs/cgroup/user/cpuset.cpus.partition", "member"),
            ("/sys/fs/cgroup/rt/cpuset.cpus.partition", "isolated"),
            ("/sys/fs/cgroup/rt/cpuset.cpus.effective", "2-3"),
            ("/sys/fs/cgroup/rt/cgroup.procs", "7\n8\n"),
        ]);
        let all = partitions(&tree.root);
        let cpus = "2-3".parse().unwrap();
        let (group, state) = ("/sys/fs/cgroup/rt".to_owned(), "isolated".to_owned());
        assert_eq!(all, [Partition { group, state, cpus, processes: 2 }]);
    }

    #[test]
    fn an_exclusive_cpuset_of_v1_owns_its_cpus() {
        let mounts = "1 1 0:1 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset";
        let files = [
            ("/sys/fs/cgroup/cpuset/cpuset.cpu_exclusive", "1"),
            ("/sys/fs/cgroup/cpuset/cpuset.cpus", "0-3"),
            ("/sys/fs/cgroup/cpuset/rt/cpuset.cpu_exclusive", "1"),
            ("/sys/fs/cgroup/cpuset/rt/cpuset.cpus", "2-3"),
            ("/sys/fs/cgroup/cpuset/nrt/cpuset.cpu_exclusive", "0"),
            ("/sys/fs/cgroup/cpuset/nrt/cpuset.cpus", "0-1"),
        ];
        assert_eq!(owner(mounts, &files, 3), Some("/sys/fs/cgroup/cpuset/rt".into()));
        assert_eq!(owner(mounts, &files, 0), None);
        let old = "1 1 0:1 / /dev/cpuset rw - cpuset none rw";
        let files = [("/dev/cpuset/rt/cpu_exclusive", "1"), ("/dev/cpuset/rt/cpus", "1")];
        assert_eq!(owner(old, &files, 1), Some("/dev/cpuset/rt".into()));
    }
}
