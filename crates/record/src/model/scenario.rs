//! One scenario: probe, load, duration, and what came of it.

use std::sync::LazyLock;

use histogram::{Histogram, Summary};
use serde::{Deserialize, Serialize};
use units::{CpuId, InOrder, Nanos};

use super::instrument::timer::TimerSeries;
use super::{BlockMaxima, Evidence, Grid, LoadEvidence, Own, PlannedScenario, Warning};
use crate::time::UtcTime;

/// One load measured with one set-up of the instrument under one C-state policy, once.
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

impl Scenario {
    /// Whether anything was measured: an activation was due, or time was watched.
    pub fn is_measured(&self) -> bool {
        self.series.iter().any(Series::is_measured)
    }

    /// The measuring thread of series `index`, as texts name it.
    pub fn thread_name(&self, index: usize) -> String {
        let cpu = self.head.cpus.get(index).copied().flatten();
        cpu.map_or(format!("thread {index}"), |cpu| format!("the thread of CPU {cpu}"))
    }
}

/// What a scenario sets out to measure: known before it begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScenarioHead {
    /// What was planned.
    #[serde(flatten, deserialize_with = "crate::json::flattened")]
    pub planned: PlannedScenario,
    /// When it began.
    pub started: UtcTime,
    /// When it began, since the run's start.
    pub offset: Nanos,
    /// The CPU of each series; none for a thread that is not pinned.
    pub cpus: Vec<Option<CpuId>>,
}

impl ScenarioHead {
    /// When the values of series `series` were due or came, if number 0 lies at `origin` on the clock.
    pub fn grid(&self, series: usize, origin: u64) -> Grid {
        self.planned.setup.grid(series, origin)
    }
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
    /// By `--fail-safe`: ordinary threads had no CPU.
    FailSafe,
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
    /// The values: latencies of wake-ups, lengths of gaps. A censored one is among them.
    pub observed: Histogram,
    /// The value that was not known yet when the run was given up: it is at least this. The activations that a wake-up
    /// kept waiting are among the missed ones, as late as they were by then.
    #[serde(default)]
    pub censored: Option<Sample>,
    /// The worst values, worst first.
    pub worst: Vec<Sample>,
    /// Per-second figures.
    pub timeline: Timeline,
    /// The greatest latencies of blocks of activations; empty in records of older programs and of runs that were killed,
    /// and for instruments without activations.
    #[serde(default)]
    pub maxima: BlockMaxima,
    /// What the instrument adds.
    #[serde(flatten, deserialize_with = "crate::json::flattened")]
    pub own: Own,
}

static NONE_MISSED: LazyLock<Histogram> = LazyLock::new(Histogram::default);

impl Series {
    /// Observed and missed latencies together: what a percentile should be taken from.
    pub fn corrected(&self) -> Histogram {
        let mut corrected = self.observed.clone();
        corrected.merge(self.missed());
        corrected
    }

    /// Whether `latency` is a lower bound: that of a wake-up that had not come, or of an activation that waited for it.
    pub fn is_bound(&self, latency: Nanos) -> bool {
        self.censored.is_some_and(|sample| latency >= sample.latency)
    }

    /// What the timer adds, if it is the instrument, to be changed.
    pub fn timer_mut(&mut self) -> Option<&mut TimerSeries> {
        if let Own::Timer(timer) = &mut self.own { Some(timer) } else { None }
    }

    /// Activations or cycles that were due, and what those that were missed would have had; none for an instrument without.
    pub fn account(&self) -> Option<(u64, &Histogram)> {
        self.own.account()
    }

    /// The same, to be changed.
    pub fn account_mut(&mut self) -> Option<(&mut u64, &mut Histogram)> {
        self.own.account_mut()
    }

    /// Activations or cycles that were due; 0 for an instrument without.
    pub fn expected(&self) -> u64 {
        self.account().map_or(0, |(expected, _)| expected)
    }

