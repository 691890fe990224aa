//! The options that measuring commands share, and how their values are read.

use std::path::PathBuf;

use clap::Args;
use record::instrument::gpio::GpioSetup;
use record::instrument::noise::NoiseSetup;
use record::instrument::response::ResponseSetup;
use record::instrument::timer::TimerPlan;
use record::{CStates, ClockName, InstrumentPlan, Phase, Record, Request, Wake};
use units::{CpuList, Nanos, Policy, Priority, Seed};

pub use crate::lengths::{between, length};
use failure::Error;

/// latmus' and cyclictest's default.
const INTERVAL: Nanos = Nanos::from_millis(1);

/// oslat's resolution: below it lie the turns of the loop.
const THRESHOLD: Nanos = Nanos::from_micros(1);
/// The noise probe spins for nine tenths of each window, so that the machine goes on, and neither RT throttling (950 ms of
/// a second) nor the fair server (50 ms of a second) finds anything to do.
const NOISE_WINDOW: Nanos = Nanos::from_millis(100);
const NOISE_SPIN: Nanos = Nanos::from_millis(90);

/// Groups of options in the help, in the order in which it shows them.
pub const MEASURED: &str = "What to measure";
pub const LOADED: &str = "Loads";
pub const METHOD: &str = "How to measure";
pub const REQUIREMENT: &str = "Requirement and safety";
pub const OUTPUT: &str = "Output";

/// An instrument, by the name that users write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Probe {
    /// How late a thread wakes up
    Timer,
    /// How long a CPU is taken from a thread that spins
    Noise,
    /// How long a peer on the network takes to answer
    Network,
    /// How late a thread answers edges of a GPIO line
    Gpio,
}

/// What is measured and how.
#[derive(Args, Clone, Debug)]
pub struct Measuring {
    /// Instrument
    #[arg(long, value_name = "NAME", default_value = "timer", help_heading = MEASURED)]
    pub probe: Probe,

    /// Period of the wake-ups, as in 250us; bench measures several one after the other, as in 100us,1ms [default: 1ms]
    #[arg(short = 'i', long, value_name = "TIMES", allow_hyphen_values = true, value_delimiter = ',', value_parser = interval, help_heading = MEASURED)]
    pub interval: Vec<Nanos>,

    /// The shortest gap that --probe noise records [default: 1us]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = threshold, help_heading = MEASURED)]
    pub threshold: Option<Nanos>,

    /// CPUs to measure, as in 0-3,7 [default: all that this process may use, isolated ones included]
    #[arg(short = 'a', long, value_name = "LIST", help_heading = MEASURED)]
    pub cpus: Option<CpuList>,

    /// Activations that every CPU delivers, instead of a duration (missed ones count: measured + missed = N)
    #[arg(short = 'l', long, value_name = "N", conflicts_with = "duration", value_parser = clap::value_parser!(u64).range(1..), help_heading = MEASURED)]
    pub samples: Option<u64>,

    /// Real-time priority, 1 to 99 [default: 98: above interrupt threads (50), and below 99, which the kernel's own
    /// watchdog and migration threads keep for themselves]
    #[arg(short = 'p', long, value_name = "N", help_heading = METHOD)]
    pub priority: Option<Priority>,

    /// Scheduling policy of the measuring threads: fifo, rr, other
    #[arg(long, default_value = "fifo", help_heading = METHOD)]
    pub policy: Policy,

    /// What wakes the threads: nanosleep, timerfd, posix-timer, deadline
    #[arg(long, default_value = "nanosleep", help_heading = METHOD)]
    pub wake: Wake,

    /// Run time per period of a deadline reservation [default: a fifth of the interval]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = length, help_heading = METHOD)]
    pub runtime: Option<Nanos>,

    /// Clock that activations are due on: monotonic, realtime, tai
    #[arg(long, default_value = "monotonic", help_heading = METHOD)]
    pub clock: ClockName,

    /// Where in the period each CPU's activations lie: sweep (slowly past every phase of the kernel's tick, one lap a
    /// minute), random, staggered, aligned [default: sweep; random for measure up to 10 s, presets and --wake deadline]
    #[arg(long, help_heading = METHOD)]
    pub phase: Option<Phase>,

