//! The figures of one column: exact ones from the observed wake-ups, percentiles from the corrected histogram.

use histogram::{Histogram, Summary};
use record::{InstrumentPlan, Record, Series, Unit, Words};
use units::Nanos;

use crate::instrument::{self, Shown};
use crate::rows::{Form, OwnFigures};
pub(crate) use crate::rows::{LATENCIES, PERCENTILES, Row};

/// The unit of a record's latencies, and what they are compared with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub unit: Unit,
    pub limit: Option<Nanos>,
    /// What the instrument's values are called.
    pub words: &'static Words,
    /// What reports show of the instrument.
    pub shown: &'static Shown,
}

impl Terms {
    /// Those of a record.
    pub fn of(record: &Record) -> Self {
        let plan = &record.header.plan;
        let (words, shown) = (plan.instrument.words(), instrument::of(plan));
        Self { unit: record.header.machine.unit(), limit: plan.limit, words, shown }
    }

    /// Those of latencies from several records.
    pub fn of_latencies(unit: Unit) -> Self {
        Self { unit, limit: None, words: InstrumentPlan::default().words(), shown: instrument::latencies() }
    }

    /// The rows of the table.
    pub fn rows(self) -> Vec<Row> {
        self.shown.rows().filter(|row| *row != Row::OverLimit || self.limit.is_some()).collect()
    }

    /// The name of one of them.
    pub fn name(self, row: Row) -> String {
        match row {
            Row::Minimum => "min".into(),
            Row::Average => "avg".into(),
            Row::Percentile(place) => PERCENTILES[place].0.into(),
            Row::Maximum => "max".into(),
            Row::Samples => self.words.count.into(),
            Row::Own(place) => self.shown.own[place].name.into(),
            Row::Missed => "missed".into(),
            Row::Late => "late %".into(),
            Row::OverLimit => match (self.limit, self.unit) {
                (None, _) => "over limit".into(),
                (Some(limit), Unit::Microseconds) => format!("over {limit}"),
                (Some(limit), unit) => format!("over {}", unit.figure(limit)),
            },
        }
    }

    /// Whether the row's cells are latencies.
    pub fn is_latency(self, row: Row) -> bool {
        match row {
            Row::Minimum | Row::Average | Row::Percentile(_) | Row::Maximum => true,
            Row::Own(place) => self.shown.own[place].form == Form::Longest,
            Row::Samples | Row::Missed | Row::Late | Row::OverLimit => false,
        }
    }

    /// Whether a latency is over the limit.
    pub fn exceeded(self, latency: Nanos) -> bool {
        self.limit.is_some_and(|limit| latency > limit)
    }
}

/// What some series saw together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Figures {
    /// Exact count, sum, minimum and maximum of the wake-ups.
    pub observed: Summary,
    /// p99, p99.9, p99.99 of the corrected histogram; none where there are too few samples for one.
    pub percentiles: [Option<Nanos>; 3],
    /// Activations that were due.
    pub expected: u64,
    /// Activations without a wake-up of their own.
    pub missed: u64,
    /// Wake-ups that came a period or more late.
    pub late: u64,
    /// Activations over the limit, where there is one.
    pub over_limit: Option<u64>,
    /// Observed and missed latencies together.
    pub corrected: Histogram,
    /// What the instrument adds.
    pub own: OwnFigures,
    /// The least latency of a wake-up that had not come: from it on figures are lower bounds.
    pub at_least: Option<Nanos>,
}

impl Figures {
    /// The figures of several series together.
    pub fn of<'a>(series: impl IntoIterator<Item = &'a Series>, limit: Option<Nanos>) -> Self {
        let mut figures = Self::default();
        for series in series {
            figures.observed.merge(series.observed.summary());
            figures.expected = figures.expected.saturating_add(series.expected());
            figures.missed += series.missed().summary().count;
            figures.late = figures.late.saturating_add(series.late());
            figures.own.merge(&instrument::own_figures(series));
            figures.corrected.merge(&series.observed);
            figures.corrected.merge(series.missed());
            figures.bound(series.censored.map(|sample| sample.latency));
        }
        figures.finish(limit)
    }

    /// The figures of several CPUs together.
    pub fn sum<'a>(parts: impl IntoIterator<Item = &'a Self>, limit: Option<Nanos>) -> Self {
        let mut figures = Self::default();
        for part in parts {
            figures.observed.merge(&part.observed);
            figures.expected = figures.expected.saturating_add(part.expected);
            figures.missed += part.missed;
            figures.late = figures.late.saturating_add(part.late);
            figures.own.merge(&part.own);
            figures.corrected.merge(&part.corrected);
            figures.bound(part.at_least);
        }
        figures.finish(limit)
    }

    fn finish(mut self, limit: Option<Nanos>) -> Self {
        self.percentiles = PERCENTILES.map(|(_, share)| self.corrected.quantile(share));
        self.over_limit = limit.map(|limit| over(&self.corrected, limit));
        self
    }

    fn bound(&mut self, at_least: Option<Nanos>) {
        self.at_least = self.at_least.into_iter().chain(at_least).min();
    }

    /// Whether a latency of these figures is a lower bound: shown as `>2.3 s`.
    pub fn is_bound(&self, latency: Nanos) -> bool {
        self.at_least.is_some_and(|least| latency >= least)
    }

    /// The average of the wake-ups.
    pub fn average(&self) -> Option<Nanos> {
        self.observed.average()
    }

    /// Activations served a period or more late, or not at all.
    pub fn not_in_time(&self) -> u64 {
        self.late.saturating_add(self.missed)
    }

    /// The latencies of every row of [`LATENCIES`] that is one.
    pub fn latency(&self, row: Row) -> Option<Nanos> {
        match row {
            Row::Minimum => self.observed.minimum(),
            Row::Average => self.average(),
            Row::Percentile(place) => self.percentiles[place],
            Row::Maximum => self.observed.maximum(),
            Row::Own(place) => self.own.latency(place),
            _ => None,
        }
    }
}

/// How many latencies lie over the limit. Those in the limit's own cell count, unless the exact maximum says that
/// none is over it; one at least does where the maximum says so, even if its cell was not saved before a run was cut
/// off.
fn over(corrected: &Histogram, limit: Nanos) -> u64 {
    if corrected.summary().max <= limit.0 { 0 } else { corrected.at_least(limit).max(1) }
}