    /// Wake-ups that came when their next activation was already due; 0 for an instrument without activations.
    pub fn late(&self) -> u64 {
        self.timer().map_or(0, |timer| timer.late)
    }

    /// Latencies that missed activations or cycles would have had; empty for an instrument without.
    pub fn missed(&self) -> &Histogram {
        self.account().map_or(&NONE_MISSED, |(_, missed)| missed)
    }

    /// Whether anything was measured: an activation was due, or time was watched.
    pub fn is_measured(&self) -> bool {
        self.own.is_measured() || self.censored.is_some()
    }

    /// Activations that were measured or missed.
    pub fn accounted(&self) -> u64 {
        self.observed.summary().count.saturating_add(self.missed().summary().count)
    }

    /// Enters the wake-up of `activation`, which had not come when the clock read `now`: it and the activations up to
    /// [`Series::expected`] that waited for it are at least so late.
    pub fn censor(&mut self, grid: &Grid, activation: u64, now: u64) {
        let latency = Nanos(now.saturating_sub(grid.due(activation)));
        let sample = Sample { latency, due: grid.since_first(activation), activation };
        self.observed.record(latency);
        self.censored = Some(sample);
        self.worst.insert(0, sample);
        self.worst.order_by_key(|sample| (std::cmp::Reverse(sample.latency), sample.activation));
        let place = self.worst.iter().position(|kept| *kept == sample);
        let next = activation.saturating_add(1);
        let waited = next..self.expected().max(next);
        let mut block = Block { missed: waited.end - waited.start, ..Block::default() };
        block.observed.add(latency.0, 1);
        self.timeline.push((sample.due.0) / 1_000_000_000, block);
        self.own.censored(place, !waited.is_empty());
        if let Some((_, missed)) = self.account_mut() {
            missed.merge(&grid.missed(waited, now));
        }
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
    use crate::Fact;
    use crate::instrument::response::ResponseSeries;

    #[test]
    fn an_answer_that_has_not_come_takes_no_parts_from_another() {
        let known = |nanos| Fact::Value(vec![Some(Nanos(nanos)); 4]);
        let worst_parts = vec![known(3), known(2)];
        let response = ResponseSeries { expected: 6, worst_parts, ..ResponseSeries::default() };
        let mut series = Series { own: Own::Response(response), ..Series::default() };
        let sample = |latency, activation| Sample { latency: Nanos(latency), due: Nanos::ZERO, activation };
        series.worst = vec![sample(900_000_000, 1), sample(8, 2)];
        let grid = Grid::fixed(0, 1_000_000);
        series.censor(&grid, 4, 500_000_000);
        let of = |place| series.own.parts_of_worst(place).map(|parts| parts[0]);
        assert_eq!([of(0), of(1), of(2)], [Some(Some(Nanos(3))), None, Some(Some(Nanos(2)))]);
        assert_eq!(series.accounted(), 2, "the cycle that was waited for, and one that was due meanwhile");
    }

    #[test]
    fn a_wake_up_that_has_not_come_counts_with_those_that_wait_for_it() {
        let grid = Grid::fixed(5_000_000_000, 1_000_000);
        let timer = TimerSeries { expected: 2_000, ..TimerSeries::default() };
        let mut series = Series { own: Own::Timer(timer), ..Series::default() };
        (0..700).for_each(|_| series.observed.record(Nanos(4_000)));
        series.censor(&grid, 700, grid.due(3_000));
        assert_eq!(series.accounted(), 2_000);
        assert_eq!(series.observed.summary().max, 2_300_000_000);
        assert_eq!(series.censored.unwrap().latency, Nanos(2_300_000_000));
        assert_eq!(
            (series.missed().summary().max, series.missed().summary().min),
            (2_299_000_000, 1_001_000_000)
        );
        assert_eq!((series.late(), series.worst[0].activation), (1, 700));
        assert_eq!(series.missed().cell_count(), 1_299);
        assert!(series.corrected().quantile(0.5).unwrap() > Nanos::from_secs(1));
    }

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
