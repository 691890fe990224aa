//! What the responder counts beside its block of the board: words that it alone writes.

use record::instrument::gpio::GpioSeries;
use sys::Errno;
use sys::shared::Word;

use crate::part;

mod at {
    pub const EDGES: usize = 0;
    pub const BACKLOG: usize = 1;
    pub const UNSTAMPED: usize = 2;
    pub const FAILED: usize = 3;
    pub const WAKE: usize = 8;
    pub const ANSWER: usize = WAKE + crate::part::WORDS;
}

/// Words that a tally needs.
pub const WORDS: usize = at::ANSWER + part::WORDS;

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
        part::observe(&self.0[at::WAKE..at::ANSWER], wake);
        part::observe(&self.0[at::ANSWER..WORDS], answer);
    }
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
        wake: part::histogram(&words[at::WAKE..at::ANSWER]),
        answer: part::histogram(&words[at::ANSWER..WORDS]),
        ..GpioSeries::default()
    }
}
