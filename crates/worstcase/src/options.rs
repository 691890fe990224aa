//! The options that measuring commands share, and how their values are read.

use std::path::PathBuf;

use clap::Args;
use record::instrument::noise::NoiseSetup;
use record::instrument::timer::TimerPlan;
use record::{CStates, ClockName, InstrumentPlan, Machine, Phase, RunPlan, Wake};
use sysroot::SysRoot;
use units::{CpuList, Nanos, Policy, Priority, Seed};

use crate::error::CommandError;
use crate::run::division::Division;

/// S1's advice: above interrupt threads, below what the kernel keeps for itself.
const PRIORITY: u8 = 98;

/// oslat's resolution: below it lie the turns of the loop.
const THRESHOLD: Nanos = Nanos::from_micros(1);
/// The noise probe spins for nine tenths of each window, so that the machine goes on, and neither RT throttling (950 ms of
/// a second) nor the fair server (50 ms of a second) finds anything to do.
const NOISE_WINDOW: Nanos = Nanos::from_millis(100);
const NOISE_SPIN: Nanos = Nanos::from_millis(90);

/// An instrument, by the name that users write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Probe {
    /// How late a thread wakes up
    Timer,
    /// How long a CPU is taken from a thread that spins
    Noise,
}

/// The longest that one scenario may be planned to last.
const LONGEST: Nanos = Nanos::from_secs(366 * 86_400);

/// What is measured and how.
#[derive(Args, Clone, Debug)]
pub struct Measuring {
    /// Instrument
    #[arg(long, value_name = "NAME", default_value = "timer")]
    pub probe: Probe,

    /// The shortest gap that --probe noise records [default: 1us]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = threshold)]
    pub threshold: Option<Nanos>,

    /// CPUs to measure, as in 0-3,7 [default: all that may be used, isolated ones included]
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<CpuList>,

    /// Activations that every CPU delivers, instead of a duration (missed ones count: measured + missed = N)
    #[arg(long, value_name = "N", conflicts_with = "duration", value_parser = clap::value_parser!(u64).range(1..))]
    pub samples: Option<u64>,

    /// Real-time priority, 1 to 99 [default: 98: above interrupt threads (50), and below 99, which the kernel's own
    /// watchdog and migration threads keep for themselves]
    #[arg(long, value_name = "N")]
    pub priority: Option<Priority>,

    /// Scheduling policy of the measuring threads: fifo, rr, other
    #[arg(long, default_value = "fifo")]
    pub policy: Policy,

    /// What wakes the threads: nanosleep, timerfd, posix-timer, deadline
    #[arg(long, default_value = "nanosleep")]
    pub wake: Wake,

    /// Run time per period of a deadline reservation [default: a fifth of the interval]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = length)]
    pub runtime: Option<Nanos>,

    /// Clock that activations are due on: monotonic, realtime, tai
    #[arg(long, default_value = "monotonic")]
    pub clock: ClockName,

    /// Where in the period each CPU's activations lie: sweep (slowly past every phase of the kernel's tick, one lap a
    /// minute), random, staggered, aligned [default: sweep; random for measure up to 10 s, presets and --wake deadline]
    #[arg(long)]
    pub phase: Option<Phase>,

