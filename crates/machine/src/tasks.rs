//! Threads of this machine: who may run where, at which priority, and who is whose child (proc(5)).
//!
//! Threads come and go while they are read; one that is gone meanwhile is left out.

use std::collections::BTreeSet;

use record::TaskEvidence;
use sysroot::SysRoot;
use units::{CpuList, Policy};

use crate::facts::place::FIRST_PID_NAMESPACE;

/// `PF_KTHREAD` of include/linux/sched.h, the same since 2.6.28.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// `PF_NO_SETAFFINITY` of include/linux/sched.h, `PF_THREAD_BOUND` before 3.10.
const BOUND: u64 = 0x0400_0000;

/// A thread, from its `stat` and `status`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Its name, at most 15 bytes (longer for some kernel threads).
    pub name: String,
    /// The process that it belongs to.
    pub pid: i32,
    /// Its own id.
    pub tid: i32,
    /// The parent of its process.
    pub parent: i32,
    /// Its policy; the kernel's stop threads show as FIFO 99.
    pub policy: Policy,
    /// Its real-time priority, 0 for a policy without.
    pub priority: u32,
    /// The CPUs on which it may run; empty where they were not asked for or cannot be read.
    pub cpus: CpuList,
    /// Whether it is a thread of the kernel.
    pub kernel: bool,
    /// Whether the kernel refuses to let it be moved: its own threads that belong to one CPU or to a pool.
    pub bound: bool,
    /// When it started, in clock ticks since boot: tells a thread from another with a recycled id.
    pub start: u64,
}

impl Task {
    /// Whether this is a thread that stops a CPU for the kernel: it runs before everything, deadlines included.
    fn stops_its_cpu(&self) -> bool {
        self.kernel && self.name.starts_with("migration/")
    }

    /// The order in which threads take the CPU: stop, deadline, real-time priorities, everything else.
    fn rank(&self) -> u32 {
        if self.stops_its_cpu() { rank(Policy::Deadline, 0) + 1 } else { rank(self.policy, self.priority) }
    }
}

impl Task {
    /// Whether it is a real-time thread that runs before one of `policy` and `priority`, or beside it. Deadline threads
    /// count as higher than any priority. Threads of the kernel are among them, marked: `watchdogd` and interrupt threads
    /// belong to every kernel, and its stop threads are left out.
    pub fn goes_before(&self, policy: Policy, priority: u32) -> bool {
        self.policy.is_real_time() && !self.stops_its_cpu() && self.rank() >= rank(policy, priority)
    }

    /// The same for a record.
    pub(crate) fn evidence(&self) -> TaskEvidence {
        TaskEvidence {
            name: self.name.clone(),
            tid: self.tid,
            policy: self.policy,
            priority: self.priority,
            cpus: self.cpus.clone(),
            kernel: self.kernel,
        }
    }
}

fn rank(policy: Policy, priority: u32) -> u32 {
    match policy {
        Policy::Deadline => 100,
        Policy::Fifo | Policy::Rr => priority.min(99),
        _ => 0,
    }
}

/// A `/proc/PID/task/TID/stat` in parts: id, name, and the fields from the third on. The name stands in parentheses
/// and may hold parentheses and spaces itself.
fn parts(text: &str) -> Option<(i32, &str, Vec<&str>)> {
    let (tid, rest) = text.split_once(" (")?;
    let (name, fields) = rest.rsplit_once(") ")?;
    Some((tid.trim().parse().ok()?, name, fields.split_whitespace().collect()))
}

/// A field of such a text, counted from 1 as proc(5) does.
pub(crate) fn stat_field(text: &str, field: usize) -> Option<u64> {
    parts(text)?.2.get(field.checked_sub(3)?)?.parse().ok()
}

/// Of such a text the letter for what the thread does, its third field.
fn state_in(text: &str) -> Option<char> {
    parts(text)?.2.first()?.chars().next()
}

/// Parses `/proc/PID/task/TID/stat`.
pub(crate) fn parse_stat(pid: i32, text: &str) -> Option<Task> {
    let (tid, name, fields) = parts(text)?;
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    Some(Task {
        name: name.to_owned(),
        pid,
        tid,
        parent: fields.get(4 - 3)?.parse().ok()?,
        policy: Policy::from_number(u32::try_from(number(41)?).ok()?),
        priority: u32::try_from(number(40)?).ok()?,
        cpus: CpuList::new(),
        kernel: number(9)? & KERNEL_THREAD != 0,
        bound: number(9)? & BOUND != 0,
        start: number(22)?,
    })
}

