//! Instruments: what measures in a scenario.
//!
//! A run, its scenarios and their series are alike for all: load, places, length, evidence, and for each place a histogram
//! with its worst values and its timeline. What is an instrument's own has a module here: what is asked of it
//! (its plan, an [`OwnPlan`]), what of that holds in one scenario (its set-up, an [`OwnSetup`]), and what it adds to a
//! series (an [`OwnSeries`]). To add one: a module beside [`timer`], and its line in the list below.

pub mod call;
pub mod gpio;
pub mod noise;
pub mod response;
pub mod timer;

use failure::Result;
use histogram::Histogram;
use serde::{Deserialize, Serialize};
use units::Nanos;

use super::{Grid, RunPlan, Scenario, Series, Warning};
use call::{CallPlan, CallSeries, CallSetup};
use gpio::{GpioSeries, GpioSetup};
use noise::{NoiseSeries, NoiseSetup};
use response::{ResponseSeries, ResponseSetup};
use timer::{TimerPlan, TimerSeries, TimerSetup};

/// What is asked of an instrument: what the record needs to know of it. Implemented by its plan.
pub(crate) trait OwnPlan {
    /// What texts call the measured values.
    fn words(&self) -> &'static Words;

    /// The set-ups to be measured in pass `repeat` (from 1), each under each load.
    fn setups(&self, plan: &RunPlan, repeat: u32) -> Vec<Setup>;

    /// Refuses a run that cannot be measured as planned.
    fn check(&self, _: &RunPlan) -> Result<()> {
        Ok(())
    }

    /// The doubts that follow from what is asked of it.
    fn warnings(&self) -> Vec<Warning> {
        Vec::new()
    }

    /// What its greatest value says nothing about; none where bounds are claimed of it.
    fn not_claimed(&self) -> Option<&'static str>;
}

/// What an instrument does in one scenario, shown as what tells it from others in a table. Implemented by its set-up.
pub trait OwnSetup: std::fmt::Display {
    /// When the values of series `series` are numbered to have come, if number 0 lies at `origin` on the clock.
    fn grid(&self, series: usize, origin: u64) -> Grid;

    /// The period of the activations or cycles, for an instrument that has some.
    fn interval(&self) -> Option<Nanos> {
        None
    }

    /// The doubts that only this instrument can have.
    fn warnings(&self, _: &Scenario) -> Vec<Warning> {
        Vec::new()
    }
}

/// What an instrument adds to a series. Implemented by its series.
pub(crate) trait OwnSeries {
    /// What was due, and what the missed of it would have had; none for an instrument to which nothing is due.
    fn account(&self) -> Option<(u64, &Histogram)> {
        None
    }

    /// The same, to be changed.
    fn account_mut(&mut self) -> Option<(&mut u64, &mut Histogram)> {
        None
    }

    /// Whether what was due was counted while it came, and does not follow from the time that passed.
    fn is_counted(&self) -> bool {
        false
    }

    /// Whether a missed value exceeds any limit: it was waited for, and did not come.
    fn fails_by_missing(&self) -> bool {
        false
    }

    /// Whether anything was measured.
    fn is_measured(&self) -> bool {
        self.account().is_some_and(|(expected, _)| expected > 0)
    }

    /// The value numbered `number` had not come when the run was given up: as a sentence goes on that begins with the thread.
    fn not_come(&self, number: u64, at_least: &str) -> String;

    /// The parts of the worst value at `place`, where values have some and they are known.
    fn parts_of_worst(&self, _place: usize) -> Option<&[Option<Nanos>]> {
        None
    }

    /// A value that had not come was entered at `place` of the worst; others had become due meanwhile where they `wait`.
    fn censored(&mut self, _place: Option<usize>, _wait: bool) {}
}

