//! What was added on some CPUs, over as many pairs of moments as one likes.

use std::collections::{BTreeMap, BTreeSet};

use record::Fact;
use units::{CpuId, CpuList, InOrder, Nanos};

use super::{Activity, Kind, Residue, Row, Rows, Thread};
use crate::cpu_times::from_ticks;
use crate::tasks::Task;

/// What happened on some CPUs.
#[derive(Clone, Debug)]
pub struct Tally {
    cpus: CpuList,
    residues: BTreeMap<(CpuId, Kind, String, String), (u64, Nanos)>,
    slices: BTreeMap<CpuId, Slices>,
    absent: CpuList,
    gaps: BTreeSet<String>,
    changes: BTreeSet<String>,
}

/// Slices of one CPU over the whole run. What is counted at one look and belongs to another evens out in the end.
#[derive(Clone, Copy, Debug, Default)]
struct Slices {
    /// Given away by the CPU, from before the first look on.
    given: u64,
    /// Those of them that may have been given away before the threads were looked at first.
    early: u64,
    /// What threads have had that were found here.
    found: u64,
    /// Those of them of residents that may have had some on another of the CPUs.
    roaming: u64,
    /// Whether the last look saw the CPU.
    is_counted: bool,
}

impl Tally {
    /// Of nothing yet, on `cpus`.
    pub fn new(cpus: CpuList) -> Self {
        let (residues, slices) = (BTreeMap::new(), BTreeMap::new());
        Self {
            cpus,
            residues,
            slices,
            absent: CpuList::new(),
            gaps: BTreeSet::new(),
            changes: BTreeSet::new(),
        }
    }

    /// Adds what happened between two moments. The closer they are, the fewer threads come and go unseen.
    pub fn add(&mut self, before: &Activity, after: &Activity) {
        for activity in [before, after] {
            let online = activity.online.value().cloned().unwrap_or_else(|| self.cpus.clone());
            self.absent = self.absent.union(&self.cpus.difference(&online));
        }
        self.add_rows(Kind::Interrupt, &before.interrupts, &after.interrupts);
        self.add_rows(Kind::Softirq, &before.softirqs, &after.softirqs);
        self.add_stolen(before, after);
        for (key, thread) in &after.threads {
            self.add_thread(before.threads.get(key), thread);
        }
        self.add_slices(before, after);
    }

    /// All that happened, by CPU and sort, the most frequent first.
    pub fn residues(&self) -> Vec<Residue> {
        let all = self.residues.iter().map(|((cpu, kind, name, words), (events, time))| {
            let (name, words) = (name.clone(), words.clone());
            // A thread that never gave the CPU away had one slice.
            let events = (*events).max(u64::from(*time > Nanos::ZERO));
            Residue { cpu: *cpu, kind: *kind, name, words, events, time: *time }
        });
        let unseen = self.unseen().into_iter().filter(|(_, events)| *events > 0).map(|(cpu, events)| {
            let (name, words) = (String::new(), String::new());
            Residue { cpu, kind: Kind::Unseen, name, words, events, time: Nanos::ZERO }
        });
        let mut all: Vec<Residue> = all.chain(unseen).collect();
        all.order_by_key(|residue| (residue.cpu, residue.kind, std::cmp::Reverse(residue.events)));
        all
    }

