//! Whether a run was alike from its beginning to its end. Where it was not, nothing is said about what comes after it.
//!
//! Three tests of the maxima of some 64 blocks, in the order of time: does the first half differ from the second in
//! the greatest latencies, and in what most latencies were (both by Mann and Whitney's test, the second of the mean
//! rank within each block, which sees a drift that maxima are too scattered to show); and does a block resemble its
//! neighbour (rank correlation of lag 1, after Wald and Wolfowitz, "An exact test for randomness in the non-parametric
//! case based on serial correlation", Annals of Mathematical Statistics 14, 1943), which a run does that was busy for
//! long stretches, or whose clusters are longer than a block.

use crate::Sequence;
use crate::dependence::LEAST_BLOCKS;
use crate::numeric::two_sided;
use crate::ranks::{likeness, mid_ranks};

/// How probable it is, were the run alike throughout, that it would look as uneven as it does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stationarity {
    /// First half against second half, greatest latencies.
    pub maxima: f64,
    /// First half against second half, most latencies.
    pub levels: f64,
    /// Neighbouring blocks; one-sided, as only likeness counts.
    pub neighbours: f64,
}

impl Stationarity {
    /// The tests. None where there are too few blocks.
    pub fn of(sequence: &Sequence) -> Option<Self> {
        let (together, maxima) = sequence.blocks(LEAST_BLOCKS)?;
        let maxima: Vec<f64> = maxima.into_iter().map(|maximum| maximum as f64).collect();
        let all: Vec<f64> = sequence.maxima().iter().map(|&maximum| maximum as f64).collect();
        let mean = |ranks: &[f64]| ranks.iter().sum::<f64>() / ranks.len() as f64;
        let levels: Vec<f64> = mid_ranks(&all).chunks_exact(together).map(mean).collect();
        Some(Self { maxima: halves(&maxima), levels: halves(&levels), neighbours: neighbours(&maxima) })
    }

    /// The least of the three, three times over: the probability that any of them would be as small (Bonferroni).
    pub fn probability(&self) -> f64 {
        (3.0 * self.maxima.min(self.levels).min(self.neighbours)).min(1.0)
    }
}

/// Mann and Whitney's test of the first half against the second, by the normal approximation with ties counted.
fn halves(figures: &[f64]) -> f64 {
    let (ranks, first) = (mid_ranks(figures), figures.len() / 2);
    let (total, m, n) = (figures.len() as f64, first as f64, (figures.len() - first) as f64);
    let sum: f64 = ranks[..first].iter().sum();
    let middle = (total + 1.0) / 2.0;
    // The variance of the ranks themselves holds what ties take away.
    let spread = ranks.iter().map(|rank| (rank - middle).powi(2)).sum::<f64>() / (total * (total - 1.0));
    if spread == 0.0 { 1.0 } else { two_sided((sum - m * middle) / (m * n * spread).sqrt()) }
}

fn neighbours(figures: &[f64]) -> f64 {
    let count = figures.len() as f64;
    let spread = figures.iter().any(|figure| *figure != figures[0]);
    if !spread {
        return 1.0;
    }
    let z = (likeness(figures) + 1.0 / count) * count.sqrt();
    if z > 0.0 { two_sided(z) / 2.0 } else { 1.0 - two_sided(z) / 2.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_agree_with_the_normal_approximation_by_hand() {
        // 1..=10 against 11..=20: U = 0, z = -50 / sqrt(10 * 10 * 21 / 12) = -3.7796, p = 0.000157.
        let apart: Vec<f64> = (1..=20).map(f64::from).collect();
        assert!((halves(&apart) - 0.000_157).abs() < 1e-6);
        let mixed: Vec<f64> = (1..=20).map(|n| f64::from(n * 7 % 20)).collect();
        assert!(halves(&mixed) > 0.2);
        assert_eq!(halves(&[3.0; 20]), 1.0);
    }

    #[test]
    fn a_block_like_its_neighbour_is_seen_and_alternation_is_not_taken_for_it() {
        let waves: Vec<f64> = (0..64).map(|n| (f64::from(n) / 5.0).sin()).collect();
        assert!(neighbours(&waves) < 1e-6);
        let alternating: Vec<f64> = (0..64).map(|n| f64::from(n % 2)).collect();
        assert!(neighbours(&alternating) > 0.99);
        assert_eq!(neighbours(&[3.0; 20]), 1.0);
    }
}
