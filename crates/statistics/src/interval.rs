//! Intervals for quantiles, from order statistics of as many samples as a sequence is worth.
//!
//! Of n independent samples, the number above a quantile is binomial, so two order statistics enclose the quantile with
//! known confidence whatever the distribution (David and Nagaraja, "Order Statistics", 3rd edition, section 7.1). Where
//! samples come in clusters, theta n of them count, and half of that where clusters differ in size: the variance of a
//! count of clusters of geometric size is 2/theta times that of single ones.

use histogram::{Histogram, Row};
use units::Nanos;

use crate::Sequence;
use crate::dependence::{LEAST_SAMPLES, extremal_index};
use crate::numeric::{beta, solve};

/// How much more the count of clusters' samples varies than clusters do, where their size is geometric.
const CLUSTERS_DIFFER: f64 = 2.0;

/// A quantile with the interval that holds it at 95 %.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuantileInterval {
    /// The quantile of the samples.
    pub estimate: Nanos,
    /// It is at least this.
    pub low: Nanos,
    /// It is at most this. None where there are too few effective samples to say: the highest observed is no bound.
    pub high: Option<Nanos>,
}

/// The interval of the latency that `share` do not exceed, of a sequence that was alike from beginning to end. None where
/// theta is not known, or where there are too few samples for it to be that of the highest ones.
pub fn interval_of(sequence: &Sequence, share: f64) -> Option<QuantileInterval> {
    let theta = extremal_index(sequence).filter(|_| sequence.count() >= LEAST_SAMPLES)?;
    quantile_interval(sequence.distribution(), share, theta * sequence.count() as f64 / CLUSTERS_DIFFER)
}

/// The interval of the latency that `share` do not exceed, from `effective` samples. None where the samples do not
/// carry the quantile itself.
pub fn quantile_interval(distribution: &Histogram, share: f64, effective: f64) -> Option<QuantileInterval> {
    const OUTSIDE: f64 = 0.025;
    let estimate = distribution.quantile(share)?;
    let samples = effective.max(1.0);
    let (below, above) = (share * samples, (1.0 - share) * samples);
    // Clopper and Pearson's limits for the share: of how many samples could `below` be the ones below the quantile?
    let low = solve(0.0, 1.0, OUTSIDE, |share| beta(share, below.max(1e-9), above + 1.0));
    let high = solve(0.0, 1.0, 1.0 - OUTSIDE, |share| beta(share, below + 1.0, above.max(1e-9)));
    let (least, most) = (Nanos(distribution.summary().min), Nanos(distribution.summary().max));
    let low = row(distribution, low).map_or(estimate, |row| row.lowest.max(least));
    let high = row(distribution, high).map(|row| row.highest.min(most));
    let carried = share.powf(samples) <= OUTSIDE;
    Some(QuantileInterval {
        estimate,
        low: low.min(estimate),
        high: high.filter(|_| carried).map(|high| high.max(estimate)),
    })
}

/// The fewest effective samples with which the highest observed is, at 95 %, at least the latency that `share` do not
/// exceed: 2995 for p99.9 (Wilks, "Determination of sample sizes for setting tolerance limits", Annals of Mathematical
/// Statistics 12, 1941).
pub fn samples_to_bound(share: f64) -> f64 {
    (0.05_f64.ln() / share.ln()).ceil()
}

/// The cell in which the sample of that rank lies.
fn row(distribution: &Histogram, share: f64) -> Option<Row> {
    let total = distribution.cell_count();
    let rank = ((share * total as f64).ceil() as u64).clamp(1, total.max(1));
    let mut seen = 0;
    distribution.rows().find(|row| {
        seen += row.count;
        seen >= rank
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ascending(count: u64) -> Histogram {
        let mut histogram = Histogram::default();
        (1..=count).for_each(|n| histogram.record(Nanos(n * 1_000)));
        histogram
    }

    #[test]
    fn the_highest_observed_bounds_a_quantile_from_wilks_number_on() {
        assert_eq!(samples_to_bound(0.999), 2995.0);
        assert_eq!(samples_to_bound(0.99), 299.0);
        assert_eq!(samples_to_bound(0.95), 59.0);
    }

    #[test]
    fn an_interval_is_that_of_clopper_and_pearson() {
        // 10 of 100 lie above: Clopper and Pearson's 95 % interval of the share is 4.90 to 17.62 %.
        let interval = quantile_interval(&ascending(10_000), 0.9, 100.0).unwrap();
        assert!(interval.estimate.0.abs_diff(9_000_000) < 1_000);
        assert!((interval.low.0.abs_diff(8_238_000)) <= 2_000, "{interval:?}");
        assert!((interval.high.unwrap().0.abs_diff(9_510_000)) <= 2_000, "{interval:?}");
    }

    #[test]
    fn too_few_samples_give_no_upper_end() {
        assert_eq!(quantile_interval(&ascending(10_000), 0.999, 3_000.0).unwrap().high, None);
        assert!(quantile_interval(&ascending(10_000), 0.999, 4_000.0).unwrap().high.is_some());
        assert_eq!(quantile_interval(&ascending(500), 0.999, 500.0), None);
    }
}
