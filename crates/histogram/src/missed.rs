//! Entering the activations that a stall swallowed.

use crate::layout;

/// Where counts go: the memory that a probe shares, or a [`crate::Histogram`].
pub trait Counts {
    /// Adds `times` to the cell.
    fn add(&mut self, cell: usize, times: u64);
}

/// Enters the latencies of `missed` activations that a wake-up `latency` ns late slept through at a period of
/// `interval` ns: `latency - interval`, `latency - 2 * interval`, and so on. Each is what the activation's own
/// wake-up would have measured. Takes time proportional to the cells in between, never to `missed`.
/// Returns the sum of what was entered.
pub fn record_missed(counts: &mut impl Counts, latency: u64, interval: u64, missed: u64) -> u64 {
    debug_assert!(interval > 0 && missed <= latency / interval.max(1));
    let mut left = missed;
    let mut next = latency.saturating_sub(interval);
    while left > 0 {
        let cell = layout::index(next);
        let within = ((next - layout::lowest(cell)) / interval + 1).min(left);
        counts.add(cell, within);
        left -= within;
        next = next.saturating_sub(within * interval);
    }
    // Sum of an arithmetic sequence, in 128 bits because a long stall at a short period overflows 64.
    let (latency, interval, missed) = (u128::from(latency), u128::from(interval), u128::from(missed));
    u64::try_from(missed * latency - interval * missed * (missed + 1) / 2).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[derive(Default)]
    struct Map(BTreeMap<usize, u64>, usize);
    impl Counts for Map {
        fn add(&mut self, cell: usize, times: u64) {
            *self.0.entry(cell).or_default() += times;
            self.1 += 1;
        }
    }

    #[test]
    fn a_day_long_stall_costs_cells_not_periods() {
        let (mut map, day) = (Map::default(), 86_400_000_000_000);
        record_missed(&mut map, day, 100_000, day / 100_000);
        assert_eq!(map.0.values().sum::<u64>(), 864_000_000);
        assert!(map.1 <= layout::CELLS, "{} steps", map.1);
    }

    proptest! {
        #[test]
        fn the_counts_are_those_of_entering_one_by_one(latency in 0..50_000_000_u64, interval in 1_000..5_000_000_u64) {
            let missed = latency / interval;
            let (mut quick, mut slow) = (Map::default(), Map::default());
            let sum = record_missed(&mut quick, latency, interval, missed);
            for step in 1..=missed {
                slow.add(layout::index(latency - step * interval), 1);
            }
            prop_assert_eq!(&quick.0, &slow.0);
            prop_assert_eq!(sum, (1..=missed).map(|step| latency - step * interval).sum::<u64>());
        }
    }
}
