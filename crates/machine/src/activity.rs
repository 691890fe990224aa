//! What ran on which CPU: interrupts, softirqs and threads, counted at one moment, and what was added between two.
//!
//! Reading interrupts no other CPU: /proc/interrupts, /proc/softirqs, /proc/schedstat and the threads' own `stat` and
//! `schedstat` are sums that the kernel keeps anyway (proc(5), Documentation/scheduler/sched-stats.rst).

use std::collections::BTreeMap;

use record::Fact;
use serde::{Deserialize, Serialize};
use sysroot::SysRoot;
use units::{CpuId, CpuList, Nanos};

use crate::cpu_times::{CpuTime, cpu_times};
use crate::interrupts;
use crate::tasks::{Task, ids, parse_stat, processes, stat_field, with_affinity};

mod tally;

pub use tally::Tally;

const SOFTIRQS: &str = "/proc/softirqs";
const SLICES: &str = "/proc/schedstat";
const OWN_SLICES: &str = "/proc/self/schedstat";

/// The machine's counters of activity at one moment.
#[derive(Clone, Debug, Default)]
pub struct Activity {
    interrupts: Fact<Rows>,
    softirqs: Fact<Rows>,
    /// Before the threads were looked at, and after: what is given away meanwhile is between the two.
    slices: [Fact<BTreeMap<CpuId, u64>>; 2],
    stolen: Fact<BTreeMap<CpuId, CpuTime>>,
    online: Fact<CpuList>,
    own_slices: Fact<()>,
    threads: BTreeMap<(i32, u64), Thread>,
}

/// Rows by their names.
type Rows = BTreeMap<String, Row>;

/// A row of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Row {
    /// What stands behind the counts: a controller, a source, handlers.
    pub(crate) words: String,
    pub(crate) counts: BTreeMap<CpuId, u64>,
}

/// A thread, and what it has used up so far.
#[derive(Clone, Debug)]
struct Thread {
    task: Task,
    cpu: CpuId,
    faults: u64,
    time: Nanos,
    slices: u64,
}

impl Thread {
    /// Whether it may run where it ran last: one that was moved while it slept is there in name only.
    fn may_run(&self) -> bool {
        self.task.cpus.is_empty() || self.task.cpus.contains(self.cpu)
    }
}

/// What disturbs a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A row of /proc/interrupts; events are interrupts.
    Interrupt,
    /// A row of /proc/softirqs; events are runs.
    Softirq,
    /// A thread of the kernel; events are slices of time that it got.
    KernelThread,
    /// A thread of a program that may run elsewhere too; events are slices of time.
    UnpinnedThread,
    /// A thread that is bound to the CPUs in question: what they are for. Events are slices of time.
    PinnedThread,
    /// Page faults of a thread of a program.
    PageFault,
    /// Slices of threads that had ended, or had gone elsewhere, when they were looked for: at least so many.
    Unseen,
    /// A thread that was given the CPU, as tracing tells: also one that no look found.
    Passing,
    /// A function that another CPU had run here, as tracing tells.
    Call,
    /// A work function of the kernel, as tracing tells.
    Work,
    /// A timer's function, as tracing tells.
    Timer,
    /// Why the tick went on, as tracing tells.
    Tick,
    /// A system call of a thread, as tracing tells.
    SystemCall,
    /// Time in which the hypervisor ran something else; events are clock ticks of the kernel.
    Steal,
}

/// What one thing did on one CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Residue {
    /// The CPU that did it.
    pub cpu: CpuId,
    /// What sort of thing.
    pub kind: Kind,
    /// Its row, or the thread's name.
    pub name: String,
    /// What the kernel says of the row; the id of a thread of a program, and the number of its system call; who sent a
    /// call.
    pub words: String,
    /// How often. Of a thread that came or went this is an upper bound: it had slices elsewhere too.
    pub events: u64,
    /// How long a thread ran; zero for everything else.
    pub time: Nanos,
}

