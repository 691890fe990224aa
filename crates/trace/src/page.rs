//! One page of a ring buffer, as `per_cpu/cpuN/trace_pipe_raw` gives it and trace-cmd saves it.
//!
//! The page begins with a time stamp and a commit word, whose places and sizes `events/header_page` describes. The low 27
//! bits of the commit word are the length of the data, bit 31 says that events were lost before this page, and bit 30
//! that their number follows the data. Then events, each a word of a type or length (5 bits) and the time since the one
//! before (27 bits), and its data (include/linux/ring_buffer.h).

use std::ops::Range;

use units::Nanos;

use crate::bytes::Order;
use crate::error::{Error, Result};
use crate::format::field::field_line;

/// Bits of the commit word.
const LENGTH: u64 = (1 << 27) - 1;
const STORED: u64 = 1 << 30;
const MISSED: u64 = 1 << 31;

/// What the 5 bits of an event's first word say besides lengths in words of four bytes.
const LONG: u32 = 0;
const PADDING: u32 = 29;
const EXTEND: u32 = 30;
const STAMP: u32 = 31;

/// Width of the time in an event's first word, in bits.
const DELTA: u32 = 27;

/// Absolute stamps have 59 bits; those above are the ones of the stamp before.
const ABSOLUTE: u64 = (1 << 59) - 1;

/// No kernel has larger pages: sub-buffers have at most 2^7 pages of 64 KiB.
const LARGEST: usize = 8 << 20;

/// How the pages of a kernel are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The order of bytes.
    pub order: Order,
    /// Bytes of a page, header included.
    pub size: usize,
    /// Bytes of the kernel's `long`, which are those of the commit word.
    pub long: usize,
    commit: usize,
    data: usize,
}

/// What a page's header says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The time that the first event's is counted from.
    pub time: Nanos,
    /// Where the events are.
    pub data: Range<usize>,
    /// Events that were lost before this page.
    pub missed: Missed,
}

/// How many events were lost before a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missed {
    /// None.
    Nothing,
    /// This many.
    Events(u64),
    /// Some: the page had no room for the number, or the kernel does not know it.
    Unknown,
}

/// Why a page cannot be read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// The page is shorter than its header.
    #[error("the page ends within its header")]
    Header,
    /// The commit word says more than the page holds.
    #[error("the page holds less than its header says")]
    Length,
    /// An event is longer than what is left, or shorter than its own length.
    #[error("an event does not fit into its page")]
    Event,
}

/// An event of a page: when, and where in the page its data is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// When it was recorded, by the trace clock.
    pub time: Nanos,
    /// Its data, which begins with the number of its format.
    pub data: Range<usize>,
}

impl Layout {
    /// Reads `events/header_page`.
    ///
    /// # Errors
    /// Which field is missing or makes no sense.
    pub fn parse(text: &str, order: Order) -> Result<Self> {
        let wrong = |what: &str| Error::new("parse", "events/header_page", what);
        let lines: Vec<_> = text.lines().filter_map(field_line).collect();
        let field = |name: &str| {
            let line = lines.iter().find(|line| line.name == name);
            line.ok_or_else(|| wrong(&format!("no field `{name}`")))
        };
        let (time, commit, data) = (field("timestamp")?, field("commit")?, field("data")?);
        let layout = Self {
            order,
            size: data.offset.saturating_add(data.size),
            long: commit.size,
            commit: commit.offset,
            data: data.offset,
        };
        if (time.offset, time.size) != (0, 8) || !matches!(commit.size, 4 | 8) {
            return Err(wrong("the time stamp is not 8 bytes at 0, or the commit word not 4 or 8 bytes"));
        }
        if commit.offset < 8 || data.offset < commit.offset.saturating_add(commit.size) {
            return Err(wrong("its fields overlap"));
        }
        if layout.size > LARGEST || data.size < 8 {
            return Err(wrong(&format!("pages of {} bytes", layout.size)));
        }
        Ok(layout)
    }

    /// The same with pages of another size, as a saved file may say.
    #[must_use]
    pub fn sized(self, size: usize) -> Option<Self> {
        (size > self.data && size <= LARGEST).then_some(Self { size, ..self })
    }

