//! Proof that a load ran.

use serde::{Deserialize, Serialize};
use units::{CpuId, CpuList, Nanos};

use super::Fact;
use super::plan::names;

/// Whether the load of that name is a command of the user's own, which a record does not have whole.
pub fn is_command(load: &str) -> bool {
    load.strip_prefix("command").is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
}

/// What a load did during a scenario.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadEvidence {
    /// The load's name in the catalogue.
    pub name: String,
    /// Where the load comes from.
    pub source: String,
    /// The CPUs on which its workers may run.
    pub cpus: CpuList,
    /// What each stressor did; empty for `idle`.
    pub stressors: Vec<StressorEvidence>,
    /// How busy each CPU was, whoever ran there.
    pub shares: Vec<CpuShare>,
    /// Where files were written, if the load writes any.
    pub directory: Option<LoadDirectory>,
    /// Threads of the load that were seen outside `SCHED_OTHER`: `name (pid) policy priority`.
    pub outside_other: Vec<String>,
    /// How processes were to be kept from outliving the run: `pid-namespace`, `cgroup`, `walk`.
    pub containment: String,
    /// Whether some of its workers are real-time threads by intent.
    #[serde(default)]
    pub real_time: bool,
    /// What it did second by second.
    #[serde(default)]
    pub timeline: LoadTimeline,
    /// What reached the device below the directory, if the load writes files.
    #[serde(default)]
    pub device: Option<DeviceWrites>,
}

/// What one stressor did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StressorEvidence {
    /// Its name, `vm` or `hackbench`, or the external command.
    pub name: String,
    /// Whether it is built in or an external program.
    pub built_in: bool,
    /// How many workers it had.
    pub workers: u32,
    /// Work done during the scenario, in `unit`.
    pub work: u64,
    /// Of what: `square roots`, `syncs`, `bytes written`, `ms of CPU time` for an external program.
    pub unit: String,
    /// CPU time that its workers used during the scenario.
    pub cpu_time: Nanos,
    /// Errors that workers met, without repeats; and why a program could not run, with the way to get it.
    pub failures: Vec<String>,
    /// How long each worker waited before it began, drawn from the run's seed.
    #[serde(default)]
    pub start_offsets: Vec<Nanos>,
    /// For how much of the scenario it ran; none in records of versions that did not look.
    #[serde(default)]
    pub exposure: Option<Exposure>,
}

impl StressorEvidence {
    /// Whether it did no work, and no other proof says that it ran all the same.
    pub fn did_nothing(&self) -> bool {
        self.work == 0 && self.exposure.as_ref().is_none_or(|exposure| exposure.loaded == Nanos::ZERO)
    }
}

/// By what a stressor is judged to have run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum LoadProof {
    /// By the work that it counts; a program by its CPU time and its waits for devices, however little that is.
    #[default]
    Work,
    /// By the CPU time of its processes.
    Cpu,
    /// By processes that exist and are neither stopped nor frozen: for loads that wait by design.
    Alive,
}

names! {
    LoadProof { Work => "work", Cpu => "cpu", Alive => "alive" }
}

/// For how much of a scenario a stressor ran, judged in slots of 100 ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Exposure {
    /// By what it was judged.
    pub proof: LoadProof,
    /// How long it was to run: from the first activation to the end.
    pub planned: Nanos,
    /// How long it ran: the mean over its workers.
    pub loaded: Nanos,
    /// Time in which its workers had less of the CPUs than they could have had: below the floor of their kind.
    pub held_back: Nanos,
    /// Part of `loaded` in which a worker was seen ready, however little it did: it ran, or waited for a CPU, or for a
    /// device where that is its work; or it was alive, where that is the proof.
    pub ready: Nanos,
    /// The 90th percentile of what a worker did in a slot: in the stressor's unit for `work`, else in ns of CPU time
    /// (`cpu`, and `work` of a program); 0 for `alive`.
    pub usual: u64,
    /// The longest time between two looks at the workers: what happened within it was spread evenly over it.
    pub coarsest: Nanos,
}

impl Exposure {
    /// Loaded time in per mille of what was planned; all of nothing.
    pub fn permille(&self) -> u64 {
        self.loaded.0.saturating_mul(1000).checked_div(self.planned.0).unwrap_or(1000)
    }
}

/// What reached a block device, whoever wrote it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeviceWrites {
    /// The device's numbers, `254:0`, as in /sys/dev/block.
    pub number: String,
    /// Bytes written to it during the scenario, from /sys/dev/block/*/stat.
    pub written: Fact<u64>,
}

