//! Two arms compared that were not measured in turn: each is one stretch of time, divided into runs.
//!
//! **What is different.** Runs of one stretch are alike in what does not change while it lasts, and the other stretch may
//! have that otherwise: memory, the state of a file system, neighbours on the host. That part cannot be seen within a
//! stretch, and the exact methods of [`crate::compare`] take runs for independent draws, which they are not.
//!
//! **The method.** It is assumed that two stretches differ by nothing but the arm and by one more draw each of what makes
//! runs of a stretch differ. Then the difference of the means of the logarithms has the variance `s^2 (1 + 1/n)` of either
//! arm together, with `s` the spread of its `n` runs: that of predicting a further run (Hahn and Meeker, "Statistical
//! Intervals", section 4.7), not of estimating a mean. Student's quantile takes Welch's degrees of freedom ("The
//! generalization of Student's problem when several different population variances are involved", Biometrika 34, 1947).
//!
//! **The price.** More runs make the interval no narrower than their spread. Three runs have two degrees of freedom: the
//! interval is wide. A stretch of one run has none, and nothing is said. Outliers widen the interval instead of
//! moving it out. What keeps its value throughout a stretch and has another one in the next is not seen.

use crate::comparison::{Comparison, TooFew, Verdict, confidence_among};
use crate::numeric::student;
use crate::power::{POWER, Power};
use crate::value::Value;

/// The fewest runs of each of two arms that were measured apart.
pub const LEAST_APART: usize = 3;

/// Compares `second` against `first`, each the runs of one stretch of time, as one of so many comparisons.
///
/// # Errors
/// [`TooFew`] where an arm has fewer than [`LEAST_APART`].
pub fn compare_apart(first: &[Value], second: &[Value], comparisons: usize) -> Result<Comparison, TooFew> {
    let runs = first.len().min(second.len());
    if runs < LEAST_APART {
        return Err(TooFew { runs, needed: LEAST_APART });
    }
    let (first, second) = (Stretch::of(first), Stretch::of(second));
    let difference = second.mean - first.mean;
    let (one, other) = (first.variance(), second.variance());
    let freedom = freedom(&[(one, first.runs), (other, second.runs)]);
    let confidence = confidence_among(comparisons);
    let half = student(1.0 - confidence, freedom) * (one + other).sqrt() + first.cell + second.cell;
    let (low, high) = (difference - half, difference + half);
    Ok(Comparison {
        ratio: difference.exp(),
        interval: (low.exp(), high.exp()),
        confidence,
        verdict: Verdict::of(low, high),
        detectable: Power::of(half, confidence, freedom as usize).detectable(POWER),
    })
}

/// Welch's, between those of the smaller arm and those of both.
fn freedom(parts: &[(f64, f64); 2]) -> f64 {
    let sum: f64 = parts.iter().map(|(variance, _)| variance).sum();
    let each: f64 = parts.iter().map(|(variance, runs)| variance * variance / (runs - 1.0)).sum();
    let least = parts[0].1.min(parts[1].1) - 1.0;
    if each > 0.0 { (sum * sum / each).max(least) } else { least }
}

/// Logarithms of an arm's figures.
struct Stretch {
    runs: f64,
    mean: f64,
    /// The variance of one.
    spread: f64,
    /// By how much a figure may be elsewhere in its cell.
    cell: f64,
}

impl Stretch {
    fn of(values: &[Value]) -> Self {
        let runs = values.len() as f64;
        let mean = values.iter().map(|value| value.middle()).sum::<f64>() / runs;
        let squares: f64 = values.iter().map(|value| (value.middle() - mean).powi(2)).sum();
        let cell = values.iter().map(|value| value.high() - value.middle()).fold(0.0, f64::max);
        Self { runs, mean, spread: squares / (runs - 1.0), cell }
    }

    /// Of the arm's figure in another stretch.
    fn variance(&self) -> f64 {
        self.spread * (1.0 + 1.0 / self.runs)
    }
}
