//! Calls of the kernel: how long each takes, again and again.
//!
//! Each scenario is one call. A value is the time from the call that wakes until the woken thread runs, how late a clock
//! woke, how long a page took, or how long a lock was waited for beyond the critical section of who had it.

use failure::{Error, Result};
use serde::{Deserialize, Serialize};
use units::{CpuList, Nanos};

use super::{OwnPlan, OwnSeries, OwnSetup, Setup, Words};
use crate::model::{Grid, RunPlan, Scenario, Series, WarmUp, Warning, WarningId};

/// What is asked of the instrument.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CallPlan {
    /// The calls, each measured under each load.
    pub calls: Vec<ChosenCall>,
    /// Whether these are all that the machine can make, because all were asked for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
    /// From one call to the next, at least.
    pub interval: Nanos,
    /// How long the thread between the two that want a lock computes; zero: there is none.
    pub burst: Nanos,
    /// The CPUs on which other threads may run.
    pub partners: CpuList,
    /// Calls that were asked for and cannot be made here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<CallsLeftOut>,
}

impl CallPlan {
    /// The call that is measured unless others are asked for.
    pub const USUAL: &'static str = "pi-mutex";
    /// How long the thread in the middle computes unless asked otherwise: far above a hand-over, and far below an interval.
    pub const BURST: Nanos = Nanos::from_micros(200);
    /// The interval unless another is asked for.
    pub const INTERVAL: Nanos = Nanos::from_millis(1);
}

/// A call, and where its other thread is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChosenCall {
    /// Its name: `pi-mutex`.
    pub call: String,
    /// Whether the other thread is on another CPU.
    pub across: bool,
}

impl std::fmt::Display for ChosenCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", self.call, if self.across { " across" } else { "" })
    }
}

/// Calls that cannot be made here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CallsLeftOut {
    /// Which, as tables name them: `shootdown across`.
    pub calls: Vec<String>,
    /// Why none of them can be made.
    pub why: String,
}

impl CallsLeftOut {
    /// How many a text names before it counts.
    const MOST_NAMED: usize = 6;
}

impl std::fmt::Display for CallsLeftOut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let named = self.calls.get(..Self::MOST_NAMED).unwrap_or(&self.calls);
        f.write_str(&named.join(", "))?;
        match self.calls.len() - named.len() {
            0 => {}
            more => write!(f, " and {more} more")?,
        }
        write!(f, ": {}", self.why)
    }
}

/// One call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CallSetup {
    /// Its name.
    pub call: String,
    /// Whether the other thread is on another CPU.
    pub across: bool,
    /// From one call to the next, at least.
    pub interval: Nanos,
    /// How long the thread in the middle computes.
    pub burst: Nanos,
    /// The CPUs on which other threads may run.
    pub partners: CpuList,
}

impl CallSetup {
    /// The call whose page faults are what is measured.
    pub const FAULT: &'static str = "fault";
}

/// What the instrument adds to a series.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CallSeries {
    /// What the monotonic clock read when the measurement began.
    pub began: Nanos,
    /// Calls of the warm-up, not in the histogram.
    pub warm_up: WarmUp,
}

impl OwnPlan for CallPlan {
    fn words(&self) -> &'static Words {
        &Words {
            value: "time",
            greatest: "the longest call observed",
            values: "times of calls",
            count: "calls",
        }
    }

    fn setups(&self, _: &RunPlan, _: u32) -> Vec<Setup> {
        let setup = |chosen: &ChosenCall| CallSetup {
            call: chosen.call.clone(),
            across: chosen.across,
            interval: self.interval,
            burst: self.burst,
            partners: self.partners.clone(),
        };
        self.calls.iter().map(|chosen| Setup::Call(setup(chosen))).collect()
    }

    fn check(&self, plan: &RunPlan) -> Result<()> {
        if self.calls.is_empty() {
            let why: Vec<String> = self.left_out.iter().map(ToString::to_string).collect();
            let message = format!("none of the calls can be made here: {}", why.join("; "));
            return Err(Error::new(message, "worstcase measure --probe call --calls all"));
        }
        // The first is made an interval after the begin.
        match plan.duration.filter(|duration| *duration <= self.interval) {
            None => Ok(()),
            Some(duration) => {
                let message = format!("no call is made in {duration} at an interval of {}", self.interval);
                Err(Error::new(message, "measure for longer, or at a shorter interval"))
            }
        }
    }

    fn warnings(&self) -> Vec<Warning> {
        let cure = "the figures say nothing of them";
        let of = |left_out: &CallsLeftOut| Warning::note(WarningId::CallsLeftOut, left_out.to_string(), cure);
        self.left_out.iter().map(of).collect()
    }

    fn not_claimed(&self) -> Option<&'static str> {
        Some("calls of other threads, a bound, or loads that were not run")
    }
}

impl std::fmt::Display for CallSetup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", self.call, if self.across { " across" } else { "" })
    }
}

impl OwnSetup for CallSetup {
    /// A call's number is the nanosecond in which it began.
    fn grid(&self, _: usize, origin: u64) -> Grid {
        Grid::fixed(origin, 1)
    }

    /// A limit holds of no call that was not made.
    fn warnings(&self, scenario: &Scenario) -> Vec<Warning> {
        let none = |(index, series): (usize, &Series)| {
            (series.accounted() == 0 && series.censored.is_none()).then(|| {
                let evidence = format!("{self}: {} made none", scenario.thread_name(index));
                let cure = "measure for longer, or at a shorter interval; a thread that was kept from its CPU makes none";
                Warning::inconclusive(WarningId::NoCalls, evidence, cure)
            })
        };
        scenario.series.iter().enumerate().filter_map(none).collect()
    }
}

impl OwnSeries for CallSeries {
    fn is_measured(&self) -> bool {
        self.began > Nanos::ZERO
    }

    fn not_come(&self, _: u64, at_least: &str) -> String {
        format!("had not come back from a call: at least {at_least}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_is_a_scenario_and_is_named_with_its_place() {
        let chosen = |across| ChosenCall { call: "eventfd".into(), across };
        let plan = CallPlan {
            calls: vec![chosen(false), chosen(true)],
            all: false,
            interval: Nanos::from_millis(1),
            burst: Nanos::ZERO,
            partners: CpuList::default(),
            left_out: Vec::new(),
        };
        let names: Vec<_> =
            plan.setups(&RunPlan::default(), 1).iter().map(|setup| setup.to_string()).collect();
        assert_eq!(names, ["eventfd", "eventfd across"]);
    }
}
