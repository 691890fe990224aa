//! The greatest latency of each block of consecutive activations, in the order of time.
//!
//! A block is one activation at first. When [`BLOCKS`] blocks are full, neighbours are merged and a block is twice as
//! long: a run of any length ends with 1024 to 2048 of them, and memory and price a sample stay the same. They show
//! what a histogram cannot: whether late activations come one by one or in clusters, and whether the run was alike
//! from its beginning to its end.
//!
//! Merging is spread over the blocks that follow (two pairs for each), so that no wake-up pays for all of it: there
//! are two banks, and the thread writes to one while it empties the other.

use record::BlockMaxima;
use sys::shared::Word;

/// The most blocks kept.
pub const BLOCKS: usize = 2048;
/// Words that a thread needs for them.
pub const WORDS: usize = at::BANKS + 2 * BLOCKS;

mod at {
    /// Logarithm to base 2 of the activations in a block.
    pub const SHIFT: usize = 0;
    /// Full blocks.
    pub const FILLED: usize = 1;
    /// How many of the first half of the blocks have been merged from the other bank.
    pub const MERGED: usize = 2;
    /// The greatest latency of the block that is not full yet.
    pub const OPEN: usize = 3;
    pub const BANKS: usize = 8;
}

/// The bank of blocks of `1 << shift` activations.
fn bank(words: &[Word], shift: u32) -> &[Word] {
    let start = at::BANKS + if shift % 2 == 0 { 0 } else { BLOCKS };
    &words[start..start + BLOCKS]
}

/// What the measuring thread writes with.
pub struct Maxima<'a> {
    words: &'a [Word],
    shift: u32,
    filled: usize,
    merged: usize,
    greatest: u64,
    /// The activation with which the next block begins.
    end: u64,
    /// The latest that was observed.
    activation: u64,
}

impl<'a> Maxima<'a> {
    /// On [`WORDS`] words that are zero.
    pub fn new(words: &'a [Word]) -> Self {
        Self { words, shift: 0, filled: 0, merged: BLOCKS / 2, greatest: 0, end: 1, activation: 0 }
    }

    /// Counts the wake-up of `activation`, which is later than those before.
    #[inline]
    pub fn observed(&mut self, activation: u64, latency: u64) {
        while activation >= self.end {
            self.close();
        }
        self.activation = activation;
        if latency > self.greatest {
            self.greatest = latency;
            self.words[at::OPEN].set(latency);
        }
    }

    /// Counts the `missed` activations after the latest wake-up, which was `latency` late at a period of `interval`.
    /// Takes time proportional to blocks, never to `missed`.
    pub fn missed(&mut self, latency: u64, missed: u64, interval: u64) {
        let woken = self.activation;
        let mut next = woken + 1;
        while next <= woken + missed {
            self.observed(next, latency.saturating_sub((next - woken).saturating_mul(interval)));
            next = self.end;
        }
        self.activation = woken + missed;
    }

    fn close(&mut self) {
        bank(self.words, self.shift)[self.filled].set(self.greatest);
        self.words[at::OPEN].set(0);
        self.greatest = 0;
        self.filled += 1;
        for _ in 0..2 {
            self.merge_a_pair();
        }
        if self.filled == BLOCKS {
            (self.shift, self.filled, self.merged) = (self.shift + 1, BLOCKS / 2, 0);
            self.words[at::SHIFT].set(u64::from(self.shift));
        }
        self.words[at::MERGED].set(self.merged as u64);
        self.words[at::FILLED].set(self.filled as u64);
        self.end = (self.filled as u64 + 1) << self.shift;
    }

    fn merge_a_pair(&mut self) {
        if self.merged < BLOCKS / 2 {
            let pair = &bank(self.words, self.shift - 1)[2 * self.merged..2 * self.merged + 2];
            bank(self.words, self.shift)[self.merged].set(pair[0].get().max(pair[1].get()));
            self.merged += 1;
        }
    }
}

/// What the parent reads. Exact once the thread has ended.
pub fn read(words: &[Word]) -> BlockMaxima {
    let value = |place: usize| words[place].get();
    let shift = u32::try_from(value(at::SHIFT)).unwrap_or(0).min(u64::BITS - 1);
    let (filled, merged) = (value(at::FILLED) as usize, value(at::MERGED) as usize);
    let current = bank(words, shift);
    let of = |place: usize| match place < BLOCKS / 2 && place >= merged && shift > 0 {
        true => {
            let before = bank(words, shift - 1);
            before[2 * place].get().max(before[2 * place + 1].get())
        }
        false => current[place].get(),
    };
    let mut maxima: Vec<u64> = (0..filled.min(BLOCKS)).map(of).collect();
    if value(at::OPEN) > 0 {
        maxima.push(value(at::OPEN));
    }
    BlockMaxima { activations: 1 << shift, maxima }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words() -> Vec<Word> {
        (0..WORDS).map(|_| Word::default()).collect()
    }

    /// The maxima of blocks of `size` activations.
    fn of_blocks(latencies: &[u64], size: u64) -> Vec<u64> {
        latencies.chunks(size as usize).filter_map(|block| block.iter().copied().max()).collect()
    }

    fn drawn(count: u64) -> Vec<u64> {
        (0..count).map(|n: u64| 1 + n.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 1_000_003).collect()
    }

    #[test]
    fn a_run_of_any_length_keeps_the_maxima_of_equal_blocks() {
        for count in [1, 2, 2047, 2048, 2049, 3000, 4096, 4097, 5000, 100_000, 333_333] {
            let (words, latencies) = (words(), drawn(count));
            let mut maxima = Maxima::new(&words);
            latencies.iter().zip(0..).for_each(|(&latency, n)| maxima.observed(n, latency));
            let read = read(&words);
            assert_eq!(read.maxima, of_blocks(&latencies, read.activations), "{count}");
            assert!(read.maxima.len() <= BLOCKS && read.activations <= count.div_ceil(1024), "{count}");
        }
    }

    #[test]
    fn a_stall_of_a_quarter_of_an_hour_takes_steps_of_blocks_and_not_of_periods() {
        let words = words();
        let mut maxima = Maxima::new(&words);
        maxima.observed(0, 900_000_000_000);
        maxima.missed(900_000_000_000, 45_000_000 - 1, 20_000);
        maxima.observed(45_000_000, 7);
        let read = read(&words);
        assert!(read.maxima.len() <= BLOCKS);
        assert_eq!(read.maxima[0], 900_000_000_000);
        assert!(read.maxima.is_sorted_by(|earlier, later| earlier > later));
    }

    proptest! {
        #[test]
        fn missed_activations_count_in_the_blocks_in_which_they_were_due(
            wakes in proptest::collection::vec((1_u64..1_000, prop_oneof![4 => Just(0_u64), 1 => 1_u64..3_000]), 1..400)
        ) {
            let (words, mut latencies) = (words(), Vec::new());
            let mut maxima = Maxima::new(&words);
            for (rest, missed) in wakes {
                let latency = missed * 1_000 + rest;
                maxima.observed(latencies.len() as u64, latency);
                if missed > 0 {
                    maxima.missed(latency, missed, 1_000);
                }
                latencies.extend((0..=missed).map(|step| latency - step * 1_000));
            }
            let read = read(&words);
            prop_assert_eq!(read.maxima, of_blocks(&latencies, read.activations));
        }
    }
}