/// The enums that have a variant an instrument, and how each is asked for by name.
macro_rules! instruments {
    ($($variant:ident, $function:ident = $name:literal, $plan:ty, $setup:ty, $series:ty;)+) => {
        /// What a run asks of its instrument.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(rename_all = "kebab-case")]
        pub enum InstrumentPlan {
            $(#[doc = concat!("Of the instrument ", $name, ".")] $variant($plan)),+
        }

        /// What an instrument does in one scenario: known before it begins.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(rename_all = "kebab-case")]
        pub enum Setup {
            $(#[doc = concat!("Of the instrument ", $name, ".")] $variant($setup)),+
        }

        /// What an instrument adds to the figures of a series that all instruments have.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(rename_all = "kebab-case")]
        pub enum Own {
            $(#[doc = concat!("Of the instrument ", $name, ".")] $variant($series)),+
        }

        impl InstrumentPlan {
            /// The instruments, by the names that users write.
            pub const NAMES: &[&str] = &[$($name),+];

            /// The instrument's name.
            pub fn name(&self) -> &'static str {
                match self { $(Self::$variant(_) => $name),+ }
            }

            fn own(&self) -> &dyn OwnPlan {
                match self { $(Self::$variant(own) => own),+ }
            }
        }

        impl Setup {
            fn own(&self) -> &dyn OwnSetup {
                match self { $(Self::$variant(own) => own),+ }
            }
        }

        impl Own {
            fn own(&self) -> &dyn OwnSeries {
                match self { $(Self::$variant(own) => own),+ }
            }

            fn own_mut(&mut self) -> &mut dyn OwnSeries {
                match self { $(Self::$variant(own) => own),+ }
            }
        }

        impl Series {
            $(
                #[doc = concat!("What ", $name, " adds, if it is the instrument.")]
                pub fn $function(&self) -> Option<&$series> {
                    if let Own::$variant(own) = &self.own { Some(own) } else { None }
                }
            )+
        }

        impl From<&Setup> for Own {
            fn from(setup: &Setup) -> Self {
                match setup { $(Setup::$variant(_) => Self::$variant(<$series>::default())),+ }
            }
        }
    };
}

instruments! {
    Timer, timer = "timer", TimerPlan, TimerSetup, TimerSeries;
    Noise, noise = "noise", NoiseSetup, NoiseSetup, NoiseSeries;
    Response, response = "network", ResponseSetup, ResponseSetup, ResponseSeries;
    Gpio, gpio = "gpio", GpioSetup, GpioSetup, GpioSeries;
    Call, call = "call", CallPlan, CallSetup, CallSeries;
}

impl InstrumentPlan {
    /// The set-ups to be measured in pass `repeat` (from 1), each under each load.
    pub fn setups(&self, plan: &RunPlan, repeat: u32) -> Vec<Setup> {
        self.own().setups(plan, repeat)
    }

    /// What texts call the measured values.
    pub fn words(&self) -> &'static Words {
        self.own().words()
    }

    /// Refuses a run that cannot be measured as planned.
    ///
    /// # Errors
    /// What does not go together, and what does.
    pub fn check(&self, plan: &RunPlan) -> Result<()> {
        self.own().check(plan)
    }

    /// The doubts that follow from what is asked of it.
    pub fn warnings(&self) -> Vec<Warning> {
        self.own().warnings()
    }

    /// What the greatest value says nothing about; none where bounds are claimed of it.
    pub fn not_claimed(&self) -> Option<&'static str> {
        self.own().not_claimed()
    }
}

impl Own {
    /// What was due, and what the missed of it would have had; none for an instrument to which nothing is due.
    pub fn account(&self) -> Option<(u64, &Histogram)> {
        self.own().account()
    }

    /// The same, to be changed.
    pub fn account_mut(&mut self) -> Option<(&mut u64, &mut Histogram)> {
        self.own_mut().account_mut()
    }

    /// Whether what was due was counted while it came, and does not follow from the time that passed.
    pub fn is_counted(&self) -> bool {
        self.own().is_counted()
    }

    /// Whether a missed value exceeds any limit: it was waited for, and did not come.
    pub fn fails_by_missing(&self) -> bool {
        self.own().fails_by_missing()
    }

    /// Whether anything was measured, a value apart that had not come.
    pub fn is_measured(&self) -> bool {
        self.own().is_measured()
    }

    /// The value numbered `number` had not come when the run was given up: as a sentence goes on that begins with the thread.
    pub fn not_come(&self, number: u64, at_least: &str) -> String {
        self.own().not_come(number, at_least)
    }

    /// The parts of the worst value at `place`, where values have some and they are known.
    pub fn parts_of_worst(&self, place: usize) -> Option<&[Option<Nanos>]> {
        self.own().parts_of_worst(place)
    }

    pub(super) fn censored(&mut self, place: Option<usize>, wait: bool) {
        self.own_mut().censored(place, wait);
    }
}

/// What texts call the values of an instrument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words {
    /// One value: `latency`.
    pub value: &'static str,
    /// The greatest value, as a sentence begins: `the highest latency observed`.
    pub greatest: &'static str,
    /// Values: `latencies`.
    pub values: &'static str,
    /// How many there are: `samples`.
    pub count: &'static str,
}

impl Default for InstrumentPlan {
    fn default() -> Self {
        Self::Timer(TimerPlan::default())
    }
}

impl Default for Setup {
    fn default() -> Self {
        Self::Timer(TimerSetup::default())
    }
}

impl Default for Own {
    fn default() -> Self {
        Self::Timer(TimerSeries::default())
    }
}

impl From<TimerSeries> for Own {
    fn from(timer: TimerSeries) -> Self {
        Self::Timer(timer)
    }
}

impl Setup {
    /// The timer at this period, all threads in phase.
    pub fn every(interval: Nanos) -> Self {
        Self::Timer(TimerSetup { interval, ..TimerSetup::default() })
    }

    /// What the timer does, if it is the instrument.
    pub fn timer(&self) -> Option<&TimerSetup> {
        if let Self::Timer(setup) = self { Some(setup) } else { None }
    }

    /// The period of the activations or cycles, for an instrument that has some.
    pub fn interval(&self) -> Option<Nanos> {
        self.own().interval()
    }

    /// When the values of series `series` are numbered to have come, if number 0 lies at `origin` on the clock.
    pub fn grid(&self, series: usize, origin: u64) -> Grid {
        self.own().grid(series, origin)
    }

    /// The doubts that only this instrument can have.
    pub fn warnings(&self, scenario: &Scenario) -> Vec<Warning> {
        self.own().warnings(scenario)
    }
}

/// What tells one set-up from another in a table: `every 1ms`, `gaps from 1us on`.
impl std::fmt::Display for Setup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.own().fmt(f)
    }
}
