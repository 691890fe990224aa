//! Real-time threads on measured CPUs while a probe runs: who goes before it, and who is held back with it.
//!
//! RT throttling (kernels before 6.12, and later ones with RT_GROUP_SCHED) stops every real-time thread of a CPU once
//! they have used up their run time of a period; the kernel says so once a boot only. The fair server (6.12) runs ordinary
//! threads before them. Both need a real-time thread that does not sleep: it is looked for by its voluntary context
//! switches, which stand still while it wants the CPU.

use record::{Fact, NeverAsleep, TaskEvidence};
use sysroot::SysRoot;
use sysroot::parsed;
use units::{CpuId, CpuList, Nanos, Policy};

use crate::tasks::{self, Task};

/// Where the scheduler tells its state (kernel/sched/debug.c, 5.13 and later; /proc/sched_debug before).
const STATE: [&str; 2] = ["/sys/kernel/debug/sched/debug", "/proc/sched_debug"];

/// The real-time threads that may run on measured CPUs, at one moment.
#[derive(Clone, Debug, Default)]
pub struct RealTime {
    threads: Vec<Thread>,
}

#[derive(Clone, Debug)]
struct Thread {
    task: Task,
    /// Whether it runs or wants to.
    ready: bool,
    voluntary: u64,
    ran: Nanos,
}

impl RealTime {
    /// Looks at all threads of the machine but those of the processes `except`. One look costs a few microseconds for each
    /// thread of the machine.
    pub fn look(root: &SysRoot, measured: &CpuList, except: &[i32]) -> Self {
        let all = tasks::all(root).into_iter();
        let strong = all.filter(|task| !except.contains(&task.pid) && task.policy.is_real_time());
        let threads = strong.filter_map(|task| Thread::read(root, task));
        let placed = threads.filter_map(|mut thread| {
            thread.task.cpus = thread.task.cpus.intersection(measured);
            (!thread.task.cpus.is_empty()).then_some(thread)
        });
        Self { threads: placed.collect() }
    }

    /// Those that run before a thread of `policy` and `priority` or beside it, but for the kernel's stop threads.
    pub fn rivals(&self, policy: Policy, priority: u32) -> Vec<TaskEvidence> {
        let tasks = self.threads.iter().map(|thread| &thread.task);
        tasks.filter(|task| task.goes_before(policy, priority)).map(Task::evidence).collect()
    }

    /// Those here and in `before`, `over` earlier, that did not sleep in between. Threads of the kernel are left out: its
    /// stop threads and interrupt threads are no spinners. `worst` is the probe's latest wake-up in that time.
    pub fn never_asleep(&self, before: &Self, over: Nanos, worst: Nanos) -> Vec<NeverAsleep> {
        let same = |one: &Thread, other: &Thread| {
            (one.task.tid, one.task.start) == (other.task.tid, other.task.start)
        };
        let awake = self.threads.iter().filter(|thread| thread.ready && !thread.task.kernel);
        let awake = awake.filter_map(|thread| {
            let before = before.threads.iter().find(|before| same(before, thread))?;
            (before.ready && before.voluntary == thread.voluntary).then(|| NeverAsleep {
                name: thread.task.name.clone(),
                tid: thread.task.tid,
                policy: thread.task.policy,
                priority: thread.task.priority,
                cpus: thread.task.cpus.clone(),
                ran: Nanos(thread.ran.0.saturating_sub(before.ran.0)),
                over,
                worst,
            })
        });
        awake.collect()
    }
}

impl Thread {
    fn read(root: &SysRoot, task: Task) -> Option<Self> {
        let file = |name: &str| root.read(&format!("/proc/{}/task/{}/{name}", task.pid, task.tid));
        let (status, stat) = (file("status"), file("stat"));
        let (status, stat) = (status.value()?, stat.value()?);
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let ticks = tasks::stat_field(stat, 14)?.saturating_add(tasks::stat_field(stat, 15)?);
        Some(Self {
            ready: field("State:")?.starts_with('R'),
            voluntary: field("voluntary_ctxt_switches:")?.parse().ok()?,
            ran: crate::cpu_times::from_ticks(ticks),
            task: Task { cpus: tasks::allowed_cpus(status)?, ..task },
        })
    }
}

/// The CPUs whose real-time threads are held back at this moment: `rt_throttled` of their run queues. Unsupported on a
/// kernel that has no such line (6.12 and later without RT_GROUP_SCHED).
pub fn held_back(root: &SysRoot) -> Fact<CpuList> {
    let mut answer = Fact::Absent;
    for path in STATE {
        match root.read(path) {
            Fact::Absent => {}
            text => {
                answer = text.and_then(|text| match text.contains(".rt_throttled") {
                    true => parsed(throttled(&text).ok_or(())),
                    false => Fact::Unsupported,
                });
                break;
            }
        }
    }
    answer
}

