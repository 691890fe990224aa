//! The file of every sample: compact, appended to while measuring, readable after a crash.
//!
//! ```text
//! worstcase-samples 1 <CRC-32 of the next line, 8 hexadecimal digits>
//! <Header as one line of JSON>
//! <frame> <frame> ...
//! ```
//!
//! A frame holds consecutive samples of one series. It stands alone: what is needed to read it is in it, and a
//! checksum covers it. So a file that was cut anywhere is read up to its last whole frame, and a damaged stretch is
//! skipped to the next frame's mark and counted. Numbers are little-endian:
//!
//! | at | size | what |
//! | --- | --- | --- |
//! | 0 | 4 | mark: `d7 00 57 43` |
//! | 4 | 4 | CRC-32 of everything from 8 to the payload's end |
//! | 8 | 4 | length of the payload, at most 65536 |
//! | 12 | 2 | scenario, from 0, in the header's list |
//! | 14 | 2 | series, from 0, in the header's list of CPUs |
//! | 16 | 4 | samples |
//! | 20 | 8 | activation of the first sample; in a frame without samples, how many of the series were lost so far |
//! | 28 | 8 | the period, in ns |
//! | 36 | | payload |
//!
//! The payload is one number a sample: the latency in nanoseconds as LEB128 (seven bits a byte, lowest first), two
//! bytes below 16 us and three below 2 ms. The activation is not written where it is the expected one: after a
//! sample `n` that was `latency` late, `n + 1 + latency / period`, because the probe goes on in phase. Where it is
//! another, `80 00` comes before the latency, and a LEB128 number for how far off it is (0, -1, 1, -2, ... as 0, 1,
//! 2, 3, ...). `80 00` is no LEB128 number in its shortest form, so it cannot be taken for a latency; nor can the
//! mark, for the same reason.

use std::io;

use serde::{Deserialize, Serialize};
use units::{CpuId, Nanos};

use crate::time::UtcTime;
use crate::{CStates, ClockName, Grid, Lab, PlannedScenario, Sweep};

mod frame;
mod payload;
mod reader;
mod writer;

pub use reader::Reader;
pub use writer::Writer;

/// The first line up to its checksum: what the file is, and the version of its form.
const MAGIC: &str = "worstcase-samples 1 ";

/// What the samples are of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// The program that measured, with its version.
    pub program: String,
    /// When the run began.
    pub started: UtcTime,
    /// The clock that activations are due on.
    pub clock: ClockName,
    /// The CPU of each series; none for a thread that is not pinned.
    pub cpus: Vec<Option<CpuId>>,
    /// What is measured, in the order in which it is.
    pub scenarios: Vec<Measured>,
    /// For each scenario how the activations of each series move against the tick; empty where they keep their phase.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sweeps: Vec<Vec<Sweep>>,
    /// The lab that they were measured in, if it was one: [`crate::Lab::unit`] is what latencies count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lab: Option<Lab>,
}

/// What the samples of one scenario are of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The load.
    pub load: String,
    /// The period; a nanosecond where samples are numbered by the time at which they came.
    pub interval: Nanos,
    /// C-state policy.
    pub cstates: CStates,
    /// Which of the repetitions, from 1.
    pub repeat: u32,
}

impl From<&PlannedScenario> for Measured {
    fn from(planned: &PlannedScenario) -> Self {
        Self {
            load: planned.load.clone(),
            interval: Nanos(planned.setup.grid(0, 0).interval),
            cstates: planned.cstates,
            repeat: planned.repeat,
        }
    }
}

impl Header {
    /// When the activations of a block were due, since the first of its series.
    pub fn grid(&self, block: &Block) -> Grid {
        let of_scenario = self.sweeps.get(usize::from(block.scenario));
        let sweep = of_scenario.and_then(|sweeps| sweeps.get(usize::from(block.series))).copied();
        Grid { sweep, ..Grid::fixed(0, block.interval.0) }
    }
}

/// Consecutive samples of one series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The scenario's place in [`Header::scenarios`].
    pub scenario: u16,
    /// The series' place in [`Header::cpus`].
    pub series: u16,
    /// The period.
    pub interval: Nanos,
    /// In a block without samples: how many of this series were lost so far, because they came faster than they could be
    /// saved. They are in the record's histograms all the same.
    pub lost: u64,
    /// Which activation, from 0, missed ones counted; and how late its wake-up was.
    pub samples: Vec<(u64, Nanos)>,
}

/// Why a file is not read as samples.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It begins otherwise.
    #[error("not a samples file, or cut off within its first line")]
    NotSamples,
    /// A later program's.
    #[error(
        "a samples file of version {0}, and only version 1 is known: use the program that wrote it, or a later one"
    )]
    Version(String),
    /// It could not be read.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// CRC-32 as in gzip.
fn checksum(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}

#[cfg(test)]
mod tests;
