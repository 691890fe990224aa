//! What the responder counts beside its block of the board: words that it alone writes.

use histogram::{Histogram, Summary, layout};
use record::instrument::gpio::GpioSeries;
use sys::Errno;
use sys::shared::Word;

mod at {
    pub const EDGES: usize = 0;
    pub const BACKLOG: usize = 1;
    pub const UNSTAMPED: usize = 2;
    pub const FAILED: usize = 3;
    pub const WAKE: usize = 8;
    pub const ANSWER: usize = WAKE + super::PART_WORDS;
}

/// Count, sum, least and greatest value, then cells.
const PART_WORDS: usize = 4 + layout::CELLS;

/// Words that a tally needs.
pub const WORDS: usize = at::ANSWER + PART_WORDS;

/// What the measuring thread counts with. Nothing here allocates, locks, blocks or calls the kernel.
pub struct Tally<'a>(&'a [Word]);

impl<'a> Tally<'a> {
    /// For the thread that owns `words`, [`WORDS`] of them.
    pub fn new(words: &'a [Word]) -> Self {
        Self(words)
    }

    /// The kernel counted so many edges more.
    pub fn edges(&mut self, count: u64) {
        self.0[at::EDGES].add(count);
    }

    /// An edge came before the one before it was answered.
    pub fn backlog(&mut self) {
        self.0[at::BACKLOG].add(1);
    }

    /// An edge has a stamp of another clock.
    pub fn unstamped(&mut self) {
        self.0[at::UNSTAMPED].add(1);
    }

    /// A line is of use no more.
    pub fn line_failed(&mut self, errno: Errno) {
        self.0[at::FAILED].set(errno.raw_os_error().unsigned_abs().into());
    }

    /// What an answer took until the thread had its edge, and from then on.
    pub fn parts(&mut self, wake: u64, answer: u64) {
        observe(&self.0[at::WAKE..at::ANSWER], wake);
        observe(&self.0[at::ANSWER..WORDS], answer);
    }
}

fn observe(words: &[Word], value: u64) {
    if words[0].add(1) == 1 || value < words[2].get() {
        words[2].set(value);
    }
    words[1].add(value);
    words[3].set(value.max(words[3].get()));
    words[4 + layout::index(value)].add(1);
}

fn histogram(words: &[Word]) -> Histogram {
    let summary =
        Summary { count: words[0].get(), sum: words[1].get(), min: words[2].get(), max: words[3].get() };
    let cells = words[4..].iter().map(Word::get).enumerate().filter(|(_, count)| *count > 0);
    Histogram::from_parts(summary, cells)
}

/// What the parent reads of a tally: exact once the thread has ended, a moment old before.
pub fn read(words: &[Word]) -> GpioSeries {
    let value = |place: usize| words[place].get();
    let failed = i32::try_from(value(at::FAILED)).unwrap_or_default();
    GpioSeries {
        expected: value(at::EDGES),
        backlog: value(at::BACKLOG),
        unstamped: value(at::UNSTAMPED),
        line_failed: (failed != 0).then(|| units::errno_in_words(failed).to_string()),
        wake: histogram(&words[at::WAKE..at::ANSWER]),
        answer: histogram(&words[at::ANSWER..WORDS]),
        ..GpioSeries::default()
    }
}