/// The line `Cpus_allowed_list:` of a status file.
pub fn allowed_cpus(status: &str) -> Option<CpuList> {
    status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?.parse().ok()
}

/// A thread without its affinity; none where there is no such thread.
pub fn task(root: &SysRoot, pid: i32, tid: i32) -> Option<Task> {
    parse_stat(pid, root.read(&format!("/proc/{pid}/task/{tid}/stat")).value()?)
}

/// The letter for what a thread does, as `R` (proc_pid_stat(5)); none where there is no such thread.
pub fn state(root: &SysRoot, tid: i32) -> Option<char> {
    state_in(root.read(&format!("/proc/{tid}/stat")).value()?)
}

/// When a thread started, in clock ticks since boot; none where it has ended, though nobody has asked for its exit code yet.
pub fn start_of_living(root: &SysRoot, tid: i32) -> Option<u64> {
    let stat = root.read(&format!("/proc/{tid}/stat"));
    let text = stat.value()?;
    let has_ended = matches!(state_in(text)?, 'Z' | 'X');
    stat_field(text, 22).filter(|_| !has_ended)
}

/// Whether a thread runs or waits for nothing but a CPU; none where there is no such thread.
pub fn is_ready(root: &SysRoot, tid: i32) -> Option<bool> {
    state(root, tid).map(|state| state == 'R')
}

/// How often a thread was given a CPU since it began; none where there is no such thread, or the kernel does not count
/// (CONFIG_SCHED_INFO).
pub fn runs(root: &SysRoot, tid: i32) -> Option<u64> {
    root.read(&format!("/proc/{tid}/schedstat")).value()?.split_whitespace().nth(2)?.parse().ok()
}

/// All threads of the machine, without their affinities.
pub fn all(root: &SysRoot) -> Vec<Task> {
    processes(root).into_iter().flat_map(|pid| threads_without_affinity(root, pid)).collect()
}

/// The same thread with its affinity.
pub fn with_affinity(root: &SysRoot, task: Task) -> Task {
    let status = root.read(&format!("/proc/{}/task/{}/status", task.pid, task.tid));
    let cpus = status.value().and_then(|text| allowed_cpus(text)).unwrap_or_default();
    Task { cpus, ..task }
}

/// The ids of all processes, kernel threads among them.
pub(crate) fn processes(root: &SysRoot) -> Vec<i32> {
    ids(root, "/proc")
}

pub(crate) fn ids(root: &SysRoot, directory: &str) -> Vec<i32> {
    root.numbered(directory, "").into_iter().filter_map(|id| i32::try_from(id).ok()).collect()
}

/// The ids of a process's threads; none if it is gone.
pub fn thread_ids(root: &SysRoot, pid: i32) -> Vec<i32> {
    ids(root, &format!("/proc/{pid}/task"))
}

/// The threads of a process, affinity included; none if it is gone.
pub fn threads(root: &SysRoot, pid: i32) -> Vec<Task> {
    threads_without_affinity(root, pid).map(|task| with_affinity(root, task)).collect()
}

fn threads_without_affinity(root: &SysRoot, pid: i32) -> impl Iterator<Item = Task> {
    thread_ids(root, pid).into_iter().filter_map(move |tid| task(root, pid, tid))
}

/// Whether ids of threads in `/proc` are those of the kernel's trace. In a container, whose `/proc` is of another PID namespace than the
/// first, they are others (pid_namespaces(7)). None where that cannot be read.
pub fn ids_are_the_traces(root: &SysRoot) -> Option<bool> {
    root.link("/proc/1/ns/pid").value().map(|link| link == FIRST_PID_NAMESPACE)
}

/// Whether this process may not see which files a process has open.
pub fn hides_files(root: &SysRoot, pid: i32) -> bool {
    root.list(&format!("/proc/{pid}/fd")).value().is_none()
}

