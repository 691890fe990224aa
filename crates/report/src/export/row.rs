//! The figures of a load on a CPU, for programs.

use record::{Record, Unit};
use serde::Serialize;

use crate::figures::Figures;
use crate::group::{Group, cpus, groups};

/// The name of all CPUs together.
pub(super) const ALL: &str = "all";

/// The figures of a load on a CPU. Values are in `unit`; none where too few were measured for one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FigureRow {
    /// What tells the load's rows from others in a table: the load, a period, a call.
    #[serde(skip)]
    pub(super) head: String,
    /// The load.
    pub load: String,
    /// The period in nanoseconds; none for an instrument without periods.
    pub interval_ns: Option<u64>,
    /// What an instrument without periods did: the call, as `pi-mutex`; none with a period.
    pub setup: Option<String>,
    /// The C-state policy.
    pub cstates: String,
    /// `all`, the CPU's number, or `not pinned`.
    pub cpu: String,
    /// `ns`, or `instructions` in a guest of the lab.
    pub unit: &'static str,
    /// The least value.
    pub minimum: Option<u64>,
    /// The mean.
    pub average: Option<u64>,
    /// Half of all activations due came no later; missed ones count with the latency that they would have had.
    pub p50: Option<u64>,
    /// As `p50`, of 99 %.
    pub p99: Option<u64>,
    /// As `p50`, of 99.9 %.
    pub p99_9: Option<u64>,
    /// As `p50`, of 99.99 %.
    pub p99_99: Option<u64>,
    /// The greatest value, exact.
    pub maximum: Option<u64>,
    /// Whether the greatest value is a lower bound: a wake-up had not come when the run was given up.
    pub maximum_is_bound: bool,
    /// Values measured.
    pub samples: u64,
    /// Activations without a wake-up of their own.
    pub missed: u64,
    /// Activations served a period or more late, the missed ones among them.
    pub late: u64,
    /// Activations over the limit; none without a limit.
    pub over_limit: Option<u64>,
    /// What a reader must know: `interrupted`, `no work`.
    pub marks: Vec<String>,
}

impl FigureRow {
    /// `io 1ms CPU 0`, as short as it is distinct.
    pub(super) fn name(&self) -> String {
        let interval = self.interval_ns.map_or_else(String::new, |ns| format!(" {}", units::Nanos(ns)));
        let cpu = if self.cpu.starts_with(|c: char| c.is_ascii_digit()) { "CPU " } else { "" };
        let setup = self.setup.as_ref().map_or_else(String::new, |setup| format!(" {setup}"));
        format!("{}{interval}{setup} {} {cpu}{}", self.load, self.cstates, self.cpu)
    }
}

/// The rows of a record: for each load all CPUs together, then each CPU.
pub fn rows(record: &Record) -> Vec<FigureRow> {
    let unit = record.header.machine.unit();
    let cpus = cpus(record);
    groups(record)
        .iter()
        .flat_map(|group| {
            let all = row(group, ALL.into(), &group.figures(), unit);
            let each = cpus.iter().map(|&cpu| {
                let name = cpu.map_or_else(|| "not pinned".into(), |cpu| cpu.to_string());
                row(group, name, &group.figures_of(cpu), unit)
            });
            std::iter::once(all).chain(each).collect::<Vec<_>>()
        })
        .collect()
}

fn row(group: &Group<'_>, cpu: String, figures: &Figures, unit: Unit) -> FigureRow {
    let quantile = |share| figures.corrected.quantile(share).map(|value| value.0);
    let [p99, p99_9, p99_99] = figures.percentiles.map(|value| value.map(|value| value.0));
    let maximum = figures.observed.maximum();
    FigureRow {
        head: group.name(),
        load: group.key.load.clone(),
        interval_ns: group.key.interval.map(|interval| interval.0),
        setup: group.key.variant.clone(),
        cstates: group.key.cstates.to_string(),
        cpu,
        unit: if unit == Unit::Instructions { "instructions" } else { "ns" },
        minimum: figures.observed.minimum().map(|value| value.0),
        average: figures.average().map(|value| value.0),
        p50: quantile(0.5),
        p99,
        p99_9,
        p99_99,
        maximum: maximum.map(|value| value.0),
        maximum_is_bound: maximum.is_some_and(|value| figures.is_bound(value)),
        samples: figures.observed.count,
        missed: figures.missed,
        late: figures.not_in_time(),
        over_limit: figures.over_limit,
        marks: group.marks(),
    }
}
