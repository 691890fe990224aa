//! Evidence for or against the figures, read from the running threads and the machine around a scenario.

use serde::{Deserialize, Serialize};
use units::{CpuId, CpuList, Nanos, Policy};

use super::{Counters, Fact, Partition, QuotaEvidence, Watch};

/// Everything read before, during and after one scenario.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Evidence {
    /// One a measuring thread, read by the thread itself.
    pub threads: Vec<ThreadEvidence>,
    /// One a CPU, differences over the scenario.
    pub cpus: Vec<CpuEvidence>,
    /// CPUs online after the scenario, where that differs from before.
    pub online_changed: Option<CpuList>,
    /// How often the machine was suspended during the scenario.
    pub suspends: Fact<u64>,
    /// Lines that the kernel logged during the scenario about throttling, clocks, hardware errors or stalls.
    pub kernel_messages: Fact<Vec<String>>,
    /// The highest temperature seen, in thousandths of a degree Celsius.
    pub temperature_millidegrees: Fact<i64>,
    /// The clock source after the scenario, where it is not the one from before.
    pub clock_source_changed: Option<String>,
    /// Other threads of the probe's priority or above, allowed on measured CPUs.
    pub rivals: Vec<TaskEvidence>,
    /// The partition of CPUs in which the probe was, read before it ended.
    #[serde(default)]
    pub partition: Option<Partition>,
    /// What was read while the threads measured.
    #[serde(default)]
    pub watch: Watch,
    /// What limits on the CPU time of the own control groups did; those that limit nothing are left out.
    #[serde(default)]
    pub quotas: Fact<Vec<QuotaEvidence>>,
    /// What the kernel counted meanwhile.
    #[serde(default, skip_serializing_if = "Counters::is_empty")]
    pub counters: Counters,
    /// The recorder itself.
    pub recorder: RecorderEvidence,
}

/// What a measuring thread says of itself after its last activation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadEvidence {
    /// The thread's number in the probe, from 0.
    pub thread: u32,
    /// Its kernel thread id.
    pub tid: i32,
    /// Policy, read back from the kernel at the end.
    pub policy: Option<Policy>,
    /// Priority, read back from the kernel at the end; 0 for a policy without.
    pub priority: u32,
    /// Affinity, read back from the kernel at the end.
    pub affinity: CpuList,
    /// Timer slack, read back.
    pub timer_slack: Nanos,
    /// What the thread could not read of itself, each with the kernel's answer: its field holds nothing.
    #[serde(default)]
    pub unread: Vec<String>,
    /// Whether the process's memory was locked.
    pub memory_locked: bool,
    /// Whether reading the clock is a system call (no vDSO path).
    pub clock_is_system_call: bool,
    /// Page faults without I/O, in the run phase.
    pub minor_faults: u64,
    /// Page faults with I/O, in the run phase.
    pub major_faults: u64,
    /// Waits that were long enough (20 us) to be a sleep that the kernel counts as a voluntary switch.
    #[serde(default)]
    pub sleeps: u64,
    /// Times that the thread gave the CPU away by sleeping.
    pub voluntary_switches: u64,
    /// Times that the CPU was taken from it.
    pub involuntary_switches: u64,
    /// How often the thread left the CPU that it had been on. Nothing is known of that where `cpu_reading` is none.
    pub migrations: u64,
    /// How the CPU of each wake-up was read.
    #[serde(default)]
    pub cpu_reading: Option<CpuReading>,
    /// Wake-ups of a pinned thread on another CPU than its own.
    #[serde(default)]
    pub elsewhere: Option<Elsewhere>,
    /// CPU time used in the run phase.
    pub cpu_time: Nanos,
    /// How long it was ready to run without a CPU, warm-up and run phase together.
    #[serde(default)]
    pub waited: Fact<Nanos>,
    /// Steps of the settable clock that were seen and taken out.
    pub clock_steps: u64,
    /// Wake-ups before their time, slept on.
    pub early_wakes: u64,
    /// Times that a `SCHED_DEADLINE` reservation was seen to begin its periods anew.
    pub rephased: u64,
}

/// How a thread learns at each wake-up on which CPU it is, without a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CpuReading {
    /// From an rseq area that the thread registered.
    Rseq,
    /// By the C library: from its own rseq area, or through the vDSO.
    Library,
}

/// Wake-ups of a pinned thread on another CPU than its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Elsewhere {
    /// How many.
    pub wakes: u64,
    /// The CPU of the last one.
    pub cpu: CpuId,
    /// The first one's activation, from 0, missed ones counted.
    pub first: u64,
    /// The last one's activation.
    pub last: u64,
}

/// What happened on a CPU during the scenario.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CpuEvidence {
    /// Which.
    pub cpu: CpuId,
    /// Time that the hypervisor gave to somebody else.
    pub steal: Fact<Nanos>,
    /// System management interrupts (Intel's MSR 0x34).
    pub smis: Fact<u64>,
    /// Thermal throttling events of core and package.
    pub thermal_throttles: Fact<u64>,
    /// Time in each idle state.
    pub idle: Vec<IdleResidency>,
    /// Time at each frequency; absent where cpufreq does not count it.
    #[serde(default)]
    pub frequencies: Fact<FrequencyResidency>,
    /// Frequency governor after the scenario.
    pub governor: Fact<String>,
}

/// Time in an idle state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IdleResidency {
    /// The state's name.
    pub name: String,
    /// Time in it.
    pub time: Nanos,
    /// Entries into it.
    pub entries: u64,
}

/// Time at the frequencies that cpufreq asks the CPU for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FrequencyResidency {
    /// Each, in the kernel's order.
    pub times: Vec<FrequencyTime>,
    /// Changes from one to another.
    pub changes: Fact<u64>,
}

/// Time at a frequency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FrequencyTime {
    /// Which.
    pub kilohertz: u64,
    /// Time at it, in steps of 10 ms.
    pub time: Nanos,
}

/// A thread that can stand in a probe's way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TaskEvidence {
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
    /// Whether it is a thread of the kernel.
    pub kernel: bool,
}

/// What the recorder did to the machine that it records.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RecorderEvidence {
    /// The CPUs on which it may run.
    pub cpus: CpuList,
    /// Whether those include measured ones because no other is free.
    pub shares_measured_cpus: bool,
    /// CPU time that it used.
    pub cpu_time: Nanos,
    /// The longest that one fsync of the journal took.
    pub longest_sync: Nanos,
    /// Per-second figures that it came too late to read. The histograms are not touched by that.
    pub seconds_lost: u64,
    /// Samples that did not fit into the samples file in time.
    pub samples_lost: u64,
}
