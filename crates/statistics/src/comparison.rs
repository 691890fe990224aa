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
//! them. Nothing is drawn by lot, so that the same records always give the same verdict. The price: a difference that
//! only widens the spread, without a shift, is not seen.
//!
//! **What it does not do.** It judges one pair of arms. Whoever asks many questions at once gets one wrong "higher" or
//! "lower" in some thirty of them, and has to say so.

use crate::Value;
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
    /// The smallest ratio (above one; its reciprocal downwards) that would surely have been seen with the spread that
    /// these runs have. A smaller difference can hide behind [`Verdict::NoDifference`].
    pub smallest: f64,
}

/// Whether the second arm's figure differs from the first's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is higher, beyond the spread within the arms.
    Higher,
    /// It is lower, beyond the spread within the arms.
    Lower,
    /// None that these runs could show: see [`Comparison::smallest`].
    NoDifference,
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
#[error("{runs} runs of an arm are too few to compare: {LEAST_RUNS} are needed, each with a seed of its own")]
pub struct TooFew {
    /// How many the smaller arm has.
    pub runs: usize,
}

/// Compares `second` against `first`.
///
/// # Errors
/// [`TooFew`] where an arm has fewer than [`LEAST_RUNS`].
pub fn compare(first: &[Value], second: &[Value]) -> Result<Comparison, TooFew> {
    let runs = first.len().min(second.len());
    let cut = cut(first.len(), second.len(), CONFIDENCE).filter(|_| runs >= LEAST_RUNS);
    let (below, confidence) = cut.ok_or(TooFew { runs })?;
    // A figure within a cell may be anywhere in it: the ends of the interval take the ends that widen it.
    let low = differences(first, second, |first, second| second.low() - first.high());
    let high = differences(first, second, |first, second| second.high() - first.low());
    let middle = median(&differences(first, second, |first, second| second.middle() - first.middle()));
    let (lower, upper) = (low[below], high[high.len() - 1 - below]);
    let verdict = match (lower > 0.0, upper < 0.0) {
        (true, _) => Verdict::Higher,
        (_, true) => Verdict::Lower,
        _ => Verdict::NoDifference,
    };
    Ok(Comparison {
        ratio: middle.exp(),
        interval: (lower.exp(), upper.exp()),
        confidence,
        verdict,
        smallest: (middle - lower).max(upper - middle).exp(),
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
