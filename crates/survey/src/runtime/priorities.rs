//! Real-time threads that stand in each other's way.

use std::collections::BTreeMap;

use machine::tasks::{self, Task};
use record::Fact;
use sysroot::SysRoot;
use units::{CpuId, Policy};

use crate::survey::{NamedFact, Survey, fact};
use crate::value::{Item, Reading, Value, item, list, reading, unsupported};

pub(super) const FACTS: &[NamedFact] = &[
    fact("threads.at-99", "threads of programs with priority 99", threads_at_99),
    fact(
        "threads.equal-on-isolated",
        "threads of programs with the same priority on a CPU set apart",
        equal_on_isolated,
    ),
    fact(
        "kernel-threads.per-cpu-priorities",
        "priorities of ktimers and rcuc on CPUs for real time",
        per_cpu_threads,
    ),
    fact(
        "rcu-boost.outranked",
        "threads of programs on CPUs for real time that go before the threads by which RCU helps preempted readers",
        outranking_boost,
    ),
    fact("threads.behind-ktimers", "threads whose timers expire behind another thread", |survey| {
        waiters_behind_ktimers(survey, |_| true)
    }),
];

const THREADS: &str = "/proc/*/task/*/{stat,status}";

/// A thread's name, id, policy and priority.
pub(super) fn named(task: &Task) -> String {
    format!("{} ({}) {} {}", task.name, task.tid, task.policy, task.priority)
}

/// Threads of programs with a real-time priority, with the CPUs on which they may run.
fn of_programs(root: &SysRoot) -> Vec<Task> {
    let prior = |task: &Task| !task.kernel && matches!(task.policy, Policy::Fifo | Policy::Rr);
    tasks::all(root).into_iter().filter(prior).map(|task| tasks::with_affinity(root, task)).collect()
}

/// Threads of programs at the priority of the kernel's own that must never wait.
fn threads_at_99(survey: &Survey) -> Reading {
    let highest = of_programs(&survey.root).into_iter().filter(|task| task.priority == 99);
    list(highest.map(|task| item(format!("{} ({})", task.name, task.tid), task.policy)).collect(), THREADS)
}

/// Threads of programs with the same priority that are allowed on the same CPU for real time: each waits until the
/// other blocks.
fn equal_on_isolated(survey: &Survey) -> Reading {
    if survey.isolated.is_empty() {
        return unsupported(THREADS);
    }
    let mut shared: BTreeMap<(CpuId, u32), Vec<String>> = BTreeMap::new();
    for task in of_programs(&survey.root) {
        for cpu in task.cpus.intersection(&survey.isolated).iter() {
            shared.entry((cpu, task.priority)).or_default().push(format!("{} ({})", task.name, task.tid));
        }
    }
    let several = shared.into_iter().filter(|(_, names)| names.len() > 1);
    list(
        several
            .map(|((cpu, priority), names)| {
                item(format!("priority {priority} on CPU {cpu}"), names.join(" and "))
            })
            .collect(),
        THREADS,
    )
}

/// The kernel's threads that stand for one CPU's interrupts, timers and RCU, on the CPUs for real time, each with its
/// priority: 0 for one without. Absent in a kernel that has them not, which is one without PREEMPT_RT.
fn per_cpu_threads(survey: &Survey) -> Reading {
    let cpus = survey.real_time_cpus();
    let threads = tasks::all(&survey.root).into_iter().filter(|task| task.kernel);
    let own =
        threads.filter(|task| cpu_of(task, &["ktimers/", "rcuc/"]).is_some_and(|cpu| cpus.contains(cpu)));
    let items: Vec<Item> =
        own.map(|task| item(format!("{} ({})", task.name, task.tid), task.priority)).collect();
    if items.is_empty() { reading(Fact::Absent, "/proc/*/stat") } else { list(items, "/proc/*/stat") }
}

