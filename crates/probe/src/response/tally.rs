//! What a thread counts of its frames and of the parts of responses: words beside its block of the board, which it alone
//! writes.

use record::instrument::response::{Frames, Part, PartName, ResponseSeries, Unsplit};
use record::{Fact, Sample};
use sys::shared::Word;
use units::Nanos;

use crate::part;

/// How many of the worst responses keep their parts: as many as a board keeps.
const WORST: usize = crate::board::WORST;

/// Words of a worst response: its length, its cycle and its parts.
const WORST_WORDS: usize = 2 + PARTS;

/// All parts, in the order in which words and splits have them.
const ALL: [PartName; PARTS] = PartName::WITH_HARDWARE;

const PARTS: usize = PartName::WITH_HARDWARE.len();

/// Why responses are not split, in number.
const REASONS: usize = 4;

/// A part that nothing is known of.
const UNKNOWN: u64 = u64::MAX;

mod at {
    pub const SENT: usize = 0;
    pub const ANSWERED: usize = 1;
    pub const LATE: usize = 2;
    pub const DUPLICATED: usize = 3;
    pub const REORDERED: usize = 4;
    pub const FOREIGN: usize = 5;
    pub const NOT_SENT: usize = 6;
    pub const REFUSED: usize = 7;
    pub const SILENT: usize = 8;
    pub const SKIPPED: usize = 9;
    // Of the responses that were split: count, sum, least, greatest.
    pub const SPLIT: usize = 10;
    // As many as there are reasons.
    pub const UNSPLIT: usize = SPLIT + crate::part::SUMMARY_WORDS;
    // Count, sum, least and greatest.
    pub const READINGS: usize = UNSPLIT + super::REASONS;
    pub const WORST: usize = READINGS + crate::part::SUMMARY_WORDS;
    pub const PARTS: usize = WORST + super::WORST * super::WORST_WORDS;
}

/// Words that a tally needs.
pub const WORDS: usize = at::PARTS + PARTS * part::WORDS;

/// The parts of a response, in nanoseconds. Their sum is the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    /// Until the driver had the frame.
    pub send: u64,
    /// Until the card had sent it.
    pub transmit: Option<u64>,
    /// Under way, with the times before, at the peer and after where those are not known.
    pub wire: u64,
    /// At the peer.
    pub peer: Option<u64>,
    /// From the card to the kernel.
    pub deliver: Option<u64>,
    /// From the kernel to the thread.
    pub receive: u64,
}

impl Split {
    fn parts(&self) -> [u64; PARTS] {
        let Self { send, transmit, wire, peer, deliver, receive } = *self;
        [Some(send), transmit, Some(wire), peer, deliver, Some(receive)].map(|part| part.unwrap_or(UNKNOWN))
    }
}

/// Why a response was not split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The clock of the stamps was set meanwhile.
    ClockSet,
    /// The frame was not stamped when it was sent.
    NotStampedSent,
    /// The answer was not stamped when it was received.
    NotStampedReceived,
    /// The stamps lie outside the response.
    Contradictory,
}

/// What an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answered {
    /// To a frame of the cycle that is under way.
    InTime,
    /// To a frame of a cycle that is over.
    Late,
    /// To a frame that had been answered.
    Again,
    /// To a frame of the warm-up.
    Before,
    /// To no frame that is known.
    Never,
}

/// What a measuring thread counts with. Nothing here allocates, locks, blocks or calls the kernel.
pub struct Tally<'a> {
    words: &'a [Word],
    /// Least of the worst responses that keep their parts.
    admission: u64,
}

impl<'a> Tally<'a> {
    /// For the thread that owns `words`, [`WORDS`] of them.
    pub fn new(words: &'a [Word]) -> Self {
        Self { words, admission: 0 }
    }

