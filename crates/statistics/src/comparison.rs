//! Two arms compared: how many times the tail of one is that of the other, and whether that is more than the spread
//! from run to run.
//!
//! **The method.** Each run gives one figure (see [`crate::tail`]); two arms are two small samples of such figures. The
//! ratio is the Hodges-Lehmann estimate, the median of all ratios between a run of one arm and a run of the other. Its
//! interval is cut from the same ratios by the exact distribution of the Mann-Whitney statistic (Hodges and Lehmann,
//! "Estimates of location based on rank tests", Annals of Mathematical Statistics 34, 1963; Hollander, Wolfe, Chicken,
//! "Nonparametric Statistical Methods", 3rd edition, section 4.3). A difference is seen where the interval does not hold
//! one, which is the Mann-Whitney test; so test and interval never contradict each other.
//!
//! **Why this one.** Latency tails are heavy, and a chaotic system's are bimodal: means and variances of a handful of
//! runs say nothing, a bootstrap of five figures cannot see beyond them, and a t test believes in a shape that is not
//! there. Ranks need no shape, only that the runs of an arm are draws from one distribution, which different seeds make
//! them. Nothing is random, so that the same records always give the same verdict. The price: a difference that
//! only widens the spread, without a shift, is not seen.
//!
//! **Several comparisons.** [`compare`] judges one pair of arms: of many pairs that do not differ one in thirty looks
//! different. [`compare_among`] shares the error among them.

use crate::Value;
use crate::power::{POWER, Power};
use crate::ranks::cut;

/// The fewest runs of an arm that are compared. Four could be, at a confidence of 97 %, where all of one arm lie above
/// all of the other; one odd run would then hide everything.
pub const LEAST_RUNS: usize = 5;

/// At least this sure: the exact confidence is that of the next order statistic, 96.8 % for five runs against five.
const CONFIDENCE: f64 = 0.95;

/// What two arms say of each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// How many times the first arm's figure is in the second arm's. 2: twice as late; 0.5: half.
    pub ratio: f64,
    /// The interval of ratios that the runs allow, at `confidence`.
    pub interval: (f64, f64),
    /// The exact confidence of the interval, at least 0.95.
    pub confidence: f64,
    /// Whether that is more than spread.
    pub verdict: Verdict,
    /// The ratio (above one; its reciprocal downwards) that as many fresh runs with this spread would find with a
    /// probability of 80 %. A smaller difference often hides behind [`Verdict::NoDifference`].
    pub detectable: f64,
}

/// Whether the second arm's figure differs from the first's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is higher, beyond the spread within the arms.
    Higher,
    /// It is lower, beyond the spread within the arms.
    Lower,
    /// None that these runs could show: see [`Comparison::detectable`].
    NoDifference,
}

impl Verdict {
    /// What an interval of the difference of logarithms says.
    pub(crate) fn of(low: f64, high: f64) -> Self {
        match (low > 0.0, high < 0.0) {
            (true, _) => Self::Higher,
            (_, true) => Self::Lower,
            _ => Self::NoDifference,
        }
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Higher => "higher",
            Self::Lower => "lower",
            Self::NoDifference => "no difference visible",
        })
    }
}

/// An arm with too few runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{runs} runs of an arm are too few to compare: {needed} are needed, each with a seed of its own")]
pub struct TooFew {
    /// How many the smaller arm has.
    pub runs: usize,
    /// How many it takes.
    pub needed: usize,
}

/// The fewest runs of each of two arms that can show a difference among so many comparisons, each judged at an equal part
/// of the error (Bonferroni). [`LEAST_RUNS`] for up to six.
pub fn runs_needed(comparisons: usize) -> usize {
    let confidence = confidence_among(comparisons);
    (LEAST_RUNS..).find(|&runs| cut(runs, runs, confidence).is_some()).unwrap_or(usize::MAX)
}

pub(crate) fn confidence_among(comparisons: usize) -> f64 {
    1.0 - (1.0 - CONFIDENCE) / comparisons.max(1) as f64
}

/// Compares `second` against `first`.
///
/// # Errors
/// [`TooFew`] where an arm has fewer than [`LEAST_RUNS`].
pub fn compare(first: &[Value], second: &[Value]) -> Result<Comparison, TooFew> {
    compare_among(first, second, 1)
}

/// Compares `second` against `first` as one of so many comparisons: the chance that any of them shows a difference where
/// there is none is at most 5 %.
///
/// # Errors
/// [`TooFew`] where an arm has fewer than [`runs_needed`].
pub fn compare_among(first: &[Value], second: &[Value], comparisons: usize) -> Result<Comparison, TooFew> {
    let runs = first.len().min(second.len());
    let cut = cut(first.len(), second.len(), confidence_among(comparisons)).filter(|_| runs >= LEAST_RUNS);
    let (below, confidence) = cut.ok_or_else(|| TooFew { runs, needed: runs_needed(comparisons) })?;
    // A figure within a cell may be anywhere in it: the ends of the interval take the ends that widen it.
    let low = differences(first, second, |first, second| second.low() - first.high());
    let high = differences(first, second, |first, second| second.high() - first.low());
    let middle = median(&differences(first, second, |first, second| second.middle() - first.middle()));
    let (lower, upper) = (low[below], high[high.len() - 1 - below]);
    Ok(Comparison {
        ratio: middle.exp(),
        interval: (lower.exp(), upper.exp()),
        confidence,
        verdict: Verdict::of(lower, upper),
        detectable: Power::of((upper - lower) / 2.0, confidence, first.len() + second.len() - 2)
            .detectable(POWER),
    })
}

/// All differences of a figure of `second` from one of `first`, ascending.
fn differences(first: &[Value], second: &[Value], of: impl Fn(Value, Value) -> f64) -> Vec<f64> {
    let mut differences: Vec<f64> =
        second.iter().flat_map(|second| first.iter().map(|first| of(*first, *second))).collect();
    differences.sort_unstable_by(f64::total_cmp);
    differences
}

/// The median of ascending figures, of which there is at least one.
fn median(sorted: &[f64]) -> f64 {
    f64::midpoint(sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2])
}
