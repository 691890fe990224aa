//! What harms figures: each kind has a stable id, what was read, the cure, and what it does to the verdict.

use serde::{Deserialize, Serialize};

/// A doubt about the figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Warning {
    /// What kind of doubt: stable from release to release.
    pub id: WarningId,
    /// What it does to the verdict.
    pub effect: Effect,
    /// What was read, and where.
    pub evidence: String,
    /// What to do about it.
    pub cure: String,
}

/// What a warning does to the verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// Worth knowing; the figures stand.
    Note,
    /// The figures are not those of the set-up that was asked for: a pass becomes inconclusive.
    Inconclusive,
}

macro_rules! warnings {
    ($($(#[$doc:meta])+ $variant:ident => $id:literal, $title:literal;)+) => {
        /// The kinds of doubt.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub enum WarningId {
            $($(#[$doc])+ #[serde(rename = $id)] $variant,)+
        }

        impl WarningId {
            /// Every kind, in the order of the catalogue.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The stable id.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $id),+ }
            }

            /// The doubt in a few words.
            pub const fn title(self) -> &'static str {
                match self { $(Self::$variant => $title),+ }
            }
        }
    };
}

warnings! {
    /// The thread's policy, read back, is not the one asked for.
    PolicyDiffers => "policy-differs", "a measuring thread did not have the policy asked for";
    /// The policy asked for is not a real-time one.
    NotRealTime => "not-real-time", "measured under an ordinary policy";
    /// The thread's priority, read back, is not the one asked for.
    PriorityDiffers => "priority-differs", "a measuring thread did not have the priority asked for";
    /// The thread's affinity, read back, is not its CPU alone.
    AffinityDiffers => "affinity-differs", "a measuring thread was not held on its CPU";
    /// The kernel keeps the start of a reservation's periods to itself: what is measured counts from the earliest wake-up.
    Jitter => "jitter", "the figures are jitter, not latencies";
    /// Policy, priority, affinity or memory lock changed while the threads measured.
    SetUpChanged => "set-up-changed", "measuring threads were changed while they measured";
    /// What measuring threads were like could not be read while they measured.
    SetUpUnread => "set-up-unread", "what measuring threads were like could not be read";
    /// A thread without a CPU of its own (SCHED_DEADLINE).
    NotPerCpu => "not-per-cpu", "the figures are not those of single CPUs";
    /// Memory is not locked.
    MemoryNotLocked => "memory-not-locked", "the probe's memory was not locked";
    /// Page faults in the run phase.
    PageFaults => "page-faults", "page faults while measuring";
    /// A pinned thread woke on another CPU.
    Migrated => "migrated", "a measuring thread changed CPUs";
    /// On which CPU a pinned thread woke could not be read without a system call.
    MigrationsUnknown => "migrations-unknown", "whether measuring threads changed CPUs is unknown";
    /// Timer slack above 1 ns for a thread that it applies to.
    TimerSlack => "timer-slack", "timer slack delays the wake-ups";
    /// Reading the clock is a system call.
    SlowClock => "slow-clock", "reading the clock is a system call";
    /// Clock source changed during the run.
    ClockSourceChanged => "clock-source-changed", "the clock source changed";
    /// The settable clock was set.
    ClockStepped => "clock-stepped", "the clock was set while measuring";
    /// RT throttling or an RT group budget stopped the threads.
    Throttled => "rt-throttled", "the kernel throttled real-time threads";
    /// RT throttling or the fair server can take time from the probe's priority.
    ThrottlingOn => "rt-throttling-on", "the kernel may take time from real-time threads";
    /// A limit on the CPU time of the own control group stopped the loads.
    CpuQuota => "cpu-quota", "a CPU quota stopped the loads";
    /// The run was made in a container or a user namespace.
    Container => "container", "this is a container";
    /// Timers expire on the tick only.
    CoarseTimers => "coarse-timers", "timers expire on the tick only";
    /// The activations come back to few phases of the tick for ever.
    FewPhases => "few-phases", "activations kept to a few phases of the kernel's tick";
    /// The noise probe watched its CPU for less than nine tenths of the time planned.
    NoiseUnwatched => "noise-unwatched", "a CPU was not watched for gaps as long as planned";
    /// Gaps in stretches of time in which the kernel counted nothing that could have made them.
    NoiseUnexplained => "noise-unexplained", "gaps without an interrupt, a preemption or steal";
    /// The peer of the response probe did not answer at the end.
    PeerLeft => "peer-left", "the peer stopped answering";
    /// Frames without an answer, or that the kernel did not send.
    FramesLost => "frames-lost", "frames were lost";
    /// Answers that came late, twice, in another order, or to nothing.
    FramesAstray => "frames-astray", "answers came late, twice or out of order";
    /// The response probe's thread was late by whole cycles.
    CyclesSkipped => "cycles-skipped", "cycles were not begun";
    /// Responses that could not be laid into parts.
    PartsUnknown => "parts-unknown", "where the time of some responses went is unknown";
    /// Timerlat did not measure beside for all of the time.
    ContextsUnknown => "contexts-unknown", "what the kernel measured beside is not whole";
    /// A thread of EVL was in Linux's hands while it measured, or may have been.
    InBandSwitches => "in-band-switches", "a thread of EVL fell back in band";
    /// No edge came that the responder could answer.
    NoEdges => "no-edges", "no edge came on the line";
    /// No call was made in the time of a scenario.
    NoCalls => "no-calls", "no call was made";
    /// Calls that were asked for cannot be made on this machine.
    CallsLeftOut => "calls-left-out", "calls were not measured";
    /// A GPIO line was of use no more before the end.
    LineFailed => "line-failed", "a GPIO line failed";
    /// The kernel's queue of edges overflowed.
    EdgesLost => "edges-lost", "edges were never answered";
    /// Edges came faster than answers.
    EdgesEarly => "edges-early", "edges came before the answer to the one before";
    /// Stamps of edges are not of the monotonic clock.
    StampsUnusable => "stamps-unusable", "edges have stamps of another clock";
    /// The thread of the line's interrupt does not have the priority asked for.
    InterruptThreadDiffers => "interrupt-thread-differs", "the interrupt's thread did not have the priority asked for";
    /// The monitor did not report to the end.
    MonitorFailed => "monitor-failed", "the monitor did not report to the end";
    /// The monitor missed answers.
    MonitorMissed => "monitor-missed", "the monitor missed answers";
    /// The hypervisor ran somebody else.
    Steal => "steal", "the hypervisor took time from measured CPUs";
    /// The machine is a guest.
    Guest => "guest", "this is a virtual machine";
    /// A guest of the lab whose clock counts instructions.
    LabInstructions => "lab-instructions", "the figures are instructions, not time";
    /// A guest of the lab in the host's time.
    LabWallTime => "lab-wall-time", "an emulated machine's latencies mean nothing";
    /// A kernel parameter that the guest's kernel did not read, or refused.
    LabParameter => "lab-parameter", "the guest's kernel did not take a parameter";
    /// A kernel parameter of which neither log nor files show whether it was read.
    LabParameterUnknown => "lab-parameter-unknown", "nothing shows whether the guest's kernel took a parameter";
    /// System management interrupts.
    Smi => "smi", "system management interrupts";
    /// Thermal throttling.
    ThermalThrottle => "thermal-throttle", "the CPU was slowed down by heat";
    /// Too hot to go on.
    TooHot => "too-hot", "the machine grew too hot";
    /// The frequency governor changes the clock.
    Governor => "governor", "the CPU frequency is not fixed";
    /// The frequency governor changed during the run.
    GovernorChanged => "governor-changed", "the frequency governor changed";
    /// CPU hotplug during the run.
    Hotplug => "hotplug", "CPUs went offline or came online";
    /// Suspended during the run.
    Suspended => "suspended", "the machine was suspended";
    /// Somebody else holds a latency request.
    ForeignLatencyRequest => "foreign-latency-request", "another program restricts the idle states";
    /// Idle CPUs poll, by a boot parameter or because every deeper state is disabled.
    PollingIdle => "polling-idle", "idle CPUs poll";
    /// The request for shallow idle states was not honoured.
    LatencyRequestFailed => "latency-request-failed", "the idle states could not be restricted";
    /// A measured CPU is not isolated (latmus' -noisol).
    NotIsolated => "not-isolated", "measured CPUs are not isolated";
    /// The probe was in no partition, in another one than asked for, or in an invalid one.
    PartitionInvalid => "partition-invalid", "the probe was not in a valid partition";
    /// Measured CPUs were left out.
    CpusLeftOut => "cpus-left-out", "CPUs were not measured";
    /// Another user has taken the names by which measured CPUs are claimed.
    ClaimedByOthers => "claimed-by-others", "another user may measure the same CPUs";
    /// The recorder may run on measured CPUs.
    RecorderShares => "recorder-shares", "the recorder runs on measured CPUs";
    /// Another thread of the same or a higher priority may run on measured CPUs.
    Rival => "rival", "other threads of this priority or above";
    /// The kernel prints on a serial console.
    SerialConsole => "serial-console", "output goes to a serial console";
    /// The kernel complained during the run.
    KernelMessage => "kernel-message", "the kernel logged trouble";
    /// A load did no work.
    LoadIdle => "load-idle", "a load did no work";
    /// A stressor ran for less than nine tenths of the scenario.
    LoadPartTime => "load-part-time", "a load did not run all the time";
    /// A load of the default set could not run here and was left out.
    LoadLeftOut => "load-left-out", "a load was left out";
    /// A stressor failed or its program is missing.
    LoadFailed => "load-failed", "part of a load did not run";
    /// A load worker outside SCHED_OTHER.
    LoadNotOther => "load-not-other", "load workers outside SCHED_OTHER";
    /// Load and probe share CPUs only in part.
    LoadElsewhere => "load-elsewhere", "the load did not run on the measured CPUs";
    /// Per-second figures or samples were lost.
    RecordingLost => "recording-lost", "part of the recording was lost";
    /// The record could not be written.
    DiskFailed => "disk-failed", "the record could not be written";
    /// A thread had not come back when the run was given up.
    ThreadLost => "thread-lost", "a measuring thread did not come back";
    /// Activations that were due were neither measured nor missed.
    Unaccounted => "unaccounted", "activations are not accounted for";
    /// A thread that was to sleep between its wake-ups did not.
    DidNotSleep => "did-not-sleep", "a measuring thread did not sleep between its wake-ups";
    /// The scenario ended before its time.
    EndedEarly => "ended-early", "a scenario ended before its time";
    /// The measuring threads ended the run because ordinary threads had no CPU.
    FailSafe => "fail-safe", "ordinary programs had no CPU, and the machine was out of reach";
    /// The probe failed.
    ProbeFailed => "probe-failed", "the probe failed";
    /// The trace that was to explain late wake-ups could not be made.
    NotExplained => "not-explained", "late wake-ups were not explained";
    /// Both C-state policies were asked for, and there is nothing to restrict.
    CStatesLeftOut => "cstates-left-out", "restricted C-states were not measured";
    /// The machine was busy before any load.
    BusyBefore => "busy-before", "the machine was busy before the run";
}

impl WarningId {
    /// Whether such a doubt means that something was not measured, so that no run can do without it: with a limit or
    /// without, the verdict is inconclusive.
    pub const fn is_incomplete(self) -> bool {
        matches!(
            self,
            Self::LoadIdle
                | Self::LoadFailed
                | Self::LabWallTime
                | Self::TooHot
                | Self::EndedEarly
                | Self::FailSafe
                | Self::ProbeFailed
                | Self::ThreadLost
                | Self::Unaccounted
                | Self::DidNotSleep
                | Self::PeerLeft
                | Self::NoEdges
                | Self::NoCalls
                | Self::LineFailed
                | Self::StampsUnusable
                | Self::MonitorFailed
        )
    }
}

impl std::fmt::Display for WarningId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

impl Warning {
    /// A warning that leaves the verdict alone.
    pub fn note(id: WarningId, evidence: impl Into<String>, cure: impl Into<String>) -> Self {
        Self { id, effect: Effect::Note, evidence: evidence.into(), cure: cure.into() }
    }

    /// A warning that makes a pass inconclusive.
    pub fn inconclusive(id: WarningId, evidence: impl Into<String>, cure: impl Into<String>) -> Self {
        Self { id, effect: Effect::Inconclusive, evidence: evidence.into(), cure: cure.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique_and_saved_as_they_are_printed() {
        let mut ids: Vec<_> = WarningId::ALL.iter().map(|id| id.as_str()).collect();
        for id in WarningId::ALL {
            assert_eq!(serde_json::to_string(id).unwrap(), format!("\"{id}\""));
        }
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), WarningId::ALL.len());
    }
}
