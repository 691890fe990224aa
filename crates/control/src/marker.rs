//! The marker of a trace.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};

use rustix::io::Errno;

use crate::place;

/// A late wake-up, as its thread marks it: readings of `CLOCK_MONOTONIC` and times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Number of the activation.
    pub activation: u64,
    /// When it was due.
    pub due: u64,
    /// When it came.
    pub woke: u64,
    /// The thread's period.
    pub interval: u64,
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { activation, due, woke, interval } = self;
        write!(f, "{} {activation} {due} {woke} {interval}", Marker::TEXT)
    }
}

impl Mark {
    /// The longest text: four numbers of 20 digits.
    const LONGEST: usize = Marker::TEXT.len() + 4 * 21;

    /// From what stands in the trace; none of another's text.
    pub fn read(text: &str) -> Option<Self> {
        let mut words = text.strip_prefix(Marker::TEXT)?.split_ascii_whitespace();
        let mut number = || words.next()?.parse().ok();
        let mark = Self { activation: number()?, due: number()?, woke: number()?, interval: number()? };
        (words.next().is_none() && mark.due <= mark.woke).then_some(mark)
    }
}

/// `trace_marker` of an instance, open: what is written to it stands in the trace, with the time at which it was written.
#[derive(Debug)]
pub struct Marker(File);

impl Marker {
    /// What begins what [`Marker::mark`] writes.
    pub const TEXT: &'static str = "LATE";

    /// Opens it.
    ///
    /// # Errors
    /// What the kernel answered; `EXDEV` for a file of no trace.
    pub fn open(path: &str) -> io::Result<Self> {
        place::check(&rustix::fs::statfs(path)?, &place::TRACES)?;
        OpenOptions::new().write(true).open(path).map(Self)
    }

    /// Marks this moment: one system call, no allocation. Where the trace does not take it, nothing is lost but the mark.
    pub fn mark(&self, mark: &Mark) -> Result<(), Errno> {
        let mut text = [0; Mark::LONGEST];
        let mut rest = &mut text[..];
        // There is room for the longest.
        let _ = write!(rest, "{mark}");
        let length = Mark::LONGEST - rest.len();
        rustix::io::write(&self.0, &text[..length]).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_mark_is_read_as_it_was_written(activation: u64, due: u64, late: u64, interval: u64) {
            let mark = Mark { activation, due, woke: due.saturating_add(late), interval };
            let text = mark.to_string();
            prop_assert!(text.len() <= Mark::LONGEST);
            prop_assert_eq!(Mark::read(&format!("{text}\n")), Some(mark));
        }

        #[test]
        fn what_is_no_mark_is_none(text in ".*", begins: bool) {
            let text = if begins { format!("{}{text}", Marker::TEXT) } else { text };
            if let Some(mark) = Mark::read(&text) {
                prop_assert!(mark.due <= mark.woke);
            }
        }
    }

    #[test]
    fn a_cut_or_a_backward_mark_is_none() {
        for text in ["LATE", "LATE 1 2 3", "LATE 1 2 3 4 5", "LATE 1 3 2 4", "late 1 2 3 4", "LATE 1 2 3 -4"]
        {
            assert_eq!(Mark::read(text), None, "{text}");
        }
    }
}
