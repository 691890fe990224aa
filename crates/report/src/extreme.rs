//! `report --extreme`: an estimate of latencies that were not seen, for those who ask for one.

use record::claims::gather;
use record::{CStates, Record, Unit};
use serde::Serialize;
use statistics::extreme::{Extreme, FURTHEST, estimate};
use units::{CpuId, Nanos};

use crate::style::Style;
use crate::text::wrap;

/// What is estimated of one load on one CPU, or why nothing is.
#[derive(Clone, Debug, Serialize)]
pub struct Estimate {
    /// The load.
    pub load: String,
    /// The period.
    pub interval: Nanos,
    /// C-state policy.
    pub cstates: CStates,
    /// The CPU; none for a thread that is not pinned.
    pub cpu: Option<CpuId>,
    /// The time spoken of.
    pub exposure: Nanos,
    /// The length of the run, all passes together.
    pub measured: Nanos,
    /// Why there is no estimate.
    pub refused: Option<String>,
    /// The estimate.
    pub level: Option<Level>,
}

/// A latency that is exceeded once in the exposure on average.
#[derive(Clone, Debug, Serialize)]
pub struct Level {
    /// The latency.
    pub latency: Nanos,
    /// The 95 % interval's lower end.
    pub low: Nanos,
    /// Its upper end; none where none was found.
    pub high: Option<Nanos>,
    /// The shape of the distribution.
    pub shape: f64,
    /// The shape's 95 % interval.
    pub shape_interval: (f64, f64),
    /// The scale of the distribution.
    pub scale: Nanos,
    /// Its location.
    pub location: Nanos,
    /// Block maxima that it was fitted to.
    pub blocks: usize,
    /// Activations in a block.
    pub activations: u64,
    /// Anderson and Darling's statistic.
    pub anderson_darling: f64,
    /// Block maxima, ascending: what the distribution says, and what was measured.
    pub quantiles: Vec<(Nanos, Nanos)>,
}

/// Estimates for every load on every CPU of a record.
pub fn estimates(record: &Record, exposure: Nanos) -> Vec<Estimate> {
    let estimates = gather(record).into_iter().filter_map(|gathered| {
        let (scenario, series) = *gathered.passes.first()?;
        let (head, interval) = (&scenario.head, scenario.head.planned.setup.interval()?);
        let sequence = gathered.sequence();
        let activations = exposure.0 as f64 / interval.0.max(1) as f64;
        let incomplete = gathered.passes.iter().any(|(_, series)| {
            series.observed.cell_count().saturating_add(series.missed().cell_count()) < series.expected()
        });
        let found = match incomplete {
            true => Err("figures are missing".to_owned()),
            false => estimate(&sequence, activations).map(Level::of).map_err(|refusal| refusal.to_string()),
        };
        Some(Estimate {
            load: head.planned.load.clone(),
            interval,
            cstates: head.planned.cstates,
            cpu: series.cpu,
            exposure,
            measured: interval.saturating_mul(sequence.count()),
            refused: found.as_ref().err().cloned(),
            level: found.ok(),
        })
    });
    estimates.collect()
}

impl Level {
    fn of(extreme: Extreme) -> Self {
        let nanos = |value: f64| Nanos(value.max(0.0).round() as u64);
        Self {
            latency: nanos(extreme.level),
            low: nanos(extreme.interval.0),
            high: extreme.interval.1.map(nanos),
            shape: extreme.fit.shape,
            shape_interval: extreme.shape,
            scale: nanos(extreme.fit.scale),
            location: nanos(extreme.fit.location),
            blocks: extreme.blocks,
            activations: extreme.activations,
            anderson_darling: extreme.anderson_darling,
            quantiles: extreme
                .points
                .iter()
                .map(|point| (nanos(point.expected), nanos(point.observed)))
                .collect(),
        }
    }

    /// `1.2 ms (0.9 to 2.4 ms)`.
    pub(crate) fn in_words(&self, unit: Unit) -> String {
        let high = self.high.map_or("no upper end".into(), |high| unit.with_name(high));
        format!("{} ({} to {high})", unit.with_name(self.latency), unit.with_name(self.low))
    }

    /// What it was estimated from.
    pub(crate) fn grounds(&self) -> String {
        format!(
            "shape {:.2} ({:.2} to {:.2}), {} blocks of {} activations, Anderson-Darling {:.2}",
            self.shape,
            self.shape_interval.0,
            self.shape_interval.1,
            self.blocks,
            self.activations,
            self.anderson_darling
        )
    }
}

impl Estimate {
    /// `cpu, CPU 1`, or `cpu 100us restrict, CPU 1` where periods and C-state policies of `all` differ.
    pub(crate) fn place(&self, all: &[Self]) -> String {
        let differ = |same: fn(&Self, &Self) -> bool| all.iter().any(|other| !same(self, other));
        let mut words = vec![self.load.clone()];
        if differ(|one, other| one.interval == other.interval) {
            words.push(self.interval.to_string());
        }
        if differ(|one, other| one.cstates == other.cstates) {
            words.push(self.cstates.to_string());
        }
        format!("{}, {}", words.join(" "), crate::group::cpu_name(self.cpu))
    }
}

/// What must be said with every estimate.
pub(crate) const CAUTION: &str = "An estimate, no bound: it supposes that the machine and its loads stay as they were, and that \
     what is rarer has the causes of what was seen. Method and refusals: docs/claims.md.";

/// The estimates for a terminal.
pub fn text(record: &Record, exposure: Nanos, style: &Style) -> String {
    let unit = record.header.machine.unit();
    let head = format!(
        "Latency exceeded once in {} on average, estimated with its 95 % interval (at most {FURTHEST} times the run):",
        exposure.rounded()
    );
    let mut lines = wrap("", &head, 0, style.width);
    let estimates = estimates(&record.for_readers(), exposure);
    for estimate in &estimates {
        let what = match (&estimate.level, &estimate.refused) {
            (Some(level), _) => format!("{}; {}", level.in_words(unit), level.grounds()),
            (None, reason) => format!("no estimate: {}", reason.as_deref().unwrap_or_default()),
        };
        lines.extend(wrap("  ", &format!("{}: {what}", estimate.place(&estimates)), 4, style.width));
    }
    lines.extend(wrap("", CAUTION, 0, style.width));
    lines.into_iter().map(|line| line + "\n").collect()
}