    /// Length of the warm-up, which is reported apart
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, default_value = "1s", value_parser = warm_up)]
    pub warm_up: Nanos,

    /// Seed of everything drawn by lot: phases, loads, order [default: drawn, and recorded]
    #[arg(long, value_name = "N")]
    pub seed: Option<Seed>,

    /// The requirement: a latency above it fails (exit code 1)
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = length)]
    pub limit: Option<Nanos>,

    /// End at a latency of this or more, and fail
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = length)]
    pub stop_at: Option<Nanos>,

    /// Command for the shell when --stop-at is reached; it finds WORSTCASE_CPU and WORSTCASE_LATENCY_NS set
    #[arg(long, value_name = "COMMAND", requires = "stop_at")]
    pub stop_command: Option<String>,

    /// File for every single sample, compact and readable after a crash: see worstcase samples
    #[arg(long, value_name = "FILE")]
    pub samples_file: Option<PathBuf>,

    /// End when a sensor reads more than this, in degrees Celsius; a CPU that throttles for heat always ends a run
    #[arg(long, value_name = "DEGREES", value_parser = clap::value_parser!(i64).range(20..=150))]
    pub max_temperature: Option<i64>,

    /// Words to keep with the record
    #[arg(long, value_name = "TEXT")]
    pub note: Option<String>,

    /// Run the probe inside this partition of CPUs, and everything else outside: see worstcase partition list
    #[arg(long, value_name = "NAME")]
    pub partition: Option<String>,
}

impl Measuring {
    /// The CPUs, as these options divide them. Loads run on `load`, if it is given.
    pub fn division(
        &self,
        root: &SysRoot,
        machine: &Machine,
        load: Option<&CpuList>,
    ) -> Result<Division, CommandError> {
        let wanted = self.cpus.as_ref();
        match &self.partition {
            Some(name) => Division::inside(root, machine, name, wanted, load),
            None => Division::of(root, machine, wanted, load),
        }
    }

    /// What is asked of the instrument. `intervals` are those of the timer; it sweeps where a sweep `fits`.
    pub fn instrument(&self, intervals: Vec<Nanos>, fits: bool) -> Result<InstrumentPlan, CommandError> {
        match self.probe {
            Probe::Timer if self.threshold.is_some() => {
                Err(CommandError::new("--threshold is one of gaps", "use it with --probe noise"))
            }
            Probe::Timer => Ok(InstrumentPlan::Timer(TimerPlan {
                intervals,
                wake: self.wake,
                runtime: (self.wake == Wake::Deadline).then_some(self.runtime).flatten(),
                clock: self.clock,
                phase: self.phase(fits)?,
            })),
            Probe::Noise => self.noise().map(InstrumentPlan::Noise),
        }
    }

    fn noise(&self) -> Result<NoiseSetup, CommandError> {
        let foreign = [
            ("--samples", self.samples.is_some()),
            ("--wake", self.wake != Wake::default()),
            ("--runtime", self.runtime.is_some()),
            ("--clock", self.clock != ClockName::default()),
            ("--phase", self.phase.is_some()),
        ];
        if let Some((option, _)) = foreign.into_iter().find(|(_, given)| *given) {
            let message =
                format!("{option} means nothing to --probe noise: its threads spin and are not woken");
            return Err(CommandError::new(message, "leave it out"));
        }
        Ok(NoiseSetup {
            threshold: self.threshold.unwrap_or(THRESHOLD),
            window: NOISE_WINDOW,
            spin: NOISE_SPIN,
        })
    }

    /// The phase: what was asked for, else a sweep where one `fits`. A reservation's periods begin where the kernel wants.
    fn phase(&self, fits: bool) -> Result<Phase, CommandError> {
        if self.wake != Wake::Deadline {
            return Ok(self.phase.unwrap_or(if fits { Phase::Sweep } else { Phase::Random }));
        }
        match self.phase {
            Some(Phase::Sweep) => Err(CommandError::new(
                "--phase sweep cannot be had with --wake deadline",
                "the kernel places the periods of a reservation: leave --phase out",
            )),
            phase => Ok(phase.unwrap_or_default()),
        }
    }

