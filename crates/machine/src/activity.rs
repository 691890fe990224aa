//! What ran on which CPU: interrupts, softirqs and threads, counted at one moment, and what was added between two.
//!
//! Reading interrupts no other CPU: /proc/interrupts, /proc/softirqs, /proc/schedstat and the threads' own `stat` and
//! `schedstat` are sums that the kernel keeps anyway (proc(5), Documentation/scheduler/sched-stats.rst).

use std::collections::BTreeMap;

use record::Fact;
use serde::{Deserialize, Serialize};
use sysroot::SysRoot;
use units::{CpuId, CpuList, Nanos};

use crate::interrupts;
use crate::tasks::{Task, ids, parse_stat, processes, stat_field, with_affinity};

const SOFTIRQS: &str = "/proc/softirqs";
const SLICES: &str = "/proc/schedstat";
const OWN_SLICES: &str = "/proc/self/schedstat";

/// The machine's counters of activity at one moment.
#[derive(Clone, Debug, Default)]
pub struct Activity {
    interrupts: Fact<Rows>,
    softirqs: Fact<Rows>,
    slices: Fact<BTreeMap<CpuId, u64>>,
    own_slices: Fact<()>,
    threads: BTreeMap<(i32, u64), Thread>,
}

/// Counts by name and words, then by CPU.
type Rows = BTreeMap<(String, String), BTreeMap<CpuId, u64>>;

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
    /// Slices of threads that had ended, or had gone elsewhere, when they were looked for.
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
        Self {
            interrupts: root.read(interrupts::PATH).map(|text| rows(&text)),
            softirqs: root.read(SOFTIRQS).map(|text| rows(&text)),
            slices: root.read(SLICES).map(|text| slices(&text)),
            own_slices: root.read(OWN_SLICES).map(drop),
            threads: threads(root, cpus),
        }
    }

    /// What could not be counted, in words, each with the place where it should stand.
    pub fn missing(&self) -> Vec<String> {
        let facts = [
            (interrupts::PATH, "interrupts", self.interrupts.value().is_some()),
            (SOFTIRQS, "softirqs", self.softirqs.value().is_some()),
            (SLICES, "threads that end or pass by", self.slices.value().is_some()),
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
        Some(((name.to_owned(), words), counts))
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

/// What was added on some CPUs, over as many pairs of moments as one likes.
#[derive(Clone, Debug)]
pub struct Tally {
    cpus: CpuList,
    residues: BTreeMap<(CpuId, Kind, String, String), (u64, Nanos)>,
}

impl Tally {
    /// Of nothing yet, on `cpus`.
    pub fn new(cpus: CpuList) -> Self {
        Self { cpus, residues: BTreeMap::new() }
    }

    /// Adds what happened between two moments. The closer they are, the fewer threads come and go unseen.
    pub fn add(&mut self, before: &Activity, after: &Activity) {
        self.add_rows(Kind::Interrupt, &before.interrupts, &after.interrupts);
        self.add_rows(Kind::Softirq, &before.softirqs, &after.softirqs);
        let mut seen: BTreeMap<CpuId, u64> = BTreeMap::new();
        for (key, thread) in &after.threads {
            if let Some((cpu, slices)) = self.add_thread(before.threads.get(key), thread) {
                *seen.entry(cpu).or_default() += slices;
            }
        }
        let (Fact::Value(before), Fact::Value(after)) = (&before.slices, &after.slices) else { return };
        for cpu in self.cpus.clone().iter() {
            let all = increase(before.get(&cpu), after.get(&cpu));
            let unseen = all.saturating_sub(seen.get(&cpu).copied().unwrap_or_default());
            self.count((cpu, Kind::Unseen, String::new(), String::new()), unseen, Nanos::ZERO);
        }
    }

    /// All that happened, by CPU and sort, the most frequent first.
    pub fn residues(&self) -> Vec<Residue> {
        let all = self.residues.iter().map(|((cpu, kind, name, words), (events, time))| {
            let (name, words) = (name.clone(), words.clone());
            Residue { cpu: *cpu, kind: *kind, name, words, events: *events, time: *time }
        });
        let mut all: Vec<Residue> = all.collect();
        all.sort_by_key(|residue| (residue.cpu, residue.kind, std::cmp::Reverse(residue.events)));
        all
    }

    /// All residues, but for threads seen passing by tracing that the looks have named as well.
    pub fn named(&self) -> Vec<Residue> {
        let all = self.residues();
        let is_named = |passing: &Residue| {
            let same = |one: &&Residue| match one.kind {
                // Of a worker the looks say what it works on, too: `kworker/1:1-events`.
                Kind::KernelThread => one.name.split('-').next() == Some(&passing.name),
                Kind::UnpinnedThread | Kind::PinnedThread => one.name == passing.name,
                _ => false,
            };
            all.iter().filter(|one| one.cpu == passing.cpu).any(|one| same(&one))
        };
        all.iter().filter(|one| one.kind != Kind::Passing || !is_named(one)).cloned().collect()
    }

    /// Adds what others counted, tracing for one; what is on other CPUs is left out.
    pub fn add_events(&mut self, cpu: CpuId, kind: Kind, name: &str, words: &str, events: u64) {
        if self.cpus.contains(cpu) {
            self.count((cpu, kind, name.to_owned(), words.to_owned()), events, Nanos::ZERO);
        }
    }

    fn count(&mut self, key: (CpuId, Kind, String, String), events: u64, time: Nanos) {
        if events > 0 {
            let sum = self.residues.entry(key).or_default();
            *sum = (sum.0.saturating_add(events), Nanos(sum.1.0.saturating_add(time.0)));
        }
    }

    fn add_rows(&mut self, kind: Kind, before: &Fact<Rows>, after: &Fact<Rows>) {
        let (Fact::Value(before), Fact::Value(after)) = (before, after) else { return };
        for ((name, words), counts) in after {
            let earlier = before.get(&(name.clone(), words.clone()));
            for cpu in self.cpus.clone().iter() {
                let events = increase(earlier.and_then(|counts| counts.get(&cpu)), counts.get(&cpu));
                self.count((cpu, kind, name.clone(), words.clone()), events, Nanos::ZERO);
            }
        }
    }

    /// What a thread used up, where it is, else where it was. A thread that never gave the CPU away had one slice.
    fn add_thread(&mut self, before: Option<&Thread>, after: &Thread) -> Option<(CpuId, u64)> {
        let looks = [Some(after), before].into_iter().flatten();
        let there = looks.into_iter().find(|thread| self.cpus.contains(thread.cpu) && thread.may_run())?;
        let slices = increase(before.map(|thread| &thread.slices), Some(&after.slices));
        let time = Nanos(increase(before.map(|thread| &thread.time.0), Some(&after.time.0)));
        let faults = increase(before.map(|thread| &thread.faults), Some(&after.faults));
        let Task { name, tid, kernel, cpus, .. } = &there.task;
        let kind = if *kernel {
            Kind::KernelThread
        } else if !cpus.is_empty() && cpus.difference(&self.cpus).is_empty() {
            Kind::PinnedThread
        } else {
            Kind::UnpinnedThread
        };
        let words = if *kernel { String::new() } else { tid.to_string() };
        let events = slices.max(u64::from(time > Nanos::ZERO));
        self.count((there.cpu, kind, name.clone(), words.clone()), events, time);
        if !kernel && events > 0 {
            self.count((there.cpu, Kind::PageFault, name.clone(), words), faults, Nanos::ZERO);
        }
        Some((there.cpu, slices))
    }
}

/// By how much a counter grew, from 0 where there was none; one that is lower than before began anew.
fn increase(before: Option<&u64>, after: Option<&u64>) -> u64 {
    let (before, after) = (before.copied().unwrap_or_default(), after.copied().unwrap_or_default());
    after.checked_sub(before).unwrap_or(after)
}

#[cfg(test)]
mod tests;
