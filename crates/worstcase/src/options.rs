//! The options that measuring commands share, and how their values are read.

use std::path::PathBuf;

use clap::Args;
use record::{CStates, InstrumentPlan, Record, Request, Wake};
use units::{CpuList, Nanos, ParseNanosError, Policy, Priority, Seed};

use crate::instrument::{Common, Intervals, OwnOptions, Probe};
pub use crate::lengths::{INTERVALS, between, interval, length};
use failure::Error;

pub use crate::headings::*;

/// The name of a load, as it stands in a list of them.
///
/// # Errors
/// It is empty.
pub fn load_name(text: &str) -> Result<String, &'static str> {
    match text.trim() {
        "" => Err(
            "the name of a load is empty: is there a comma too many, or a variable that is not set? `worstcase load --list` shows all",
        ),
        name => Ok(name.to_owned()),
    }
}

/// What is measured and how.
#[derive(Args, Clone, Debug)]
pub struct Measuring {
    /// Instrument
    #[arg(long, value_name = "NAME", default_value = "timer", help_heading = MEASURED)]
    pub probe: Probe,

    #[command(flatten)]
    pub intervals: Intervals,

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
    /// be reached otherwise; off for a run that goes on
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = fail_safe, help_heading = REQUIREMENT)]
    pub fail_safe: FailSafe,

    /// Command for the shell when --stop-at is reached; it finds WORSTCASE_CPU and WORSTCASE_LATENCY_NS set
    #[arg(long, value_name = "COMMAND", requires = "stop_at", help_heading = REQUIREMENT)]
    pub stop_command: Option<String>,

    /// File for every single sample, compact and readable after a crash: see worstcase samples
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub samples_file: Option<PathBuf>,

    /// Count instructions, cycles, cache and TLB misses of the measuring threads and of the measured CPUs (perf_event_open), for
    /// the record and its page. Counting a thread takes time at each of its switches: latencies become longer by it
    #[arg(long, help_heading = METHOD)]
    pub perf: bool,

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
    pub own: OwnOptions,

    /// Run the probe inside this partition of CPUs, and everything else outside: see worstcase partition list
    #[arg(long, value_name = "NAME", help_heading = METHOD)]
    pub partition: Option<String>,
}

impl Measuring {
    /// What is asked of the instrument that was chosen, where a preset has an interval of its own and the run is long enough
    /// for a sweep of phases, or not.
    pub fn instrument(&self, preset: Option<Nanos>, fits_sweep: bool) -> Result<InstrumentPlan, Error> {
        let (intervals, has_samples) = (self.intervals.or(preset), self.samples.is_some());
        let common = Common { intervals, has_samples, fits_sweep, cpus: self.cpus.clone() };
        self.own.plan(self.probe, &common)
    }

    /// The part of a request that these options decide.
    pub fn request(&self, preset: Option<Priority>) -> Result<Request, Error> {
        let takes_priority = self.policy.is_real_time() && self.own.timer.wake != Wake::Deadline;
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
            fail_safe: self.fail_safe.0,
            stop_command: self.stop_command.clone(),
            max_temperature: self.max_temperature,
            perf: self.perf,
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
    /// Test results for build servers: one a load and CPU, and `run`, the verdict of all
    Junit,
    /// Test Anything Protocol, with the same tests
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

    /// Several records in this form, each under its name; none where the form holds one run.
    pub fn render_several<'a>(self, records: impl Iterator<Item = (&'a str, &'a Record)>) -> Option<String> {
        Some(match self {
            Self::Csv => report::export::csv_of_several(records),
            Self::Markdown => {
                let tables = records.map(|(name, record)| format!("## {name}\n\n{}", self.render(record)));
                tables.collect::<Vec<_>>().join("\n")
            }
            Self::Line => records.map(|(name, record)| format!("{name}: {}", self.render(record))).collect(),
            Self::Json | Self::Junit | Self::Tap | Self::Lava => return None,
        })
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

/// A duration: at least 1 ms, at most a year. A bare number is seconds to cyclictest, and here none.
pub fn duration(text: &str) -> Result<Nanos, String> {
    if let Err(ParseNanosError::NoUnit(number)) = text.parse::<Nanos>() {
        return Err(format!(
            "`{number}` has no unit: write {number}s for seconds, or {number}ms, {number}m, {number}h"
        ));
    }
    between(text, Nanos::from_millis(1), record::LONGEST_SCENARIO, "1ms to 366d")
}

/// The time without a CPU for ordinary threads that ends a run; none for a run that goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailSafe(pub Option<Nanos>);

/// Below 100 ms an ordinary thread can have to wait for its turn.
fn fail_safe(text: &str) -> Result<FailSafe, String> {
    if text == "off" {
        return Ok(FailSafe(None));
    }
    let time = between(text, Nanos::from_millis(100), Nanos::from_secs(3600), "off, or 100ms to 1h")?;
    Ok(FailSafe(Some(time)))
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
