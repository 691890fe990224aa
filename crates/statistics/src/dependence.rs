//! How many independent latencies a sequence is worth: the extremal index.
//!
//! Late wake-ups come in clusters: whatever delays one delays the next. Where that is so, n latencies say as much about
//! the highest ones as theta n independent ones would, with theta, the extremal index, between 0 and 1; 1/theta is the
//! mean size of a cluster (Leadbetter, "Extremes and local dependence in stationary sequences", Zeitschrift für
//! Wahrscheinlichkeitstheorie 65, 1983).
//!
//! **The method.** In `k` blocks of `b` latencies, `K` blocks and `N` of the `n` latencies exceed a level: theta is
//! `ln(1 - K/k) / (b ln(1 - N/n))` (Smith and Weissman, "Estimating the extremal index", Journal of the Royal
//! Statistical Society B 56, 1994). Theta depends on the level and on the block: short blocks cut clusters in two, and
//! clusters that only the highest levels have do not show at low ones. So the smallest value over block lengths and
//! levels is taken, which is the careful side: of independent latencies it is about 0.9.
//!
//! **Why this one.** Intervals between exceedances (Ferro and Segers, "Inference for clusters of extreme values", the
//! same journal 65, 2003) need every single latency, which a run of a day does not keep. The mean over all levels
//! (Northrop, "An efficient semiparametric maxima estimator of the extremal index", Extremes 18, 2015) hides clusters
//! that only the highest levels have, and these are the ones that matter here. `tests/claims.rs` shows what holds.

use units::Nanos;

use crate::Sequence;
use crate::sequence::whole;

/// Below this many samples nothing is said about the share that exceeds a level: a condition that fills a hundredth of
/// the time in stretches of a hundred samples might not have been met, or met so seldom that its clusters cannot be
/// counted, and theta is then that of the rest. From here on it was met with 99.7 %.
pub const LEAST_SAMPLES: u64 = 60_000;
/// The fewest blocks that theta is estimated from.
pub const LEAST_BLOCKS: usize = 64;
/// Levels at which this many blocks lie higher.
const HIGHEST: [usize; 3] = [1, 2, 3];
/// Levels at which this share of the blocks, in percent, lies higher.
const SHARES: [usize; 5] = [5, 10, 20, 40, 60];

/// The extremal index, above 0 and at most 1. None where there are too few blocks, or where latencies take so few
/// values that no level parts them.
pub fn extremal_index(sequence: &Sequence) -> Option<f64> {
    let mut least: Option<f64> = None;
    let mut together = 1;
    while sequence.maxima().len() / together >= LEAST_BLOCKS {
        let maxima = whole(sequence.maxima(), together);
        let size = sequence.activations() as f64 * together as f64;
        let mut sorted = maxima.clone();
        sorted.sort_unstable_by(|a, b| b.cmp(a));
        let shares = SHARES.iter().map(|share| share * sorted.len() / 100);
        for higher in HIGHEST.into_iter().chain(shares) {
            let theta = sorted.get(higher).and_then(|&level| at_level(sequence, &maxima, size, level));
            least = theta.map(|theta| least.map_or(theta, |least| least.min(theta))).or(least);
        }
        together *= 2;
    }
    least.map(|theta| theta.min(1.0))
}

/// Theta at the upper edge of the cell that `level` lies in. None where nothing or everything is higher.
fn at_level(sequence: &Sequence, maxima: &[u64], size: f64, level: u64) -> Option<f64> {
    let next = histogram::layout::lowest(histogram::layout::index(level).checked_add(1)?);
    let blocks = maxima.iter().filter(|&&maximum| maximum >= next).count();
    let latencies = sequence.distribution().at_least(Nanos(next));
    if blocks == 0 || blocks == maxima.len() || latencies == 0 || latencies >= sequence.count() {
        return None;
    }
    let clusters = -(-(blocks as f64) / maxima.len() as f64).ln_1p();
    Some(clusters / (-size * (-(latencies as f64) / sequence.count() as f64).ln_1p()))
}

/// How many activations a run needs in which none exceeds a level, to claim with 95 % that at most one in `odds` does:
/// `3 odds / theta`, the rule of three (Hanley and Lippman-Hand, JAMA 249, 1983) with clusters counted once.
pub fn activations_needed(odds: f64, theta: f64) -> f64 {
    3.0 * odds / theta
}

#[cfg(test)]
mod tests {
    use super::*;
    use histogram::Histogram;
    use units::Seed;

    /// `count` drawn latencies, each `times` over.
    fn clusters(count: usize, times: usize) -> Sequence {
        let mut drawn = Seed(7).stream("clusters");
        let latencies: Vec<u64> = (0..count / times)
            .flat_map(|_| std::iter::repeat_n(1_000 + drawn.below(9_000_000), times))
            .collect();
        let mut distribution = Histogram::default();
        latencies.iter().for_each(|&latency| distribution.record(Nanos(latency)));
        Sequence::new(
            distribution,
            8,
            latencies.chunks(8).filter_map(|block| block.iter().copied().max()).collect(),
        )
    }

    #[test]
    fn theta_is_the_inverse_of_the_cluster_size() {
        for times in [1, 2, 5, 10] {
            let theta = extremal_index(&clusters(16_000, times)).unwrap() * times as f64;
            assert!((0.75..=1.05).contains(&theta), "{times}: {theta}");
        }
    }

    #[test]
    fn what_cannot_be_seen_is_not_estimated() {
        assert_eq!(extremal_index(&Sequence::default()), None);
        assert_eq!(extremal_index(&clusters(63 * 8, 1)), None, "63 blocks");
        let mut flat = Histogram::default();
        (0..10_000).for_each(|_| flat.record(Nanos(5_000)));
        assert_eq!(extremal_index(&Sequence::new(flat, 8, vec![5_000; 1_250])), None, "one value only");
    }

    #[test]
    fn the_length_of_a_run_follows_from_theta() {
        assert_eq!(activations_needed(1e6, 1.0), 3e6);
        assert_eq!(activations_needed(1e6, 0.1), 3e7);
    }
}