/// Files without a name (memfd_create(2)) that a process has open and that are called `name`: their paths.
pub fn memory_files(root: &SysRoot, pid: i32, name: &str) -> Vec<String> {
    let directory = format!("/proc/{pid}/fd");
    let target = format!("/memfd:{name} (deleted)");
    let paths = root.numbered(&directory, "").into_iter().map(|number| format!("{directory}/{number}"));
    paths.filter(|path| root.link(path).value().is_some_and(|link| *link == target)).collect()
}

/// The processes that stem from `pid`, by their first threads, parents before children. One whose parent is gone
/// belongs to its new parent.
pub fn descendants(root: &SysRoot, pid: i32) -> Vec<Task> {
    let mut rest: Vec<Task> = processes(root).into_iter().filter_map(|pid| task(root, pid, pid)).collect();
    let mut found = Vec::new();
    let mut parents = BTreeSet::from([pid]);
    while !parents.is_empty() {
        let (children, others): (Vec<_>, Vec<_>) =
            rest.into_iter().partition(|task| parents.contains(&task.parent) && task.pid != pid);
        parents = children.iter().map(|task| task.pid).collect();
        found.extend(children);
        rest = others;
    }
    found
}

/// Threads of `pid`'s descendants that are not of an ordinary policy (other, batch, idle): `name (tid) policy priority`.
pub fn outside_other(root: &SysRoot, pid: i32) -> Vec<String> {
    let threads =
        descendants(root, pid).into_iter().flat_map(|task| threads_without_affinity(root, task.pid));
    let outside = threads.filter(|task| !matches!(task.policy, Policy::Other | Policy::Batch | Policy::Idle));
    outside.map(|task| format!("{} ({}) {} {}", task.name, task.tid, task.policy, task.priority)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use sysroot::FakeTree;

    /// A stat file as the kernel writes it.
    fn stat(tid: i32, name: &str, parent: i32, flags: u64, priority: u32, policy: u32) -> String {
        format!(
            "{tid} ({name}) S {parent} 1 1 0 -1 {flags} 0 0 0 0 5 6 0 0 -100 0 1 0 4711 0 0 18446744073709551615 \
             0 0 0 0 0 0 0 2147483647 0 0 0 0 17 0 {priority} {policy} 0 0 0 0 0 0 0 0 0 0 0"
        )
    }

    /// A tree with threads: pid, tid, name, parent, flags, priority, policy, CPUs.
    type Thread<'a> = (i32, i32, &'a str, i32, u64, u32, u32, &'a str);

    fn tree(threads: &[Thread<'_>]) -> FakeTree {
        let tree = FakeTree::empty();
        for (pid, tid, name, parent, flags, priority, policy, cpus) in threads {
            let place = format!("/proc/{pid}/task/{tid}");
            tree.write(&format!("{place}/stat"), stat(*tid, name, *parent, *flags, *priority, *policy));
            let status =
                format!("Name:\t{name}\nCpus_allowed:\t3\nCpus_allowed_list:\t{cpus}\nMems_allowed:\t1\n");
            tree.write(&format!("{place}/status"), status);
        }
        tree
    }

    #[test]
    fn a_name_may_hold_anything() {
        for name in ["cat", "a b", "a) R 1 (b", "((", ") ", ""] {
            let task = parse_stat(7, &stat(8, name, 1, KERNEL_THREAD, 99, 1)).unwrap();
            assert_eq!((task.name.as_str(), task.pid, task.tid, task.parent), (name, 7, 8, 1));
            assert_eq!((task.policy, task.priority, task.kernel, task.start), (Policy::Fifo, 99, true, 4711));
        }
    }

    #[test]
    fn a_thread_that_has_ended_has_no_start() {
        for (state, start, is_ready) in
            [('R', Some(4711), true), ('S', Some(4711), false), ('Z', None, false), ('X', None, false)]
        {
            let tree = FakeTree::empty();
            let text = stat(8, "a) Z 1 (b", 1, 0, 0, 0).replace(") S 1", &format!(") {state} 1"));
            tree.write("/proc/8/stat", text);
            assert_eq!(start_of_living(&tree.root, 8), start);
            assert_eq!(super::is_ready(&tree.root, 8), Some(is_ready));
            assert_eq!((start_of_living(&tree.root, 9), super::is_ready(&tree.root, 9)), (None, None));
        }
    }

    #[test]
    fn rivals_are_of_equal_or_higher_priority_on_measured_cpus() {
        let tree = tree(&[
            (18, 18, "migration/0", 2, KERNEL_THREAD, 99, 1, "0"),
            (21, 21, "migration/1", 2, KERNEL_THREAD, 99, 1, "1"),
            (30, 30, "irq/24-eth0", 2, KERNEL_THREAD, 50, 1, "0-1"),
            (40, 40, "app", 1, 0, 0, 0, "0-1"),
            (40, 41, "app-rt", 1, 0, 80, 2, "0-1"),
            (50, 50, "reserved", 1, 0, 0, 6, "0-1"),
            (60, 60, "probe", 1, 0, 99, 1, "0-1"),
        ]);
        let cpu1: CpuList = "1".parse().unwrap();
        let names = |policy, priority| {
            let others = all(&tree.root).into_iter().filter(|task| task.pid != 60);
            let placed = others.map(|task| with_affinity(&tree.root, task));
            let rivals = placed.filter(|task| {
                task.goes_before(policy, priority) && !task.cpus.intersection(&cpu1).is_empty()
            });
            rivals.map(|rival| rival.evidence().name).collect::<Vec<_>>()
        };
        assert_eq!(names(Policy::Fifo, 98), ["reserved"]);
        assert_eq!(names(Policy::Fifo, 80), ["app-rt", "reserved"]);
        assert_eq!(names(Policy::Other, 0), ["irq/24-eth0", "app-rt", "reserved"]);
        assert_eq!(names(Policy::Deadline, 0), ["reserved"]);
    }

    #[test]
    fn descendants_are_found_through_all_generations() {
        let tree = tree(&[
            (1, 1, "init", 0, 0, 0, 0, "0"),
            (10, 10, "child", 5, 0, 0, 0, "0"),
            (9, 9, "grandchild", 10, 0, 0, 0, "0"),
            (9, 12, "thread", 10, 0, 10, 1, "0"),
            (11, 11, "newcomer", 1, 0, 10, 1, "0"),
            (5, 5, "self", 1, 0, 50, 1, "0"),
        ]);
        let names: Vec<_> = descendants(&tree.root, 5).into_iter().map(|task| task.name).collect();
        assert_eq!(names, ["child", "grandchild"]);
        assert_eq!(outside_other(&tree.root, 5), ["thread (12) fifo 10"]);
        assert_eq!(descendants(&tree.root, 4711), []);
    }

    #[test]
    fn a_loop_of_parents_ends() {
        let tree = tree(&[(5, 5, "a", 6, 0, 0, 0, "0"), (6, 6, "b", 5, 0, 0, 0, "0")]);
        assert_eq!(descendants(&tree.root, 5).len(), 1);
    }

    #[test]
    fn a_child_of_this_process_is_found_on_the_machine_at_hand() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let own = i32::try_from(std::process::id()).unwrap();
        let found = descendants(&SysRoot::live(), own);
        child.kill().unwrap();
        child.wait().unwrap();
        let id = i32::try_from(child.id()).unwrap();
        assert!(
            found.iter().any(|task| task.pid == id && task.parent == own && task.policy == Policy::Other)
        );
        let threads = threads(&SysRoot::live(), own);
        assert!(threads.iter().any(|task| task.tid == own && !task.cpus.is_empty() && !task.kernel));
    }

    proptest! {
        #[test]
        fn no_name_hides_the_fields_behind_it(name in "[()a-zA-Z0-9 ]{0,15}", tid in 1_i32..4_194_304) {
            let text = stat(tid, &name, 1, BOUND, 7, 2);
            let task = parse_stat(tid, &text).unwrap();
            prop_assert_eq!((task.name, task.tid, task.parent, task.bound, task.priority), (name, tid, 1, true, 7));
            prop_assert_eq!((state_in(&text), stat_field(&text, 22)), (Some('S'), Some(4711)));
        }

        #[test]
        fn any_text_is_answered_without_a_panic(text in "[0-9]{1,3} \\(.{0,5}\\) [a-zA-Z0-9 -]{0,90}|.{0,60}") {
            let _ = (parse_stat(1, &text), allowed_cpus(&text));
        }
    }
}
