//! One figure for the tail of one run.
//!
//! The greatest latency is the tail that people ask for and the worst to compare by: it is one sample, and it grows with
//! the number of samples. The figures here use more of the tail. Where maxima are compared all the same, the runs must
//! have equal numbers of samples.

use std::fmt;
use std::str::FromStr;

use histogram::Histogram;
use units::Nanos;

use crate::Value;

/// Which figure stands for the tail.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tail {
    /// The latency that this share of the activations does not exceed: p99.9 is 0.999.
    Quantile(f64),
    /// How many activations lie at or above a latency that all runs have in common: see [`common_threshold`].
    Exceedances(Nanos),
}

/// The quantiles that a tail is taken from, the finest first.
const QUANTILES: [(&str, f64); 3] = [("p99.9", 0.999), ("p99", 0.99), ("p90", 0.9)];

impl Tail {
    /// The finest quantile that `samples` samples have: p99.9 from 1000 on, p99 from 100 on. None below 10.
    pub fn finest(samples: u64) -> Option<Self> {
        let enough = |share: &f64| (1.0 - share) * samples as f64 >= 1.0 - 1e-9;
        QUANTILES.iter().map(|(_, share)| *share).find(enough).map(Self::Quantile)
    }

    /// The figure of one run. None where its samples are too few for the quantile.
    pub fn of(self, run: &Histogram) -> Option<Value> {
        match self {
            Self::Quantile(share) => quantile(run, share),
            Self::Exceedances(threshold) => Some(exceedances(run, threshold)),
        }
    }
}

/// `p99.9`; what else could be a quantile has its share beside it.
impl fmt::Display for Tail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exceedances(threshold) => f.pad(&format!("exceedances of {threshold}")),
            Self::Quantile(share) => match QUANTILES.iter().find(|(_, known)| known == share) {
                Some((name, _)) => f.pad(name),
                None => f.pad(&format!("p{}", share * 100.0)),
            },
        }
    }
}

impl FromStr for Tail {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = QUANTILES.iter().find(|(name, _)| *name == text);
        let names = QUANTILES.map(|(name, _)| name).join(", ");
        known.map(|(_, share)| Self::Quantile(*share)).ok_or_else(|| format!("`{text}` is none of {names}"))
    }
}

/// The latency that `share` of the samples do not exceed, with the cell that it is known to lie in. None where there are
/// too few samples for it: see [`Histogram::quantile`].
pub fn quantile(run: &Histogram, share: f64) -> Option<Value> {
    let highest = run.quantile(share)?;
    let cell = run.rows().find(|row| row.highest >= highest);
    let lowest = cell.map_or(highest, |row| row.lowest).max(Nanos(run.summary().min));
    Some(Value::between(lowest.0, highest.0))
}

/// How many samples lie at or above `threshold`, and one half more, so that none at all can still be compared by its
/// ratio to some (Haldane 1956, Anscombe 1956). The counts are doubled to remain whole; ratios do not see that.
pub fn exceedances(run: &Histogram, threshold: Nanos) -> Value {
    Value::exact(run.at_least(threshold).saturating_mul(2).saturating_add(1))
}

/// A threshold that `share` of the samples of all runs together do not exceed, for [`exceedances`]: what is rare for all
/// arms taken together tells the arms apart.
pub fn common_threshold<'a>(runs: impl IntoIterator<Item = &'a Histogram>, share: f64) -> Option<Nanos> {
    let mut all = Histogram::default();
    runs.into_iter().for_each(|run| all.merge(run));
    all.quantile(share)
}

/// The geometric mean of the greatest latencies of a run's blocks (say, its seconds): uses as many samples as there are
/// blocks, not one. Blocks without a sample do not count; the others must be equally long.
pub fn block_maxima(maxima: impl IntoIterator<Item = Option<Nanos>>) -> Option<Value> {
    let maxima: Vec<Value> = maxima.into_iter().flatten().map(|maximum| Value::exact(maximum.0)).collect();
    Value::mean(&maxima)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(latencies: impl IntoIterator<Item = u64>) -> Histogram {
        let mut histogram = Histogram::default();
        latencies.into_iter().for_each(|latency| histogram.record(Nanos(latency)));
        histogram
    }

    #[test]
    fn the_finest_quantile_is_one_that_the_samples_can_carry() {
        assert_eq!(Tail::finest(2_000), Some(Tail::Quantile(0.999)));
        assert_eq!(Tail::finest(1_000), Some(Tail::Quantile(0.999)));
        assert_eq!(Tail::finest(999), Some(Tail::Quantile(0.99)));
        assert_eq!(Tail::finest(9), None);
        for samples in [10, 100, 1_000] {
            let run = of((0..samples).map(|n| n * 1_000));
            assert!(Tail::finest(samples).unwrap().of(&run).is_some(), "{samples} samples");
        }
    }

    #[test]
    fn names_are_read_back() {
        for (name, share) in QUANTILES {
            assert_eq!(name.parse(), Ok(Tail::Quantile(share)));
            assert_eq!(Tail::Quantile(share).to_string(), name);
        }
        assert!("p100".parse::<Tail>().is_err());
        assert_eq!(Tail::Exceedances(Nanos(7_000)).to_string(), "exceedances of 7us");
    }

    #[test]
    fn a_quantile_is_as_exact_as_its_cell() {
        let run = of((0..1_000).map(|n| 20_000 + n));
        assert_eq!(quantile(&run, 0.5), Some(Value::between(20_400, 20_499)));
        assert_eq!(quantile(&of([3_571; 100]), 0.99), Some(Value::exact(3_571)));
    }

    #[test]
    fn what_exceeds_a_common_threshold_is_rare_for_all_together() {
        let (calm, wild) = (of((0..1_000).map(|_| 4_000)), of((0..1_000).map(|n| 4_000 + 1_000 * (n % 10))));
        let threshold = common_threshold([&calm, &wild], 0.9).unwrap();
        let (of_calm, of_wild) = (exceedances(&calm, threshold), exceedances(&wild, threshold));
        assert_eq!(of_calm, Value::exact(1));
        assert!(of_wild.figure() > 100.0);
    }

    #[test]
    fn blocks_without_samples_do_not_count() {
        assert_eq!(block_maxima([None, None]), None);
        let value = block_maxima([Some(Nanos(10)), None, Some(Nanos(1_000))]).unwrap();
        assert!((value.figure() - 100.0).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn a_quantile_lies_between_the_least_and_the_greatest(latencies in proptest::collection::vec(1_u64..1 << 36, 100..300)) {
            let run = of(latencies);
            let value = quantile(&run, 0.99).unwrap();
            prop_assert!(value.figure() <= run.summary().max as f64);
            prop_assert!(value.low() >= (run.summary().min as f64).ln() - 1e-9);
        }
    }
}
