//! Instruments: what measures in a scenario.
//!
//! A run, its scenarios and their series are alike for all: load, places, length, evidence, and for each place a histogram
//! with its worst values and its timeline. What is an instrument's own has a module here: what is asked of it
//! (its plan), what of that holds in one scenario (its set-up), and what it adds to a series. To add one: a module
//! beside [`timer`], and its line in the list below.

pub mod gpio;
pub mod noise;
pub mod response;
pub mod timer;

use serde::{Deserialize, Serialize};
use units::Nanos;

use super::{Grid, RunPlan};
use gpio::{GpioSeries, GpioSetup};
use noise::{NoiseSeries, NoiseSetup};
use response::{ResponseSeries, ResponseSetup};
use timer::{TimerPlan, TimerSeries, TimerSetup};

/// The enums that have a variant an instrument.
macro_rules! instruments {
    ($($variant:ident = $name:literal, $plan:ty, $setup:ty, $series:ty;)+) => {
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

            /// The set-ups to be measured in pass `repeat` (from 1), each under each load.
            pub fn setups(&self, plan: &RunPlan, repeat: u32) -> Vec<Setup> {
                match self { $(Self::$variant(own) => own.setups(plan, repeat).into_iter().map(Setup::$variant).collect()),+ }
            }

            /// What texts call the measured values.
            pub fn words(&self) -> &'static Words {
                match self { $(Self::$variant(_) => <$plan>::WORDS),+ }
            }
        }

        impl Setup {
            /// When the values of series `series` are numbered to have come, if number 0 lies at `origin` on the clock.
            pub fn grid(&self, series: usize, origin: u64) -> Grid {
                match self { $(Self::$variant(own) => own.grid(series, origin)),+ }
            }
        }

        impl From<&Setup> for Own {
            fn from(setup: &Setup) -> Self {
                match setup { $(Setup::$variant(_) => Self::$variant(<$series>::default())),+ }
            }
        }
    };
}

instruments! {
    Timer = "timer", TimerPlan, TimerSetup, TimerSeries;
    Noise = "noise", NoiseSetup, NoiseSetup, NoiseSeries;
    Response = "network", ResponseSetup, ResponseSetup, ResponseSeries;
    Gpio = "gpio", GpioSetup, GpioSetup, GpioSeries;
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
        match self {
            Self::Timer(timer) => Some(timer.interval),
            Self::Noise(_) | Self::Gpio(_) => None,
            Self::Response(response) => Some(response.interval),
        }
    }
}

/// What tells one set-up from another in a table: `every 1ms`, `gaps from 1us on`.
impl std::fmt::Display for Setup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Timer(timer) => write!(f, "every {}", timer.interval),
            Self::Noise(noise) => write!(f, "gaps from {} on", noise.threshold),
            Self::Gpio(gpio) => write!(f, "edges on {}", gpio.input),
            Self::Response(response) => write!(f, "frames to {} every {}", response.peer, response.interval),
        }
    }
}