    /// Length of the warm-up, which is reported apart
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, default_value = "1s", value_parser = warm_up, help_heading = METHOD)]
    pub warm_up: Nanos,

    /// Seed of everything random: phases, loads, order [default: random, and recorded]
    #[arg(long, value_name = "N", help_heading = METHOD)]
    pub seed: Option<Seed>,

    /// Fail (exit code 1) if a wake-up is later than this
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = length, help_heading = REQUIREMENT)]
    pub limit: Option<Nanos>,

    /// End at a latency of this or more, and fail
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = length, help_heading = REQUIREMENT)]
    pub stop_at: Option<Nanos>,

    /// End, inconclusive, when ordinary threads had no CPU for this long: a machine that real-time threads keep busy cannot
    /// be reached otherwise [default: off; 10s where no time is given]
    #[arg(long, value_name = "TIME", num_args = 0..=1, default_missing_value = "10s", value_parser = fail_safe, help_heading = REQUIREMENT)]
    pub fail_safe: Option<Nanos>,

    /// Command for the shell when --stop-at is reached; it finds WORSTCASE_CPU and WORSTCASE_LATENCY_NS set
    #[arg(long, value_name = "COMMAND", requires = "stop_at", help_heading = REQUIREMENT)]
    pub stop_command: Option<String>,

    /// File for every single sample, compact and readable after a crash: see worstcase samples
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub samples_file: Option<PathBuf>,

    /// End when a sensor reads more than this, in degrees Celsius; a CPU that throttles for heat always ends a run
    #[arg(long, value_name = "DEGREES", value_parser = clap::value_parser!(i64).range(20..=150), help_heading = REQUIREMENT)]
    pub max_temperature: Option<i64>,

    /// A remark to keep with the record
    #[arg(long, value_name = "TEXT", help_heading = OUTPUT)]
    pub note: Option<String>,

    /// Print results only: no progress, no announcements
    #[arg(short, long, help_heading = OUTPUT)]
    pub quiet: bool,

    #[command(flatten)]
    pub network: crate::network::NetworkOptions,

    #[command(flatten)]
    pub gpio: crate::gpio::GpioOptions,

    /// Run the probe inside this partition of CPUs, and everything else outside: see worstcase partition list
    #[arg(long, value_name = "NAME", help_heading = METHOD)]
    pub partition: Option<String>,
}

impl Measuring {
    /// What is asked of the instrument. The timer has a preset's interval where none was given, and sweeps where a sweep
    /// `fits`.
    pub fn instrument(&self, preset: Option<Nanos>, fits: bool) -> Result<InstrumentPlan, Error> {
        if self.probe != Probe::Network {
            self.refuse(&self.network.given(), "this probe: it is an option of --probe network")?;
        }
        if self.probe != Probe::Gpio {
            self.refuse(&self.gpio.given(), "this probe: it is an option of --probe gpio")?;
        }
        match self.probe {
            Probe::Timer if self.threshold.is_some() => {
                Err(Error::new("--threshold is one of gaps", "use it with --probe noise"))
            }
            Probe::Timer => Ok(InstrumentPlan::Timer(TimerPlan {
                intervals: self.intervals(preset),
                wake: self.wake,
                runtime: (self.wake == Wake::Deadline).then_some(self.runtime).flatten(),
                clock: self.clock,
                phase: self.phase(fits)?,
            })),
            Probe::Noise => self.noise().map(InstrumentPlan::Noise),
            Probe::Network => self.response().map(InstrumentPlan::Response),
            Probe::Gpio => self.responder().map(InstrumentPlan::Gpio),
        }
    }

    fn response(&self) -> Result<ResponseSetup, Error> {
        let [interval] = self.intervals(None)[..] else {
            return Err(Error::new("--probe network takes one interval", "measure one after the other"));
        };
        self.refuse(
            &[("--threshold", self.threshold.is_some()), ("--wake", self.wake != Wake::default())],
            "--probe network: its threads send and wait",
        )?;
        self.refuse(
            &[
                ("--runtime", self.runtime.is_some()),
                ("--clock", self.clock != ClockName::default()),
                ("--phase", self.phase.is_some()),
            ],
            "--probe network: its cycles are due on the monotonic clock",
        )?;
        self.network.setup(interval)
    }

    fn responder(&self) -> Result<GpioSetup, Error> {
        let [interval] = self.intervals(None)[..] else {
            return Err(Error::new("--probe gpio takes one interval", "measure one after the other"));
        };
        let unmonitored = !self.interval.is_empty() && !self.gpio.is_monitored();
        let foreign = [
            ("--samples", self.samples.is_some()),
            ("--interval", unmonitored),
            ("--threshold", self.threshold.is_some()),
            ("--wake", self.wake != Wake::default()),
            ("--runtime", self.runtime.is_some()),
            ("--clock", self.clock != ClockName::default()),
            ("--phase", self.phase.is_some()),
        ];
        self.refuse(&foreign, "--probe gpio: its thread is woken by edges")?;
        self.gpio.setup(interval)
    }

    /// An option that means nothing to an instrument is an error.
    fn refuse(&self, options: &[(&str, bool)], why: &str) -> Result<(), Error> {
        match options.iter().find(|(_, given)| *given) {
            None => Ok(()),
            Some((option, _)) => Err(Error::new(format!("{option} means nothing to {why}"), "leave it out")),
        }
    }

    fn intervals(&self, preset: Option<Nanos>) -> Vec<Nanos> {
        if self.interval.is_empty() { vec![preset.unwrap_or(INTERVAL)] } else { self.interval.clone() }
    }

    /// The longest of the intervals.
    pub fn longest_interval(&self) -> Nanos {
        self.intervals(None).into_iter().max().unwrap_or(INTERVAL)
    }

