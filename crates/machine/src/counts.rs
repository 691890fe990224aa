//! What the kernel counts of its own work: switches, interrupts, softirqs, tasks, load, waiting for a CPU.
//!
//! Reading interrupts no other CPU (proc(5), Documentation/scheduler/sched-stats.rst).

use std::collections::BTreeMap;
use std::time::Instant;

use record::{Count, Counted, CountedOn, CounterUnit, Counters, Fact, InterruptSource};
use sysroot::{SysRoot, parsed};
use units::{CpuId, CpuList};

use crate::activity::{Row, rows};
use crate::interrupts;

const STAT: &str = "/proc/stat";
const SOFTIRQS: &str = "/proc/softirqs";
const SCHEDSTAT: &str = "/proc/schedstat";
const LOADAVG: &str = "/proc/loadavg";

/// Lines of /proc/stat whose first figure counts for all of the machine since boot.
const LINES: [(Counted, &str); 4] = [
    (Counted::ContextSwitches, "ctxt"),
    (Counted::Interrupts, "intr"),
    (Counted::Softirqs, "softirq"),
    (Counted::TasksCreated, "processes"),
];
/// Figures of a CPU's line in /proc/schedstat, from 0; kept without `kernel.sched_schedstats` too.
const FIGURES: [(Counted, usize, &str); 2] = [
    (Counted::RunQueueWait, 7, "/proc/schedstat, 8th figure"),
    (Counted::Slices, 8, "/proc/schedstat, 9th figure"),
];

/// The counters at one moment.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Counts {
    at: Instant,
    readings: Vec<Reading>,
    tables: Vec<Table>,
}

/// A table with the CPUs as its head: what it counts, and its path.
#[derive(Clone, Debug, PartialEq)]
struct Table {
    what: Counted,
    path: &'static str,
    rows: Fact<BTreeMap<String, Row>>,
}

#[derive(Clone, Debug, PartialEq)]
struct Reading {
    what: Counted,
    source: String,
    of: CountedOn,
    value: Fact<u64>,
}

impl Counts {
    /// Reads all of them; for each of `cpus` where the kernel keeps them apart.
    pub(crate) fn take(root: &SysRoot, cpus: &CpuList) -> Self {
        let table = |what, path| Table { what, path, rows: root.read(path).map(|text| rows(&text)) };
        let tables = vec![table(Counted::Interrupts, interrupts::PATH), table(Counted::Softirqs, SOFTIRQS)];
        let mut readings = of_machine(root);
        for Table { what, path, rows } in &tables {
            readings.extend(cpus.iter().map(|cpu| Reading {
                what: *what,
                source: (*path).to_owned(),
                of: CountedOn::Cpu(cpu),
                value: sum_of(rows, cpu),
            }));
        }
        readings.extend(of_scheduler(root, cpus));
        Self { at: Instant::now(), readings, tables }
    }
}

fn of_machine(root: &SysRoot) -> Vec<Reading> {
    let stat = root.read(STAT);
    let reading = |what, source: String, value| Reading { what, source, of: CountedOn::Machine, value };
    let mut readings: Vec<_> = LINES
        .iter()
        .map(|(what, name)| {
            let value = stat.clone().and_then(|text| first_figure(&text, name));
            reading(*what, format!("{STAT}, {name}"), value)
        })
        .collect();
    let load = root.read(LOADAVG).and_then(|text| parsed(load_average(&text).ok_or(())));
    readings.push(reading(Counted::LoadAverage, LOADAVG.to_owned(), load));
    readings
}

fn first_figure(text: &str, name: &str) -> Fact<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    let Some(line) = line else { return Fact::Absent };
    parsed(line.split_whitespace().next().unwrap_or_default().parse())
}

/// The first figure of /proc/loadavg, in thousandths; the kernel prints two decimals.
fn load_average(text: &str) -> Option<u64> {
    let (whole, hundredths) = text.split_whitespace().next()?.split_once('.')?;
    let hundredths: u64 = hundredths.parse().ok().filter(|_| hundredths.len() == 2)?;
    whole.parse::<u64>().ok()?.checked_mul(1000)?.checked_add(hundredths * 10)
}