    /// All residues, each once: but for threads seen passing by tracing that the looks have named as well, and for the tick as
    /// a timer that ran out where the interrupts that it came by are counted.
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
        let has_interrupts = |cpu| all.iter().any(|one| one.cpu == cpu && is_of_timer(one));
        let is_again = |one: &Residue| match one.kind {
            Kind::Passing => is_named(one),
            Kind::Timer => is_tick(one) && has_interrupts(one.cpu),
            _ => false,
        };
        all.iter().filter(|one| !is_again(one)).cloned().collect()
    }

    /// What could not be counted, in words.
    pub fn missing(&self) -> Vec<String> {
        let absent =
            self.absent.iter().map(|cpu| format!("CPU {cpu}: it was offline at a look, or all the time"));
        absent.chain(self.gaps.iter().cloned()).collect()
    }

    /// Rows that are another's now, in words; they are counted all the same.
    pub fn changes(&self) -> Vec<String> {
        self.changes.iter().cloned().collect()
    }

    /// Adds what others counted, tracing for one; what is on other CPUs is left out.
    pub fn add_events(&mut self, cpu: CpuId, kind: Kind, name: &str, words: &str, events: u64) {
        if self.cpus.contains(cpu) {
            self.count((cpu, kind, name.to_owned(), words.to_owned()), events, Nanos::ZERO);
        }
    }

    fn count(&mut self, key: (CpuId, Kind, String, String), events: u64, time: Nanos) {
        if events > 0 || time > Nanos::ZERO {
            let sum = self.residues.entry(key).or_default();
            *sum = (sum.0.saturating_add(events), Nanos(sum.1.0.saturating_add(time.0)));
        }
    }

    /// Rows are known by their names: what stands behind the counts changes with a driver, and the counts go on.
    fn add_rows(&mut self, kind: Kind, before: &Fact<Rows>, after: &Fact<Rows>) {
        let (Fact::Value(before), Fact::Value(after)) = (before, after) else { return };
        for (name, row) in after {
            match before.get(name) {
                Some(earlier) => self.add_row(kind, name, earlier, row),
                None if self.cpus.iter().any(|cpu| row.counts.get(&cpu) != Some(&0)) => {
                    self.gaps.insert(format!("row {} from before it was there", described(name, row)));
                }
                None => {}
            }
        }
        for (name, row) in before.iter().filter(|(name, _)| !after.contains_key(*name)) {
            self.gaps.insert(format!("row {} after the last look at it: it has gone", described(name, row)));
        }
    }

    fn add_row(&mut self, kind: Kind, name: &str, earlier: &Row, row: &Row) {
        if earlier.words != row.words {
            self.changes.insert(format!("row {} was {}", described(name, row), earlier.words));
        }
        for cpu in self.cpus.clone().iter() {
            // Where a column is missing the CPU was offline, which is said.
            let (Some(then), Some(now)) = (earlier.counts.get(&cpu), row.counts.get(&cpu)) else { continue };
            match now.checked_sub(*then) {
                Some(events) => {
                    self.count((cpu, kind, name.to_owned(), row.words.clone()), events, Nanos::ZERO)
                }
                None => drop(self.gaps.insert(format!("row {}, which began anew", described(name, row)))),
            }
        }
    }

    /// Time that a hypervisor took.
    fn add_stolen(&mut self, before: &Activity, after: &Activity) {
        let (Fact::Value(before), Fact::Value(after)) = (&before.stolen, &after.stolen) else { return };
        for cpu in self.cpus.clone().iter() {
            let ticks = [before, after].map(|times| times.get(&cpu).and_then(|time| time.steal));
            if let [Some(then), Some(now)] = ticks {
                let ticks = now.saturating_sub(then);
                self.count((cpu, Kind::Steal, String::new(), String::new()), ticks, from_ticks(ticks));
            }
        }
    }

    /// What a thread used up, where it is, else where it was.
    fn add_thread(&mut self, before: Option<&Thread>, after: &Thread) {
        let mut looks = [Some(after), before].into_iter().flatten();
        let Some(there) = looks.find(|thread| self.cpus.contains(thread.cpu) && thread.may_run()) else {
            return;
        };
        let slices = increase(before.map(|thread| thread.slices), after.slices);
        let time = Nanos(increase(before.map(|thread| thread.time.0), after.time.0));
        let faults = increase(before.map(|thread| thread.faults), after.faults);
        let Task { name, tid, kernel, cpus, .. } = &there.task;
        if *kernel && slices > 0 && before.is_some() && *name == format!("cpuhp/{}", there.cpu) {
            self.gaps.insert(format!(
                "CPU {} for a while: {name} ran, so it went off between two looks, or a driver came",
                there.cpu
            ));
        }
        let kind = if *kernel {
            Kind::KernelThread
        } else if !cpus.is_empty() && cpus.difference(&self.cpus).is_empty() {
            Kind::PinnedThread
        } else {
            Kind::UnpinnedThread
        };
        let own = self.slices.entry(there.cpu).or_default();
        own.found = own.found.saturating_add(slices);
        if kind == Kind::PinnedThread && cpus.len() > 1 {
            own.roaming = own.roaming.saturating_add(slices);
        }
        let words = if *kernel { String::new() } else { tid.to_string() };
        self.count((there.cpu, kind, name.clone(), words.clone()), slices, time);
        if !kernel && (slices > 0 || time > Nanos::ZERO) {
            self.count((there.cpu, Kind::PageFault, name.clone(), words), faults, Nanos::ZERO);
        }
    }

    /// What each CPU gave away. The counter is read before the threads each time, and what it grew by while they were
    /// looked at for the first time is left out in the end.
    fn add_slices(&mut self, before: &Activity, after: &Activity) {
        let of = |look: &Fact<BTreeMap<CpuId, u64>>, cpu| look.value().and_then(|all| all.get(&cpu).copied());
        for cpu in self.cpus.clone().iter() {
            let own = self.slices.entry(cpu).or_default();
            let first = [&before.slices[0], &before.slices[1]].map(|look| of(look, cpu));
            match (first, of(&after.slices[0], cpu)) {
                ([Some(then), late], Some(now)) if now >= then => {
                    own.given = own.given.saturating_add(now - then);
                    if !own.is_counted {
                        let walk = late.unwrap_or(then).saturating_sub(then);
                        own.early = own.early.saturating_add(walk);
                    }
                    own.is_counted = true;
                }
                _ => own.is_counted = false,
            }
        }
    }

    /// Slices that no thread is known to have had, at least, by CPU. A resident of several CPUs is found on one of them:
    /// what it had on the others is missing there, and too much here.
    fn unseen(&self) -> BTreeMap<CpuId, u64> {
        let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let rest = |own: &Slices| signed(own.given) - signed(own.early) - signed(own.found);
        let roamed = |own: &Slices| u64::try_from(-rest(own)).unwrap_or(0).min(own.roaming);
        let mut elsewhere: u64 = self.slices.values().map(roamed).sum();
        let mut unseen = BTreeMap::new();
        for (cpu, own) in &self.slices {
            let rest = u64::try_from(rest(own)).unwrap_or(0);
            let of_residents = elsewhere.min(rest);
            elsewhere -= of_residents;
            unseen.insert(*cpu, rest - of_residents);
        }
        unseen
    }
}

/// `24 (PCI-MSI 1-edge eth0)`.
fn described(name: &str, row: &Row) -> String {
    if row.words.is_empty() { name.to_owned() } else { format!("{name} ({})", row.words) }
}

/// By how much a thread's counter grew: from 0 where the thread is new.
fn increase(before: Option<u64>, after: u64) -> u64 {
    after.saturating_sub(before.unwrap_or_default())
}

/// The tick's function, as a timer: by its name since Linux 6.8, and before.
fn is_tick(residue: &Residue) -> bool {
    residue.kind == Kind::Timer && matches!(residue.name.as_str(), "tick_nohz_handler" | "tick_sched_timer")
}

/// Interrupts of a CPU's own timer, by which the tick comes: x86's row, and arm64's by its handler.
fn is_of_timer(residue: &Residue) -> bool {
    let handler = residue.words.rsplit(' ').next();
    residue.kind == Kind::Interrupt
        && (residue.name == "LOC" || residue.name == "arch_timer" || handler == Some("arch_timer"))
}
