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
//! clusters that only the highest levels have do not show at low ones. So the smallest value over block lengths, two
//! beginnings of the first block and levels is taken, which is the careful side: of independent latencies it is about 0.9.
//!
//! **Why this one.** Intervals between exceedances (Ferro and Segers, "Inference for clusters of extreme values", the
//! same journal 65, 2003) need every single latency, which a run of a day does not keep. The mean over all levels
//! (Northrop, "An efficient semiparametric maxima estimator of the extremal index", Extremes 18, 2015) hides clusters
//! that only the highest levels have, and these are the ones that matter here. `tests/claims.rs` shows what holds.

use units::Nanos;

use crate::Sequence;
use crate::ranks::likeness;
use crate::sequence::whole;

/// Below this many samples nothing is said about the share that exceeds a level: a condition that fills a hundredth of
/// the time in stretches of a hundred samples might not have been met, or met so seldom that its clusters cannot be
/// counted, and theta is then that of the rest. From here on it was met with 99.7 %.
pub const LEAST_SAMPLES: u64 = 60_000;
/// The fewest blocks that theta is estimated from.
pub const LEAST_BLOCKS: usize = 64;
/// Blocks, or a few more, in which it is seen how long a sequence remembers.
const FINE_BLOCKS: usize = 256;
/// So many correlation times of a sequence do not count; see [`share_that_counts`].
const CORRELATION_TIMES_LOST: f64 = 30.0;
/// Levels at which this many blocks lie higher.
const HIGHEST: [usize; 3] = [1, 2, 3];
/// Levels at which this share of the blocks, in percent, lies higher.
const SHARES: [usize; 5] = [5, 10, 20, 40, 60];

/// The extremal index, above 0 and at most 1. None where there are too few blocks, or where latencies take so few
/// values that no level parts them.
pub fn extremal_index(sequence: &Sequence) -> Option<f64> {
    let kept = sequence.maxima();
    let lengths = std::iter::successors(Some(1), |together| Some(2 * together));
    // What the edge of a block cuts in two is whole where blocks begin half a block later.
    let cuts = lengths
        .take_while(|together| kept.len() / together >= LEAST_BLOCKS)
        .flat_map(|together| [(together, 0), (together, together / 2)]);
    let found = cuts.filter_map(|(together, from)| of_blocks(sequence, &kept[from..], together));
    found.min_by(f64::total_cmp).map(|theta| theta.min(1.0))
}

/// The lowest theta of any level, in blocks of so many that are kept.
fn of_blocks(sequence: &Sequence, kept: &[u64], together: usize) -> Option<f64> {
    let maxima = whole(kept, together);
    let levels = HIGHEST.into_iter().chain(SHARES.map(|share| share * maxima.len() / 100));
    lowest(sequence, &maxima, together, levels)
}

/// The lowest theta at levels at which so many blocks lie higher.
fn lowest(
    sequence: &Sequence,
    maxima: &[u64],
    together: usize,
    higher: impl Iterator<Item = usize>,
) -> Option<f64> {
    let size = sequence.activations() as f64 * together as f64;
    let mut sorted = maxima.to_vec();
    sorted.sort_unstable_by(|a, b| b.cmp(a));
    let theta = |higher: usize| at_level(sequence, maxima, size, *sorted.get(higher)?);
    higher.filter_map(theta).min_by(f64::total_cmp)
}

/// How many times as large clusters are that only a few blocks have as those that most have. None where that cannot be
/// estimated.
pub(crate) fn rare_clusters(sequence: &Sequence, maxima: &[u64], together: usize) -> Option<f64> {
    let common =
        lowest(sequence, maxima, together, [20, 40, 60].map(|share| share * maxima.len() / 100).into_iter());
    let rare = lowest(sequence, maxima, together, HIGHEST.into_iter());
    common.zip(rare).map(|(common, rare)| common / rare)
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

/// How many correlation times a sequence is long: the time in which likeness, the rank correlation of the maxima of
/// neighbouring blocks, falls to 1/e. Infinite where neighbours are not alike; None where there are too few blocks.
pub fn correlation_times(sequence: &Sequence) -> Option<f64> {
    let kept = sequence.maxima().len();
    let (_, maxima) = sequence.blocks(FINE_BLOCKS.min(kept)).filter(|_| kept >= LEAST_BLOCKS)?;
    let maxima: Vec<f64> = maxima.into_iter().map(|maximum| maximum as f64).collect();
    let likeness = likeness(&maxima);
    Some(if likeness > 0.0 { -(maxima.len() as f64) * likeness.ln() } else { f64::INFINITY })
}

/// The share of a sequence, from 0 to 1, that counts for what is claimed beyond it. None where there are too few blocks.
///
/// [`crate::Stationarity`] refuses most sequences that are short beside their memory, and those that it lets through are
/// the calm ones: their highest latency is too low. Of Gaussian sequences with 50 correlation times one in six passes, and
/// 11 % of these had no latency above the one that comes three times in their length, where 5 % of all have none. So 30
/// correlation times do not count. With 20, 6 % of the claims were wrong in the worst family, with 30, 5 %
/// (`record/tests/claims.rs`); of a sequence of 1000 correlation times it takes away 3 %.
pub fn share_that_counts(sequence: &Sequence) -> Option<f64> {
    correlation_times(sequence).map(|times| (1.0 - CORRELATION_TIMES_LOST / times).max(0.0))
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
    fn a_sequence_counts_for_less_the_longer_it_remembers() {
        let mut drawn = Seed(7).stream("levels");
        let mut remembered = |blocks: usize| {
            let levels = (0..256 / blocks).map(|_| drawn.below(1_000_000));
            let maxima: Vec<u64> = levels.flat_map(|level| std::iter::repeat_n(level, blocks)).collect();
            Sequence::new(Histogram::default(), 8, maxima)
        };
        let [alone, four, sixteen] = [1, 4, 16].map(&mut remembered);
        assert!(share_that_counts(&alone).unwrap() > 0.9);
        // Three of four neighbours are the same: 256 ln(4/3) = 74 correlation times.
        assert!((0.45..0.75).contains(&share_that_counts(&four).unwrap()), "{:?}", share_that_counts(&four));
        assert_eq!(share_that_counts(&sixteen), Some(0.0), "16.5 correlation times");
        assert_eq!(share_that_counts(&Sequence::new(Histogram::default(), 8, vec![1; 63])), None);
        assert_eq!(share_that_counts(&Sequence::new(Histogram::default(), 8, vec![5; 64])), Some(1.0));
    }

    #[test]
    fn the_length_of_a_run_follows_from_theta() {
        assert_eq!(activations_needed(1e6, 1.0), 3e6);
        assert_eq!(activations_needed(1e6, 0.1), 3e7);
    }
}
