//! What a run sets out to do.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use units::{CpuId, CpuList, Nanos, Policy, Priority, Seed};

use super::instrument::timer::TimerPlan;
use super::{InstrumentPlan, Setup};

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
    /// The clock of EVL, out of band: the thread is one of EVL's, a core beside Linux.
    Evl,
    /// A timeout of the runtime's event machine, whose core the thread is: it reads the clock again and again.
    RuntimeSpin,
    /// The same, with an instruction that pauses (`tpause`, `wfe`) between two readings.
    RuntimePause,
    /// The same, asleep on a futex until the timeout is due.
    RuntimeBlock,
    /// `clock_nanosleep`, and then an interrupt of a guest under KVM, whose CPU the thread is.
    Kvm,
}

impl Wake {
    /// Whether a thread that waits so keeps its CPU: nothing of a lower priority runs there.
    pub fn keeps_the_cpu(self) -> bool {
        matches!(self, Self::RuntimeSpin | Self::RuntimePause)
    }
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
    /// Random for each CPU, from the seed, and the same for the whole run.
    #[default]
    Random,
    /// Random for each CPU, and then slowly past every phase of the tick: see [`super::Sweep`].
    Sweep,
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
    /// The instrument, and what is asked of it.
    pub instrument: InstrumentPlan,
    /// The loads, in the order asked for.
    pub loads: Vec<String>,
    /// Loads of the default set that could not run here, each with its reason.
    #[serde(default)]
    pub loads_left_out: Vec<LoadLeftOut>,
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
    /// Scheduling policy asked for.
    pub policy: Option<Policy>,
    /// Priority asked for; none for a policy without.
    pub priority: Option<Priority>,
    /// The C-state policies, each measured under each load.
    pub cstates: Vec<CStates>,
    /// Why restricted C-states were not measured beside the others, where both were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cstates_left_out: Option<String>,
    /// How often each scenario is measured.
    pub repeat: u32,
    /// Seed of everything random.
    pub seed: Option<Seed>,
    /// The requirement: a latency above it is a failure.
    pub limit: Option<Nanos>,
    /// A latency that ends the run.
    pub stop_at: Option<Nanos>,
    /// The time without a CPU for ordinary threads that ends the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fail_safe: Option<Nanos>,
    /// Whether counters of the CPUs themselves were read, which makes switches of the measuring threads longer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub perf: bool,
    /// CPUs whose names another user, who is not known to measure, has taken.
    #[serde(default, skip_serializing_if = "CpuList::is_empty")]
    pub claimed_by_others: CpuList,
    /// The partition of CPUs that the probe is put into.
    #[serde(default)]
    pub partition: Option<Partition>,
    /// The named set of options that the run began with.
    pub preset: Option<String>,
}

/// The longest that one scenario may be planned to last.
pub const LONGEST_SCENARIO: Nanos = Nanos::from_secs(366 * 86_400);

/// A scenario, as far as it is known before it begins.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlannedScenario {
    /// The load.
    pub load: String,
    /// C-state policy.
    pub cstates: CStates,
    /// Which of the repetitions, from 1.
    pub repeat: u32,
    /// What the instrument does.
    pub setup: Setup,
}

impl PlannedScenario {
    /// How texts name it among others of its run, whose load they call `load`: calls are many under one load.
    pub fn name<'a>(&self, load: &'a str) -> Cow<'a, str> {
        match &self.setup {
            Setup::Call(call) => Cow::Owned(format!("{call} under {load}")),
            _ => Cow::Borrowed(load),
        }
    }
}

impl RunPlan {
    /// A run has at most so many scenarios. Records of others may speak of more.
    pub const MOST_SCENARIOS: usize = 100_000;

    /// The scenarios in the order in which they are measured: as given for one pass; in a random order within each pass
    /// where there are several, so that drift (heat, caches of files) does not fall on the same load every time. The first
    /// [`RunPlan::MOST_SCENARIOS`] where there are more.
    pub fn scenarios(&self) -> Vec<PlannedScenario> {
        let mut order = self.seed.unwrap_or(Seed(0)).stream("order");
        let mut all = Vec::new();
        for repeat in 1..=self.repeat {
            let mut pass = self.pass(repeat, Self::MOST_SCENARIOS - all.len());
            if pass.is_empty() {
                break;
            }
            if self.repeat > 1 {
                order.shuffle(&mut pass);
            }
            all.extend(pass);
        }
        all
    }

    /// Those of one repetition, at most so many.
    fn pass(&self, repeat: u32, most: usize) -> Vec<PlannedScenario> {
        let setups = self.instrument.setups(self, repeat);
        let with_loads = setups.iter().flat_map(|setup| self.loads.iter().map(move |load| (setup, load)));
        let all = with_loads.flat_map(|(setup, load)| {
            let of =
                move |&cstates| PlannedScenario { load: load.clone(), cstates, repeat, setup: setup.clone() };
            self.cstates.iter().map(of)
        });
        all.take(most).collect()
    }

