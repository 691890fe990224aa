//! The protocol by which latmus and latmon talk: frames, and what either side makes of them ([`monitor`], [`responder`]: no
//! sockets, no clocks); then both sides on sockets ([`session`], [`server`]).
//!
//! latmus (the responder, of libevl) connects by TCP and asks for pulses; latmon (the monitor, a Zephyr firmware) sends
//! a record of what it measured each second, and at the end a terminator and a histogram. There is no version, no length
//! and no checksum: whoever reads has to know what comes next. All numbers have 32 bits and are big-endian. Three
//! generations of the firmware use the same frames and differ in what they put into them: see [`Totals::surplus`].

pub mod monitor;
pub mod responder;
pub mod server;
pub mod session;

pub use monitor::{Bulk, Requests};
pub use responder::{Replies, Reply, Totals};

use units::Nanos;

/// The port of monitors.
pub const PORT: u16 = 2306;

/// The most cells of a histogram, 1 us each.
pub const MOST_CELLS: u32 = 1_000;

/// The longest period of pulses, in microseconds.
pub const LONGEST_PERIOD: u32 = 1_000_000;

/// How long latmus waits for anything, and latmon between two broadcasts.
pub const PATIENCE: Nanos = Nanos::from_secs(5);

/// Bytes of a request and of a record.
pub const REQUEST: usize = 8;
/// See [`REQUEST`].
pub const RECORD: usize = 24;

/// What a responder asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Pulses; where they run already, they begin anew.
    Start {
        /// Their period in microseconds, 1 to [`LONGEST_PERIOD`].
        period: u32,
        /// Cells of the histogram that is sent at the end, up to [`MOST_CELLS`]; 0: none.
        cells: u32,
    },
    /// No more of them.
    Stop,
}

/// What was measured since the last record, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// All latencies together.
    pub sum: i64,
    /// The least.
    pub min: i32,
    /// The greatest.
    pub max: i32,
    /// Answers that did not come, and periods that a late one covered.
    pub overruns: u32,
    /// How many latencies; 0 in a terminator, whose other figures say nothing.
    pub samples: u32,
}

/// What is wrong with what the other side says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A period that cannot be had.
    #[error("a period of {0} us, and at most {LONGEST_PERIOD} can be had")]
    Period(u32),
    /// A histogram that cannot be had.
    #[error("a histogram of {0} cells, and at most {MOST_CELLS} can be had")]
    Cells(u32),
    /// A record whose figures contradict each other: latmus ends with exit code 103.
    #[error("a record whose figures contradict each other: {0} samples, sum {1} ns, from {2} to {3} ns")]
    Contradiction(u32, i64, i32, i32),
    /// The connection ended in the middle of something.
    #[error("the connection ended after {got} of {wanted} bytes of {what}")]
    Cut {
        /// Of what.
        what: &'static str,
        /// How many bytes of it had come.
        got: usize,
        /// How many it has.
        wanted: usize,
    },
    /// More came after the end.
    #[error("{0} bytes after the end")]
    Surplus(usize),
}

impl Request {
    /// As it goes over the wire.
    pub fn bytes(self) -> [u8; REQUEST] {
        let (period, cells) = match self {
            Self::Start { period, cells } => (period, cells),
            Self::Stop => (0, 0),
        };
        let mut bytes = [0; REQUEST];
        bytes[..4].copy_from_slice(&period.to_be_bytes());
        bytes[4..].copy_from_slice(&cells.to_be_bytes());
        bytes
    }

    /// What the bytes ask for. A period of 0 is a stop, whatever the cells.
    ///
    /// # Errors
    /// A period or a histogram that cannot be had.
    pub fn read(bytes: [u8; REQUEST]) -> Result<Self, Fault> {
        let (period, cells) = (word(&bytes, 0), word(&bytes, 4));
        match (period, cells) {
            (0, _) => Ok(Self::Stop),
            (LONGEST_PERIOD.., _) if period > LONGEST_PERIOD => Err(Fault::Period(period)),
            (_, cells) if cells > MOST_CELLS => Err(Fault::Cells(cells)),
            _ => Ok(Self::Start { period, cells }),
        }
    }
}

impl Sample {
    /// The end of a run: least is what firmware resets it to.
    pub fn terminator(overruns: u32) -> Self {
        Self { sum: 0, min: -1, max: 0, overruns, samples: 0 }
    }

    /// As it goes over the wire: the sum as two halves.
    pub fn bytes(self) -> [u8; RECORD] {
        let words = [
            (self.sum >> 32) as u32,
            self.sum as u32,
            self.min as u32,
            self.max as u32,
            self.overruns,
            self.samples,
        ];
        let mut bytes = [0; RECORD];
        bytes
            .chunks_exact_mut(4)
            .zip(words)
            .for_each(|(place, word)| place.copy_from_slice(&word.to_be_bytes()));
        bytes
    }

    /// What the bytes say.
    pub fn read(bytes: [u8; RECORD]) -> Self {
        Self {
            sum: i64::from(word(&bytes, 0)) << 32 | i64::from(word(&bytes, 4)),
            min: word(&bytes, 8) as i32,
            max: word(&bytes, 12) as i32,
            overruns: word(&bytes, 16),
            samples: word(&bytes, 20),
        }
    }

    /// Whether nothing follows but the histogram.
    pub fn is_terminator(self) -> bool {
        self.samples == 0
    }

    /// Refuses figures that cannot be of one second: latmus' own rule.
    ///
    /// # Errors
    /// Least, average and greatest are not in that order.
    pub fn check(self) -> Result<Self, Fault> {
        if self.is_terminator() {
            return Ok(self);
        }
        // latmus divides towards zero.
        let average = self.sum / i64::from(self.samples);
        if i64::from(self.min) <= average && average <= i64::from(self.max) {
            return Ok(self);
        }
        Err(Fault::Contradiction(self.samples, self.sum, self.min, self.max))
    }
}

/// The number at `place`, which lies within the bytes.
fn word(bytes: &[u8], place: usize) -> u32 {
    bytes[place..place + 4].iter().fold(0, |word, &byte| word << 8 | u32::from(byte))
}

#[cfg(test)]
mod sockets_tests;
#[cfg(test)]
mod tests;
