//! The record of `worstcase monitor`: how long the responder on the other end of two wires took to answer.

use histogram::Histogram;
use serde::{Deserialize, Serialize};
use units::{Nanos, Seed};

use crate::Tool;
use crate::instrument::gpio::Pin;
use crate::time::UtcTime;

/// The version of the form that this program writes.
pub const MONITOR_VERSION: u32 = 1;

/// What a monitor measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Monitoring {
    /// [`MONITOR_VERSION`] of the program that wrote it.
    pub monitor_version: u32,
    /// The program.
    pub tool: Tool,
    /// When it began.
    pub started: UtcTime,
    /// The line that was driven, and which of its edges began a pulse.
    pub pulse: Pin,
    /// See `pulse`.
    pub pulse_edge: Edge,
    /// The line of the answer, and which of its edges was measured: figures of different edges are not comparable.
    pub ack: Pin,
    /// See `ack`.
    pub ack_edge: Edge,
    /// Whether both lines were joined: the figures are the monitor's own.
    pub loop_back: bool,
    /// From one pulse to the next.
    pub period: Nanos,
    /// How much later each may have come, at random.
    pub jitter: Nanos,
    /// How long answers were waited for.
    pub patience: Nanos,
    /// Of the jitter.
    pub seed: Seed,
    /// The responder that was served over latmon's protocol, the last of them; none where there was none.
    pub responder: Option<String>,
    /// Whether the thread was a real-time one.
    pub real_time: bool,
    /// Pulses that were sent. Equal to answered + missed.
    pub sent: u64,
    /// Those whose answer came in time.
    pub answered: u64,
    /// Those whose answer did not.
    pub missed: u64,
    /// Pulses that were not sent: the monitor was late by a period.
    pub skipped: u64,
    /// Answers after one that counted.
    pub again: u64,
    /// Answers that came when they were not waited for any more.
    pub late: u64,
    /// Answers that were there before the pulse.
    pub astray: u64,
    /// Edges that the kernel could not keep.
    pub lost: u64,
    /// From just before the line was driven until the kernel's stamp of the answer.
    pub responses: Histogram,
    /// How long driving the line took: so much of each response is the monitor's own, at most.
    pub writes: Histogram,
    /// What was measured with both lines joined, for comparison; it is not subtracted.
    pub calibration: Option<Box<Monitoring>>,
    /// Why it ended before its time, if it did.
    pub problem: Option<String>,
}

/// An edge of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Edge {
    /// From low to high.
    Rising,
    /// From high to low.
    Falling,
}

impl Edge {
    /// Rising, or not.
    pub fn rising(rises: bool) -> Self {
        if rises { Self::Rising } else { Self::Falling }
    }
}

impl std::fmt::Display for Edge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Rising => "rising",
            Self::Falling => "falling",
        })
    }
}

impl Monitoring {
    /// Why figures of `self` and `other` are not comparable, if they are not.
    pub fn differs(&self, other: &Self) -> Option<String> {
        if self.ack_edge != other.ack_edge {
            return Some(format!(
                "one was measured to the {} edge of the answer, the other to the {}",
                self.ack_edge, other.ack_edge
            ));
        }
        if self.loop_back != other.loop_back {
            return Some("one is a loop-back".into());
        }
        (self.period != other.period).then(|| {
            format!("pulses came each {} in one, and each {} in the other", self.period, other.period)
        })
    }
}
