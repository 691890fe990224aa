//! What the kernel takes from real-time threads: RT throttling, group budgets, the fair server.

use record::{Fact, Throttling};
use rustix::io::Errno;
use sysroot::SysRoot;
use units::Nanos;

use super::kernel::release_numbers;
use crate::cgroups;

/// Where the fair server's parameters are, one directory a CPU, in nanoseconds (kernel/sched/debug.c, 6.12).
const FAIR_SERVER: &str = "/sys/kernel/debug/sched/fair_server";

/// The first kernel whose fair server can be expected where debugfs cannot be seen.
const FAIR_SERVER_SINCE: (u32, u32) = (6, 12);

/// Reads what stands in the way of a real-time thread that never sleeps.
pub(super) fn throttling(root: &SysRoot, release: &str) -> Throttling {
    Throttling {
        runtime_us: root.number("/proc/sys/kernel/sched_rt_runtime_us"),
        period_us: root.number("/proc/sys/kernel/sched_rt_period_us"),
        group_runtime_us: group_runtime(root, None),
        fair_server_runtime: fair_server(root, release),
    }
}

/// The real-time run time of the control group of `process`, else of this one, in microseconds a period.
pub fn group_runtime(root: &SysRoot, process: Option<i32>) -> Fact<i64> {
    let group = cgroups::v1_group(root, process, "cpu");
    group.map_or(Fact::Absent, |group| root.number(&format!("{group}/cpu.rt_runtime_us")))
}

/// The largest run time per second that any CPU's fair server reserves.
///
/// Without debugfs a kernel that has the server by its version number gives unreadable (ENOENT), an older one absent.
pub fn fair_server(root: &SysRoot, release: &str) -> Fact<Nanos> {
    match root.list(FAIR_SERVER) {
        Fact::Value(cpus) => largest(cpus.iter().map(|cpu| share_of_a_second(root, cpu))),
        Fact::Absent if !debugfs_is_mounted(root) && has_fair_server(release) => {
            Fact::Unreadable(Errno::NOENT.raw_os_error())
        }
        other => other.map(|_| Nanos::ZERO),
    }
}

fn share_of_a_second(root: &SysRoot, cpu: &str) -> Fact<Nanos> {
    let figure = |name: &str| root.number::<u64>(&format!("{FAIR_SERVER}/{cpu}/{name}"));
    figure("runtime").and_then(|runtime| {
        figure("period").map(|period| {
            let share = u128::from(runtime) * 1_000_000_000 / u128::from(period.max(1));
            Nanos(u64::try_from(share).unwrap_or(u64::MAX))
        })
    })
}

/// The largest value; if one cannot be read, that.
fn largest(mut facts: impl Iterator<Item = Fact<Nanos>>) -> Fact<Nanos> {
    let Some(first) = facts.next() else { return Fact::Absent };
    facts.fold(first, |largest, fact| largest.and_then(|largest| fact.map(|value| largest.max(value))))
}

fn has_fair_server(release: &str) -> bool {
    release_numbers(release).is_some_and(|numbers| numbers >= FAIR_SERVER_SINCE)
}

/// An empty directory waits for its mount.
fn debugfs_is_mounted(root: &SysRoot) -> bool {
    root.list("/sys/kernel/debug").value().is_some_and(|names| !names.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use sysroot::FakeTree;

    #[test]
    fn the_fair_server_is_read_where_it_can_be() {
        let tree = FakeTree::empty();
        let answer = |release: &str| throttling(&tree.root, release).fair_server_runtime;
        assert_eq!(answer("6.11.0"), Fact::Absent);
        assert_eq!(answer("6.12.0"), Fact::Unreadable(Errno::NOENT.raw_os_error()));
        tree.write("/sys/kernel/debug/sched/features", "");
        assert_eq!(answer("6.12.0"), Fact::Absent);
        for (cpu, runtime, period) in [(0, "0", "1000000000"), (1, "50000000", "500000000")] {
            tree.write(&format!("{FAIR_SERVER}/cpu{cpu}/runtime"), runtime);
            tree.write(&format!("{FAIR_SERVER}/cpu{cpu}/period"), period);
        }
        assert_eq!(answer("6.12.0"), Fact::Value(Nanos::from_millis(100)));
        std::fs::create_dir_all(tree.root.path(&format!("{FAIR_SERVER}/cpu2/runtime"))).unwrap();
        assert_eq!(answer("6.12.0"), Fact::Unreadable(Errno::ISDIR.raw_os_error()));
    }

    #[test]
    fn the_budget_is_that_of_the_own_group() {
        let tree = FakeTree::new(&[
            ("/proc/self/mountinfo", "1 1 0:1 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct"),
            ("/proc/self/cgroup", "4:cpu,cpuacct:/user.slice\n"),
            ("/sys/fs/cgroup/cpu/cpu.rt_runtime_us", "950000"),
            ("/sys/fs/cgroup/cpu/user.slice/cpu.rt_runtime_us", "0"),
        ]);
        assert_eq!(throttling(&tree.root, "").group_runtime_us, Fact::Value(0));
    }

    #[test]
    fn one_cpu_that_cannot_be_read_hides_the_largest() {
        let values = [Fact::Value(Nanos(5)), Fact::Value(Nanos(9)), Fact::Value(Nanos(7))];
        assert_eq!(largest(values.into_iter()), Fact::Value(Nanos(9)));
        let hidden = [Fact::Value(Nanos(5)), Fact::Unreadable(1), Fact::Value(Nanos(7))];
        assert_eq!(largest(hidden.into_iter()), Fact::Unreadable(1));
        assert_eq!(largest(std::iter::empty()), Fact::Absent);
    }
}
