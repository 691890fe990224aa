//! Answers on GPIO lines: the time from an edge, as the kernel stamped it, until the answer's line was driven.
//!
//! One thread waits for edges of a line and answers each on another. Whoever makes the edges measures the whole; here it is
//! known from the kernel's stamp on.

mod doubts;

use failure::{Error, Result};
use histogram::Histogram;
use serde::{Deserialize, Serialize};
use units::{Nanos, Priority};

use super::{OwnPlan, OwnSeries, OwnSetup, Setup, Words};
use crate::model::{Fact, Grid, RunPlan, Scenario, WarmUp, Warning};

/// A line of a GPIO chip.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pin {
    /// The chip's device file: `/dev/gpiochip0`.
    pub chip: String,
    /// The number of the line on it.
    pub line: u32,
}

impl std::fmt::Display for Pin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.chip.strip_prefix("/dev/").unwrap_or(&self.chip), self.line)
    }
}

/// What is asked of the responder, the same in every scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GpioSetup {
    /// The line whose edges are answered.
    pub input: Pin,
    /// Whether rising edges are; falling ones otherwise.
    pub rises: bool,
    /// The line of the answers: high, low for the answer, and high again at once, as latmus does.
    pub output: Pin,
    /// How long each answer is kept back, spinning: to try a measurement against a truth that is known.
    #[serde(default)]
    pub delay: Nanos,
    /// The priority that the thread of the line's interrupt gets; none: it stays as it is.
    #[serde(default)]
    pub irq_priority: Option<Priority>,
    /// A monitor that makes the edges and reports what it measured.
    #[serde(default)]
    pub monitor: Option<MonitorSetup>,
}

/// A monitor that speaks latmon's protocol.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MonitorSetup {
    /// `ADDRESS:PORT`; `broadcast`: whoever announces itself.
    pub address: String,
    /// From one pulse to the next: whole microseconds, up to a second.
    pub period: Nanos,
}

/// What the responder adds to a series. Its values are the times from the kernel's stamp of an edge to its answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GpioSeries {
    /// What the monotonic clock read when the measurement began.
    pub began: Nanos,
    /// Edges that the kernel counted. Equal to measured + missed, or something was lost.
    pub expected: u64,
    /// Edges that the kernel could not keep until the thread read them: as late as the thread was then, at least.
    pub missed: Histogram,
    /// Edges of the warm-up, not in the histograms.
    pub warm_up: WarmUp,
    /// From the kernel's stamp until the thread had the edge.
    pub wake: Histogram,
    /// From then until the line was driven, `delay` included.
    pub answer: Histogram,
    /// Edges whose stamp is later than the thread's clock: it is of another clock.
    pub unstamped: u64,
    /// Edges that came before the one before them was answered.
    pub backlog: u64,
    /// Why the lines were of use no more before the end.
    #[serde(default)]
    pub line_failed: Option<String>,
    /// The interrupt's thread.
    #[serde(default)]
    pub interrupt: Fact<InterruptThread>,
    /// What the monitor measured, if there is one.
    #[serde(default)]
    pub monitor: Option<Monitored>,
}

/// The thread of the input line's interrupt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InterruptThread {
    /// The interrupt's number.
    pub interrupt: u32,
    /// The thread's name.
    pub name: String,
    /// Its priority while the responder answered.
    pub priority: u32,
}

/// What a monitor measured from outside: from its pulse to the edge of the answer that it looks for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Monitored {
    /// Its address.
    pub address: String,
    /// Answers that it measured.
    pub samples: u64,
    /// The shortest.
    pub min: Option<Nanos>,
    /// The mean.
    pub average: Option<Nanos>,
    /// The longest.
    pub max: Option<Nanos>,
    /// Answers that did not come in its time, and periods that a late one covered.
    pub overruns: u64,
    /// How many took so many microseconds; the last cell has all that took longer.
    pub histogram: Vec<u32>,
    /// Answers of the histogram that are in no record: Zephyr's latmon leaves its warm-up there.
    pub surplus: Option<u64>,
    /// Why it did not report to the end.
    pub problem: Option<String>,
}

impl OwnPlan for GpioSetup {
    /// An answer is late by the time since the kernel's stamp.
    fn words(&self) -> &'static Words {
        &Words {
            value: "answer",
            greatest: "the latest answer observed, from the kernel's stamp of the edge on",
            values: "answers",
            count: "edges",
        }
    }

    /// As asked for, each time.
    fn setups(&self, _: &RunPlan, _: u32) -> Vec<Setup> {
        vec![Setup::Gpio(self.clone())]
    }

    fn check(&self, plan: &RunPlan) -> Result<()> {
        if plan.cpus.len() == 1 {
            return Ok(());
        }
        let message =
            format!("--probe gpio answers with one thread, and CPUs {} were to be measured", plan.cpus);
        Err(Error::new(message, "name its CPU with --cpus"))
    }

    fn not_claimed(&self) -> Option<&'static str> {
        Some("what lies between the wire and the kernel's stamp, a bound, or loads that were not run")
    }
}

impl std::fmt::Display for GpioSetup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "edges on {}", self.input)
    }
}

impl OwnSetup for GpioSetup {
    /// Edges come when they come: their numbers are nanoseconds since the begin.
    fn grid(&self, _: usize, origin: u64) -> Grid {
        Grid::fixed(origin, 1)
    }

    fn warnings(&self, scenario: &Scenario) -> Vec<Warning> {
        doubts::of_scenario(self, scenario)
    }
}

impl OwnSeries for GpioSeries {
    fn account(&self) -> Option<(u64, &Histogram)> {
        Some((self.expected, &self.missed))
    }

    fn account_mut(&mut self) -> Option<(&mut u64, &mut Histogram)> {
        Some((&mut self.expected, &mut self.missed))
    }

    fn fails_by_missing(&self) -> bool {
        true
    }

    /// By the kernel, edge by edge.
    fn is_counted(&self) -> bool {
        true
    }

    fn not_come(&self, _: u64, at_least: &str) -> String {
        format!("had not come back from an edge: at least {at_least}")
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Rising edges of line 23, answered on 24.
    pub fn setup() -> GpioSetup {
        let pin = |line| Pin { chip: "/dev/gpiochip0".into(), line };
        GpioSetup {
            input: pin(23),
            rises: true,
            output: pin(24),
            delay: Nanos::ZERO,
            irq_priority: None,
            monitor: None,
        }
    }

    #[test]
    fn a_pin_is_named_as_it_is_asked_for() {
        assert_eq!(setup().input.to_string(), "gpiochip0:23");
    }
}