    /// Whether nothing is to be loaded.
    pub fn is_unloaded(&self) -> bool {
        self.loads == ["idle"]
    }

    /// The CPU of each series; none for a thread that is not pinned.
    pub fn series_cpus(&self) -> Vec<Option<CpuId>> {
        self.cpus.iter().map(|cpu| self.pinned.contains(cpu).then_some(cpu)).collect()
    }

    /// What is asked of the timer, if it is the instrument.
    pub fn timer(&self) -> Option<&TimerPlan> {
        if let InstrumentPlan::Timer(timer) = &self.instrument { Some(timer) } else { None }
    }

    /// The same, to be changed.
    pub fn timer_mut(&mut self) -> Option<&mut TimerPlan> {
        if let InstrumentPlan::Timer(timer) = &mut self.instrument { Some(timer) } else { None }
    }

    /// The clock that the instrument reads.
    pub fn clock(&self) -> ClockName {
        self.timer().map_or(ClockName::Monotonic, |timer| timer.clock)
    }

    /// Whether threads keep their CPUs while they wait: nothing of a lower priority runs there.
    pub fn keeps_the_cpu(&self) -> bool {
        self.timer().is_some_and(|timer| timer.wake.keeps_the_cpu())
    }

    /// Whether threads run as `SCHED_DEADLINE` reservations.
    pub fn is_reservation(&self) -> bool {
        self.timer().is_some_and(TimerPlan::is_reservation)
    }

    /// Activations that each CPU is to deliver in a scenario at `interval`; none where the user ends it.
    pub fn activations(&self, interval: Nanos) -> Option<u64> {
        let of = |duration: Nanos| (duration.0 / interval.0.max(1)).max(1);
        self.samples.or_else(|| self.duration.map(of))
    }

    /// Whether a scenario ends by itself.
    pub fn has_length(&self) -> bool {
        self.samples.is_some() || self.duration.is_some()
    }

    /// Length of a scenario with this set-up, warm-up not included; none where the user ends it.
    pub fn scenario_length(&self, setup: &Setup) -> Option<Nanos> {
        let of_samples = || Some(setup.interval()?.saturating_mul(self.samples?));
        self.duration.or_else(of_samples)
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

/// A load that was not run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadLeftOut {
    /// Which.
    pub load: String,
    /// Why.
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
            fn from_str(text: &str) -> std::result::Result<Self, String> {
                match text {
                    $($name => Ok(Self::$variant),)+
                    _ => Err(format!("`{text}` is none of {}", [$($name),+].join(", "))),
                }
            }
        }
    )+};
}
pub(crate) use names;

names! {
    Wake {
        Nanosleep => "nanosleep", Timerfd => "timerfd", PosixTimer => "posix-timer", Deadline => "deadline",
        Evl => "evl", RuntimeSpin => "runtime-spin", RuntimePause => "runtime-pause", RuntimeBlock => "runtime-block",
        Kvm => "kvm"
    }
    ClockName { Monotonic => "monotonic", Realtime => "realtime", Tai => "tai" }
    Phase { Aligned => "aligned", Staggered => "staggered", Random => "random", Sweep => "sweep" }
    CStates { AsIs => "as-is", Restrict => "restrict" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(repeat: u32) -> RunPlan {
        RunPlan {
            loads: vec!["idle".into(), "cpu".into(), "io".into()],
            instrument: InstrumentPlan::Timer(TimerPlan {
                intervals: vec![Nanos::from_millis(1)],
                ..TimerPlan::default()
            }),
            cstates: vec![CStates::AsIs],
            seed: Some(Seed(5)),
            repeat,
            ..RunPlan::default()
        }
    }

    #[test]
    fn one_pass_goes_in_the_order_given() {
        let loads: Vec<_> = plan(1).scenarios().into_iter().map(|scenario| scenario.load).collect();
        assert_eq!(loads, ["idle", "cpu", "io"]);
    }

    #[test]
    fn a_plan_that_somebody_wrote_has_no_more_scenarios_than_a_run() {
        assert_eq!(plan(u32::MAX).scenarios().len(), RunPlan::MOST_SCENARIOS);
        let none = RunPlan { loads: Vec::new(), ..plan(u32::MAX) };
        assert_eq!(none.scenarios(), []);
    }

    #[test]
    fn several_passes_are_each_complete_and_drawn_from_the_seed() {
        let passes = plan(20).scenarios();
        assert_eq!(passes, plan(20).scenarios());
        let order =
            |pass: &[PlannedScenario]| pass.iter().map(|scenario| scenario.load.clone()).collect::<Vec<_>>();
        let orders: std::collections::BTreeSet<_> = passes.chunks(3).map(order).collect();
        assert!(orders.len() > 1);
        for mut pass in orders {
            pass.sort_unstable();
            assert_eq!(pass, ["cpu", "idle", "io"]);
        }
    }
}
