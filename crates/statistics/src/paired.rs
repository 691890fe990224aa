//! Two arms compared within rounds: each round has one run of each arm, in a random order.
//!
//! **The method.** Each round gives one ratio. If the second arm does nothing, either order of the two figures of a round
//! is as likely as the other, whatever drifts from round to round: heat, caches, neighbours. All `2^n` ways to swap them
//! make the exact distribution of Wilcoxon's signed ranks (Wilcoxon, "Individual comparisons by ranking methods",
//! Biometrics Bulletin 1, 1945), counted by adding one rank after the other. The ratio is the Hodges-Lehmann estimate:
//! the median of the geometric means of any two rounds' ratios. Its interval inverts the same test (Hollander, Wolfe,
//! Chicken, "Nonparametric Statistical Methods", 3rd edition, sections 3.1 to 3.3), so test and interval agree.
//!
//! **The price.** The arms must be in random order within each round, and the effect is taken to be one factor for all
//! rounds. Six rounds are the fewest that can show anything at 95 %, and then all six have to agree; [`rounds_needed`] has
//! the number for several comparisons at once. Equal figures count for neither side. What widens the spread and shifts
//! nothing is not seen.

use crate::power::Power;
use crate::ranks::SignedRanks;
use crate::value::Value;

/// The error that all comparisons of one experiment share.
pub const ERROR: f64 = 0.05;

/// The fewest rounds in which the strongest answer is strong enough for Holm's first step among so many comparisons: all
/// rounds agree, which happens by chance in 2 of `2^n` cases. 6 for one, 11 for 30.
pub fn rounds_needed(comparisons: usize) -> u32 {
    let wanted = ERROR / comparisons.max(1) as f64;
    (1..).find(|&rounds| 0.5_f64.powi(rounds - 1) <= wanted).unwrap_or(i32::MAX) as u32
}

/// Holm's steps ("A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6, 1979):
/// the confidence at which each comparison is judged, so that the chance of any wrong difference among them all is at most
/// [`ERROR`]. The smallest probability is judged at one part of as many as there are, the next at one of the others, until
/// one fails: those left are judged where that one was.
pub fn holm(probabilities: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..probabilities.len()).collect();
    order.sort_by(|&a, &b| probabilities[a].total_cmp(&probabilities[b]));
    let mut confidences = vec![1.0; probabilities.len()];
    let (mut left, mut failed) = (probabilities.len(), false);
    for place in order {
        let error = ERROR / left as f64;
        confidences[place] = 1.0 - error;
        failed |= probabilities[place] > error;
        left -= usize::from(!failed);
    }
    confidences
}

/// The rounds' ratios of a second arm to a first.
#[derive(Clone, Debug, PartialEq)]
pub struct Paired {
    rounds: usize,
    ranks: SignedRanks,
    /// Means of the logarithms of any two rounds' ratios, ascending: the least that they may be, the middles, the most.
    low: Vec<f64>,
    middle: Vec<f64>,
    high: Vec<f64>,
}

/// Between which ratios the true one lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The least ratio.
    pub low: f64,
    /// The greatest ratio.
    pub high: f64,
    /// How sure that is: at least what was asked for.
    pub confidence: f64,
}

impl Paired {
    /// Of rounds, each with its figures of the first arm and of the second. None of no round.
    pub fn of(rounds: &[(Value, Value)]) -> Option<Self> {
        let sorted = |of: fn(Value, Value) -> f64| {
            let single: Vec<f64> = rounds.iter().map(|&(first, second)| of(first, second)).collect();
            means_of_two(&single)
        };
        (!rounds.is_empty()).then(|| Self {
            rounds: rounds.len(),
            ranks: SignedRanks::of(rounds.len()),
            // A figure within a cell may be anywhere in it: the ends of the interval take the ends that widen it.
            low: sorted(|first, second| second.low() - first.high()),
            middle: sorted(|first, second| second.middle() - first.middle()),
            high: sorted(|first, second| second.high() - first.low()),
        })
    }

    /// How many times the first arm's figure is in the second arm's.
    pub fn ratio(&self) -> f64 {
        let count = self.middle.len();
        f64::midpoint(self.middle[(count - 1) / 2], self.middle[count / 2]).exp()
    }

    /// How probable a difference at least as clear is where there is none: exact, two-sided.
    pub fn probability(&self) -> f64 {
        let not_higher = self.low.partition_point(|&mean| mean <= 0.0);
        let not_lower = self.high.len() - self.high.partition_point(|&mean| mean < 0.0);
        (2.0 * self.ranks.at_most(not_higher.min(not_lower))).min(1.0)
    }

    /// Where the true ratio lies, at least that sure. None where so few rounds cannot say so.
    pub fn interval(&self, confidence: f64) -> Option<Interval> {
        let (below, confidence) = self.ranks.cut(confidence)?;
        let (low, high) = (self.low[below].exp(), self.high[self.high.len() - 1 - below].exp());
        Some(Interval { low, high, confidence })
    }

    /// What rounds like these can tell apart when they are judged at that confidence.
    pub fn power(&self, confidence: f64) -> Option<Power> {
        let Interval { low, high, confidence } = self.interval(confidence)?;
        Some(Power::of((high / low).ln() / 2.0, confidence, self.rounds - 1))
    }
}

/// The means of any two of them, each with itself too, ascending.
fn means_of_two(figures: &[f64]) -> Vec<f64> {
    let with_later =
        |(place, a): (usize, &f64)| figures[place..].iter().map(|b| f64::midpoint(*a, *b)).collect();
    let mut means: Vec<f64> = figures.iter().enumerate().flat_map::<Vec<f64>, _>(with_later).collect();
    means.sort_unstable_by(f64::total_cmp);
    means
}

/// The confidence that the interval of so many rounds has which is asked for `confidence`. None where they are too few.
pub fn confidence_of(rounds: u32, confidence: f64) -> Option<f64> {
    SignedRanks::of(rounds as usize).cut(confidence).map(|(_, confidence)| confidence)
}
