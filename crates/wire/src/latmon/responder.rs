//! The side of latmus: what a monitor says, read as it comes.

use super::{Fault, MOST_CELLS, RECORD, Sample};

/// What a monitor has said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// What it measured since the last one.
    Sample(Sample),
    /// It has stopped; with the answers that it missed since the last record.
    Stopped(u32),
    /// How many latencies there were of each microsecond; the last cell has all that were longer.
    Histogram(Vec<u32>),
}

/// Reads what a monitor says, in pieces of any size. It keeps less than one frame, however much comes.
#[derive(Debug)]
pub struct Replies {
    /// Cells that were asked for.
    cells: u32,
    /// The begin of a frame of which the rest has not come.
    begun: Vec<u8>,
    waits_for: Next,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Record,
    Histogram,
    Nothing,
}

impl Replies {
    /// Of a monitor that was asked for a histogram of `cells` cells.
    ///
    /// # Errors
    /// More than [`MOST_CELLS`].
    pub fn new(cells: u32) -> Result<Self, Fault> {
        if cells > MOST_CELLS {
            return Err(Fault::Cells(cells));
        }
        Ok(Self { cells, begun: Vec::new(), waits_for: Next::Record })
    }

    /// Takes bytes that have come; what they complete.
    ///
    /// # Errors
    /// A record that contradicts itself, or bytes after the end. Nothing that comes after it can be believed.
    pub fn take(&mut self, mut bytes: &[u8]) -> Result<Vec<Reply>, Fault> {
        let mut replies = Vec::new();
        while !bytes.is_empty() {
            let wanted = self.wanted();
            if wanted == 0 {
                return Err(Fault::Surplus(bytes.len()));
            }
            let (now, later) = bytes.split_at(bytes.len().min(wanted - self.begun.len()));
            self.begun.extend_from_slice(now);
            bytes = later;
            if self.begun.len() == wanted {
                replies.push(self.complete()?);
                self.begun.clear();
            }
        }
        Ok(replies)
    }

    fn wanted(&self) -> usize {
        match self.waits_for {
            Next::Record => RECORD,
            Next::Histogram => 4 * self.cells as usize,
            Next::Nothing => 0,
        }
    }

    fn complete(&mut self) -> Result<Reply, Fault> {
        if self.waits_for == Next::Histogram {
            self.waits_for = Next::Nothing;
            let cells = self.begun.chunks_exact(4).map(|cell| super::word(cell, 0));
            return Ok(Reply::Histogram(cells.collect()));
        }
        let mut record = [0; RECORD];
        record.copy_from_slice(&self.begun);
        let sample = Sample::read(record).check()?;
        if !sample.is_terminator() {
            return Ok(Reply::Sample(sample));
        }
        self.waits_for = if self.cells > 0 { Next::Histogram } else { Next::Nothing };
        Ok(Reply::Stopped(sample.overruns))
    }

    /// Whether all has come that there is.
    pub fn is_complete(&self) -> bool {
        self.waits_for == Next::Nothing
    }

    /// The connection ended, or nothing came for too long.
    ///
    /// # Errors
    /// Something was still to come.
    pub fn end(&self) -> Result<(), Fault> {
        let what = match self.waits_for {
            Next::Record => "a record",
            Next::Histogram => "the histogram",
            Next::Nothing => return Ok(()),
        };
        Err(Fault::Cut { what, got: self.begun.len(), wanted: self.wanted() })
    }
}

/// What all records say together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Latencies.
    pub samples: u64,
    /// All of them together, in nanoseconds.
    pub sum: i128,
    /// The least, in nanoseconds; none without samples.
    pub min: Option<i32>,
    /// The greatest, in nanoseconds.
    pub max: Option<i32>,
    /// Answers that did not come, and periods that late ones covered; those of the terminator too, which latmus forgets.
    pub overruns: u64,
    /// Latencies by microsecond, if they were asked for.
    pub histogram: Vec<u32>,
}

impl Totals {
    /// Adds what a monitor has said.
    pub fn add(&mut self, reply: Reply) {
        match reply {
            Reply::Sample(sample) => {
                self.samples += u64::from(sample.samples);
                self.sum += i128::from(sample.sum);
                self.min = Some(self.min.map_or(sample.min, |min| min.min(sample.min)));
                self.max = self.max.max(Some(sample.max));
                self.overruns += u64::from(sample.overruns);
            }
            Reply::Stopped(overruns) => self.overruns += u64::from(overruns),
            Reply::Histogram(cells) => self.histogram = cells,
        }
    }

    /// How many more latencies the histogram has than the records: those of the warm-up, which Zephyr's latmon (4.2 and
    /// later) leaves in it. None without a histogram, or where records had some that it has not.
    pub fn surplus(&self) -> Option<u64> {
        let held: u64 = self.histogram.iter().copied().map(u64::from).sum();
        (!self.histogram.is_empty()).then(|| held.checked_sub(self.samples)).flatten()
    }

    /// The average in nanoseconds.
    pub fn average(&self) -> Option<i64> {
        (self.samples > 0).then(|| i64::try_from(self.sum / i128::from(self.samples)).ok()).flatten()
    }
}