    /// The part of a plan that these options decide.
    pub fn plan(&self, division: &Division, preset: Option<Priority>) -> Result<RunPlan, CommandError> {
        let default = Priority::try_from(PRIORITY).ok();
        let takes_priority = self.policy.is_real_time() && self.wake != Wake::Deadline;
        if self.priority.is_some() && !takes_priority {
            let message = "--priority means nothing to --policy other and --wake deadline";
            return Err(CommandError::new(message, "leave it out, or use --policy fifo or rr"));
        }
        Ok(RunPlan {
            cpus: division.measured.clone(),
            pinned: match self.wake {
                Wake::Deadline => division.reservable(),
                _ => division.measured.clone(),
            },
            left_out: division.left_out.clone(),
            load_cpus: division.load.clone(),
            warm_up: self.warm_up,
            policy: Some(self.policy),
            priority: self.priority.or(preset).or(default).filter(|_| takes_priority),
            seed: Some(self.seed.unwrap_or_else(drawn_seed)),
            limit: self.limit,
            stop_at: self.stop_at,
            partition: division.partition.clone(),
            ..RunPlan::default()
        })
    }
}

/// A seed that differs from run to run, short enough to be typed again.
pub fn drawn_seed() -> Seed {
    let clock = Seed(sys::clock::Clock::Realtime.now() ^ u64::from(std::process::id()) << 40);
    Seed(clock.stream("seed").below(1_000_000))
}

/// Refuses what cannot be measured as planned.
pub fn check(plan: &RunPlan) -> Result<(), CommandError> {
    let timer = match &plan.instrument {
        InstrumentPlan::Timer(timer) => timer,
        InstrumentPlan::Noise(noise) => return check_noise(plan, noise),
    };
    let longest = timer.intervals.iter().max().copied().unwrap_or_default();
    if let Some(duration) = plan.duration.filter(|duration| *duration < longest) {
        let message = format!("a duration of {duration} holds no whole interval of {longest}");
        return Err(CommandError::new(message, "measure for longer, or at a shorter interval"));
    }
    if let Some(samples) = plan.samples.filter(|&samples| longest.saturating_mul(samples) > LONGEST) {
        let message = format!("{samples} activations every {longest} take longer than {LONGEST}");
        return Err(CommandError::new(message, "ask for fewer with --samples"));
    }
    let too_long = |runtime: Nanos| timer.intervals.iter().any(|interval| runtime > *interval);
    if timer.runtime.is_some_and(too_long) {
        return Err(CommandError::new(
            "--runtime is longer than the interval",
            "a fifth of it is the default",
        ));
    }
    Ok(())
}

fn check_noise(plan: &RunPlan, noise: &NoiseSetup) -> Result<(), CommandError> {
    match plan.duration.filter(|duration| *duration < noise.window) {
        None => Ok(()),
        Some(duration) => {
            let message = format!("a duration of {duration} holds no whole window of {}", noise.window);
            Err(CommandError::new(message, "measure for longer"))
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

/// A length of time that is not zero.
pub fn length(text: &str) -> Result<Nanos, String> {
    match text.parse::<Nanos>() {
        Ok(Nanos::ZERO) => Err("it must be longer than nothing".into()),
        Ok(length) => Ok(length),
        Err(error) => Err(error.to_string()),
    }
}

/// A duration: at least 1 ms, at most a year.
pub fn duration(text: &str) -> Result<Nanos, String> {
    between(text, Nanos::from_millis(1), LONGEST, "1ms to 366d")
}

/// A period: below 10 us a machine does nothing but wake up, and above an hour nothing is measured.
pub fn interval(text: &str) -> Result<Nanos, String> {
    between(text, Nanos::from_micros(10), Nanos::from_secs(3600), "10us to 1h")
}

/// Of a gap: turns of the loop take some tens of nanoseconds, and what is longer than a second is no noise.
fn threshold(text: &str) -> Result<Nanos, String> {
    between(text, Nanos(200), Nanos::from_secs(1), "200ns to 1s")
}

fn warm_up(text: &str) -> Result<Nanos, String> {
    between(text, Nanos::ZERO, Nanos::from_secs(3600), "0s to 1h")
}

fn between(text: &str, least: Nanos, most: Nanos, range: &str) -> Result<Nanos, String> {
    let length = text.parse::<Nanos>().map_err(|error| error.to_string())?;
    if (least..=most).contains(&length) { Ok(length) } else { Err(format!("it must be within {range}")) }
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