    /// Counts nothing: for a warm-up.
    pub fn nowhere() -> Tally<'static> {
        Tally { words: &[], admission: u64::MAX }
    }

    fn add(&self, place: usize, amount: u64) {
        if let Some(word) = self.words.get(place) {
            word.add(amount);
        }
    }

    /// A frame was sent.
    pub fn sent(&mut self) {
        self.add(at::SENT, 1);
    }

    /// A frame was not.
    pub fn not_sent(&mut self) {
        self.add(at::NOT_SENT, 1);
    }

    /// An answer has come; `is_behind` one to a later frame.
    pub fn answer(&mut self, is_behind: bool, answered: Answered) {
        self.add(at::ANSWERED, matches!(answered, Answered::InTime | Answered::Late).into());
        self.add(at::LATE, (answered == Answered::Late).into());
        self.add(at::DUPLICATED, (answered == Answered::Again).into());
        self.add(at::FOREIGN, (answered == Answered::Never).into());
        self.add(at::REORDERED, is_behind.into());
    }

    /// Something else has come.
    pub fn foreign(&mut self) {
        self.add(at::FOREIGN, 1);
    }

    /// The peer's host, or the own one, said that nothing can be had from there.
    pub fn refused(&mut self) {
        self.add(at::REFUSED, 1);
    }

    /// So many cycles were over before they were begun.
    pub fn skipped(&mut self, count: u64) {
        self.add(at::SKIPPED, count);
    }

    /// A cycle was not answered.
    pub fn unanswered(&mut self) {
        self.add(at::SILENT, 1);
    }

    /// A cycle was answered.
    pub fn answered_cycle(&mut self) {
        if let Some(word) = self.words.get(at::SILENT) {
            word.set(0);
        }
    }

    /// The response of a cycle was not split.
    pub fn unsplit(&mut self, why: Why) {
        self.add(at::UNSPLIT + why as usize, 1);
    }

    /// A reading of the card's clock took so long, in nanoseconds.
    pub fn read_card(&mut self, width: u64) {
        if let Some(words) = self.words.get(at::READINGS..at::WORST) {
            part::sum_up(words, width);
        }
    }

    /// The parts of the response of a cycle.
    pub fn split(&mut self, cycle: u64, length: u64, split: &Split) {
        if self.words.is_empty() {
            return;
        }
        part::sum_up(&self.words[at::SPLIT..at::UNSPLIT], length);
        for (index, took) in split.parts().into_iter().enumerate() {
            if took != UNKNOWN {
                part::observe(part_words(self.words, index), took);
            }
        }
        if length > self.admission {
            self.admit(cycle, length, split);
        }
    }

    /// Takes the place of the least of the worst.
    #[cold]
    fn admit(&mut self, cycle: u64, length: u64, split: &Split) {
        let kept = &self.words[at::WORST..at::PARTS];
        let (mut place, mut least) = (0, u64::MAX);
        for (index, words) in kept.chunks_exact(WORST_WORDS).enumerate() {
            if words[0].get() < least {
                (place, least) = (index, words[0].get());
            }
        }
        let words = &kept[place * WORST_WORDS..(place + 1) * WORST_WORDS];
        words[0].set(length);
        words[1].set(cycle);
        words[2..].iter().zip(split.parts()).for_each(|(word, took)| word.set(took));
        self.admission = kept.chunks_exact(WORST_WORDS).map(|words| words[0].get()).min().unwrap_or(0);
    }
}

fn part_words(words: &[Word], index: usize) -> &[Word] {
    &words[at::PARTS + index * part::WORDS..at::PARTS + (index + 1) * part::WORDS]
}

/// What the parent reads of a tally: exact once the thread has ended, a moment old before. Accounts of cycles are for it
/// to add; `worst` are those that the board keeps, `names` the parts that its responses consist of.
pub fn read(words: &[Word], worst: &[Sample], names: &[PartName]) -> ResponseSeries {
    let value = |place: usize| words[place].get();
    // Answers first: one that comes meanwhile is to a frame that was sent before.
    let (answered, late, sent) = (value(at::ANSWERED), value(at::LATE), value(at::SENT));
    let frames = Frames {
        sent,
        answered,
        late,
        lost: sent.saturating_sub(answered),
        duplicated: value(at::DUPLICATED),
        reordered: value(at::REORDERED),
        foreign: value(at::FOREIGN),
        not_sent: value(at::NOT_SENT),
        refused: value(at::REFUSED),
        silent_cycles: value(at::SILENT),
    };
    let unsplit = |why: Why| value(at::UNSPLIT + why as usize);
    let places = || ALL.iter().enumerate().filter(|(_, name)| names.contains(name));
    let part = |(place, &name)| Part { name, took: part::histogram(part_words(words, place)) };
    let kept: Vec<usize> = places().map(|(place, _)| place).collect();
    ResponseSeries {
        skipped: value(at::SKIPPED),
        frames,
        split: part::summary(&words[at::SPLIT..at::UNSPLIT]),
        parts: places().map(part).collect(),
        unsplit: Unsplit {
            clock_set: unsplit(Why::ClockSet),
            not_stamped_sent: unsplit(Why::NotStampedSent),
            not_stamped_received: unsplit(Why::NotStampedReceived),
            contradictory: unsplit(Why::Contradictory),
        },
        worst_parts: worst.iter().map(|sample| parts_of(words, sample, &kept)).collect(),
        card_readings: part::summary(&words[at::READINGS..at::WORST]),
        ..ResponseSeries::default()
    }
}

/// The parts at `places` of one of the worst responses, if they were kept.
fn parts_of(words: &[Word], sample: &Sample, places: &[usize]) -> Fact<Vec<Option<Nanos>>> {
    let kept = words[at::WORST..at::PARTS].chunks_exact(WORST_WORDS);
    let mut found = kept.filter(|words| {
        words[0].get() == sample.latency.0 && words[1].get() == sample.activation && sample.latency.0 > 0
    });
    let Some(words) = found.next() else { return Fact::Absent };
    let took = |&place: &usize| Some(Nanos(words[2 + place].get())).filter(|took| took.0 != UNKNOWN);
    Fact::Value(places.iter().map(took).collect())
}
