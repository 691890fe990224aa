//! What the figures of a run say about latencies that it did not see. Method, price and limits: docs/claims.md.
//!
//! All claims are about the highest latency observed, on one CPU under one load, with all passes of the run together.
//! None is made where the statistics do not carry it: each [`Claim`] says why.

mod text;

pub use text::{CUSTOMARY, FIRST_LOOK, rounded};

use histogram::Histogram;
use serde::{Deserialize, Serialize};
use statistics::{
    LEAST_SAMPLES, Sequence, Stationarity, activations_needed, extremal_index, share_that_counts,
};
use units::{CpuId, Nanos};

use crate::{CStates, LabTime, Record, Scenario, ScenarioEnd, Series};

/// Below this many effective activations nothing is extrapolated.
pub const LEAST_EFFECTIVE: u64 = 100;
/// Below this many activations no rate is given: see [`LEAST_SAMPLES`].
pub const LEAST_FOR_RATE: u64 = LEAST_SAMPLES;
/// A run is taken as alike throughout unless the tests' outcome is less probable than this, for all series together.
const LEAST_ALIKE: f64 = 0.05;

/// What a run says about latencies that it did not see.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Claims {
    /// One for each load, period and C-state policy on each CPU.
    pub series: Vec<Claim>,
    /// What holds for all of them; a refusal where one of them says nothing.
    pub run: Extrapolation,
}

/// What the figures of one load on one CPU say, all passes together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Claim {
    /// The load.
    pub load: String,
    /// The period.
    pub interval: Nanos,
    /// C-state policy.
    pub cstates: CStates,
    /// The CPU; none for a thread that is not pinned.
    pub cpu: Option<CpuId>,
    /// Activations that were due, in all passes.
    pub activations: u64,
    /// Those of them that count: all but as many as 30 correlation times take. Late activations that follow from each
    /// other are few draws, however many they are. None where it cannot be estimated.
    #[serde(default)]
    pub counted: Option<u64>,
    /// The highest latency observed in each pass, in the order of time: how far passes lie apart.
    pub passes: Vec<Nanos>,
    /// The extremal index, above 0 and at most 1: the inverse of the mean size of a cluster of late activations. None
    /// where it cannot be estimated.
    pub extremal_index: Option<f64>,
    /// How probable it is, were the run alike from beginning to end, that it would look as uneven as it does. None where
    /// there are too few blocks to tell.
    pub alike: Option<f64>,
    /// What follows.
    pub says: Extrapolation,
}

/// What is said about latencies above the highest observed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Extrapolation {
    /// About how many independent activations they are worth: the extremal index times their number.
    pub effective: Option<u64>,
    /// At 95 %, delays above the highest observed come at most once in this time on average, each alone or with others
    /// in a cluster.
    pub once_in: Option<Nanos>,
    /// At 95 %, at most one activation in so many is later than the highest observed: a third of what those that count are
    /// worth.
    pub one_in: Option<u64>,
    /// Why the two above are missing.
    pub refused: Option<Refused>,
}

/// Why nothing is said about latencies that were not seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Refused {
    /// Too few blocks, or too few different latencies: the extremal index cannot be estimated.
    NotEstimated,
    /// Fewer than [`LEAST_EFFECTIVE`] effective activations.
    TooFew,
    /// The run was not alike from its beginning to its end.
    NotAlike,
    /// A pass failed or was cut off, or a wake-up had not come when it ended: its figures are not all there.
    Incomplete,
}

/// What `record` says about latencies that it did not see. Empty where latencies mean nothing (a guest in the host's
/// time) or nothing was measured.
pub fn of(record: &Record) -> Claims {
    if record.header.machine.lab.as_ref().is_some_and(|lab| lab.time == LabTime::Wall) {
        return Claims::default();
    }
    let gathered = gather(record);
    let least_alike = LEAST_ALIKE / gathered.len().max(1) as f64;
    let series: Vec<Claim> = gathered.into_iter().map(|gathered| gathered.claim(least_alike)).collect();
    let run = together(&series);
    Claims { series, run }
}

/// The claims that stand in a record; of a record by an older program, which has none, those that its figures allow.
pub fn kept(record: &Record) -> Claims {
    let kept = &record.judgement.claims;
    if kept.series.is_empty() { of(record) } else { kept.clone() }
}

/// The latencies of one load on one CPU in the order of time, all passes together, as the statistics need them. Missed
/// activations count with the latency that they would have had.
pub fn sequence(passes: &[(&Scenario, &Series)]) -> Sequence {
    let mut sequence = Sequence::default();
    for (scenario, series) in passes {
        sequence.append(&of_series(series, interval_of(scenario)));
    }
    sequence
}

fn of_series(series: &Series, interval: Nanos) -> Sequence {
    let corrected = series.corrected();
    if series.maxima.activations > 0 {
        return Sequence::new(corrected, series.maxima.activations, series.maxima.maxima.clone());
    }
    // Records of older programs, and of runs that were killed: what their seconds say.
    let activations = series.timeline.step.0 / interval.0.max(1);
    let maxima = series.timeline.blocks.iter().filter_map(|block| block.observed.maximum()).map(|max| max.0);
    Sequence::new(corrected, activations, maxima.collect())
}

/// One series in all its passes.
pub struct Gathered<'a> {
    /// The passes, in the order of time.
    pub passes: Vec<(&'a Scenario, &'a Series)>,
}

