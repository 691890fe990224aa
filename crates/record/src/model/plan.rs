//! What a run sets out to do.

use serde::{Deserialize, Serialize};
use units::{CpuList, Nanos, Policy, Priority, Seed};

/// How a probe's thread is woken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Wake {
    /// `clock_nanosleep` to an absolute time: the shortest way that user space has.
    #[default]
    Nanosleep,
    /// A periodic timerfd, read.
    Timerfd,
    /// A periodic POSIX timer, its signal awaited by `sigtimedwait`.
    PosixTimer,
    /// A `SCHED_DEADLINE` reservation, `sched_yield` to its next period.
    Deadline,
}

/// The clock that activations are due on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ClockName {
    /// `CLOCK_MONOTONIC`.
    #[default]
    Monotonic,
    /// `CLOCK_REALTIME`: can be set while the run goes on.
    Realtime,
    /// `CLOCK_TAI`: moves with the real-time clock.
    Tai,
}

/// Where in the period each CPU's activations lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// All CPUs at once: the contention of simultaneous timers is in the figures.
    Aligned,
    /// Spread evenly over the period.
    Staggered,
    /// Drawn by lot for each CPU from the seed, so that no fixed relation to the tick flatters or harms.
    #[default]
    Random,
}

/// What the run asks of the CPUs' idle states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CStates {
    /// Left as they are, as an application finds them.
    #[default]
    AsIs,
    /// Restricted by a latency request of 0 us, as cyclictest does without being asked.
    Restrict,
}

/// Everything that decides whether two runs may be compared, and that a run needs to be repeated.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunPlan {
    /// Which instrument: `timer`.
    pub probe: String,
    /// The loads, in the order asked for.
    pub loads: Vec<String>,
    /// The CPUs measured.
    pub cpus: CpuList,
    /// Those whose thread is pinned: all of them, but for deadline threads within a larger root domain.
    #[serde(default)]
    pub pinned: CpuList,
    /// CPUs that were allowed or isolated, and are not measured, each group with its reason.
    pub left_out: Vec<LeftOut>,
    /// The CPUs on which load workers may run.
    pub load_cpus: CpuList,
    /// Length of one scenario; none where `samples` or the user ends it.
    pub duration: Option<Nanos>,
    /// Activations that every CPU delivers in one scenario, where given instead of a duration.
    pub samples: Option<u64>,
    /// Length of the warm-up before each scenario, reported apart.
    pub warm_up: Nanos,
    /// The periods, each measured under each load.
    pub intervals: Vec<Nanos>,
    /// Scheduling policy asked for.
    pub policy: Option<Policy>,
    /// Priority asked for; none for a policy without.
    pub priority: Option<Priority>,
    /// How threads are woken.
    pub wake: Wake,
    /// Run time per period of a `SCHED_DEADLINE` reservation.
    pub runtime: Option<Nanos>,
    /// The clock.
    pub clock: ClockName,
    /// Phase between CPUs.
    pub phase: Phase,
    /// The C-state policies, each measured under each load.
    pub cstates: Vec<CStates>,
    /// How often each scenario is measured.
    pub repeat: u32,
    /// From which everything drawn by lot is drawn.
    pub seed: Option<Seed>,
    /// The requirement: a latency above it is a failure.
    pub limit: Option<Nanos>,
    /// A latency that ends the run.
    pub stop_at: Option<Nanos>,
    /// The partition of CPUs that the probe is put into.
    #[serde(default)]
    pub partition: Option<Partition>,
    /// The named set of options that the run began with.
    pub preset: Option<String>,
}

impl RunPlan {
    /// Length of a scenario at `interval`, warm-up not included; none where the user ends it.
    pub fn scenario_length(&self, interval: Nanos) -> Option<Nanos> {
        self.duration.or_else(|| self.samples.map(|samples| interval.saturating_mul(samples)))
    }
}

/// A control group that keeps others off its CPUs: a partition of cgroup v2, or an exclusive cpuset of v1.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Partition {
    /// Its directory.
    pub group: String,
    /// What the kernel calls it: `isolated`, `root`, or `isolated invalid (why)`; `exclusive` for cgroup v1.
    pub state: String,
    /// The CPUs that it has.
    pub cpus: CpuList,
}

impl Partition {
    /// Whether the kernel does what it is for.
    pub fn is_valid(&self) -> bool {
        matches!(self.state.as_str(), "root" | "isolated" | "exclusive")
    }
}

/// CPUs that are not measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LeftOut {
    /// Which.
    pub cpus: CpuList,
    /// Why, and what would cure it.
    pub reason: String,
}

/// The words that users write for the variants of an enum, and reports print.
macro_rules! names {
    ($($type:ident { $($variant:ident => $name:literal),+ $(,)? })+) => {$(
        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(match self { $(Self::$variant => $name),+ })
            }
        }
        impl std::str::FromStr for $type {
            type Err = String;
            fn from_str(text: &str) -> Result<Self, String> {
                match text {
                    $($name => Ok(Self::$variant),)+
                    _ => Err(format!("`{text}` is none of {}", [$($name),+].join(", "))),
                }
            }
        }
    )+};
}
pub(super) use names;

names! {
    Wake { Nanosleep => "nanosleep", Timerfd => "timerfd", PosixTimer => "posix-timer", Deadline => "deadline" }
    ClockName { Monotonic => "monotonic", Realtime => "realtime", Tai => "tai" }
    Phase { Aligned => "aligned", Staggered => "staggered", Random => "random" }
    CStates { AsIs => "as-is", Restrict => "restrict" }
}
