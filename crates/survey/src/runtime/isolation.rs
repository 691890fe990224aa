//! How far CPUs are set apart from the scheduler's load balancing: the kernel command line's list, partitions of cgroup v2,
//! exclusive cpusets of v1 (Documentation/admin-guide/cgroup-v2.rst, "Cpuset"; cgroup-v1/cpusets.rst).

use machine::cgroups::is_v2;
use machine::mounts::mounts;
use machine::tasks;
use machine::{V1, is_of_v2, partitions};
use record::{Fact, Partition};
use sysroot::SysRoot;
use units::CpuList;

use crate::survey::{NamedFact, Survey, fact};
use crate::value::{Item, Reading, Value, item, list, reading, unsupported};

pub(super) const FACTS: &[NamedFact] = &[
    fact(
        "cpus.separated",
        "out of load balancing with others: boot list, partitions, exclusive cpusets",
        |survey| reading(Fact::Value(Value::Cpus(separated(&survey.root))), SEPARATED),
    ),
    fact(
        "partitions.invalid",
        "control groups that are no valid partitions although they should be",
        invalid_partitions,
    ),
    fact(
        "cpusets.top-balances",
        "whether the top cpuset of v1 balances over exclusive ones",
        v1_top_balances,
    ),
    fact("cpus.housekeeping", "the CPUs for everything else; absent where none is left", left),
    fact("nodes.without-housekeeping", "memory nodes all of whose CPUs are set apart", nodes_without),
    fact("cpus.open", "CPUs set apart on which any program may come to run", open_cpus),
    fact(
        "tasks.on-isolated",
        "threads of programs without real time that may run on separated CPUs",
        tasks_on_isolated,
    ),
];

const BOOT_LIST: &str = "/sys/devices/system/cpu/isolated";
const SEPARATED: &str = "/sys/devices/system/cpu/isolated and the cpusets";

/// CPUs that are not set apart.
fn left(survey: &Survey) -> Reading {
    if survey.isolated.is_empty() {
        return unsupported("no CPU is isolated");
    }
    let left = survey.housekeeping();
    let value = if left.is_empty() { Fact::Absent } else { Fact::Value(Value::Cpus(left)) };
    reading(value, "/sys/devices/system/cpu/online")
}

/// Nodes with CPUs, none of which is for everything else.
fn nodes_without(survey: &Survey) -> Reading {
    const NODES: &str = "/sys/devices/system/node";
    if survey.isolated.is_empty() {
        return unsupported("no CPU is isolated");
    }
    let nodes = survey.root.numbered(NODES, "node");
    if nodes.is_empty() {
        return reading(Fact::Absent, NODES);
    }
    let cpus = |node: &u32| survey.root.cpu_list(&format!("{NODES}/node{node}/cpulist")).value().cloned();
    let taken = nodes.iter().filter_map(|node| Some((node, cpus(node)?)));
    let taken = taken.filter(|(_, cpus)| !cpus.is_empty() && cpus.difference(&survey.isolated).is_empty());
    list(
        taken.map(|(node, cpus)| item(format!("node {node}"), cpus)).collect(),
        "/sys/devices/system/node/node*/cpulist",
    )
}

/// CPUs to which the scheduler brings nothing from others: listed at boot, in a partition, or in an exclusive cpuset
/// below a top one that does not balance.
fn separated(root: &SysRoot) -> CpuList {
    let boot = root.cpu_list(BOOT_LIST).value().cloned().unwrap_or_default();
    let valid = partitions(root).into_iter().filter(Partition::is_valid);
    valid.fold(boot, |all, partition| all.union(&partition.cpus))
}

fn invalid_partitions(survey: &Survey) -> Reading {
    const FROM: &str = "cpuset.cpus.partition of each control group";
    let partitions: Vec<Partition> = partitions(&survey.root).into_iter().filter(is_of_v2).collect();
    if partitions.is_empty() {
        return reading(Fact::Absent, FROM);
    }
    let invalid = partitions.into_iter().filter(|partition| !partition.is_valid());
    list(invalid.map(|partition| item(partition.group, partition.state)).collect(), FROM)
}

/// Whether the top cpuset of v1 balances; absent where no cpuset below it is exclusive, so that nobody minds.
fn v1_top_balances(survey: &Survey) -> Reading {
    let is_minded = || partitions(&survey.root).iter().any(|partition| !is_of_v2(partition));
    let balances = V1::find(&survey.root).and_then(|files| files.top_balances(&survey.root));
    let value = match balances.filter(|_| is_minded()) {
        Some(balances) => Fact::Value(Value::Flag(balances)),
        None => Fact::Absent,
    };
    reading(value, "sched_load_balance of the top cpuset")
}

