//! The figures of one column: exact ones from the observed wake-ups, percentiles from the corrected histogram.

use histogram::{Histogram, Summary};
use record::instrument::response::PartName;
use record::{Record, Series, Unit};
use units::Nanos;

use crate::instrument::{self, Shown};
pub(crate) use crate::rows::{GPIO, LATENCIES, PERCENTILES, Row};

/// The unit of a record's latencies, and what they are compared with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub unit: Unit,
    pub limit: Option<Nanos>,
    /// What reports show of the instrument.
    pub shown: &'static Shown,
}

impl Terms {
    /// Those of a record.
    pub fn of(record: &Record) -> Self {
        let plan = &record.header.plan;
        Self { unit: record.header.machine.unit(), limit: plan.limit, shown: instrument::of(plan) }
    }

    /// Those of latencies from several records.
    pub fn of_latencies(unit: Unit) -> Self {
        Self { unit, limit: None, shown: instrument::latencies() }
    }

    /// The rows of the table.
    pub fn rows(self) -> Vec<Row> {
        let rows = self.shown.rows.iter().copied();
        rows.filter(|row| *row != Row::OverLimit || self.limit.is_some()).collect()
    }

    /// The name of one of them.
    pub fn name(self, row: Row) -> String {
        match row {
            Row::Minimum => "min".into(),
            Row::Average => "avg".into(),
            Row::Percentile(place) => PERCENTILES[place].0.into(),
            Row::Maximum => "max".into(),
            Row::Samples => self.shown.words.count.into(),
            Row::Lost => "lost %".into(),
            Row::Watched => "watched s".into(),
            Row::Unexplained => "unexplained".into(),
            Row::Part(place) => format!("max {}", PartName::ALL[place]),
            Row::Gpio(place) => GPIO[place].into(),
            Row::FramesLost => "lost frames".into(),
            Row::Missed => "missed".into(),
            Row::Late => "late %".into(),
            Row::OverLimit => match (self.limit, self.unit) {
                (None, _) => "over limit".into(),
                (Some(limit), Unit::Microseconds) => format!("over {limit}"),
                (Some(limit), unit) => format!("over {}", unit.figure(limit)),
            },
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
    /// Time in which gaps were looked for.
    pub watched: Nanos,
    /// Gaps that nothing known made.
    pub unexplained: u64,
    /// The longest of each part of a response, in the order of [`PartName::ALL`]; none where nothing is known of it.
    pub parts: [Option<Nanos>; PartName::ALL.len()],
    /// The longest until the thread had an edge, the longest from then to its answer, and the longest answer that a monitor
    /// measured: [`GPIO`].
    pub of_gpio: [Option<Nanos>; GPIO.len()],
    /// Frames that were sent, and those that were never answered.
    pub frames: (u64, u64),
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
            if let Some(noise) = series.noise() {
                figures.watched += noise.watched;
                figures.unexplained += noise.counted.unexplained_gaps;
            }
            if let Some(response) = series.response() {
                let of = |name| response.part(name).and_then(|took| took.summary().maximum());
                figures.add_frames(PartName::ALL.map(of), (response.frames.sent, response.frames.lost));
            }
            if let Some(gpio) = series.gpio() {
                let monitored = gpio.monitor.as_ref().and_then(|monitor| monitor.max);
                let parts = [&gpio.wake, &gpio.answer].map(|part| part.summary().maximum());
                figures.add_gpio([parts[0], parts[1], monitored]);
            }
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
            figures.watched += part.watched;
            figures.unexplained += part.unexplained;
            figures.add_frames(part.parts, part.frames);
            figures.add_gpio(part.of_gpio);
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

    fn add_frames(&mut self, parts: [Option<Nanos>; PartName::ALL.len()], frames: (u64, u64)) {
        self.parts.iter_mut().zip(parts).for_each(|(longest, part)| *longest = part.max(*longest));
        self.frames = (self.frames.0.saturating_add(frames.0), self.frames.1.saturating_add(frames.1));
    }

    fn add_gpio(&mut self, longest: [Option<Nanos>; GPIO.len()]) {
        self.of_gpio.iter_mut().zip(longest).for_each(|(longest, more)| *longest = more.max(*longest));
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
            Row::Part(place) => self.parts[place],
            Row::Gpio(place) => self.of_gpio[place],
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
