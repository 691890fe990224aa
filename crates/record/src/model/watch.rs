//! What was read of the measuring threads and of the machine while they measured.

use serde::{Deserialize, Serialize};
use units::{CpuList, Nanos, Policy};

use super::{Fact, Throttling};

/// What the recorder read again and again while the threads measured: four times a second for the threads, each second
/// for the machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Watch {
    /// How often every thread's policy, priority, affinity and the memory lock were read; 0 where nobody looked.
    pub readings: u64,
    /// Why a reading failed, without repeats: what it would have shown is unknown.
    pub failures: Vec<String>,
    /// What differed from the first reading, before the threads began.
    pub changes: Vec<SetUpChange>,
    /// Changes beyond the first hundred.
    pub changes_left_out: u64,
    /// The strictest latency request that was in effect, in microseconds (/dev/cpu_dma_latency).
    pub latency_request_us: Fact<i64>,
    /// Real-time threads at or below the probe's priority that did not sleep between two looks, one of them after a
    /// late wake-up.
    pub never_asleep: Vec<NeverAsleep>,
    /// CPUs whose real-time threads the scheduler was seen to hold back (/sys/kernel/debug/sched/debug).
    pub held_back: Fact<CpuList>,
    /// What the kernel takes from real-time threads, read again after a late wake-up.
    pub throttling: Option<Throttling>,
    /// Memory that the probe's process had locked, in bytes: the most that was read (VmLck).
    #[serde(default)]
    pub locked_memory: Fact<u64>,
}

/// Something about a measuring thread that was not as at the beginning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetUpChange {
    /// The thread's number in the probe, from 0; none for the probe as a whole.
    pub thread: Option<u32>,
    /// What changed.
    pub what: Attribute,
    /// As it was at the beginning.
    pub was: String,
    /// What it became.
    pub became: String,
    /// When that was first read, since the warm-up's end.
    pub from: Nanos,
    /// When it was read as at the beginning again; none: it was not before the end.
    pub until: Option<Nanos>,
}

/// What can change about a measuring thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Attribute {
    /// The scheduling policy.
    Policy,
    /// The real-time priority.
    Priority,
    /// The CPUs allowed.
    Affinity,
    /// Locked memory of the process, in kB.
    LockedMemory,
}

/// A real-time thread that was ready to run all the time between two looks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NeverAsleep {
    /// Its name.
    pub name: String,
    /// Its kernel thread id.
    pub tid: i32,
    /// Its policy.
    pub policy: Policy,
    /// Its real-time priority.
    pub priority: u32,
    /// The measured CPUs on which it may run.
    pub cpus: CpuList,
    /// CPU time that it got.
    pub ran: Nanos,
    /// Of so much time.
    pub over: Nanos,
    /// The latest wake-up of the probe in that time.
    pub worst: Nanos,
}
