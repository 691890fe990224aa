//! Writing the file, a block at a time.

use std::io::{self, Write};

use units::Nanos;

use super::{Header, MAGIC, checksum, frame};

/// Appends blocks. Each reaches the file in one write, so that what is written stays readable whenever the writer
/// ends. Buffering and fsync are the caller's.
#[derive(Debug)]
pub struct Writer<W> {
    to: W,
    intervals: Vec<Nanos>,
    frame: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Writes the header.
    pub fn new(mut to: W, header: &Header) -> io::Result<Self> {
        let json = serde_json::to_string(header)?;
        to.write_all(format!("{MAGIC}{:08x}\n{json}\n", checksum(json.as_bytes())).as_bytes())?;
        let intervals = header.scenarios.iter().map(|scenario| scenario.interval).collect();
        Ok(Self { to, intervals, frame: Vec::new() })
    }

    /// Appends samples of a scenario's series, each its activation and its latency, in ascending order: any other
    /// order is kept too, but takes more room. Writes nothing where there are none. `InvalidInput` for a scenario
    /// that the header does not list.
    pub fn block(&mut self, scenario: u16, series: u16, mut samples: &[(u64, Nanos)]) -> io::Result<()> {
        let Some(&interval) = self.intervals.get(usize::from(scenario)) else {
            let message = format!("scenario {scenario} is not in the header of the samples file");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        };
        self.frame.clear();
        while !samples.is_empty() {
            let written = frame::encode(scenario, series, interval, samples, &mut self.frame);
            samples = &samples[written..];
        }
        self.to.write_all(&self.frame)
    }

    /// Says that `lost` samples of a scenario's series so far are not in the file: they came faster than they could be
    /// saved. `InvalidInput` for a scenario that the header does not list.
    pub fn lost(&mut self, scenario: u16, series: u16, lost: u64) -> io::Result<()> {
        let Some(&interval) = self.intervals.get(usize::from(scenario)) else {
            let message = format!("scenario {scenario} is not in the header of the samples file");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        };
        self.frame.clear();
        frame::encode_lost(scenario, series, interval, lost, &mut self.frame);
        self.to.write_all(&self.frame)
    }

    /// Flushes what the blocks are written to.
    pub fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }

    /// What the blocks are written to, for an fsync.
    pub fn get_ref(&self) -> &W {
        &self.to
    }
}
