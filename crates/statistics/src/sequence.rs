//! What is kept of a sequence of latencies: how they are distributed, and the greatest of each block in the order of
//! time. Nothing in this crate needs the single latencies.

use histogram::Histogram;

use crate::{Comparison, Value, compare};

/// The fewest blocks of a sequence that is compared with another.
const COMPARABLE_BLOCKS: usize = 32;

/// A sequence of latencies, or several measured one after the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sequence {
    /// Every latency; what was missed counts with the latency that it would have had.
    distribution: Histogram,
    /// The greatest latencies of blocks of `activations`, in the order of time.
    maxima: Vec<u64>,
    /// How many latencies a block holds.
    activations: u64,
}

impl Sequence {
    /// A sequence with the maxima of its blocks of `activations` each; the last block may be shorter.
    pub fn new(distribution: Histogram, activations: u64, maxima: Vec<u64>) -> Self {
        Self { distribution, maxima, activations }
    }

    /// Appends a sequence that was measured later. Where its blocks are of another length, the shorter ones are merged;
    /// where no whole number of them makes a longer one, nothing is known of the order any more.
    pub fn append(&mut self, later: &Self) {
        if self.distribution.cell_count() == 0 {
            *self = later.clone();
            return;
        }
        self.distribution.merge(&later.distribution);
        let (short, long) =
            (self.activations.min(later.activations), self.activations.max(later.activations));
        if short == 0 || long % short != 0 {
            (self.activations, self.maxima) = (0, Vec::new());
            return;
        }
        let whole = |sequence: &Self| merged(&sequence.maxima, (long / sequence.activations.max(1)) as usize);
        let (mut maxima, rest) = (whole(self), whole(later));
        maxima.extend(rest);
        (self.activations, self.maxima) = (long, maxima);
    }

    /// How many latencies there are.
    pub fn count(&self) -> u64 {
        self.distribution.cell_count()
    }

    /// Every latency.
    pub fn distribution(&self) -> &Histogram {
        &self.distribution
    }

    /// How many latencies a block holds; 0 where nothing is known of the order.
    pub fn activations(&self) -> u64 {
        self.activations
    }

    /// The greatest latencies of the blocks, in the order of time.
    pub fn maxima(&self) -> &[u64] {
        &self.maxima
    }

    /// The maxima of blocks of `size` samples, the last one only if it is whole. None where `size` is no multiple of
    /// what is kept.
    pub fn in_blocks(&self, size: u64) -> Option<Vec<u64>> {
        let together = size.checked_div(self.activations).filter(|_| size % self.activations == 0)?;
        Some(whole(&self.maxima, usize::try_from(together).ok()?))
    }

    /// How many times the block maxima of `self` are those of `first`: blocks of equal length, as long as leaves at
    /// least 32 in each. Where both sequences were alike from beginning to end the interval holds within them; it says
    /// nothing about how far a third one may lie from either. None where blocks are unknown or too few.
    pub fn against(&self, first: &Self) -> Option<Comparison> {
        let size = self.comparable_size().max(first.comparable_size());
        let values = |sequence: &Self| {
            Some(sequence.in_blocks(size)?.into_iter().map(Value::exact).collect::<Vec<_>>())
        };
        compare(&values(first)?, &values(self)?).ok()
    }

    fn comparable_size(&self) -> u64 {
        let mut together = 1;
        while self.maxima.len() / (2 * together) >= COMPARABLE_BLOCKS {
            together *= 2;
        }
        self.activations.saturating_mul(together as u64)
    }

    /// The maxima of the longest blocks of which there are at least `least`, and how many of the kept blocks make one.
    /// None where fewer are kept.
    pub fn blocks(&self, least: usize) -> Option<(usize, Vec<u64>)> {
        let together = self.maxima.len() / least.max(1);
        (together > 0).then(|| (together, whole(&self.maxima, together)))
    }
}

/// The maxima of blocks `together` times as long, the last one as it is.
fn merged(maxima: &[u64], together: usize) -> Vec<u64> {
    maxima.chunks(together.max(1)).filter_map(|block| block.iter().copied().max()).collect()
}

/// The same without the last block where it is shorter.
pub(crate) fn whole(maxima: &[u64], together: usize) -> Vec<u64> {
    maxima.chunks_exact(together.max(1)).filter_map(|block| block.iter().copied().max()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Nanos;

    pub(crate) fn of(latencies: &[u64], activations: usize) -> Sequence {
        let mut distribution = Histogram::default();
        latencies.iter().for_each(|&latency| distribution.record(Nanos(latency)));
        Sequence::new(distribution, activations as u64, merged(latencies, activations))
    }

    #[test]
    fn sequences_with_blocks_of_different_length_are_joined_at_the_longer_one() {
        let mut joined = Sequence::default();
        joined.append(&of(&[1, 5, 3, 4], 1));
        joined.append(&of(&[9, 2, 7, 8, 6, 6, 0, 1], 2));
        assert_eq!((joined.activations(), joined.maxima()), (2, &[5, 4, 9, 8, 6, 1][..]));
        assert_eq!(joined.count(), 12);
        assert_eq!(joined.blocks(3), Some((2, vec![5, 9, 6])));
        assert_eq!(joined.blocks(7), None);
    }

    #[test]
    fn sequences_are_compared_in_blocks_of_equal_length() {
        let latencies: Vec<u64> = (0..1_024).map(|n| 1_000 + n * 7_919 % 4_099).collect();
        let doubled: Vec<u64> = latencies.iter().map(|latency| 2 * latency).collect();
        let compared = of(&doubled, 4).against(&of(&latencies, 1)).unwrap();
        assert!((compared.ratio - 2.0).abs() < 0.05, "{compared:?}");
        assert_eq!(of(&latencies, 4).in_blocks(6), None);
        assert_eq!(Sequence::default().against(&of(&latencies, 1)), None);
    }

    #[test]
    fn without_blocks_nothing_is_known_of_the_order() {
        let mut joined = of(&[1, 2], 1);
        joined.append(&Sequence::new(of(&[3], 1).distribution, 0, vec![]));
        assert_eq!((joined.count(), joined.activations(), joined.maxima().len()), (3, 0, 0));
    }
}