impl Activity {
    /// Counts everything. Threads that are on one of `cpus` are asked where they may run.
    pub fn take(root: &SysRoot, cpus: &CpuList) -> Self {
        let slices_now = || root.read(SLICES).map(|text| slices(&text));
        let before = slices_now();
        let threads = threads(root, cpus);
        Self {
            slices: [before, slices_now()],
            stolen: cpu_times(root),
            online: root.cpu_list("/sys/devices/system/cpu/online"),
            interrupts: root.read(interrupts::PATH).map(|text| rows(&text)),
            softirqs: root.read(SOFTIRQS).map(|text| rows(&text)),
            own_slices: root.read(OWN_SLICES).map(drop),
            threads,
        }
    }

    /// What could not be counted, in words, each with the place where it should stand.
    pub fn missing(&self) -> Vec<String> {
        let facts = [
            (interrupts::PATH, "interrupts", self.interrupts.value().is_some()),
            (SOFTIRQS, "softirqs", self.softirqs.value().is_some()),
            (SLICES, "threads that end or pass by", self.slices.iter().all(|one| one.value().is_some())),
            ("/proc/stat", "time taken by a hypervisor", self.stolen.value().is_some()),
            (OWN_SLICES, "slices of threads", self.own_slices.value().is_some()),
        ];
        let missing = facts.into_iter().filter(|(.., is_there)| !is_there);
        missing.map(|(path, what, _)| format!("{what}: no {path}")).collect()
    }
}

/// The rows of a table with the CPUs as its head. Rows of fewer counts are sums of all CPUs and left out.
pub(crate) fn rows(text: &str) -> Rows {
    let mut lines = text.lines();
    let head = lines.next().unwrap_or_default().split_whitespace();
    let cpus: Vec<CpuId> =
        head.filter_map(|word| word.strip_prefix("CPU")?.parse().ok().map(CpuId)).collect();
    let row = |line: &str| {
        let (name, rest) = line.trim_start().split_once(':')?;
        let mut words = rest.split_whitespace();
        let counts: Vec<u64> = words.by_ref().take(cpus.len()).map_while(|word| word.parse().ok()).collect();
        let words = words.collect::<Vec<_>>().join(" ");
        let counts = (counts.len() == cpus.len()).then(|| cpus.iter().copied().zip(counts).collect())?;
        Some((name.to_owned(), Row { words, counts }))
    };
    lines.filter_map(row).collect()
}

/// How often each CPU was given to a thread: the ninth figure of its line, kept without `kernel.sched_schedstats` too.
fn slices(text: &str) -> BTreeMap<CpuId, u64> {
    text.lines().filter_map(slices_of).collect()
}

fn slices_of(line: &str) -> Option<(CpuId, u64)> {
    let mut words = line.strip_prefix("cpu")?.split_whitespace();
    Some((CpuId(words.next()?.parse().ok()?), words.nth(8)?.parse().ok()?))
}

fn threads(root: &SysRoot, cpus: &CpuList) -> BTreeMap<(i32, u64), Thread> {
    let mut threads = BTreeMap::new();
    for pid in processes(root) {
        for tid in ids(root, &format!("/proc/{pid}/task")) {
            let Some(mut thread) = thread(root, pid, tid) else { continue };
            if cpus.contains(thread.cpu) {
                thread.task = with_affinity(root, thread.task);
            }
            threads.insert((thread.task.tid, thread.task.start), thread);
        }
    }
    threads
}

fn thread(root: &SysRoot, pid: i32, tid: i32) -> Option<Thread> {
    let directory = format!("/proc/{pid}/task/{tid}");
    let stat = root.read(&format!("{directory}/stat"));
    let stat = stat.value()?;
    let schedstat = root.read(&format!("{directory}/schedstat"));
    let used: Vec<u64> = schedstat
        .value()
        .map(|text| text.split_whitespace().map_while(|word| word.parse().ok()).collect())
        .unwrap_or_default();
    Some(Thread {
        task: parse_stat(pid, stat)?,
        cpu: CpuId(u32::try_from(stat_field(stat, 39)?).ok()?),
        faults: stat_field(stat, 10)?.saturating_add(stat_field(stat, 12)?),
        time: Nanos(used.first().copied().unwrap_or_default()),
        slices: used.get(2).copied().unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests;