/// A load second by second; steps are longer where a scenario lasts so long that there would be too many.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadTimeline {
    /// Length of a step.
    pub step: Nanos,
    /// One a step.
    pub blocks: Vec<LoadBlock>,
}

/// What a load did in one step of its timeline.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadBlock {
    /// Seconds that were looked at.
    pub seconds: u32,
    /// Time not idle of all CPUs that the load may use, in per mille, summed over those seconds; whoever ran there.
    pub busy_permille: u64,
    /// Work of each stressor.
    pub work: Vec<u64>,
}

impl LoadBlock {
    /// The mean share of time not idle in per mille; none where no second was looked at.
    pub fn busy(&self) -> Option<u64> {
        self.busy_permille.checked_div(u64::from(self.seconds))
    }

    fn merge(&mut self, other: &Self) {
        self.seconds = self.seconds.saturating_add(other.seconds);
        self.busy_permille = self.busy_permille.saturating_add(other.busy_permille);
        self.work.resize(self.work.len().max(other.work.len()), 0);
        self.work.iter_mut().zip(&other.work).for_each(|(sum, more)| *sum = sum.saturating_add(*more));
    }
}

impl LoadTimeline {
    /// The most blocks kept: past it, neighbours are merged and the step doubles. Fewer than a series has, because a
    /// load has one number for each stressor in every block.
    pub const MOST_BLOCKS: usize = 1024;
    /// No run reaches this second: a journal that names it is damaged.
    const LAST_SECOND: u64 = 1 << 40;

    /// Takes in a second.
    pub fn push(&mut self, second: u64, block: &LoadBlock) {
        if second >= Self::LAST_SECOND {
            return;
        }
        if self.step == Nanos::ZERO {
            self.step = Nanos::from_secs(1);
        }
        let place = |step: Nanos| (second.saturating_mul(1_000_000_000) / step.0) as usize;
        while place(self.step) >= Self::MOST_BLOCKS {
            self.step = self.step.saturating_mul(2);
            self.blocks = self.blocks.chunks(2).map(merged).collect();
        }
        let place = place(self.step);
        if self.blocks.len() <= place {
            self.blocks.resize(place + 1, LoadBlock::default());
        }
        self.blocks[place].merge(block);
    }
}

fn merged(blocks: &[LoadBlock]) -> LoadBlock {
    let mut sum = LoadBlock::default();
    blocks.iter().for_each(|block| sum.merge(block));
    sum
}

/// How busy a CPU was during the scenario.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CpuShare {
    /// Which.
    pub cpu: CpuId,
    /// Time not idle, in per mille; from /proc/stat.
    pub busy_permille: u32,
}

/// Where a load's files were written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadDirectory {
    /// The directory.
    pub path: String,
    /// Type of its file system, as in /proc/self/mountinfo.
    pub file_system: String,
    /// Its device, as in /proc/self/mountinfo.
    pub device: String,
}

impl LoadDirectory {
    /// Whether its files are in memory and on no device.
    pub fn is_in_memory(&self) -> bool {
        matches!(self.file_system.as_str(), "tmpfs" | "ramfs")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_of_a_load_is_a_thousand_blocks_and_loses_no_work() {
        let mut timeline = LoadTimeline::default();
        for second in 0..86_400 {
            timeline.push(second, &LoadBlock { seconds: 1, busy_permille: 500, work: vec![2, 3] });
        }
        assert!(timeline.blocks.len() <= LoadTimeline::MOST_BLOCKS);
        let sum = |stressor: usize| timeline.blocks.iter().map(|block| block.work[stressor]).sum::<u64>();
        assert_eq!((sum(0), sum(1)), (2 * 86_400, 3 * 86_400));
        assert!(timeline.blocks.iter().all(|block| block.busy() == Some(500)));
    }

    #[test]
    fn a_second_that_no_run_reaches_is_left_out() {
        let mut timeline = LoadTimeline::default();
        timeline.push(u64::MAX, &LoadBlock { seconds: 1, ..LoadBlock::default() });
        assert_eq!(timeline, LoadTimeline::default());
    }

    #[test]
    fn exposure_of_nothing_planned_is_whole() {
        assert_eq!(Exposure::default().permille(), 1000);
        let half = Exposure { planned: Nanos(10), loaded: Nanos(5), ..Exposure::default() };
        assert_eq!(half.permille(), 500);
    }
}
