//! Wake-ups that the host of a virtual machine delayed: a setting of the guest neither makes nor cures them, and on a busy
//! host they are the tail of every arm.
//!
//! All arms are traced alike, and what is set apart was proven by the trace. A late wake-up that no trace has stays among
//! the latencies.

use failure::Error;
use histogram::Histogram;
use record::verdict::{Verdict, judge};
use record::{Block, Cause, Certainty, Class, Explanation, Hit, Record, Scenario, Series, Timeline};
use units::{Nanos, Total};

/// How many of a block's worst wake-ups are explained at most: a busy host delays many.
pub const EXPLAINED: u32 = 100;

/// The share of a latency, in percent, that must surely be the host's: what a setting could change is the rest.
const SHARE: u64 = 90;

/// What was set apart in a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetApart {
    /// Activations that were due.
    pub due: u64,
    /// Wake-ups that the host delayed.
    pub wake_ups: u64,
    /// Activations that these made the thread miss.
    pub missed: u64,
    /// The longest of these latencies.
    pub longest: Nanos,
    /// Late wake-ups that no trace has: they count as they are.
    pub blind: u64,
}

impl SetApart {
    /// Of the repetition of the only scenario; nothing where there is none.
    pub fn of(record: &Record) -> Self {
        let Some(Explanation { scenario, hits, tracing, .. }) = record.explanations.first() else {
            return Self::default();
        };
        let parts: Vec<Part> =
            (0..scenario.series.len()).map(|place| Part::of(scenario, place, hits)).collect();
        Self {
            due: scenario.series.iter().map(Series::expected).total(),
            wake_ups: parts.iter().map(|part| part.observed.summary().count).total(),
            missed: parts.iter().map(|part| part.missed.summary().count).total(),
            longest: parts
                .iter()
                .filter_map(|part| part.observed.summary().maximum())
                .max()
                .unwrap_or_default(),
            blind: tracing.blind,
        }
    }

    /// Of two blocks.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            due: self.due.saturating_add(other.due),
            wake_ups: self.wake_ups.saturating_add(other.wake_ups),
            missed: self.missed.saturating_add(other.missed),
            longest: self.longest.max(other.longest),
            blind: self.blind.saturating_add(other.blind),
        }
    }
}

/// The record as if its traced repetition had been measured, without the wake-ups that the host delayed and the activations
/// that were missed by them. Activations that were due are as many as they were: those that no latency has any more are what
/// was set apart. The greatest latencies of single seconds are not known without them, so that its timeline is one step.
///
/// # Errors
/// Where it was not traced to its end.
pub fn without_steal(mut record: Record) -> Result<Record, Error> {
    let explanation = record.explanations.first().ok_or_else(|| untraced("it was not measured once more"))?;
    if let Some(failure) = &explanation.tracing.failure {
        return Err(untraced(failure));
    }
    let scenario = &explanation.scenario;
    let left = |(place, series)| Part::of(scenario, place, &explanation.hits).taken_from(series);
    let left = scenario.series.iter().enumerate().map(left).collect::<Option<_>>();
    let series = left.ok_or_else(|| untraced("a wake-up that was explained is not among its latencies"))?;
    record.scenarios = vec![Scenario { series, ..scenario.clone() }];
    // What held for the measurement is not known to hold for its repetition: that its load ran, that no thread was lost.
    if record.judgement.verdict == Verdict::Measured {
        record.judgement = judge(&record, &[]);
    }
    Ok(record)
}

fn untraced(why: &str) -> Error {
    Error::new(format!("what the host took of a block is not known: {why}"), "leave out --without-steal")
}

/// What is set apart of a series.
#[derive(Default)]
struct Part {
    observed: Histogram,
    missed: Histogram,
    activations: Vec<u64>,
}

impl Part {
    /// Of the series at `place`.
    fn of(scenario: &Scenario, place: usize, hits: &[Hit]) -> Self {
        let mut part = Self::default();
        let Some(series) = scenario.series.get(place) else { return part };
        for hit in hits.iter().filter(|hit| Some(hit.cpu) == series.cpu && is_stolen(hit)) {
            part.observed.record(hit.latency);
            part.activations.push(hit.activation);
            let grid = scenario.head.grid(place, 0).moved(hit.activation, hit.due.0);
            let woke = hit.due.0.saturating_add(hit.latency.0);
            let until = grid.due_by(woke).min(series.expected());
            part.missed.merge(&grid.missed(hit.activation.saturating_add(1)..until, woke));
        }
        part
    }

    /// None where it is no part of the series.
    fn taken_from(&self, series: &Series) -> Option<Series> {
        let mut left = series.clone();
        left.observed = series.observed.without(&self.observed)?;
        let (_, missed) = left.account_mut()?;
        *missed = missed.without(&self.missed)?;
        let missed = missed.summary().count;
        left.worst.retain(|sample| !self.activations.contains(&sample.activation));
        let step = series.timeline.step.saturating_mul(series.timeline.blocks.len() as u64);
        let whole = Block { observed: *left.observed.summary(), missed };
        left.timeline = Timeline { step, blocks: vec![whole] };
        Some(left)
    }
}

fn is_stolen(hit: &Hit) -> bool {
    let of_host = |cause: &&Cause| cause.class == Class::Host && cause.certainty == Certainty::Sure;
    let stolen: u64 = hit.causes.iter().filter(of_host).map(|cause| cause.length.0).total();
    hit.latency.0 > 0 && stolen.saturating_mul(100) >= hit.latency.0.saturating_mul(SHARE)
}
