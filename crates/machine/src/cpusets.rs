//! Partitions of CPUs: who made some, and which owns a CPU that this process may not use (Documentation/admin-guide/cgroup-v2.rst, "Cpuset";
//! cgroup-v1/cpusets.rst).

use std::collections::VecDeque;

use record::{Fact, Partition};
use sysroot::SysRoot;
use units::CpuId;

use crate::cgroups::{groups_of, is_v1, is_v2};
use crate::mounts::{Mount, mounts};
use crate::placement::processes_below;

/// Groups looked at before giving up: a machine with more has other worries.
const MOST_GROUPS: usize = 10_000;

/// The directory of the group that owns `cpu`: a valid partition of cgroup v2, or an exclusive cpuset of v1, the
/// innermost where they are nested. None if nobody does, or it cannot be seen.
pub fn partition_of(root: &SysRoot, cpu: CpuId) -> Option<String> {
    let owns = |one: &Partition| (one.is_valid() || !is_of_v2(one)) && one.cpus.contains(cpu);
    partitions(root).into_iter().rev().find(owns).map(|one| one.group)
}

/// What the state of an exclusive cpuset of v1 begins with; it goes on as that of a partition of v2 does.
const EXCLUSIVE: &str = "exclusive";

/// The partitions of cgroup v2 and the exclusive cpusets of v1 below the top groups, the valid and the invalid ones.
pub fn partitions(root: &SysRoot) -> Vec<Partition> {
    mounts(root).iter().flat_map(|mount| partitions_in(root, mount)).collect()
}

fn partitions_in(root: &SysRoot, mount: &Mount) -> Vec<Partition> {
    if is_v2(mount) {
        partitions_below(root, mount, |group| partition(root, group))
    } else if is_v1(mount, "cpuset") {
        let files = V1::of(mount);
        let balances = files.top_balances(root);
        partitions_below(root, mount, |group| exclusive(root, &files, group, balances))
    } else {
        Vec::new()
    }
}

/// Whether it is a partition of cgroup v2.
pub fn is_of_v2(partition: &Partition) -> bool {
    !partition.state.starts_with(EXCLUSIVE)
}

/// Whether a control group is a slice of systemd: processes are in groups below it, each of them a unit.
pub fn is_slice(group: &str) -> bool {
    group.ends_with(".slice")
}

