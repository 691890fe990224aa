//! What the kernel and the CPUs counted around each scenario: a table for terminal and page.

use record::{Counted, CountedOn, Counter, CounterUnit, Fact, InterruptSource, Record, Scenario};
use units::{CpuId, InOrder};

use crate::style::Style;
use crate::text::{harmless, wrap};
use crate::validity::milliseconds;

/// Interrupts and softirqs shown of a scenario; the record has all.
const MOST_SOURCES: usize = 12;

/// Heads of the columns after the load and the counter.
pub(crate) const HEADS: [&str; 5] =
    ["machine", "measured CPUs", "other CPUs", "probe's threads", "read from"];

/// A counter of a scenario.
pub(crate) struct Row {
    pub load: String,
    pub what: String,
    /// As in [`HEADS`], without the source.
    pub counts: [String; 4],
    pub source: String,
}

/// All of them, scenario by scenario; none for records of versions that did not read them.
pub(crate) fn rows(record: &Record) -> Vec<Row> {
    let record = &*record.for_readers();
    record.scenarios.iter().flat_map(|scenario| rows_of(record, scenario)).collect()
}

fn rows_of(record: &Record, scenario: &Scenario) -> Vec<Row> {
    let counters = &scenario.evidence.counters;
    let load = harmless(&scenario.head.planned.load);
    let is_measured = |cpu| record.header.plan.cpus.contains(cpu);
    let row = |counter: &Counter| Row {
        load: load.clone(),
        what: counter.what.words().to_owned(),
        counts: [
            shown(counter, |of| *of == CountedOn::Machine),
            shown(counter, |of| matches!(of, CountedOn::Cpu(cpu) if is_measured(*cpu))),
            shown(counter, |of| matches!(of, CountedOn::Cpu(cpu) if !is_measured(*cpu))),
            shown(counter, |of| matches!(of, CountedOn::Thread(_))),
        ],
        source: harmless(&counter.source),
    };
    let mut rows: Vec<_> = counters.counters.iter().map(row).collect();
    rows.extend(counters.watts().map(|watts| Row {
        load: load.clone(),
        what: "mean power".to_owned(),
        counts: [format!("{watts:.2} W"), String::new(), String::new(), String::new()],
        source: "RAPL: the platform, or packages and memory".to_owned(),
    }));
    let mut sources: Vec<_> = counters.sources.iter().collect();
    sources.order_by_key(|source| std::cmp::Reverse(total(source, |_| true)));
    rows.extend(sources.into_iter().take(MOST_SOURCES).map(|source| source_row(&load, source, &is_measured)));
    rows
}

fn source_row(load: &str, source: &InterruptSource, is_measured: &dyn Fn(CpuId) -> bool) -> Row {
    let kind = if source.what == Counted::Softirqs { "softirq" } else { "interrupt" };
    let name = [kind, &source.name, &source.words].map(harmless);
    Row {
        load: load.to_owned(),
        what: name.join(" ").trim_end().to_owned(),
        counts: [
            String::new(),
            total(source, is_measured).to_string(),
            total(source, |cpu| !is_measured(cpu)).to_string(),
            String::new(),
        ],
        source: harmless(&source.source),
    }
}

fn total(source: &InterruptSource, belongs: impl Fn(CpuId) -> bool) -> u64 {
    let counts = source.counts.iter().filter(|count| matches!(count.of, CountedOn::Cpu(cpu) if belongs(cpu)));
    counts.filter_map(|count| count.added.value()).fold(0_u64, |sum, count| sum.saturating_add(*count))
}

/// The sum of those that belong; where one of them is not known, why: a sum of the others would be too small.
fn shown(counter: &Counter, belongs: impl Fn(&CountedOn) -> bool) -> String {
    let mut sum = None;
    for count in counter.counts.iter().filter(|count| belongs(&count.of)) {
        match &count.added {
            Fact::Value(added) => sum = Some(sum.unwrap_or(0_u64).saturating_add(*added)),
            // Most machines have no meter: that is no fault of a file.
            Fact::Absent if counter.what == Counted::Energy => return "not measured here".into(),
            missing => return not_readable(missing),
        }
    }
    sum.map_or(String::new(), |sum| in_unit(counter.what.unit(), sum))
}

fn in_unit(unit: CounterUnit, value: u64) -> String {
    match unit {
        CounterUnit::Events => value.to_string(),
        CounterUnit::Time => milliseconds(value),
        CounterUnit::Energy => format!("{:.3} J", value as f64 / 1e6),
        CounterUnit::Power => format!("{:.3} W", value as f64 / 1e6),
        CounterUnit::Thousandths => format!("{}.{:02}", value / 1000, value % 1000 / 10),
    }
}

/// Why there is no figure.
pub(crate) fn not_readable<T>(fact: &Fact<T>) -> String {
    match fact {
        Fact::Value(_) => String::new(),
        Fact::Absent => "not readable: no such entry".into(),
        Fact::Unreadable(errno) => format!("not readable: {}", units::errno_in_words(*errno)),
        Fact::Unsupported => "not readable: not counted here".into(),
    }
}

/// The counters of a record as text, a paragraph a counter under each load.
pub fn text(record: &Record, style: &Style) -> String {
    let rows = rows(record);
    if rows.is_empty() {
        return "counters: the version that made this record did not read any\n".into();
    }
    let mut text = String::new();
    let mut load = None;
    for row in &rows {
        if load != Some(&row.load) {
            text += &format!("{}counters under {}\n", if load.is_some() { "\n" } else { "" }, row.load);
            load = Some(&row.load);
        }
        let columns = HEADS.iter().zip(&row.counts).filter(|(_, count)| !count.is_empty());
        let columns: Vec<_> = columns.map(|(head, count)| format!("{head}: {count}")).collect();
        let head = format!("  {:<22} ", row.what);
        for line in wrap(&head, &format!("{} ({})", columns.join(", "), row.source), 4, style.width) {
            text += &(line + "\n");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use record::Count;

    use super::*;

    fn counter(added: [Fact<u64>; 2]) -> Counter {
        let counts = added.into_iter().enumerate();
        let counts = counts.map(|(cpu, added)| Count { of: CountedOn::Cpu(CpuId(cpu as u32)), added });
        Counter { what: Counted::Slices, source: String::new(), counts: counts.collect() }
    }

    #[test]
    fn a_sum_with_an_unknown_part_is_unknown_and_never_zero() {
        let cpus = |of: &CountedOn| matches!(of, CountedOn::Cpu(_));
        assert_eq!(shown(&counter([Fact::Value(2), Fact::Value(3)]), cpus), "5");
        assert_eq!(
            shown(&counter([Fact::Value(2), Fact::Unreadable(13)]), cpus),
            "not readable: Permission denied"
        );
        assert_eq!(shown(&counter([Fact::Value(2), Fact::Absent]), cpus), "not readable: no such entry");
        assert_eq!(shown(&counter([Fact::Value(2), Fact::Value(3)]), |_| false), "");
    }

    #[test]
    fn times_and_means_have_their_units() {
        assert_eq!(in_unit(CounterUnit::Time, 2_500_000), "2.5 ms");
        assert_eq!(in_unit(CounterUnit::Thousandths, 1_250), "1.25");
        assert_eq!(in_unit(CounterUnit::Events, 7), "7");
    }
}
