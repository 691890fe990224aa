//! `--probe NAME` and what belongs to it: each instrument has a module here with its options, and a line in the list below.

mod call;
pub mod gpio;
pub mod network;
mod noise;
pub mod timer;

use clap::Args;
use failure::Error;
use record::InstrumentPlan;
use units::Nanos;

/// An instrument's options.
trait Options {
    /// Those that only it has, and which of them were given.
    fn given(&self) -> Vec<(&'static str, bool)>;

    /// What is asked of the instrument.
    fn plan(&self, common: &Common) -> Result<InstrumentPlan, Error>;
}

/// What the options of all instruments say.
#[derive(Clone, Debug)]
pub struct Common {
    /// The periods: those that were asked for, else a preset's or the usual one.
    pub intervals: Vec<Nanos>,
    /// Whether any was asked for.
    pub has_interval: bool,
    /// Whether a number of activations was.
    pub has_samples: bool,
    /// Whether the run is long enough for a sweep of phases.
    pub fits_sweep: bool,
}

impl Common {
    /// The one period that `probe` takes.
    fn single_interval(&self, probe: &str) -> Result<Nanos, Error> {
        match self.intervals[..] {
            [interval] => Ok(interval),
            _ => {
                let message = format!("--probe {probe} takes one interval");
                Err(Error::new(message, "measure one after the other"))
            }
        }
    }
}

macro_rules! instruments {
    ($($(#[$about:meta])+ $variant:ident = $module:ident, $options:ident;)+) => {
        /// An instrument, by the name that users write.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
        pub enum Probe {
            $($(#[$about])+ $variant),+
        }

        /// The options that belong to one instrument, of all of them.
        #[derive(Args, Clone, Debug)]
        pub struct OwnOptions {
            $(#[command(flatten)] pub $module: $module::$options,)+
        }

        impl OwnOptions {
            fn of(&self, probe: Probe) -> &dyn Options {
                match probe { $(Probe::$variant => &self.$module),+ }
            }
        }

        const ALL: &[(Probe, &str)] = &[$((Probe::$variant, stringify!($module))),+];
    };
}

instruments! {
    /// How late a thread wakes up
    Timer = timer, TimerOptions;
    /// How long a CPU is taken from a thread that spins
    Noise = noise, NoiseOptions;
    /// How long a peer on the network takes to answer
    Network = network, NetworkOptions;
    /// How late a thread answers edges of a GPIO line
    Gpio = gpio, GpioOptions;
    /// How long the kernel's own calls take: locks, wake-ups, pages
    Call = call, CallOptions;
}

impl OwnOptions {
    /// What is asked of the instrument that was chosen. An option of another is an error.
    pub fn plan(&self, chosen: Probe, common: &Common) -> Result<InstrumentPlan, Error> {
        for (other, name) in ALL.iter().filter(|(other, _)| *other != chosen) {
            refuse(&self.of(*other).given(), &format!("this probe: it is an option of --probe {name}"))?;
        }
        self.of(chosen).plan(common)
    }
}

/// An option that means nothing to an instrument is an error.
fn refuse(options: &[(&str, bool)], why: &str) -> Result<(), Error> {
    match options.iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((option, _)) => Err(Error::new(format!("{option} means nothing to {why}"), "leave it out")),
    }
}
