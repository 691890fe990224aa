//! Proof that a load ran.

use serde::{Deserialize, Serialize};
use units::{CpuId, CpuList, Nanos};

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
