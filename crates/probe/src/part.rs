//! The distribution of a part of what is measured, in words that one thread writes and the parent reads: count, sum, least and
//! greatest value, then cells. Nothing that writes allocates, locks, blocks or calls the kernel.

use histogram::{Histogram, Summary, layout};
use sys::shared::Word;

/// Words of count, sum, least and greatest value.
pub const SUMMARY_WORDS: usize = 4;

/// Words of a part.
pub const WORDS: usize = SUMMARY_WORDS + layout::CELLS;

/// Enters a value into the [`SUMMARY_WORDS`] alone.
#[inline]
pub fn sum_up(words: &[Word], value: u64) {
    if words[0].add(1) == 1 || value < words[2].get() {
        words[2].set(value);
    }
    words[1].add(value);
    words[3].set(value.max(words[3].get()));
}

/// Enters a value.
#[inline]
pub fn observe(words: &[Word], value: u64) {
    sum_up(&words[..SUMMARY_WORDS], value);
    words[SUMMARY_WORDS + layout::index(value)].add(1);
}

/// Exact once the thread has ended, a moment old before.
pub fn summary(words: &[Word]) -> Summary {
    Summary { count: words[0].get(), sum: words[1].get(), min: words[2].get(), max: words[3].get() }
}

/// Exact once the thread has ended, a moment old before.
pub fn histogram(words: &[Word]) -> Histogram {
    let cells = words[SUMMARY_WORDS..].iter().map(Word::get).enumerate().filter(|(_, count)| *count > 0);
    Histogram::from_parts(summary(words), cells)
}
