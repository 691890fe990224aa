//! What a bisection measures.

use std::path::Path;

use experiment::bisect::Bisection;
use experiment::{Arm, Figures, bisect};
use record::{LabTime, Record};
use serde::{Deserialize, Serialize};
use statistics::{LEAST_RUNS, Tail};
use units::{Bytes, Nanos, Seed};

use super::Subject;
use crate::boot::Guest;
use crate::kernels::{Kernel, Needed};
use crate::state::{Kind, Plan};
use crate::{Error, limits, measure, text};

/// Activations a second: the period that `bench` has by itself.
const A_SECOND: u64 = 1_000;

/// Which change moved the tail, and how that is measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BisectPlan {
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
}

impl BisectPlan {
    /// About `subject`, measured as the lab does where nothing else is asked for.
    pub fn about(subject: Subject) -> Self {
        Self {
            subject,
            load: "cpu".into(),
            duration: Nanos::from_secs(2),
            warm_up: Nanos::from_millis(200),
            seeds: LEAST_RUNS as u32,
            ratio: 2.0,
            tail: Tail::Quantile(0.999),
            memory: Bytes::from_mebibytes(512),
            disk: None,
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

    /// What is looked for.
    pub fn bisection(&self) -> Bisection {
        let Self { subject, ratio, seeds, tail, .. } = self;
        let words = |change| subject.parameters(change).into_iter().cloned().collect();
        Bisection {
            changes: (0..subject.count()).map(words).collect(),
            is_ordered: subject.is_ordered(),
            ratio: *ratio,
            seeds: *seeds,
            tail: *tail,
        }
    }
}

/// More guests of an arm than these never end.
const MOST_SEEDS: u32 = 1000;

impl Plan for BisectPlan {
    /// 2: the parameters' order, and what guests are made of.
    const FORMER: (&'static str, u32) = ("bisect.json", 2);

    fn kind(&self) -> Kind {
        Kind::Bisection
    }

    fn check(&self) -> Result<(), Error> {
        self.subject.check()?;
        limits::check_size(1, self.memory, self.disk)?;
        limits::check_length(self.duration, self.warm_up)?;
        if (self.seeds as usize) < LEAST_RUNS {
            return Err(Error::new(format!("{} guests of an arm are too few to compare", self.seeds))
                .hint(format!("one run shows one case: at least {LEAST_RUNS} seeds")));
        }
        if self.seeds > MOST_SEEDS {
            return Err(Error::new(format!("{} guests of an arm are too many", self.seeds))
                .hint(format!("at most {MOST_SEEDS}; longer runs say more")));
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

    fn name(&self, arm: &Arm) -> String {
        bisect::name(arm)
    }

    fn kernel(&self, arm: &Arm) -> Result<Needed, Error> {
        self.subject.kernel(arm)
    }

    fn guest(&self, arm: &Arm, seed: Seed, kernel: &Kernel, binary: &Path) -> Result<Guest, Error> {
        Ok(Guest {
            kernel: kernel.clone(),
            under: None,
            words: self.subject.parameters_of(arm),
            processors: 1,
            threads_per_core: 1,
            cpu_model: None,
            memory: self.memory,
            time: LabTime::Instructions,
            devices: Vec::new(),
            disk: self.disk,
            system: None,
            binary: binary.to_path_buf(),
            programs: Vec::new(),
            command: measure::command(self.loads(), self.duration, self.warm_up, seed)?,
            time_limit: measure::patience(self.duration + self.warm_up),
        })
    }

    fn loads(&self) -> &[String] {
        std::slice::from_ref(&self.load)
    }

    fn figures(&self, record: &Record) -> Result<Figures, failure::Error> {
        Figures::without_judgement(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_answered_is_refused() {
        let plan = || BisectPlan::about(Subject::words("k".into(), &[], &["a".into()]));
        assert!(plan().check().is_ok());
        for (seeds, ratio) in [(4, 2.0), (u32::MAX, 2.0), (5, 1.0), (5, f64::NAN), (5, f64::INFINITY)] {
            assert!(BisectPlan { seeds, ratio, ..plan() }.check().is_err(), "{seeds} {ratio}");
        }
        assert!(BisectPlan { memory: Bytes(u64::MAX), ..plan() }.check().is_err());
        assert!(BisectPlan { disk: Some(Bytes(u64::MAX)), ..plan() }.check().is_err());
        assert!(BisectPlan { warm_up: Nanos::MAX, ..plan() }.check().is_err());
        assert_eq!(BisectPlan::finest(Nanos::from_millis(500)).unwrap(), Tail::Quantile(0.99));
        assert!(BisectPlan::finest(Nanos::from_millis(5)).is_err());
    }
}
