//! One scenario: probe, load, duration, and what came of it.

use histogram::{Histogram, Summary};
use serde::{Deserialize, Serialize};
use units::{CpuId, Nanos};

use super::{CStates, Evidence, LoadEvidence, Warning};
use crate::time::UtcTime;

/// One load measured at one period under one C-state policy, once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Scenario {
    /// What was to be measured.
    pub head: ScenarioHead,
    /// How it ended.
    pub end: ScenarioEnd,
    /// Time from the first activation to the end.
    pub length: Nanos,
    /// One a measuring thread.
    pub series: Vec<Series>,
    /// Proof that the load ran.
    pub load: LoadEvidence,
    /// Evidence for or against the figures.
    pub evidence: Evidence,
    /// What harms the figures, with its cure.
    pub warnings: Vec<Warning>,
}

/// What a scenario sets out to measure: known before it begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScenarioHead {
    /// The load.
    pub load: String,
    /// The period.
    pub interval: Nanos,
    /// C-state policy.
    pub cstates: CStates,
    /// Which of the repetitions, from 1.
    pub repeat: u32,
    /// When it began.
    pub started: UtcTime,
    /// When it began, since the run's start.
    pub offset: Nanos,
    /// The CPU of each series; none for a thread that is not pinned.
    pub cpus: Vec<Option<CpuId>>,
    /// The phase of each series within the period.
    pub phases: Vec<Nanos>,
}

/// How a scenario ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ScenarioEnd {
    /// As planned.
    #[default]
    Complete,
    /// By the user.
    Interrupted,
    /// By a latency at or above `--stop-at`.
    StopAt,
    /// Because the machine grew too hot or throttled.
    TooHot,
    /// By a failure: what failed.
    Failed(String),
    /// The run was killed: what the journal held.
    CutOff,
}

/// What one measuring thread saw.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Series {
    /// The CPU; none for a thread that is not pinned: its figures are not those of one CPU.
    pub cpu: Option<CpuId>,
    /// What the clock read when the first activation was due, in nanoseconds: to lay the series beside a trace. 0 where
    /// it is not known.
    #[serde(default)]
    pub first_due: Nanos,
    /// Activations that were due: measured + missed.
    pub expected: u64,
    /// Wake-ups that came when their next activation was already due (latency of a period or more).
    pub late: u64,
    /// Latencies of wake-ups.
    pub observed: Histogram,
    /// Latencies that the missed activations would have had.
    pub missed: Histogram,
    /// Wake-ups of the warm-up, not in the histograms.
    pub warm_up: WarmUp,
    /// The worst wake-ups, worst first.
    pub worst: Vec<Sample>,
    /// Per-second figures.
    pub timeline: Timeline,
}

impl Series {
    /// Observed and missed latencies together: what a percentile should be taken from.
    pub fn corrected(&self) -> Histogram {
        let mut corrected = self.observed.clone();
        corrected.merge(&self.missed);
        corrected
    }
}

/// The warm-up in brief.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WarmUp {
    /// Its wake-ups.
    pub observed: Summary,
    /// Activations missed in it.
    pub missed: u64,
}

/// One wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sample {
    /// How late.
    pub latency: Nanos,
    /// When it was due, since the scenario's first activation.
    pub due: Nanos,
    /// Which activation, from 0, missed ones counted.
    pub activation: u64,
}

/// Figures per step of time: a second at first, longer where a run lasts so long that there would be too many.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Timeline {
    /// Length of a step.
    pub step: Nanos,
    /// One a step.
    pub blocks: Vec<Block>,
}

/// What happened in one step of a timeline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Block {
    /// Its wake-ups.
    #[serde(flatten)]
    pub observed: Summary,
    /// Activations missed in it.
    pub missed: u64,
}

impl Timeline {
    /// The most blocks kept: past it, neighbours are merged and the step doubles.
    pub const MOST_BLOCKS: usize = 4096;

    /// Appends the block of the next second.
    pub fn push(&mut self, second: u64, block: Block) {
        if self.step == Nanos::ZERO {
            self.step = Nanos::from_secs(1);
        }
        let mut place = self.place(second);
        while place >= Self::MOST_BLOCKS {
            self.halve();
            place = self.place(second);
        }
        if self.blocks.len() <= place {
            self.blocks.resize(place + 1, Block::default());
        }
        self.blocks[place].merge(&block);
    }

    fn place(&self, second: u64) -> usize {
        (second.saturating_mul(1_000_000_000) / self.step.0) as usize
    }

    fn halve(&mut self) {
        self.step = self.step.saturating_mul(2);
        self.blocks = self
            .blocks
            .chunks(2)
            .map(|pair| {
                let mut merged = pair[0];
                pair[1..].iter().for_each(|block| merged.merge(block));
                merged
            })
            .collect();
    }
}

impl Block {
    /// Takes in what `other` counted.
    pub fn merge(&mut self, other: &Self) {
        self.observed.merge(&other.observed);
        self.missed = self.missed.saturating_add(other.missed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_timeline_merges_and_loses_nothing() {
        let mut timeline = Timeline::default();
        for second in 0..100_000 {
            let mut block = Block { missed: 1, ..Block::default() };
            block.observed.add(second, 3);
            timeline.push(second, block);
        }
        assert!(timeline.blocks.len() <= Timeline::MOST_BLOCKS);
        assert_eq!(timeline.step, Nanos::from_secs(32));
        assert_eq!(timeline.blocks.iter().map(|block| block.observed.count).sum::<u64>(), 300_000);
        assert_eq!(timeline.blocks.iter().map(|block| block.missed).sum::<u64>(), 100_000);
        assert_eq!(timeline.blocks[0].observed.max, 31);
    }
}
