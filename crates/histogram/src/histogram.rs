//! The histogram that is kept, merged, saved and drawn.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use units::Nanos;

use crate::{Counts, Summary, layout};

/// Latencies in cells, with their exact summary. Saved as `[lowest ns of the cell, count]` pairs, so that a reader
/// of the file needs no table of cells and an older file can be read by newer cells.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "Saved", into = "Saved")]
#[cfg_attr(feature = "schema", schemars(with = "Saved"))]
pub struct Histogram {
    summary: Summary,
    cells: BTreeMap<usize, u64>,
}

/// One non-empty cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The lowest latency that falls into the cell.
    pub lowest: Nanos,
    /// The highest latency that falls into the cell.
    pub highest: Nanos,
    /// How many latencies did.
    pub count: u64,
}

/// The form in files.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Saved {
    /// Exact count, sum, minimum and maximum, in nanoseconds.
    #[serde(flatten)]
    summary: Summary,
    /// Non-empty cells: the lowest latency of the cell in nanoseconds, and how many latencies fell into it.
    cells: Vec<(u64, u64)>,
}

impl TryFrom<Saved> for Histogram {
    type Error = &'static str;

    /// A file can hold any numbers: counts that no run can reach (2^63 in all) are refused, so that sums need no care.
    fn try_from(saved: Saved) -> Result<Self, Self::Error> {
        let total =
            saved.cells.iter().try_fold(saved.summary.count, |sum, (_, count)| sum.checked_add(*count));
        if total.is_none_or(|total| total > u64::MAX / 2) {
            return Err("a histogram that counts more than 2^63 latencies");
        }
        let cells = saved.cells.into_iter().map(|(lowest, count)| (layout::index(lowest), count));
        Ok(Self::from_parts(saved.summary, cells))
    }
}

impl From<Histogram> for Saved {
    fn from(histogram: Histogram) -> Self {
        let cells = histogram.cells.iter().map(|(&cell, &count)| (layout::lowest(cell), count)).collect();
        Self { summary: histogram.summary, cells }
    }
}

impl Counts for Histogram {
    /// Counts cells only; the summary is brought along by [`Histogram::from_parts`] or [`Histogram::record`].
    fn add(&mut self, cell: usize, times: u64) {
        if times > 0 {
            let count = self.cells.entry(cell).or_default();
            *count = count.saturating_add(times);
        }
    }
}

impl Histogram {
    /// From an exact summary and `(cell, count)` pairs, as a probe shares them.
    pub fn from_parts(summary: Summary, cells: impl IntoIterator<Item = (usize, u64)>) -> Self {
        let mut histogram = Self { summary, cells: BTreeMap::new() };
        for (cell, count) in cells {
            histogram.add(cell, count);
        }
        histogram
    }

    /// Counts one latency.
    pub fn record(&mut self, latency: Nanos) {
        self.summary.add(latency.0, 1);
        self.add(layout::index(latency.0), 1);
    }

    /// Takes in another histogram.
    pub fn merge(&mut self, other: &Self) {
        self.summary.merge(&other.summary);
        for (&cell, &count) in &other.cells {
            self.add(cell, count);
        }
    }

    /// What is left without latencies that were counted; none where they were not. Minimum and maximum are exact where theirs
    /// are still there, else the edges of the outermost cells.
    pub fn without(&self, gone: &Self) -> Option<Self> {
        let mut cells = self.cells.clone();
        for (cell, count) in &gone.cells {
            let left = cells.get_mut(cell)?;
            *left = left.checked_sub(*count)?;
        }
        cells.retain(|_, count| *count > 0);
        let edge = |cell: Option<(&usize, &u64)>, of: fn(usize) -> u64| cell.map(|(cell, _)| of(*cell));
        let summary = Summary {
            count: self.summary.count.checked_sub(gone.summary.count)?,
            sum: self.summary.sum.saturating_sub(gone.summary.sum),
            min: edge(cells.first_key_value(), layout::lowest).map_or(0, |edge| edge.max(self.summary.min)),
            max: edge(cells.last_key_value(), layout::highest).map_or(0, |edge| edge.min(self.summary.max)),
        };
        Some(Self { summary, cells })
    }