/// The partition in which a process is, whoever made it: the innermost where they are nested.
pub fn partition_around(root: &SysRoot, process: i32) -> Option<Partition> {
    let groups = groups_of(root, process);
    let is_around = |partition: &Partition| {
        groups.iter().any(|group| {
            group.strip_prefix(&partition.group).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    };
    partitions(root).into_iter().rev().find(is_around)
}

/// The partition of that directory as it is now.
pub fn partition_at(root: &SysRoot, group: &str) -> Option<Partition> {
    partitions(root).into_iter().find(|partition| partition.group == group)
}

/// How many processes are in a group and in those below it.
pub fn processes_in(root: &SysRoot, group: &str) -> usize {
    processes_below(root, group).len()
}

fn partitions_below(
    root: &SysRoot,
    mount: &Mount,
    of: impl Fn(String) -> Option<Partition>,
) -> Vec<Partition> {
    groups(root, &mount.point.to_string_lossy()).into_iter().filter_map(of).collect()
}

fn partition(root: &SysRoot, group: String) -> Option<Partition> {
    let state = root.read(&format!("{group}/cpuset.cpus.partition"));
    let state = state.value().filter(|state| *state != "member")?.clone();
    let cpus = root.cpu_list(&format!("{group}/cpuset.cpus.effective"));
    Some(Partition { state, cpus: cpus.value().cloned().unwrap_or_default(), group })
}

/// Exclusive is not enough: while the top cpuset balances over all CPUs, it balances over these.
fn exclusive(root: &SysRoot, files: &V1, group: String, balances: Option<bool>) -> Option<Partition> {
    let is_exclusive = root.number(&files.file(&group, "cpu_exclusive")) == Fact::Value(1_u8);
    let cpus = root.cpu_list(&files.file(&group, "cpus")).value().cloned().unwrap_or_default();
    let state = match balances {
        Some(false) => EXCLUSIVE.to_owned(),
        Some(true) => format!("{EXCLUSIVE} invalid (the top cpuset balances over all CPUs)"),
        None => format!("{EXCLUSIVE} invalid (whether the top cpuset balances cannot be read)"),
    };
    (is_exclusive && !cpus.is_empty()).then_some(Partition { group, state, cpus })
}

/// Where the cpuset controller of v1 is mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct V1 {
    /// The top group.
    pub top: String,
    prefix: &'static str,
}

impl V1 {
    /// None where nobody has mounted it.
    pub fn find(root: &SysRoot) -> Option<Self> {
        mounts(root).iter().find(|mount| is_v1(mount, "cpuset")).map(Self::of)
    }

    /// The names of its files lack `cpuset.` where the hierarchy is mounted with `noprefix`, as the old file system is.
    fn of(mount: &Mount) -> Self {
        let bare = mount.file_system == "cpuset" || mount.options.iter().any(|option| option == "noprefix");
        let top = mount.point.to_string_lossy().trim_end_matches('/').to_owned();
        Self { top, prefix: if bare { "" } else { "cpuset." } }
    }

    /// The path of a file of a group, `cpus` for instance.
    pub fn file(&self, group: &str, name: &str) -> String {
        format!("{group}/{}{name}", self.prefix)
    }

    /// The groups below the top one, from the outer to the inner ones.
    pub fn groups(&self, root: &SysRoot) -> Vec<String> {
        groups(root, &self.top)
    }

    /// Whether the top cpuset balances load over all CPUs.
    pub fn top_balances(&self, root: &SysRoot) -> Option<bool> {
        let balances = root.number::<u8>(&self.file(&self.top, "sched_load_balance"));
        balances.value().map(|balances| *balances != 0)
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use sysroot::FakeTree;

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
            ("/proc/8/cgroup", "3:cpu:/\n0::/rt\n"),
            ("/proc/9/cgroup", "0::/user\n"),
        ]);
        let all = partitions(&tree.root);
        let cpus = "2-3".parse().unwrap();
        let (group, state) = ("/sys/fs/cgroup/rt".to_owned(), "isolated".to_owned());
        assert_eq!(all, [Partition { group, state, cpus }]);
        assert_eq!(processes_in(&tree.root, &all[0].group), 2);
        assert_eq!(partition_around(&tree.root, 8).as_ref(), all.first());
        assert_eq!(partition_around(&tree.root, 9), None);
        tree.write("/sys/fs/cgroup/rt/robot.service/cgroup.procs", "10\n");
        tree.write("/proc/10/cgroup", "0::/rt/robot.service\n");
        tree.write("/proc/11/cgroup", "0::/rtx\n");
        assert_eq!(partition_around(&tree.root, 10).as_ref(), all.first(), "in a group below");
        assert_eq!(partition_around(&tree.root, 11), None);
        assert_eq!(processes_in(&tree.root, &all[0].group), 3);
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
        let tree = FakeTree::new(&files);
        tree.write("/proc/self/mountinfo", mounts);
        let states = || partitions(&tree.root).into_iter().map(|one| (one.group.clone(), one.is_valid()));
        let rt = "/sys/fs/cgroup/cpuset/rt".to_owned();
        tree.write("/sys/fs/cgroup/cpuset/cpuset.sched_load_balance", "1");
        assert_eq!(states().collect::<Vec<_>>(), [(rt.clone(), false)]);
        tree.write("/sys/fs/cgroup/cpuset/cpuset.sched_load_balance", "0");
        assert_eq!(states().collect::<Vec<_>>(), [(rt, true)]);
        let old = "1 1 0:1 / /dev/cpuset rw - cpuset none rw";
        let files = [("/dev/cpuset/rt/cpu_exclusive", "1"), ("/dev/cpuset/rt/cpus", "1")];
        assert_eq!(owner(old, &files, 1), Some("/dev/cpuset/rt".into()));
    }
}