    fn noise(&self) -> Result<NoiseSetup, Error> {
        let foreign = [
            ("--samples", self.samples.is_some()),
            ("--interval", !self.interval.is_empty()),
            ("--wake", self.wake != Wake::default()),
            ("--runtime", self.runtime.is_some()),
            ("--clock", self.clock != ClockName::default()),
            ("--phase", self.phase.is_some()),
        ];
        self.refuse(&foreign, "--probe noise: its threads spin and are not woken")?;
        Ok(NoiseSetup {
            threshold: self.threshold.unwrap_or(THRESHOLD),
            window: NOISE_WINDOW,
            spin: NOISE_SPIN,
        })
    }

    /// The phase: what was asked for, else a sweep where one `fits`. A reservation's periods begin where the kernel wants.
    fn phase(&self, fits: bool) -> Result<Phase, Error> {
        if self.wake != Wake::Deadline {
            return Ok(self.phase.unwrap_or(if fits { Phase::Sweep } else { Phase::Random }));
        }
        match self.phase {
            Some(Phase::Sweep) => Err(Error::new(
                "--phase sweep cannot be had with --wake deadline",
                "the kernel places the periods of a reservation: leave --phase out",
            )),
            phase => Ok(phase.unwrap_or_default()),
        }
    }

    /// The part of a request that these options decide.
    pub fn request(&self, preset: Option<Priority>) -> Result<Request, Error> {
        let takes_priority = self.policy.is_real_time() && self.wake != Wake::Deadline;
        if self.priority.is_some() && !takes_priority {
            let message = "--priority means nothing to --policy other and --wake deadline";
            return Err(Error::new(message, "leave it out, or use --policy fifo or rr"));
        }
        Ok(Request {
            cpus: self.cpus.clone(),
            partition: self.partition.clone(),
            samples: self.samples,
            warm_up: self.warm_up,
            policy: self.policy,
            priority: self.priority.or(preset).or(Request::default().priority).filter(|_| takes_priority),
            seed: self.seed,
            limit: self.limit,
            stop_at: self.stop_at,
            fail_safe: self.fail_safe,
            stop_command: self.stop_command.clone(),
            max_temperature: self.max_temperature,
            note: self.note.clone(),
            samples_file: self.samples_file.clone(),
            ..Request::default()
        })
    }
}

/// The form in which a finished run is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Form {
    /// The record, and the figures of each load and CPU
    Json,
    /// A row a load and CPU
    Csv,
    /// A table a load, for issues and merge requests
    Markdown,
    /// Test results for build servers
    Junit,
    /// Test Anything Protocol
    Tap,
    /// Signals for a LAVA dispatcher
    Lava,
    /// One line
    Line,
}

impl Form {
    /// The record in this form, every line ended.
    pub fn render(self, record: &Record) -> String {
        match self {
            Self::Json => report::export::json(record),
            Self::Csv => report::export::csv(record),
            Self::Markdown => report::export::markdown(record),
            Self::Junit => report::export::junit(record),
            Self::Tap => report::export::tap(record),
            Self::Lava => report::export::lava(record),
            Self::Line => report::export::line(record),
        }
    }
}

/// What to ask of the idle states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CStatesChoice(pub &'static [CStates]);

impl std::str::FromStr for CStatesChoice {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "as-is" => Ok(Self(&[CStates::AsIs])),
            "restrict" => Ok(Self(&[CStates::Restrict])),
            "both" => Ok(Self(&[CStates::AsIs, CStates::Restrict])),
            _ => Err(format!("`{text}` is none of as-is, restrict, both")),
        }
    }
}

/// A duration: at least 1 ms, at most a year.
pub fn duration(text: &str) -> Result<Nanos, String> {
    between(text, Nanos::from_millis(1), runner::plan::LONGEST, "1ms to 366d")
}

/// A period: below 10 us a machine does nothing but wake up, and above an hour nothing is measured.
pub fn interval(text: &str) -> Result<Nanos, String> {
    between(text, Nanos::from_micros(10), Nanos::from_secs(3600), "10us to 1h")
}

/// Of a gap: turns of the loop take some tens of nanoseconds, and what is longer than a second is no noise.
fn threshold(text: &str) -> Result<Nanos, String> {
    between(text, Nanos(200), Nanos::from_secs(1), "200ns to 1s")
}

/// Below it an ordinary thread can have to wait for its turn.
fn fail_safe(text: &str) -> Result<Nanos, String> {
    between(text, Nanos::from_millis(100), Nanos::from_secs(3600), "100ms to 1h")
}

fn warm_up(text: &str) -> Result<Nanos, String> {
    between(text, Nanos::ZERO, Nanos::from_secs(3600), "0s to 1h")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absurd_lengths_are_refused() {
        for text in ["0s", "-1s", "1ns", "400d", "10", ""] {
            assert!(duration(text).is_err(), "{text}");
        }
        for text in ["0us", "9us", "2h", "1ns"] {
            assert!(interval(text).is_err(), "{text}");
        }
        assert_eq!(interval("10us"), Ok(Nanos(10_000)));
        assert!(length("0us").is_err());
    }
}