/// All rows of a CPU; absent where the table has no column for it.
fn sum_of(table: &Fact<BTreeMap<String, Row>>, cpu: CpuId) -> Fact<u64> {
    table.clone().and_then(|rows| {
        let counts = || rows.values().filter_map(|row| row.counts.get(&cpu));
        match counts().next() {
            Some(_) => Fact::Value(counts().fold(0_u64, |sum, count| sum.saturating_add(*count))),
            None => Fact::Absent,
        }
    })
}

fn of_scheduler(root: &SysRoot, cpus: &CpuList) -> Vec<Reading> {
    let text = root.read(SCHEDSTAT);
    let figure = |cpu: CpuId, place: usize| {
        text.clone().and_then(|text| {
            let prefix = format!("cpu{cpu} ");
            let Some(line) = text.lines().find_map(|line| line.strip_prefix(&prefix)) else {
                return Fact::Absent;
            };
            parsed(line.split_whitespace().nth(place).unwrap_or_default().parse())
        })
    };
    let readings = FIGURES.iter().flat_map(|(what, place, source)| {
        cpus.iter().map(move |cpu| (*what, *place, (*source).to_owned(), cpu))
    });
    readings
        .map(|(what, place, source, cpu)| Reading {
            what,
            source,
            of: CountedOn::Cpu(cpu),
            value: figure(cpu, place),
        })
        .collect()
}

/// What was added between two readings; of what is no sum, the later one.
pub(crate) fn between(before: &Counts, after: &Counts) -> Counters {
    let mut counters = Counters { over: (after.at - before.at).into(), ..Counters::default() };
    for later in &after.readings {
        let same = |earlier: &&Reading| {
            (earlier.what, earlier.of, &earlier.source) == (later.what, later.of, &later.source)
        };
        let added = match before.readings.iter().find(same) {
            _ if later.what.unit() == CounterUnit::Thousandths => later.value.clone(),
            Some(earlier) => grown(&earlier.value, &later.value),
            // A CPU that came up meanwhile.
            None => Fact::Absent,
        };
        counters.add(later.what, &later.source, later.of, added);
    }
    for (before, after) in before.tables.iter().zip(&after.tables) {
        if let (Some(earlier), Some(later)) = (before.rows.value(), after.rows.value()) {
            counters.sources.extend(sources(after, earlier, later));
        }
    }
    counters
}

/// A figure of two values; where one is missing, why.
pub(crate) fn both<T: Clone, U>(
    before: &Fact<T>,
    after: &Fact<T>,
    combine: impl FnOnce(&T, &T) -> U,
) -> Fact<U> {
    match (before, after) {
        (Fact::Value(before), Fact::Value(after)) => Fact::Value(combine(before, after)),
        (Fact::Value(_), missing) | (missing, _) => missing.clone().and_then(|_| Fact::Unsupported),
    }
}

/// A sum that is lower than before says nothing: /proc/interrupts loses the rows of devices that go.
pub(crate) fn grown(before: &Fact<u64>, after: &Fact<u64>) -> Fact<u64> {
    both(before, after, |before, after| after.checked_sub(*before))
        .and_then(|grown| grown.map_or(Fact::Unsupported, Fact::Value))
}

