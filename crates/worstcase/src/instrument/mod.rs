//! `--probe NAME` and what belongs to it: each instrument has a module here with its options, and a line in the list below.

mod call;
pub mod gpio;
pub mod network;
mod noise;
pub mod timer;

use clap::Args;
use failure::Error;
use record::InstrumentPlan;
use units::{CpuList, Nanos};

use crate::headings::MEASURED;
use crate::lengths::interval;

/// An instrument's options.
trait Options {
    /// Those that only it has, and which of them were given.
    fn given(&self) -> Vec<(&'static str, bool)>;

    /// What is asked of the instrument.
    fn plan(&self, common: &Common) -> Result<InstrumentPlan, Error>;
}

/// The periods.
#[derive(Args, Clone, Debug)]
pub struct Intervals {
    /// Period of the wake-ups, as in 250us; bench measures several one after the other, as in 100us,1ms [default: 1ms]
    #[arg(short = 'i', long, value_name = "TIMES", allow_hyphen_values = true, value_delimiter = ',', value_parser = interval, help_heading = MEASURED)]
    interval: Vec<Nanos>,

    /// What stands for them where none is given.
    #[arg(skip)]
    otherwise: Option<Nanos>,
}

/// latmus' and cyclictest's default.
const INTERVAL: Nanos = Nanos::from_millis(1);

impl Intervals {
    /// These, and `preset` where none is given.
    pub fn or(&self, preset: Option<Nanos>) -> Self {
        Self { otherwise: preset, ..self.clone() }
    }

    /// Whether there is more than one.
    pub fn are_several(&self) -> bool {
        self.interval.len() > 1
    }

    /// The longest of them.
    pub fn longest(&self) -> Nanos {
        self.all().into_iter().max().unwrap_or(INTERVAL)
    }

    /// Whether any was given.
    fn are_given(&self) -> bool {
        !self.interval.is_empty()
    }

    /// Those that were given, else a preset's or the usual one.
    fn all(&self) -> Vec<Nanos> {
        if self.are_given() { self.interval.clone() } else { vec![self.otherwise.unwrap_or(INTERVAL)] }
    }

    /// The one that `probe` takes.
    fn single(&self, probe: &str) -> Result<Nanos, Error> {
        match self.all()[..] {
            [interval] => Ok(interval),
            _ => {
                let message = format!("--probe {probe} takes one interval");
                Err(Error::new(message, "measure one after the other"))
            }
        }
    }
}

/// What the options of all instruments say.
#[derive(Clone, Debug)]
pub struct Common {
    /// The periods.
    pub intervals: Intervals,
    /// Whether a number of activations was asked for.
    pub has_samples: bool,
    /// Whether the run is long enough for a sweep of phases.
    pub fits_sweep: bool,
    /// The CPUs that are measured; none where they follow from the machine.
    pub cpus: Option<CpuList>,
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