/// CPUs for real time on which any program may come to run: they are not separated, the first process may use them,
/// whose CPUs all others inherit, and so may one of the system's slices.
fn open_cpus(survey: &Survey) -> Reading {
    const FROM: &str = "the cpusets, /proc/1/status and the system's slices";
    if survey.isolated.is_empty() {
        return unsupported(FROM);
    }
    let open = survey.isolated.difference(&separated(&survey.root));
    let first = survey.root.read("/proc/1/status");
    let first = first.value().and_then(|status| tasks::allowed_cpus(status));
    let open = first.map_or(open.clone(), |cpus| open.intersection(&cpus));
    reading(Fact::Value(Value::Cpus(reached_by_slices(&survey.root, &open))), FROM)
}

/// Those of `cpus` that some slice may use. Without the controller a slice may use what the top may.
fn reached_by_slices(root: &SysRoot, cpus: &CpuList) -> CpuList {
    let Some(top) = mounts(root).into_iter().find(is_v2) else { return cpus.clone() };
    let slices = ["init.scope", "system.slice", "user.slice", "machine.slice"];
    let places = slices.map(|slice| top.point.join(slice).to_string_lossy().into_owned());
    let existing: Vec<_> = places.iter().filter(|place| root.list(place).value().is_some()).collect();
    if existing.is_empty() {
        return cpus.clone();
    }
    let reach = existing.into_iter().map(|place| {
        let own = root.cpu_list(&format!("{place}/cpuset.cpus.effective"));
        own.value().map_or(cpus.clone(), |own| own.intersection(cpus))
    });
    reach.fold(CpuList::new(), |all, cpus| all.union(&cpus))
}

/// Threads of programs that may run on CPUs that are separated for real time although their process has no real-time
/// thread: somebody put them there.
fn tasks_on_isolated(survey: &Survey) -> Reading {
    const FROM: &str = "/proc/*/task/*/status";
    let apart = survey.isolated.intersection(&separated(&survey.root));
    if apart.is_empty() {
        return unsupported(FROM);
    }
    let all = tasks::all(&survey.root);
    let real_time: Vec<i32> =
        all.iter().filter(|task| task.policy.is_real_time()).map(|task| task.pid).collect();
    let programs = all.into_iter().filter(|task| !task.kernel && !real_time.contains(&task.pid));
    list(placed(&survey.root, programs, &apart), FROM)
}