/// Threads of programs at or above the priority of `rcub`, at which RCU lets a preempted reader run on (kernel/rcu/tree_plugin.h):
/// one that never sleeps keeps it from doing so. Absent in a kernel without boosting.
fn outranking_boost(survey: &Survey) -> Reading {
    let kernel = tasks::all(&survey.root).into_iter().filter(|task| task.kernel);
    let boosts = kernel.filter(|task| task.name.starts_with("rcub/")).map(|task| task.priority);
    let Some(lowest) = boosts.min() else { return reading(Fact::Absent, THREADS) };
    let cpus = survey.real_time_cpus();
    let above = of_programs(&survey.root)
        .into_iter()
        .filter(|task| task.priority >= lowest && !task.cpus.intersection(&cpus).is_empty());
    list(above.map(|task| item(named(&task), format!("rcub has {lowest}"))).collect(), THREADS)
}

/// The CPU in a name such as `ktimers/2`.
fn cpu_of(task: &Task, prefixes: &[&str]) -> Option<CpuId> {
    prefixes.iter().find_map(|prefix| task.name.strip_prefix(prefix)?.parse().ok()).map(CpuId)
}

/// The kernel's thread in which timers of a CPU expire on PREEMPT_RT.
struct Expiry {
    name: String,
    priority: u32,
}

/// By CPU: `ktimers`, where the kernel has no such threads (6.12 without the real-time patches) `ksoftirqd`, which has
/// no priority at all; nothing without PREEMPT_RT, where timers expire in the interrupt (`hrtimer_init` in
/// kernel/time/hrtimer.c, `invoke_softirq` in kernel/softirq.c).
fn expiry(survey: &Survey) -> BTreeMap<CpuId, Expiry> {
    let is_real_time = survey.read("preemption").value == Fact::Value(Value::Text("rt".to_owned()));
    let kernel: Vec<Task> = tasks::all(&survey.root).into_iter().filter(|task| task.kernel).collect();
    let named = |prefixes: &[&str]| {
        let threads = kernel.iter().filter_map(|task| {
            let Task { name, priority, .. } = task.clone();
            Some((cpu_of(task, prefixes)?, Expiry { name, priority }))
        });
        threads.collect::<BTreeMap<_, _>>()
    };
    let own = named(&["ktimers/", "ktimersoftd/"]);
    if !is_real_time {
        BTreeMap::new()
    } else if own.is_empty() {
        named(&["ksoftirqd/"])
    } else {
        own
    }
}

/// Threads that wait for a timerfd, an io_uring timeout or a POSIX timer on a CPU where a thread of lower priority runs
/// before the one in which such timers expire: while it runs, the timer does not. Waiting by clock_nanosleep, futex or
/// epoll is not harmed: timers of sleeping real-time threads expire in the interrupt itself. Absent without PREEMPT_RT.
pub(super) fn waiters_behind_ktimers(survey: &Survey, wanted: impl Fn(&Task) -> bool) -> Reading {
    let expiry = expiry(survey);
    if expiry.is_empty() {
        return reading(Fact::Absent, THREADS);
    }
    let threads = of_programs(&survey.root);
    let waiters = threads.iter().filter(|task| wanted(task));
    let harmed = waiters.filter_map(|waiter| {
        let (hog, thread) =
            threads.iter().find_map(|other| Some((other, held_up(other, waiter, &expiry)?)))?;
        let timer = soft_timer(&survey.root, waiter.pid)?;
        let late = format!("{timer} expires in {} {}, behind {}", thread.name, thread.priority, named(hog));
        Some(item(named(waiter), late))
    });
    list(harmed.collect(), THREADS)
}

/// The timers' thread of a CPU that both may use, if `other` runs below `waiter` and above that thread.
fn held_up<'a>(other: &Task, waiter: &Task, expiry: &'a BTreeMap<CpuId, Expiry>) -> Option<&'a Expiry> {
    if other.tid == waiter.tid || other.priority >= waiter.priority {
        return None;
    }
    let shared = other.cpus.intersection(&waiter.cpus);
    let threads = shared.iter().filter_map(|cpu| expiry.get(&cpu));
    threads.into_iter().find(|thread| thread.priority < other.priority)
}