/// The series of a record that belong together: the same load, period, C-state policy and CPU. Only those with
/// activations: of gaps nothing is claimed.
pub fn gather(record: &Record) -> Vec<Gathered<'_>> {
    let mut gathered: Vec<Gathered<'_>> = Vec::new();
    for scenario in &record.scenarios {
        for series in scenario.series.iter().filter(|series| series.timer().is_some()) {
            let belongs = |other: &&mut Gathered<'_>| other.belongs(scenario, series);
            match gathered.iter_mut().find(belongs) {
                Some(found) => found.passes.push((scenario, series)),
                None => gathered.push(Gathered { passes: vec![(scenario, series)] }),
            }
        }
    }
    gathered
}

impl Gathered<'_> {
    fn belongs(&self, scenario: &Scenario, series: &Series) -> bool {
        let key = |scenario: &Scenario| {
            (scenario.head.planned.load.clone(), interval_of(scenario), scenario.head.planned.cstates)
        };
        self.passes
            .first()
            .is_some_and(|(first, other)| key(first) == key(scenario) && other.cpu == series.cpu)
    }

    /// Everything measured.
    pub fn sequence(&self) -> Sequence {
        sequence(&self.passes)
    }

    fn claim(&self, least_alike: f64) -> Claim {
        let Some((first, series)) = self.passes.first() else { return Claim::default() };
        let sequence = self.sequence();
        let activations =
            self.passes.iter().fold(0_u64, |sum, (_, series)| sum.saturating_add(series.expected()));
        let extremal_index = extremal_index(&sequence).map(|theta| (theta * 1e4).round().max(1.0) / 1e4);
        let counted = share_that_counts(&sequence).map(|share| (activations as f64 * share) as u64);
        let alike = Stationarity::of(&sequence).map(|tests| tests.probability());
        let whole = self.passes.iter().all(|(scenario, series)| is_whole(scenario, series));
        let known = extremal_index.zip(counted);
        let says = extrapolate(activations, interval_of(first), known, |effective| match alike {
            _ if !whole => Some(Refused::Incomplete),
            None => Some(Refused::NotEstimated),
            _ if effective < LEAST_EFFECTIVE => Some(Refused::TooFew),
            Some(alike) if alike < least_alike => Some(Refused::NotAlike),
            Some(_) => None,
        });
        Claim {
            load: first.head.planned.load.clone(),
            interval: interval_of(first),
            cstates: first.head.planned.cstates,
            cpu: series.cpu,
            activations,
            counted,
            passes: self.passes.iter().map(|(_, series)| highest(series)).collect(),
            extremal_index,
            alike,
            says,
        }
    }
}

/// The period; 0 for an instrument without activations, of which there are no claims.
fn interval_of(scenario: &Scenario) -> Nanos {
    scenario.head.planned.setup.interval().unwrap_or_default()
}

/// The highest latency that a series observed.
fn highest(series: &Series) -> Nanos {
    series.observed.summary().maximum().unwrap_or_default()
}

/// Whether all that a pass measured is in its histograms.
fn is_whole(scenario: &Scenario, series: &Series) -> bool {
    let held = |histogram: &Histogram| histogram.cell_count();
    let there = held(&series.observed).saturating_add(held(series.missed())) >= series.expected();
    there
        && series.censored.is_none()
        && !matches!(scenario.end, ScenarioEnd::Failed(_) | ScenarioEnd::CutOff)
}

/// The rule of three: of what did not happen in n independent activations, at 95 % confidence, at most 3/n happens
/// (Hanley and Lippman-Hand, JAMA 249, 1983). Clusters count once. `known` are the extremal index and how many of the
/// activations count.
fn extrapolate(
    activations: u64,
    interval: Nanos,
    known: Option<(f64, u64)>,
    refusal: impl Fn(u64) -> Option<Refused>,
) -> Extrapolation {
    let Some((theta, counted)) = known else {
        return Extrapolation { refused: Some(Refused::NotEstimated), ..Extrapolation::default() };
    };
    let worth = |activations: u64| (activations as f64 * theta) as u64;
    let effective = worth(activations);
    let refused = refusal(effective).or((counted == 0).then_some(Refused::TooFew));
    let carried = refused.is_none();
    Extrapolation {
        effective: Some(effective),
        once_in: carried.then(|| interval.saturating_mul(counted / 3)),
        one_in: (carried && activations >= LEAST_FOR_RATE).then_some(worth(counted) / 3),
        refused,
    }
}

/// What holds for every series: above the highest latency of all, each is later no more often than it says itself.
fn together(series: &[Claim]) -> Extrapolation {
    let refused = series.iter().find_map(|claim| claim.says.refused);
    let each = |figure: fn(&Extrapolation) -> Option<u64>| {
        let figures: Option<Vec<u64>> = series.iter().map(|claim| figure(&claim.says)).collect();
        figures.and_then(|figures| figures.into_iter().min())
    };
    Extrapolation {
        effective: each(|says| says.effective),
        once_in: each(|says| says.once_in.map(|time| time.0)).map(Nanos),
        one_in: each(|says| says.one_in),
        refused,
    }
}

impl Claims {
    /// The fewest activations of a series.
    pub fn fewest(&self) -> u64 {
        self.series.iter().map(|claim| claim.activations).min().unwrap_or_default()
    }
}

impl Claim {
    /// How long a run must be in which nothing is later than a limit, to claim at 95 % that at most one activation in
    /// `odds` is: activations and time. None where the extremal index is not known.
    pub fn run_length(&self, odds: u64) -> Option<(u64, Nanos)> {
        let lost = self.activations.saturating_sub(self.counted.unwrap_or(self.activations)) as f64;
        let needed = activations_needed(odds as f64, self.extremal_index?) + lost;
        let needed = needed.max(LEAST_FOR_RATE as f64).ceil() as u64;
        Some((needed, self.interval.saturating_mul(needed)))
    }
}

#[cfg(test)]
mod tests;