/// Those that may run on some of `cpus`, each with these.
pub(super) fn placed(
    root: &SysRoot,
    threads: impl Iterator<Item = tasks::Task>,
    cpus: &CpuList,
) -> Vec<Item> {
    let items = threads.map(|task| tasks::with_affinity(root, task)).filter_map(|task| {
        let reached = task.cpus.intersection(cpus);
        (!reached.is_empty()).then(|| item(format!("{} ({})", task.name, task.tid), reached))
    });
    items.collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Isolated, shown, thread};
    use sysroot::FakeTree;

    const V2: (&str, &str) = ("/proc/self/mountinfo", "1 1 0:1 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw");
    const V1: (&str, &str) =
        ("/proc/self/mountinfo", "1 1 0:1 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset");

    #[test]
    fn boot_list_and_valid_partitions_separate() {
        let tree = FakeTree::new(&[
            V2,
            ("/sys/devices/system/cpu/isolated", "1"),
            ("/sys/fs/cgroup/rt/cpuset.cpus.partition", "isolated"),
            ("/sys/fs/cgroup/rt/cpuset.cpus.effective", "2"),
            ("/sys/fs/cgroup/rt/inner/cpuset.cpus.partition", "root"),
            ("/sys/fs/cgroup/rt/inner/cpuset.cpus.effective", "3"),
            (
                "/sys/fs/cgroup/lost/cpuset.cpus.partition",
                "isolated invalid (Parent is not a partition root)",
            ),
            ("/sys/fs/cgroup/lost/cpuset.cpus.effective", "4"),
            ("/sys/fs/cgroup/plain/memory.max", "max"),
            ("/sys/fs/cgroup/plain/hidden/cpuset.cpus.partition", "isolated"),
        ]);
        assert_eq!(shown(&tree, Isolated::None, "cpus.separated"), "1-3");
        assert_eq!(
            shown(&tree, Isolated::None, "partitions.invalid"),
            "/sys/fs/cgroup/lost: isolated invalid (Parent is not a partition root)"
        );
    }

    #[test]
    fn exclusive_cpusets_separate_where_the_top_does_not_balance() {
        let tree = FakeTree::new(&[
            V1,
            ("/sys/fs/cgroup/cpuset/cpuset.sched_load_balance", "1"),
            ("/sys/fs/cgroup/cpuset/rt/cpuset.cpu_exclusive", "1"),
            ("/sys/fs/cgroup/cpuset/rt/cpuset.cpus", "2-3"),
        ]);
        assert_eq!(shown(&tree, Isolated::None, "cpus.separated"), "");
        assert_eq!(shown(&tree, Isolated::None, "cpusets.top-balances"), "yes");
        tree.write("/sys/fs/cgroup/cpuset/cpuset.sched_load_balance", "0");
        assert_eq!(shown(&tree, Isolated::None, "cpus.separated"), "2-3");
        assert_eq!(shown(&tree, Isolated::None, "cpusets.top-balances"), "no");
        assert_eq!(shown(&tree, Isolated::None, "partitions.invalid"), "absent");
    }

    #[test]
    fn nobody_minds_balancing_without_exclusive_cpusets() {
        let tree = FakeTree::new(&[V1, ("/sys/fs/cgroup/cpuset/cpuset.sched_load_balance", "1")]);
        assert_eq!(shown(&tree, Isolated::None, "cpusets.top-balances"), "absent");
    }

    #[test]
    fn a_cpu_is_open_unless_something_keeps_programs_away() {
        let tree = FakeTree::new(&[V2, ("/proc/1/status", "Cpus_allowed_list:\t0-3\n")]);
        let open = || shown(&tree, Isolated::Cpus("2-3"), "cpus.open");
        assert_eq!(open(), "2-3");
        tree.write("/sys/fs/cgroup/system.slice/cpuset.cpus.effective", "0-2");
        tree.write("/sys/fs/cgroup/user.slice/cpuset.cpus.effective", "0-1");
        assert_eq!(open(), "2");
        tree.write("/sys/fs/cgroup/init.scope/memory.max", "max");
        assert_eq!(open(), "2-3");
        tree.write("/proc/1/status", "Cpus_allowed_list:\t0-1,3\n");
        assert_eq!(open(), "3");
        tree.write("/sys/devices/system/cpu/isolated", "2-3");
        assert_eq!(open(), "");
        assert_eq!(shown(&tree, Isolated::None, "cpus.open"), "unknown");
    }

    #[test]
    fn what_is_left_for_everything_else() {
        let tree = FakeTree::new(&[
            ("/sys/devices/system/cpu/online", "0-3"),
            ("/sys/devices/system/node/node0/cpulist", "0-1"),
            ("/sys/devices/system/node/node1/cpulist", "2-3"),
            ("/sys/devices/system/node/node2/cpulist", ""),
        ]);
        assert_eq!(shown(&tree, Isolated::Cpus("2-3"), "cpus.housekeeping"), "0-1");
        assert_eq!(shown(&tree, Isolated::Cpus("0-3"), "cpus.housekeeping"), "absent");
        assert_eq!(shown(&tree, Isolated::None, "cpus.housekeeping"), "unknown");
        assert_eq!(shown(&tree, Isolated::Cpus("2-3"), "nodes.without-housekeeping"), "node 1: 2-3");
        assert_eq!(shown(&tree, Isolated::Cpus("3"), "nodes.without-housekeeping"), "none");
        assert_eq!(shown(&FakeTree::empty(), Isolated::Cpus("3"), "nodes.without-housekeeping"), "absent");
    }

    #[test]
    fn rivals_are_threads_of_programs_without_real_time() {
        let tree = FakeTree::new(&[("/sys/devices/system/cpu/isolated", "2-3")]);
        thread(&tree, (10, 10), "shell", 0, (0, 0), "0-1");
        thread(&tree, (11, 11), "lost", 0, (0, 0), "0-2");
        thread(&tree, (12, 12), "app", 0, (0, 0), "0-3");
        thread(&tree, (12, 13), "app/rt", 0, (1, 80), "2");
        thread(&tree, (14, 14), "kthreadd", 0x0020_0000, (0, 0), "0-3");
        assert_eq!(shown(&tree, Isolated::Cpus("2-3"), "tasks.on-isolated"), "lost (11): 2");
    }
}
