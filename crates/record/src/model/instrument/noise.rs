//! Noise: the time that a CPU is taken from a thread that never gives it up.
//!
//! A thread on each CPU reads the clock without pause. Where two readings lie further apart than the threshold, something
//! else had the CPU: an interrupt, another thread, the firmware or the hypervisor. It spins within windows and pauses
//! between them, so that the machine goes on and neither throttling nor the fair server is what is measured.

mod doubts;

use failure::{Error, Result};
use serde::{Deserialize, Serialize};
use units::Nanos;

use super::{OwnPlan, OwnSeries, OwnSetup, Setup, Words};
use crate::model::{Fact, Grid, RunPlan, Scenario, Warning};

/// What is asked of the noise probe, the same in every scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NoiseSetup {
    /// The shortest gap between two readings of the clock that is recorded.
    pub threshold: Nanos,
    /// From the begin of one window to that of the next.
    pub window: Nanos,
    /// How long of each window the thread spins; it sleeps for the rest.
    pub spin: Nanos,
}

/// What the noise probe adds to a series. Its values are the lengths of gaps; [`crate::Sample::due`] is when a gap began.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NoiseSeries {
    /// What the monotonic clock read when the first window began. 0 where it is not known.
    pub began: Nanos,
    /// Windows in which the thread spun.
    pub windows: u64,
    /// Windows that were over before the thread got its CPU: nothing was seen in them.
    pub windows_missed: u64,
    /// The time that was watched, from the first reading of each window to its last, gaps included.
    pub watched: Nanos,
    /// Readings of the clock in that time.
    pub readings: u64,
    /// The shortest time between two readings: no gap shorter than this can be seen.
    pub resolution: Nanos,
    /// What the probe took to record gaps; it is neither watched time nor noise.
    pub bookkeeping: Nanos,
    /// How often the thread was preempted while it spun.
    pub preemptions: u64,
    /// What the kernel counted meanwhile.
    #[serde(default)]
    pub counted: Counted,
    /// For the worst gaps, in their order, what the kernel counted in the stretch of time that a gap lies in.
    #[serde(default)]
    pub around_worst: Vec<Fact<Around>>,
}

/// The kernel's counters of the CPU, read in the pauses between windows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Counted {
    /// Stretches of time between two readings; a window each, if all goes well.
    pub stretches: u64,
    /// Gaps beyond the number of interrupts and preemptions that the kernel counted in the same stretch, where it counted no
    /// steal: firmware, hardware, or a hypervisor that says nothing. A lower bound: an interrupt makes one gap at most.
    pub unexplained_gaps: u64,
    /// What was counted in all stretches; unreadable or absent where the counters are.
    pub sum: Fact<Around>,
}

/// What the kernel counted on one CPU in a stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Around {
    /// Interrupts, the tick among them.
    pub interrupts: u64,
    /// Preemptions of the thread.
    pub preemptions: u64,
    /// Time that the hypervisor says it took, in the kernel's steps of 10 ms.
    pub steal: Nanos,
}

impl OwnPlan for NoiseSetup {
    /// A gap is the time between two readings of the clock.
    fn words(&self) -> &'static Words {
        &Words { value: "gap", greatest: "the longest gap observed", values: "gaps", count: "gaps" }
    }

    /// As asked for, each time.
    fn setups(&self, _: &RunPlan, _: u32) -> Vec<Setup> {
        vec![Setup::Noise(self.clone())]
    }

    fn check(&self, plan: &RunPlan) -> Result<()> {
        match plan.duration.filter(|duration| *duration < self.window) {
            None => Ok(()),
            Some(duration) => {
                let message = format!("a duration of {duration} holds no whole window of {}", self.window);
                Err(Error::new(message, "measure for longer"))
            }
        }
    }

    fn not_claimed(&self) -> Option<&'static str> {
        Some("gaps between windows, or under loads that were not run")
    }
}

impl std::fmt::Display for NoiseSetup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "gaps from {} on", self.threshold)
    }
}

impl OwnSetup for NoiseSetup {
    /// A gap's number is the nanosecond in which it began.
    fn grid(&self, _: usize, origin: u64) -> Grid {
        Grid::fixed(origin, 1)
    }

    fn warnings(&self, scenario: &Scenario) -> Vec<Warning> {
        doubts::of_scenario(self, scenario)
    }
}

impl OwnSeries for NoiseSeries {
    fn is_measured(&self) -> bool {
        self.watched > Nanos::ZERO
    }

    fn not_come(&self, _: u64, at_least: &str) -> String {
        format!("had not come back from a gap of at least {at_least} when the run was given up")
    }

    fn censored(&mut self, place: Option<usize>, _: bool) {
        // What the kernel counted around a gap that has not ended nobody has read.
        if let Some(place) = place.filter(|place| *place < self.around_worst.len()) {
            self.around_worst.insert(place, Fact::Absent);
        }
    }
}

impl NoiseSeries {
    /// The time between two readings where nothing came between, on average: what one turn of the loop takes. `lost` is
    /// the sum of all gaps.
    pub fn turn(&self, lost: Nanos) -> Option<Nanos> {
        (self.readings > 0).then(|| Nanos(self.watched.0.saturating_sub(lost.0) / self.readings))
    }
}

impl Around {
    /// How many of `gaps` in a stretch with `windows` windows nothing that was counted can have made. The timer interrupt
    /// that ends the pause before a window makes no gap.
    pub fn leaves_unexplained(&self, gaps: u64, windows: u64) -> u64 {
        let made = self.interrupts.saturating_sub(windows).saturating_add(self.preemptions);
        if self.steal > Nanos::ZERO { 0 } else { gaps.saturating_sub(made) }
    }
}

impl std::ops::AddAssign for Around {
    fn add_assign(&mut self, other: Self) {
        self.interrupts = self.interrupts.saturating_add(other.interrupts);
        self.preemptions = self.preemptions.saturating_add(other.preemptions);
        self.steal += other.steal;
    }
}