/// The sections `rt_rq[N]:` with `.rt_throttled : 1`.
fn throttled(text: &str) -> Option<CpuList> {
    let (mut cpu, mut found) = (None, Vec::new());
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("rt_rq[") {
            cpu = Some(CpuId(rest.split(']').next()?.parse().ok()?));
        } else if let Some(rest) = line.trim_start().strip_prefix(".rt_throttled") {
            if rest.trim_start_matches([' ', ':']).trim() != "0" {
                found.push(cpu?);
            }
        }
    }
    Some(found.into_iter().collect())
}

/// Memory of a process that is locked, in kB: VmLck of its status file, proc(5).
pub fn locked_memory(root: &SysRoot, process: i32) -> Fact<u64> {
    let status = root.read(&format!("/proc/{process}/status"));
    let line = |status: String| {
        let line = status.lines().find_map(|line| line.strip_prefix("VmLck:"))?;
        line.trim().trim_end_matches("kB").trim().parse().ok()
    };
    status.and_then(|status| parsed(line(status).ok_or(())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use sysroot::FakeTree;

    fn write(
        tree: &FakeTree,
        tid: i32,
        [priority, policy]: [u32; 2],
        state: char,
        voluntary: u64,
        ticks: u64,
    ) {
        let stat = format!(
            "{tid} (spin) {state} 1 1 1 0 -1 0 0 0 0 0 {ticks} 0 0 0 -100 0 1 0 4711 0 0 18446744073709551615 0 0 0 0 0 0 \
             0 2147483647 0 0 0 0 17 0 {priority} {policy} 0 0 0 0 0 0 0 0 0 0 0"
        );
        let status = format!(
            "Name:\tspin\nState:\t{state} (running)\nCpus_allowed_list:\t1-2\nvoluntary_ctxt_switches:\t{voluntary}\n"
        );
        tree.write(&format!("/proc/{tid}/task/{tid}/stat"), stat);
        tree.write(&format!("/proc/{tid}/task/{tid}/status"), status);
    }

    const FIFO: u32 = 1;

    #[test]
    fn a_thread_that_wants_the_cpu_all_the_time_is_found() {
        let (tree, measured) = (FakeTree::empty(), "1".parse().unwrap());
        let look = || RealTime::look(&tree.root, &measured, &[99]);
        for tid in [7, 8, 9, 99] {
            write(&tree, tid, [1, FIFO], 'R', 5, 100);
        }
        write(&tree, 10, [0, 0], 'R', 5, 100);
        let before = look();
        write(&tree, 7, [1, FIFO], 'R', 5, 120);
        write(&tree, 8, [1, FIFO], 'R', 6, 120);
        write(&tree, 9, [1, FIFO], 'S', 5, 120);
        let found = look().never_asleep(&before, Nanos::from_secs(1), Nanos::from_millis(800));
        let found: Vec<_> =
            found.iter().map(|one| (one.tid, one.ran.0 / 1_000_000, one.cpus.to_string())).collect();
        assert_eq!(found, [(7, 200, "1".to_owned())]);
        let rivals = |priority| look().rivals(Policy::Fifo, priority).len();
        assert_eq!((rivals(98), rivals(1)), (0, 3));
    }

    #[test]
    fn run_queues_that_are_held_back_are_named_by_their_cpu() {
        let tree = FakeTree::empty();
        assert_eq!(held_back(&tree.root), Fact::Absent);
        tree.write(STATE[0], "cpu#0\ncfs_rq[0]:/\n  .nr_running : 1\n");
        assert_eq!(held_back(&tree.root), Fact::Unsupported);
        let text = "rt_rq[0]:/\n  .rt_throttled                   : 0\nrt_rq[1]:/\n  .rt_throttled : 1\n  .rt_time : 200.1\n";
        tree.write(STATE[0], text);
        assert_eq!(held_back(&tree.root), Fact::Value("1".parse().unwrap()));
    }

    #[test]
    fn locked_memory_is_read_in_kilobytes() {
        let tree = FakeTree::new(&[("/proc/7/status", "VmSize:\t 100 kB\nVmLck:\t    5780 kB\n")]);
        assert_eq!(locked_memory(&tree.root, 7), Fact::Value(5_780));
        assert_eq!(locked_memory(&tree.root, 8), Fact::Absent);
    }

    proptest! {
        #[test]
        fn any_text_is_answered_without_a_panic(text in "(rt_rq\\[|[0-9:\n ]|.rt_throttled){0,20}|.{0,40}") {
            let _ = throttled(&text);
        }
    }
}
