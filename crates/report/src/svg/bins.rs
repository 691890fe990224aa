//! Bins for drawing a histogram over a logarithmic axis.

use histogram::{Histogram, layout};
use units::Nanos;

/// Bins made of whole cells, each at least a given ratio wide, so that no bin is empty only because no cell falls
/// into it and neighbours are about equally wide.
pub(crate) struct Bins {
    /// Lower edges in ns, ascending, and the upper edge of the last bin.
    pub edges: Vec<u64>,
}

impl Bins {
    /// Bins from `from` to `to` inclusive, each at least `ratio` (above 1) times as high as low.
    pub fn new(from: Nanos, to: Nanos, ratio: f64) -> Self {
        let first = layout::lowest(layout::index(from.0));
        let mut edges = vec![first];
        let mut edge = first;
        while edge <= to.0.min(Nanos::MAX.0) {
            // The first cell counts from 0: its ratio is that from half a cell.
            let target = (edge.max(50) as f64 * ratio).ceil() as u64;
            let cell = layout::index(target);
            let aligned = layout::lowest(cell);
            let next = if aligned >= target { aligned } else { layout::highest(cell) + 1 };
            edge = next.max(edge + 1);
            edges.push(edge);
        }
        Self { edges }
    }

    /// How many latencies fall into each bin; those below the first bin are counted in it.
    pub fn counts(&self, histogram: &Histogram) -> Vec<u64> {
        let mut counts = vec![0; self.edges.len().saturating_sub(1)];
        for row in histogram.rows() {
            let bin = self.edges.partition_point(|edge| *edge <= row.lowest.0);
            if let Some(count) = counts.get_mut(bin.saturating_sub(1)) {
                *count += row.count;
            }
        }
        counts
    }

    /// The edges of each bin.
    pub fn spans(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.edges.windows(2).map(|pair| (pair[0], pair[1]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Seed;

    #[test]
    fn every_latency_falls_into_a_bin_whatever_the_range() {
        let mut random = Seed(1).stream("bins");
        for _ in 0..200 {
            let mut histogram = Histogram::default();
            for _ in 0..50 {
                let bits = random.below(40);
                histogram.record(Nanos(random.below(1 << bits)));
            }
            let summary = histogram.summary();
            let bins = Bins::new(Nanos(summary.min), Nanos(summary.max), 1.06);
            assert_eq!(bins.counts(&histogram).iter().sum::<u64>(), 50);
            assert!(bins.edges.windows(2).all(|pair| pair[0] < pair[1]));
            assert!(bins.edges.len() < 600, "{}", bins.edges.len());
        }
    }
}