    /// Exact count, sum, minimum and maximum.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// How many latencies the cells hold. Equals the summary's count, but in the record of a run that was cut off.
    pub fn cell_count(&self) -> u64 {
        self.cells.values().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Non-empty cells in ascending order.
    pub fn rows(&self) -> impl DoubleEndedIterator<Item = Row> + '_ {
        self.cells.iter().map(|(&cell, &count)| Row {
            lowest: Nanos(layout::lowest(cell)),
            highest: Nanos(layout::highest(cell)),
            count,
        })
    }

    /// Non-empty cells as `(cell, count)`, for [`Histogram::from_parts`] and differences.
    pub fn cells(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.cells.iter().map(|(&cell, &count)| (cell, count))
    }

    /// The latency that `share` (0 to 1) of the counted ones do not exceed: the upper edge of its cell, so never too
    /// good, and never above the exact maximum. None where fewer latencies were counted than the share needs to
    /// mean anything: p99.9 of 500 samples would be the maximum under another name.
    pub fn quantile(&self, share: f64) -> Option<Nanos> {
        let total = self.cell_count();
        if total == 0 || (1.0 - share) * (total as f64) < 1.0 - 1e-9 {
            return None;
        }
        let rank = ((share * total as f64).ceil() as u64).clamp(1, total);
        let mut seen = 0;
        self.rows()
            .find(|row| {
                seen += row.count;
                seen >= rank
            })
            .map(|row| row.highest.min(Nanos(self.summary.max)).max(Nanos(self.summary.min)))
    }

    /// How many latencies lie in cells wholly at or above `limit`, and in the cell that holds it if that cell begins
    /// there: exact for whole microseconds up to 10 ms.
    pub fn at_least(&self, limit: Nanos) -> u64 {
        self.cells.range(layout::index(limit.0)..).map(|(_, count)| count).sum()
    }

    /// Counts in rows of 1 us, `(us, count)`, non-empty ones only; exact below 10 ms, and above it each cell counts
    /// in the row of its lowest latency.
    pub fn microsecond_rows(&self) -> BTreeMap<u64, u64> {
        let mut rows = BTreeMap::new();
        for row in self.rows() {
            *rows.entry(row.lowest.0 / 1_000).or_default() += row.count;
        }
        rows
    }