    /// Reads the header of a page.
    ///
    /// # Errors
    /// The page is too short for it.
    pub fn header(&self, page: &[u8]) -> std::result::Result<Header, Damage> {
        let time = self.order.u64(page, 0).ok_or(Damage::Header)?;
        let word = |at: usize| self.order.number(page.get(at..at + self.long)?);
        let commit = word(self.commit).ok_or(Damage::Header)?;
        let length = usize::try_from(commit & LENGTH).map_err(|_| Damage::Length)?;
        let end = self.data + length;
        if end > page.len() {
            return Err(Damage::Length);
        }
        let missed = match (commit & MISSED != 0, commit & STORED != 0) {
            (false, _) => Missed::Nothing,
            (true, true) => word(end).map_or(Missed::Unknown, Missed::Events),
            (true, false) => Missed::Unknown,
        };
        Ok(Header { time: Nanos(time), data: self.data..end, missed })
    }

    /// The events of a page, in their order; the last item is the damage that ended it, if there was any.
    pub fn entries<'a>(
        &'a self,
        page: &'a [u8],
    ) -> impl Iterator<Item = std::result::Result<Entry, Damage>> + 'a {
        let (mut place, mut damage) = match self.header(page) {
            Ok(header) => (Some(Place::new(&header)), None),
            Err(damage) => (None, Some(damage)),
        };
        std::iter::from_fn(move || match damage.take() {
            Some(damage) => Some(Err(damage)),
            None => place.as_mut()?.next(self, page),
        })
    }
}

/// Where a reader stands in a page.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    at: usize,
    end: usize,
    time: u64,
}

impl Place {
    pub(crate) fn new(header: &Header) -> Self {
        Self { at: header.data.start, end: header.data.end, time: header.time.0 }
    }

    /// The next event with data. After damage there is none.
    pub(crate) fn next(
        &mut self,
        layout: &Layout,
        page: &[u8],
    ) -> Option<std::result::Result<Entry, Damage>> {
        while self.at < self.end {
            match self.step(layout, page.get(..self.end)?) {
                Some(Step::Skipped) => {}
                Some(Step::Entry(entry)) => return Some(Ok(entry)),
                None => {
                    self.at = self.end;
                    return Some(Err(Damage::Event));
                }
            }
        }
        None
    }

    /// One word and what belongs to it; none where it does not fit.
    fn step(&mut self, layout: &Layout, page: &[u8]) -> Option<Step> {
        let order = layout.order;
        let word = order.u32(page, self.at)?;
        // Bit fields begin at the end of the word that comes first in memory.
        let (kind, delta) = match order {
            Order::Little => (word & 31, word >> 5),
            Order::Big => (word >> DELTA, word & ((1 << DELTA) - 1)),
        };
        let second = order.u32(page, self.at + 4);
        let wide = |second: u32| (u64::from(second) << DELTA) | u64::from(delta);
        let (data, end) = match kind {
            PADDING if delta == 0 => (None, self.end),
            PADDING => (None, after(self.at, second?)?),
            EXTEND | STAMP => (None, self.at + 8),
            LONG => (Some(self.at + 8), after(self.at, second?)?),
            words => (Some(self.at + 4), self.at + 4 + 4 * words as usize),
        };
        if end > self.end || data.is_some_and(|data| data > end) {
            return None;
        }
        self.at = end;
        self.time = match kind {
            EXTEND => self.time.wrapping_add(wide(second?)),
            STAMP => absolute(wide(second?), self.time),
            // A discarded event has become padding, and what follows is still counted from it.
            _ => self.time.wrapping_add(delta.into()),
        };
        let entry = |data| Step::Entry(Entry { time: Nanos(self.time), data: data..end });
        Some(data.map_or(Step::Skipped, entry))
    }
}

enum Step {
    Skipped,
    Entry(Entry),
}

/// Where an event at `at` ends whose second word says its length, that word included.
fn after(at: usize, length: u32) -> Option<usize> {
    let length = usize::try_from(length).ok()?;
    (length >= 4).then(|| at.checked_add(4)?.checked_add(length))?
}

/// An absolute stamp lacks its highest bits: they are those of the time before, or one more where it wrapped.
fn absolute(stamp: u64, before: u64) -> u64 {
    let stamp = (stamp & ABSOLUTE) | (before & !ABSOLUTE);
    if stamp < before && before & !ABSOLUTE != 0 { stamp.wrapping_add(ABSOLUTE + 1) } else { stamp }
}

#[cfg(test)]
mod tests;
