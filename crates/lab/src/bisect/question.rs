//! What is asked, as it stands in `bisect.json`: enough to go on with it.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use record::time::UtcTime;
use record::{LabTime, Record};
use serde::{Deserialize, Serialize};
use statistics::{LEAST_RUNS, Tail, Value};
use units::{Bytes, Nanos, Seed};

use super::{Arm, Subject};
use crate::Error;
use crate::boot::Guest;
use crate::kept::Resumable;
use crate::kernels::Kernel;
use crate::ladder::state::KernelTold;
use crate::ladder::{plan, text};

/// Activations a second: the period that `bench` has by itself.
const A_SECOND: u64 = 1_000;

/// Which change moved the tail, and how that is measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// The form's version.
    pub schema_version: u32,
    /// The program's version.
    pub tool: String,
    /// When it was begun, by the host's clock.
    pub started: UtcTime,
    /// What differs.
    pub subject: Subject,
    /// The load that is measured under.
    pub load: String,
    /// How long each guest measures.
    #[serde(with = "text")]
    pub duration: Nanos,
    /// How long the load runs before that.
    #[serde(with = "text")]
    pub warm_up: Nanos,
    /// How many guests each arm has in the search: with the seeds 1, 2, 3, ... Those that confirm have the seeds after them.
    pub seeds: u32,
    /// By which factor a culprit moves the tail at least.
    pub ratio: f64,
    /// The figure that stands for the tail.
    #[serde(with = "text")]
    pub tail: Tail,
    /// The guests' memory.
    pub memory: Bytes,
    /// The size of the disk that the load writes to.
    pub disk: Option<Bytes>,
    /// The kernels that guests have booted, as they were then.
    pub kernels: BTreeMap<String, KernelTold>,
}

impl Question {
    /// About `subject`, measured as the lab does where nothing else is asked for.
    pub fn about(subject: Subject, tool: &str, started: UtcTime) -> Self {
        Self {
            schema_version: Self::VERSION,
            tool: tool.to_owned(),
            started,
            subject,
            load: "cpu".into(),
            duration: Nanos::from_secs(2),
            warm_up: Nanos::from_millis(200),
            seeds: LEAST_RUNS as u32,
            ratio: 2.0,
            tail: Tail::Quantile(0.999),
            memory: Bytes::from_mebibytes(512),
            disk: None,
            kernels: BTreeMap::new(),
        }
    }

    /// The finest tail that guests which measure so long can carry.
    ///
    /// # Errors
    /// Where they have too few samples for any.
    pub fn finest(duration: Nanos) -> Result<Tail, Error> {
        let samples = u128::from(duration.0) * u128::from(A_SECOND) / u128::from(Nanos::from_secs(1).0);
        Tail::finest(samples as u64).ok_or_else(|| {
            Error::new(format!("{duration} are too short for a tail")).hint("measure at least 100ms")
        })
    }

    /// One guest of an arm.
    pub fn guest(&self, arm: &Arm, kernel: &Kernel, seed: Seed, binary: &Path) -> Guest {
        let loads = [self.load.clone()];
        Guest {
            kernel: kernel.clone(),
            words: self.subject.boot_words(arm),
            processors: 1,
            memory: self.memory,
            time: LabTime::Instructions,
            disk: self.disk,
            system: None,
            binary: binary.to_path_buf(),
            programs: Vec::new(),
            command: plan::bench(&loads, self.duration, self.warm_up, seed),
            time_limit: self.patience(),
        }
    }

    fn patience(&self) -> Duration {
        plan::patience(self.duration + self.warm_up)
    }

    /// The tail that a record tells of.
    ///
    /// # Errors
    /// Where it has too few samples for that.
    pub fn tail_of(&self, record: &Record) -> Result<Value, Error> {
        let scenario = record.scenarios.iter().find(|scenario| scenario.head.planned.load == self.load);
        let mut series = scenario.iter().flat_map(|scenario| &scenario.series);
        let mut all = series.next().map(record::Series::corrected).unwrap_or_default();
        series.for_each(|more| all.merge(&more.corrected()));
        self.tail.of(&all).ok_or_else(|| {
            Error::new(format!("a record has too few samples for {}", self.tail))
                .hint("measure longer (--duration), or compare another tail (--tail)")
        })
    }
}

impl Resumable for Question {
    const FILE: &'static str = "bisect.json";
    /// 2: the parameters' order, and what guests are made of.
    const VERSION: u32 = 2;
    const WHAT: &'static str = "bisection";
    const COMMAND: &'static str = "`worstcase lab bisect`";

    fn check(&self) -> Result<(), Error> {
        self.subject.check()?;
        if (self.seeds as usize) < LEAST_RUNS {
            return Err(Error::new(format!("{} guests of an arm are too few to compare", self.seeds))
                .hint(format!("one run is one draw: at least {LEAST_RUNS} seeds")));
        }
        let finer = |asked: Tail, finest: Tail| match (asked, finest) {
            (Tail::Quantile(asked), Tail::Quantile(finest)) => asked > finest,
            _ => false,
        };
        if finer(self.tail, Self::finest(self.duration)?) {
            return Err(Error::new(format!("{} have too few samples for {}", self.duration, self.tail))
                .hint("measure longer: 1s for p99.9, 100ms for p99"));
        }
        if !(self.ratio > 1.0 && self.ratio.is_finite()) {
            return Err(Error::new(format!("{} is no ratio to look for", self.ratio))
                .hint("2 looks for what doubles the tail; it must be above 1"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question() -> Question {
        let subject = Subject::words("k".into(), &[], &["a".into()]);
        Question::about(subject, "0", UtcTime(0))
    }

    #[test]
    fn it_is_read_back_as_it_was_written() {
        let directory = tempfile::tempdir().unwrap();
        question().save(directory.path()).unwrap();
        assert_eq!(Question::load(directory.path()).unwrap(), question());
    }

    #[test]
    fn what_cannot_be_answered_is_refused() {
        assert!(question().check().is_ok());
        for (seeds, ratio) in [(4, 2.0), (5, 1.0), (5, f64::NAN), (5, f64::INFINITY)] {
            assert!(Question { seeds, ratio, ..question() }.check().is_err(), "{seeds} {ratio}");
        }
        assert_eq!(Question::finest(Nanos::from_millis(500)).unwrap(), Tail::Quantile(0.99));
        assert!(Question::finest(Nanos::from_millis(5)).is_err());
    }
}