    /// Whether every latency lies below 10 ms, where rows of 1 us are exact.
    pub fn is_exact_in_microseconds(&self) -> bool {
        self.summary.max < layout::LINEAR_END
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(latencies: &[u64]) -> Histogram {
        let mut histogram = Histogram::default();
        latencies.iter().for_each(|&latency| histogram.record(Nanos(latency)));
        histogram
    }

    #[test]
    fn the_summary_is_exact_and_an_empty_one_has_no_extremes() {
        let histogram = of(&[1_234, 999_567_123, 7]);
        assert_eq!(*histogram.summary(), Summary { count: 3, sum: 999_568_364, min: 7, max: 999_567_123 });
        assert_eq!(Histogram::default().summary().minimum(), None);
        assert_eq!(Histogram::default().quantile(0.5), None);
    }

    #[test]
    fn counts_that_no_run_reaches_are_refused() {
        let hostile = format!(r#"{{"count":1,"sum":0,"min":0,"max":0,"cells":[[0,{0}],[0,{0}]]}}"#, u64::MAX);
        assert!(serde_json::from_str::<Histogram>(&hostile).is_err());
    }

    #[test]
    fn a_quantile_that_needs_more_samples_is_not_given() {
        let histogram = of(&(0..500).map(|n| n * 1_000).collect::<Vec<_>>());
        assert!(histogram.quantile(0.99).is_some());
        assert_eq!(histogram.quantile(0.999), None);
        assert_eq!(of(&vec![5_000; 1_000]).quantile(0.999), Some(Nanos(5_000)));
    }

    #[test]
    fn microsecond_rows_add_up() {
        let histogram = of(&[1_050, 1_950, 250_400, 12_000_000]);
        assert_eq!(histogram.microsecond_rows()[&1], 2);
        assert_eq!(histogram.microsecond_rows()[&250], 1);
        assert_eq!(histogram.microsecond_rows().values().sum::<u64>(), 4);
        assert!(!histogram.is_exact_in_microseconds());
    }

    #[test]
    fn what_was_never_counted_cannot_be_taken_out() {
        let histogram = of(&[5_000, 5_000, 70_000]);
        let left = histogram.without(&of(&[70_000])).unwrap();
        assert_eq!(*left.summary(), Summary { count: 2, sum: 10_000, min: 5_000, max: 5_099 });
        assert_eq!(histogram.without(&of(&[5_000, 5_000, 70_000])), Some(Histogram::default()));
        for other in [&[6_000][..], &[5_000; 3], &[70_000, 70_000]] {
            assert_eq!(histogram.without(&of(other)), None, "{other:?}");
        }
    }

    proptest! {
        #[test]
        fn what_was_taken_in_can_be_taken_out_again(
            kept in prop::collection::vec(0..50_000_000_u64, 0..40), gone in prop::collection::vec(0..50_000_000_u64, 0..40),
        ) {
            let (kept, gone) = (of(&kept), of(&gone));
            let mut both = kept.clone();
            both.merge(&gone);
            let left = both.without(&gone).unwrap();
            prop_assert_eq!(left.cells().collect::<Vec<_>>(), kept.cells().collect::<Vec<_>>());
            let (left, kept) = (left.summary(), kept.summary());
            prop_assert_eq!((left.count, left.sum), (kept.count, kept.sum));
            // Within the cells that are left.
            prop_assert!(left.min <= kept.min && layout::index(left.min) == layout::index(kept.min));
            prop_assert!(left.max >= kept.max && layout::index(left.max) == layout::index(kept.max));
        }
        #[test]
        fn saving_and_loading_keeps_everything(latencies in proptest::collection::vec(0..=i64::MAX as u64, 0..50)) {
            let histogram = of(&latencies);
            let text = serde_json::to_string(&histogram).unwrap();
            prop_assert_eq!(serde_json::from_str::<Histogram>(&text).unwrap(), histogram);
        }

        #[test]
        fn merging_is_counting_both(a in proptest::collection::vec(0..1_u64 << 40, 0..50), b in proptest::collection::vec(0..1_u64 << 40, 0..50)) {
            let mut merged = of(&a);
            merged.merge(&of(&b));
            prop_assert_eq!(merged, of(&[a, b].concat()));
        }

        #[test]
        fn quantiles_agree_with_hdrhistogram(latencies in proptest::collection::vec(1_u64..1 << 36, 10..400), share in 0.0..0.9_f64) {
            let mut oracle = hdrhistogram::Histogram::<u64>::new(3).unwrap();
            latencies.iter().for_each(|&latency| oracle.record(latency).unwrap());
            let (ours, theirs) = (of(&latencies).quantile(share).unwrap().0 as f64, oracle.value_at_quantile(share) as f64);
            prop_assert!((ours - theirs).abs() <= 0.012 * theirs + 1_000.0, "{ours} {theirs}");
        }

        #[test]
        fn a_quantile_is_never_better_than_the_sample_of_that_rank(mut latencies in proptest::collection::vec(0_u64..1 << 36, 10..400), share in 0.0..0.9_f64) {
            let quantile = of(&latencies).quantile(share).unwrap();
            latencies.sort_unstable();
            let rank = ((share * latencies.len() as f64).ceil() as usize).clamp(1, latencies.len());
            prop_assert!(quantile.0 >= latencies[rank - 1]);
        }
    }
}