/// By what a process may wait that expires in `ktimers`.
fn soft_timer(root: &SysRoot, pid: i32) -> Option<&'static str> {
    let files = root.list(&format!("/proc/{pid}/fd"));
    let links = files.value().into_iter().flatten().map(|file| root.link(&format!("/proc/{pid}/fd/{file}")));
    let kinds = [("anon_inode:[timerfd]", "timerfd"), ("anon_inode:[io_uring]", "io_uring")];
    let open =
        |link: Fact<String>| kinds.iter().find(|(target, _)| link.value().is_some_and(|link| link == target));
    let named = links.into_iter().find_map(open).map(|(_, name)| *name);
    named.or_else(|| {
        let timers = root.read(&format!("/proc/{pid}/timers"));
        timers.value().is_some_and(|text| text.contains("ID:")).then_some("a POSIX timer")
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Isolated, link, shown, thread};
    use sysroot::FakeTree;

    const KERNEL: u64 = 0x0420_0040;

    /// A control program that waits by timerfd at 80 beside a worker at 10, on a kernel with `name`.
    fn machine(version: &str, kernel_thread: (&str, (u32, u32))) -> FakeTree {
        let tree =
            FakeTree::new(&[("/proc/sys/kernel/version", version), ("/proc/sys/kernel/osrelease", "6.12.1")]);
        thread(&tree, (20, 20), kernel_thread.0, KERNEL, kernel_thread.1, "2");
        thread(&tree, (30, 30), "control", 0, (1, 80), "2");
        thread(&tree, (40, 40), "worker", 0, (1, 10), "2-3");
        link(&tree, "/proc/30/fd/4", "anon_inode:[timerfd]");
        tree
    }

    const RT: &str = "#1 SMP PREEMPT_RT";

    #[test]
    fn a_busy_lesser_thread_holds_up_timers() {
        let behind = |tree: &FakeTree| shown(tree, Isolated::None, "threads.behind-ktimers");
        let late = "control (30) fifo 80: timerfd expires in ktimers/2 1, behind worker (40) fifo 10";
        assert_eq!(behind(&machine(RT, ("ktimers/2", (1, 1)))), late);
        assert_eq!(
            behind(&machine(RT, ("ksoftirqd/2", (0, 0)))),
            late.replace("ktimers/2 1", "ksoftirqd/2 0")
        );
    }

    #[test]
    fn raised_ktimers_another_wait_or_another_kernel_are_not_harmed() {
        let behind = |tree: &FakeTree| shown(tree, Isolated::None, "threads.behind-ktimers");
        assert_eq!(behind(&machine(RT, ("ktimers/2", (1, 85)))), "none");
        assert_eq!(behind(&machine("#1 SMP PREEMPT", ("ksoftirqd/2", (0, 0)))), "absent");
        let tree = machine(RT, ("ktimers/2", (1, 1)));
        std::fs::remove_file(tree.root.path("/proc/30/fd/4")).unwrap();
        link(&tree, "/proc/30/fd/4", "anon_inode:[eventfd]");
        assert_eq!(behind(&tree), "none");
    }

    #[test]
    fn equals_and_99s_are_reported() {
        let tree = FakeTree::empty();
        thread(&tree, (30, 30), "a", 0, (1, 99), "2");
        thread(&tree, (31, 31), "b", 0, (2, 99), "2-3");
        thread(&tree, (32, 32), "c", 0, (1, 50), "3");
        thread(&tree, (33, 33), "irq/9", KERNEL, (1, 50), "3");
        let isolated = Isolated::Cpus("2-3");
        assert_eq!(shown(&tree, isolated, "threads.at-99"), "a (30): fifo, b (31): rr");
        assert_eq!(
            shown(&tree, isolated, "threads.equal-on-isolated"),
            "priority 99 on CPU 2: a (30) and b (31)"
        );
        assert_eq!(shown(&tree, Isolated::None, "threads.equal-on-isolated"), "unknown");
    }

    #[test]
    fn threads_that_stand_for_one_cpu_have_priorities() {
        let tree = FakeTree::new(&[("/sys/devices/system/cpu/online", "0-3")]);
        assert_eq!(shown(&tree, Isolated::None, "kernel-threads.per-cpu-priorities"), "absent");
        thread(&tree, (20, 20), "ktimers/2", KERNEL, (1, 1), "2");
        thread(&tree, (21, 21), "rcuc/1", KERNEL, (1, 4), "1");
        let priorities = |isolated| shown(&tree, isolated, "kernel-threads.per-cpu-priorities");
        assert_eq!(priorities(Isolated::None), "ktimers/2 (20): 1, rcuc/1 (21): 4");
        assert_eq!(priorities(Isolated::Cpus("2-3")), "ktimers/2 (20): 1");
    }
}
