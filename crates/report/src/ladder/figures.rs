//! What is reckoned of a ladder's records.

use experiment::ladder::steps;
use histogram::Summary;
use statistics::tail::Tail;
use statistics::{Comparison, Value, Verdict, compare};
use units::Nanos;

use super::Ladder;
use crate::figures::Figures;
use crate::group::groups;

/// A ladder with its figures.
pub(super) struct Reckoned<'a> {
    pub ladder: &'a Ladder,
    /// The figure that stands for a run's tail, the same everywhere; none where samples are too few for any.
    pub tail: Option<Tail>,
    /// For each rung, for each load.
    pub places: Vec<Vec<Place>>,
    /// Each rung against the one before it, then the last against the first.
    pub steps: Vec<Step>,
}

/// One load on one rung: a run a seed.
pub(super) struct Place {
    pub runs: Vec<Figures>,
    tails: Vec<Value>,
}

/// One rung against another.
pub(super) struct Step {
    pub from: usize,
    pub to: usize,
    /// For each load; none where there are too few runs, or too few samples.
    pub loads: Vec<Option<Comparison>>,
}

impl<'a> Reckoned<'a> {
    pub fn of(ladder: &'a Ladder) -> Self {
        let mut places: Vec<Vec<Place>> = ladder
            .rungs
            .iter()
            .map(|rung| ladder.loads.iter().map(|load| Place::of(&rung.runs, load)).collect())
            .collect();
        let all = || places.iter().flatten().flat_map(|place| &place.runs);
        let fewest = all().map(|run| run.corrected.summary().count).min().unwrap_or(0);
        let tail = Tail::finest(fewest);
        for place in places.iter_mut().flatten() {
            place.tails = place.runs.iter().filter_map(|run| tail?.of(&run.corrected)).collect();
        }
        let steps = steps(ladder.rungs.len()).map(|(from, to)| Step::of(&places, from, to)).collect();
        Self { ladder, tail, places, steps }
    }

    /// The tail's name for heads: `p99.9`.
    pub fn tail_name(&self) -> String {
        self.tail.map_or_else(|| "tail".into(), |tail| tail.to_string())
    }
}

impl Place {
    fn of(runs: &[record::Record], load: &str) -> Self {
        let figures =
            |run| groups(run).iter().find(|group| group.key.load == load).map(|group| group.figures());
        Self { runs: runs.iter().filter_map(figures).collect(), tails: Vec::new() }
    }

    /// The least latency of all runs.
    pub fn minimum(&self) -> Option<Nanos> {
        self.runs.iter().filter_map(|run| run.observed.minimum()).min()
    }

    /// The average of all runs together.
    pub fn average(&self) -> Option<Nanos> {
        let mut all = Summary::default();
        self.runs.iter().for_each(|run| all.merge(&run.observed));
        all.average()
    }

    /// The greatest latency of all runs.
    pub fn maximum(&self) -> Option<Nanos> {
        self.runs.iter().filter_map(|run| run.observed.maximum()).max()
    }

    /// The tails of the runs, ascending.
    pub fn tails(&self) -> Vec<Nanos> {
        let mut tails: Vec<Nanos> = self.tails.iter().map(|tail| Nanos(tail.figure() as u64)).collect();
        tails.sort_unstable();
        tails
    }

    /// The run in the middle, by its tail; of an even number the later of the two.
    pub fn tail(&self) -> Option<Nanos> {
        let tails = self.tails();
        tails.get(tails.len() / 2).copied()
    }

    /// All activations due, of all runs.
    pub fn samples(&self) -> u64 {
        self.runs.iter().map(|run| run.expected).sum()
    }

    /// The figures of all runs together.
    pub fn together(&self) -> Figures {
        Figures::sum(&self.runs, None)
    }
}

impl Step {
    fn of(places: &[Vec<Place>], from: usize, to: usize) -> Self {
        let compared = |(from, to): (&Place, &Place)| compare(&from.tails, &to.tails).ok();
        Self { from, to, loads: places[from].iter().zip(&places[to]).map(compared).collect() }
    }

    /// `rt / threaded`.
    pub fn name(&self, ladder: &Ladder) -> String {
        format!("{} / {}", ladder.rungs[self.to].name, ladder.rungs[self.from].name)
    }

    /// How many loads it made better, worse, and neither that could be seen.
    pub fn counts(&self) -> [usize; 3] {
        let count =
            |verdict| self.loads.iter().flatten().filter(|comparison| comparison.verdict == verdict).count();
        [Verdict::Lower, Verdict::Higher, Verdict::NoDifference].map(count)
    }
}

/// A ratio with what can be said of it: `0.12 x`, and in brackets where it lies within the spread.
pub(super) fn ratio(comparison: &Comparison) -> String {
    let text = crate::compare::ratio_text(comparison.ratio);
    match comparison.verdict {
        Verdict::NoDifference => format!("({text})"),
        Verdict::Higher | Verdict::Lower => format!("{text} "),
    }
}

/// The interval of a ratio: `0.10-0.15`.
pub(super) fn interval(comparison: &Comparison) -> String {
    let end = |ratio: f64| if ratio < 99.95 { format!("{ratio:.2}") } else { format!("{ratio:.0}") };
    format!("{}-{}", end(comparison.interval.0), end(comparison.interval.1))
}

/// How sure the intervals are, the least of all, in per cent.
pub(super) fn confidence(reckoned: &Reckoned<'_>) -> Option<f64> {
    let all = reckoned.steps.iter().flat_map(|step| step.loads.iter().flatten());
    all.map(|comparison| comparison.confidence * 100.0).min_by(f64::total_cmp)
}

/// How many of the steps that change nothing look as if they did, by how sure the intervals are (in per cent): `one in 31`.
pub(super) fn one_in(confidence: f64) -> String {
    format!("one in {:.0}", 100.0 / (100.0 - confidence))
}

/// Why steps are not judged, if some are not: text and page say the same.
pub(super) fn no_comparison(reckoned: &Reckoned<'_>) -> Option<String> {
    let fewest = reckoned.ladder.rungs.iter().map(|rung| rung.runs.len()).min().unwrap_or(0);
    if reckoned.tail.is_none() {
        return Some("Steps are not judged: too few samples a load for a tail.".into());
    }
    (fewest < statistics::LEAST_RUNS).then(|| {
        format!(
            "Steps are judged where both rungs have {} runs or more, each with a seed of its own; the rung with the \
             fewest has {fewest}.",
            statistics::LEAST_RUNS
        )
    })
}