fn sources(
    table: &Table,
    before: &BTreeMap<String, Row>,
    after: &BTreeMap<String, Row>,
) -> Vec<InterruptSource> {
    let source = |(name, row): (&String, &Row)| {
        let earlier =
            |cpu: &CpuId| before.get(name).and_then(|row| row.counts.get(cpu)).copied().unwrap_or_default();
        let added = |(cpu, count): (&CpuId, &u64)| {
            let added = count.saturating_sub(earlier(cpu));
            (added > 0).then_some(Count { of: CountedOn::Cpu(*cpu), added: Fact::Value(added) })
        };
        let counts: Vec<_> = row.counts.iter().filter_map(added).collect();
        let (name, words, source) = (name.clone(), row.words.clone(), table.path.to_owned());
        (!counts.is_empty()).then_some(InterruptSource { what: table.what, source, name, words, counts })
    };
    after.iter().filter_map(source).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sysroot::FakeTree;

    use super::*;

    fn cpus() -> CpuList {
        "0-1".parse().unwrap()
    }

    /// A tree whose counters stand at multiples of `n`.
    fn counts(tree: &FakeTree, n: u64) -> Counts {
        let (two, three) = (2 * n, 3 * n);
        tree.write(
            STAT,
            format!("cpu 1 2 3 4\nintr {two} 0 0\nctxt {three}\nbtime 7\nprocesses {n}\nsoftirq {two} 1 1\n"),
        );
        tree.write(LOADAVG, "1.25 0.50 0.10 1/100 4242\n");
        let table =
            |first: &str| format!("      CPU0 CPU1\n  36: {n} 0 PCI-MSI 1-edge eth0\n {first}: {n} {two}\n");
        tree.write(interrupts::PATH, table("LOC"));
        tree.write(SOFTIRQS, format!("      CPU0 CPU1\n TIMER: {n} {two}\n"));
        let line = |cpu: u32| format!("cpu{cpu} 0 0 0 0 0 0 9 {three} {n}\n");
        tree.write(SCHEDSTAT, format!("version 15\n{}{}", line(0), line(1)));
        Counts::take(&tree.root, &cpus())
    }

    fn added(counters: &Counters, what: Counted, of: CountedOn) -> Fact<u64> {
        let counts = counters.counters.iter().filter(|counter| counter.what == what);
        let mut found = counts.flat_map(|counter| &counter.counts).filter(|count| count.of == of);
        found.next().unwrap().added.clone()
    }

    #[test]
    fn what_was_added_is_known_for_the_machine_and_each_cpu() {
        let tree = FakeTree::empty();
        let before = counts(&tree, 10);
        let counters = between(&before, &counts(&tree, 110));
        let machine = |what| added(&counters, what, CountedOn::Machine);
        assert_eq!(machine(Counted::ContextSwitches), Fact::Value(300));
        assert_eq!(machine(Counted::Interrupts), Fact::Value(200));
        assert_eq!(machine(Counted::Softirqs), Fact::Value(200));
        assert_eq!(machine(Counted::TasksCreated), Fact::Value(100));
        assert_eq!(machine(Counted::LoadAverage), Fact::Value(1250));
        let second = |what| added(&counters, what, CountedOn::Cpu(CpuId(1)));
        assert_eq!(second(Counted::Interrupts), Fact::Value(200));
        assert_eq!(second(Counted::RunQueueWait), Fact::Value(300));
        assert_eq!(second(Counted::Slices), Fact::Value(100));
        let names: Vec<_> =
            counters.sources.iter().map(|source| (source.name.as_str(), source.counts.len())).collect();
        assert_eq!(names, [("36", 1), ("LOC", 2), ("TIMER", 2)]);
        assert!(counters.counters.iter().all(|counter| counter.source.starts_with("/proc/")));
    }

    #[test]
    fn what_cannot_be_read_is_not_zero() {
        let tree = FakeTree::empty();
        let nothing = Counts::take(&tree.root, &cpus());
        let counters = between(&nothing, &nothing);
        let counts = counters.counters.iter().flat_map(|counter| &counter.counts);
        assert!(counts.clone().count() >= 9);
        assert!(counts.clone().all(|count| count.added == Fact::Absent), "{counters:?}");
        assert!(counters.sources.is_empty());
    }

    #[test]
    fn a_sum_that_shrank_is_unknown_and_a_cpu_that_is_not_listed_absent() {
        let tree = FakeTree::empty();
        let before = counts(&tree, 100);
        let after = counts(&tree, 10);
        assert_eq!(
            added(&between(&before, &after), Counted::Interrupts, CountedOn::Machine),
            Fact::Unsupported
        );
        let three = Counts::take(&tree.root, &"2".parse().unwrap());
        assert_eq!(added(&between(&three, &three), Counted::Slices, CountedOn::Cpu(CpuId(2))), Fact::Absent);
    }

    proptest! {
        #[test]
        fn any_text_is_answered_without_a_panic(text in "((ctxt|intr|cpu0|softirq) ?([0-9]{1,22} ?){0,10}\n?){0,4}|.{0,60}") {
            let tree = FakeTree::empty();
            for path in [STAT, LOADAVG, interrupts::PATH, SOFTIRQS, SCHEDSTAT] {
                tree.write(path, &text);
            }
            let counts = Counts::take(&tree.root, &cpus());
            let _ = between(&counts, &counts);
        }
    }
}
