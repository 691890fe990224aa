//! What one probe process is to do.

use record::{ClockName, Sweep, Wake};
use serde::{Deserialize, Serialize};
use units::{CpuId, CpuList, Nanos, Policy, Priority};

/// One measurement: which threads, how woken, for how long.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProbePlan {
    /// One thread each.
    pub threads: Vec<ThreadPlan>,
    /// The period of every thread.
    pub interval: Nanos,
    /// Scheduling policy; with [`Wake::Deadline`] it is not used.
    pub policy: Policy,
    /// Priority, for a policy that has one.
    pub priority: Option<Priority>,
    /// What wakes the threads.
    pub wake: Wake,
    /// Run time per period, with [`Wake::Deadline`].
    pub runtime: Nanos,
    /// On which clock activations are due.
    pub clock: ClockName,
    /// The threads start together when the clock reads a multiple of this, so that phases that are drawn from a seed lie
    /// against the kernel's tick where that seed puts them; none: at once.
    pub start_at_multiple_of: Option<Nanos>,
    /// Activations of the warm-up, before those that are measured.
    pub warm_up: u64,
    /// Activations that every thread delivers; none: until it is stopped.
    pub activations: Option<u64>,
    /// A latency that stops all threads.
    pub stop_at: Option<Nanos>,
    /// Whether every sample is passed on to the parent.
    pub every_sample: bool,
    /// Where the probe's main thread stays while its threads measure.
    pub housekeeping: CpuList,
}

/// One measuring thread.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThreadPlan {
    /// The CPU that it is pinned to; none: not pinned.
    pub cpu: Option<CpuId>,
    /// Where in the period its activations lie.
    pub phase: Nanos,
    /// How they move against the tick.
    pub sweep: Option<Sweep>,
}
