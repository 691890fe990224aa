//! The rows that tables of figures can have; each instrument chooses from them, and adds figures of its own.

use record::Series;
use units::Nanos;

use crate::text::percent;

/// The percentiles that every table shows.
pub(crate) const PERCENTILES: [(&str, f64); 3] = [("p99", 0.99), ("p99.9", 0.999), ("p99.99", 0.9999)];

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Row {
    /// The least latency.
    Minimum,
    /// The mean.
    Average,
    /// A percentile, by its place in [`PERCENTILES`].
    Percentile(usize),
    /// The greatest latency.
    Maximum,
    /// Wake-ups.
    Samples,
    /// Activations without one.
    Missed,
    /// Share of activations late or missed.
    Late,
    /// A figure of the instrument's own, by its place in its list.
    Own(usize),
    /// Activations over the limit.
    OverLimit,
}

/// A figure that only one instrument has.
#[derive(Debug)]
pub(crate) struct OwnFigure {
    pub name: &'static str,
    /// What a series has of it; none where nothing is known.
    pub of: fn(&Series) -> Option<u64>,
    pub form: Form,
}

impl OwnFigure {
    /// A time of which the longest counts.
    pub const fn longest(name: &'static str, of: fn(&Series) -> Option<u64>) -> Self {
        Self { name, of, form: Form::Longest }
    }
}

/// How such figures of several series are joined, and shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Nanoseconds, of which the longest counts.
    Longest,
    /// A number; all together.
    Count,
    /// Nanoseconds, shown in seconds; all together.
    Seconds,
    /// A share of another of the instrument's figures, by its place in the list.
    ShareOf(usize),
}

/// An instrument's own figures of some series together.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnFigures {
    list: &'static [OwnFigure],
    values: Vec<Option<u64>>,
}

impl OwnFigures {
    /// Of one series, by its instrument's list.
    pub fn of(list: &'static [OwnFigure], series: &Series) -> Self {
        Self { list, values: list.iter().map(|own| (own.of)(series)).collect() }
    }

    /// Takes in those of other series of the instrument.
    pub fn merge(&mut self, other: &Self) {
        if self.list.is_empty() {
            self.clone_from(other);
            return;
        }
        for ((own, value), more) in self.list.iter().zip(&mut self.values).zip(&other.values) {
            *value = match (*value, *more, own.form) {
                (Some(value), Some(more), Form::Longest) => Some(value.max(more)),
                (Some(value), Some(more), _) => Some(value.saturating_add(more)),
                (value, more, _) => value.or(more),
            };
        }
    }

    /// The figure at `place` of the list; 0 where nothing is known of it.
    pub fn value(&self, place: usize) -> u64 {
        self.values.get(place).copied().flatten().unwrap_or_default()
    }

    /// The same, if it is a latency.
    pub fn latency(&self, place: usize) -> Option<Nanos> {
        self.values.get(place).copied().flatten().map(Nanos)
    }

    /// The figure at `place`, which is no latency, as tables show it.
    pub fn shown(&self, place: usize) -> String {
        let value = self.value(place);
        match self.list.get(place).map(|own| own.form) {
            Some(Form::ShareOf(whole)) => percent(value, self.value(whole)),
            Some(Form::Seconds) => format!("{:.1}", value as f64 / 1e9),
            _ => value.to_string(),
        }
    }
}

/// The rows that are latencies.
pub(crate) const LATENCIES: [Row; 6] =
    [Row::Minimum, Row::Average, Row::Percentile(0), Row::Percentile(1), Row::Percentile(2), Row::Maximum];
