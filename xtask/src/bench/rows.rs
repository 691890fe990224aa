//! Latencies as rows of a histogram, whatever tool counted them.

use histogram::{Histogram, layout};

/// Non-empty rows in ascending order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows(Vec<Row>);

#[derive(Clone, Copy, Debug, PartialEq)]
struct Row {
    /// The least latency in the row, in ns.
    low: f64,
    /// Where the next row begins; infinite where the tool counted everything above in one.
    high: f64,
    count: u64,
}

impl Rows {
    /// As ours counts: 100 ns below 100 us.
    pub fn of(histogram: &Histogram) -> Self {
        let row = |row: histogram::Row| (row.lowest.0, row.highest.0 + 1, row.count);
        histogram.rows().map(row).collect()
    }

    /// Rows of 1 ns, put into the cells that ours has, so that neither tool has the finer ruler.
    pub fn of_nanoseconds(counts: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let mut histogram = Histogram::default();
        for (nanos, count) in counts {
            histogram::Counts::add(&mut histogram, layout::index(nanos), count);
        }
        Self::of(&histogram)
    }

    /// Rows of 1 us of truncated latencies: a row `7` holds what was at least 7 us and less than 8.
    pub fn of_microseconds(counts: impl IntoIterator<Item = (u64, u64)>) -> Self {
        counts.into_iter().map(|(micros, count)| (micros * 1_000, (micros + 1) * 1_000, count)).collect()
    }

    /// Adds latencies of which is known only that they are at least `low` ns.
    pub fn with_overflow(mut self, low: u64, count: u64) -> Self {
        if count > 0 {
            self.0.push(Row { low: low as f64, high: f64::INFINITY, count });
        }
        self
    }

    /// How many latencies.
    pub fn count(&self) -> u64 {
        self.0.iter().map(|row| row.count).sum()
    }

    /// The latency in ns that `share` of them do not exceed, as if each row's were spread evenly over it. None where
    /// there are too few, or where it lies beyond what the tool counts.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let total = self.count() as f64;
        if (1.0 - share) * total < 1.0 {
            return None;
        }
        let mut below = 0.0;
        for row in &self.0 {
            let count = row.count as f64;
            if below + count >= share * total {
                let within = (share * total - below) / count;
                return row.high.is_finite().then_some(row.low + within * (row.high - row.low));
            }
            below += count;
        }
        None
    }
}

impl FromIterator<(u64, u64, u64)> for Rows {
    fn from_iter<I: IntoIterator<Item = (u64, u64, u64)>>(rows: I) -> Self {
        let mut sorted: Vec<_> = rows.into_iter().collect();
        sorted.sort_unstable();
        Self(
            sorted
                .into_iter()
                .map(|(low, high, count)| Row { low: low as f64, high: high as f64, count })
                .collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_lies_within_its_row() {
        let rows = Rows::of_microseconds([(3, 100), (2, 100), (4, 200)]);
        assert_eq!(rows.quantile(0.5), Some(4_000.0));
        assert_eq!(rows.quantile(0.25), Some(3_000.0));
        assert_eq!(rows.quantile(0.75), Some(4_500.0));
    }

    #[test]
    fn nanoseconds_are_put_on_the_same_ruler() {
        let one = Rows::of_nanoseconds([(3_010, 5), (3_090, 5)]);
        assert_eq!(one, Rows(vec![Row { low: 3_000.0, high: 3_100.0, count: 10 }]));
    }

    #[test]
    fn what_lies_beyond_the_histogram_is_not_made_up() {
        let rows = Rows::of_nanoseconds([(3_000, 990)]).with_overflow(1_000_000, 10);
        assert!(rows.quantile(0.5).is_some());
        assert_eq!(rows.quantile(0.995), None);
        assert_eq!(Rows::default().quantile(0.5), None);
    }
}
