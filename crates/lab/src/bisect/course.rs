//! A bisection that runs: it boots what the search asks for, keeps each guest's record, and confirms what is found.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use record::store;
use serde::Serialize;
use statistics::{Value, compare};
use units::Seed;

use super::arm::Changes;
use super::search::{least, turn};
use super::{Arm, Needed, Question, Reading, Step};
use crate::Error;
use crate::boot::{Guest, Outcome as Left};
use crate::kept::{self, Resumable};
use crate::kernels::Kernel;
use crate::ladder::plan;
use crate::ladder::state::KernelTold;
use crate::several::{self, Booter, Watcher};

/// Who is told how far a bisection is.
pub trait Told {
    /// A guest of `arm` boots.
    fn begun(&mut self, arm: &Arm, seed: Seed);
    /// A question is answered.
    fn answered(&mut self, step: &Step);
    /// Asked several times a second; true ends the run. What is done is kept.
    fn stop(&mut self) -> bool;
}

/// What a bisection gets from outside.
pub struct Means<'a> {
    /// What boots guests.
    pub booter: &'a dyn Booter,
    /// Where kernels come from.
    pub kernels: &'a mut dyn FnMut(&Needed) -> Result<Kernel, Error>,
    /// This program, for the guests' architecture, which the kernel names.
    pub binary: &'a dyn Fn(&Kernel) -> Result<PathBuf, Error>,
    /// How many guests run at once.
    pub jobs: usize,
    /// Who is told.
    pub told: &'a mut dyn Told,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// In a word.
    pub outcome: Outcome,
    /// Groups of changes, each of which moved the tail by itself. The changes of a group only do so together; of an
    /// ordered list a group is the steps among which the guilty one is.
    pub culprits: Vec<Changes>,
    /// The median of the good guests' tails.
    pub good: f64,
    /// All that was asked.
    pub steps: Vec<Step>,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The culprits did it: good with each of them is bad, bad without all of them is good.
    Guilty,
    /// All changes together do not move the tail by the ratio.
    NoneGuilty,
    /// No answer.
    Inconclusive(Doubt),
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Doubt {
    /// A word without a meaning moved the tail as much as a culprit is to.
    Control,
    /// The spread from guest to guest hides whether the bad set-up is bad.
    Spread,
    /// The bad set-up is the better one.
    Reversed,
    /// What was found is not confirmed: bad without it is not seen to be good, or the steps of a list that it lies
    /// between do not differ by the ratio.
    Unconfirmed,
}

/// Why a search ends early.
enum Halt {
    /// It was told to stop.
    Interrupted,
    /// It cannot go on.
    Failed(Error),
}

impl From<Error> for Halt {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// A bisection in its directory.
#[derive(Debug)]
pub struct Course {
    /// What is asked.
    pub question: Question,
    directory: PathBuf,
    /// The tails of the arms' guests, or why there are none.
    tails: BTreeMap<Arm, Result<Vec<Value>, String>>,
    steps: Vec<Step>,
}

impl Course {
    /// Begins in `directory`, which is made; one that holds something is refused.
    ///
    /// # Errors
    /// Where it cannot be made or written to; a question that makes no sense.
    pub fn begin(question: Question, directory: &Path) -> Result<Self, Error> {
        question.check()?;
        kept::begin(directory, "bisection")?;
        question.save(directory)?;
        Ok(Self::of(question, directory))
    }

    /// Goes on in `directory`: guests whose records are there are not booted again.
    ///
    /// # Errors
    /// Where there is no bisection.
    pub fn resume(directory: &Path) -> Result<Self, Error> {
        Ok(Self::of(Question::load(directory)?, directory))
    }

    fn of(question: Question, directory: &Path) -> Self {
        Self { question, directory: directory.to_path_buf(), tails: BTreeMap::new(), steps: Vec::new() }
    }

    /// Whether anything was measured: the good arm comes first.
    pub fn has_records(&self) -> bool {
        let mut seeds = (1..=self.question.seeds).map(|seed| Seed(u64::from(seed)));
        seeds.any(|seed| self.is_measured(&Arm::good(), seed))
    }

    /// Finds the answer; none where it was told to stop.
    ///
    /// # Errors
    /// Where the good, the bad or the control arm cannot be measured, or what came back cannot be kept.
    pub fn run(&mut self, mut means: Means<'_>) -> Result<Option<Answer>, Error> {
        match self.answer(&mut means) {
            Ok((outcome, culprits)) => {
                let good = self.tails.get(&Arm::good()).and_then(|tails| tails.as_ref().ok());
                let good = good.map_or(0.0, |tails| median(tails));
                Ok(Some(Answer { outcome, culprits, good, steps: std::mem::take(&mut self.steps) }))
            }
            Err(Halt::Interrupted) => Ok(None),
            Err(Halt::Failed(error)) => Err(error),
        }
    }

    fn answer(&mut self, means: &mut Means<'_>) -> Result<(Outcome, Vec<Changes>), Halt> {
        let all: Changes = (0..self.question.subject.count()).collect();
        let bad = self.question.subject.bad();
        for arm in [Arm::good(), Arm::Control, bad.clone()] {
            self.measure(&arm, means)?;
            if let Some(Err(reason)) = self.tails.get(&arm) {
                return Err(Error::new(format!("{arm} cannot be measured: {reason}")).into());
            }
        }
        let none = |doubt| Ok((Outcome::Inconclusive(doubt), Vec::new()));
        match (self.with_good(&Arm::Control, means)?, self.with_good(&bad, means)?) {
            (Reading::Rose | Reading::Fell, _) => none(Doubt::Control),
            (_, Reading::Rose) if self.question.subject.is_ordered() => self.turning_point(all.len(), means),
            (_, Reading::Rose) => self.culprits(all, means),
            (_, Reading::Fell) => none(Doubt::Reversed),
            (_, Reading::Unclear | Reading::Failed) => none(Doubt::Spread),
            (_, Reading::Stayed) => Ok((Outcome::NoneGuilty, Vec::new())),
        }
    }

    /// Group after group of changes that are bad by themselves, until what is left is not.
    fn culprits(&mut self, all: Changes, means: &mut Means<'_>) -> Result<(Outcome, Vec<Changes>), Halt> {
        let (mut left, mut culprits) = (all, Vec::new());
        loop {
            let found = least::<Halt>(&left, &mut |made| {
                Ok(self.with_good(&Arm::With(made.clone()), means)? == Reading::Rose)
            })?;
            left = left.difference(&found).copied().collect();
            let alone = self.with_good(&Arm::With(found.clone()), means)?;
            culprits.push(found);
            // Good itself is good.
            let rest = if left.is_empty() {
                Reading::Stayed
            } else {
                self.with_good(&Arm::With(left.clone()), means)?
            };
            match (alone, rest) {
                (Reading::Rose, Reading::Rose) => {}
                (Reading::Rose, Reading::Stayed | Reading::Fell) => return Ok((Outcome::Guilty, culprits)),
                _ => return Ok((Outcome::Inconclusive(Doubt::Unconfirmed), culprits)),
            }
        }
    }

    /// The step of a list that made it bad: the kernel after it is bad against the one before.
    fn turning_point(&mut self, last: usize, means: &mut Means<'_>) -> Result<(Outcome, Vec<Changes>), Halt> {
        let first = |count: usize| Arm::With((0..count).collect());
        let (low, high) = turn::<Halt>(last, &mut |place| {
            Ok(match self.with_good(&first(place), means)? {
                Reading::Rose => Some(true),
                Reading::Stayed | Reading::Fell => Some(false),
                Reading::Unclear | Reading::Failed => None,
            })
        })?;
        let outcome = match self.ask(&first(high), &first(low), means)? {
            Reading::Rose => Outcome::Guilty,
            _ => Outcome::Inconclusive(Doubt::Unconfirmed),
        };
        Ok((outcome, vec![(low..high).collect()]))
    }

    fn with_good(&mut self, arm: &Arm, means: &mut Means<'_>) -> Result<Reading, Halt> {
        self.ask(arm, &Arm::good(), means)
    }

    /// Compares two arms, and measures what is not measured yet.
    fn ask(&mut self, arm: &Arm, against: &Arm, means: &mut Means<'_>) -> Result<Reading, Halt> {
        let before = self.steps.iter().find(|step| step.arm == *arm && step.against == *against);
        if let Some(before) = before {
            return Ok(before.reading);
        }
        self.measure(against, means)?;
        self.measure(arm, means)?;
        let step = self.step(arm, against)?;
        means.told.answered(&step);
        let reading = step.reading;
        self.steps.push(step);
        Ok(reading)
    }

    fn step(&self, arm: &Arm, against: &Arm) -> Result<Step, Error> {
        let tails = |arm: &Arm| match self.tails.get(arm) {
            Some(Ok(tails)) => Ok(tails.as_slice()),
            Some(Err(reason)) => Err(reason.clone()),
            None => Err("it was not measured".to_owned()),
        };
        let step = |tail, ratio, reading, failure| Step {
            arm: arm.clone(),
            against: against.clone(),
            tail,
            ratio,
            reading,
            failure,
        };
        let (first, second) = match (tails(against), tails(arm)) {
            (Ok(first), Ok(second)) => (first, second),
            (Err(reason), _) | (_, Err(reason)) => {
                return Ok(step(None, None, Reading::Failed, Some(reason)));
            }
        };
        let compared = compare(first, second).map_err(|error| Error::new(error.to_string()))?;
        let ratio = (compared.ratio, [compared.interval.0, compared.interval.1]);
        let reading = Reading::of(&compared, self.question.ratio);
        Ok(step(Some(median(second)), Some(ratio), reading, None))
    }

    /// Boots the guests of `arm` whose records are not there. The first guest that fails ends the arm.
    fn measure(&mut self, arm: &Arm, means: &mut Means<'_>) -> Result<(), Halt> {
        if self.tails.contains_key(arm) {
            return Ok(());
        }
        let seeds = (1..=self.question.seeds).map(|seed| Seed(u64::from(seed)));
        let missing: Vec<Seed> = seeds.clone().filter(|&seed| !self.is_measured(arm, seed)).collect();
        let failure = if missing.is_empty() { None } else { self.boot(arm, &missing, means)? };
        let tails = match failure {
            Some(reason) => Err(reason),
            None => Ok(seeds.map(|seed| self.tail(arm, seed)).collect::<Result<_, _>>()?),
        };
        self.tails.insert(arm.clone(), tails);
        Ok(())
    }

    /// Boots guests with these seeds; why one failed, if one did.
    fn boot(&mut self, arm: &Arm, seeds: &[Seed], means: &mut Means<'_>) -> Result<Option<String>, Halt> {
        let needed = self.question.subject.kernel(arm)?;
        let kernel = match (means.kernels)(&needed) {
            Ok(kernel) => kernel,
            // Ctrl-C ends a build too.
            Err(_) if means.told.stop() => return Err(Halt::Interrupted),
            // What cannot be built is an arm that cannot be measured; a kernel that is not there is a slip of the pen.
            Err(error) if matches!(needed, Needed::Built(_)) => return Ok(Some(error.message)),
            Err(error) => return Err(error.into()),
        };
        self.note(&kernel)?;
        let binary = (means.binary)(&kernel)?;
        let guest = |&seed: &Seed| self.question.guest(arm, &kernel, seed, &binary);
        let guests: Vec<Guest> = seeds.iter().map(guest).collect();
        let mut keeper =
            Keeper { course: self, arm, seeds, told: means.told, failure: None, interrupted: false };
        let finished = several::run(means.booter, &guests, means.jobs, &mut keeper)?;
        match keeper {
            Keeper { interrupted: true, .. } => Err(Halt::Interrupted),
            Keeper { failure: Some(reason), .. } => Ok(Some(reason)),
            _ if finished => Ok(None),
            _ => Err(Halt::Interrupted),
        }
    }

    /// Figures of two kernels of one name must not stand in one arm.
    fn note(&mut self, kernel: &Kernel) -> Result<(), Error> {
        let told = KernelTold::of(kernel);
        match self.question.kernels.get(&kernel.name) {
            Some(before) if *before == told => Ok(()),
            Some(_) => Err(Error::new(format!("{} is not the kernel that was begun with", kernel.name))
                .hint("begin anew in another directory")),
            None => {
                self.question.kernels.insert(kernel.name.clone(), told);
                self.question.save(&self.directory)
            }
        }
    }

    fn place(&self, arm: &Arm, seed: Seed) -> PathBuf {
        self.directory.join(arm.to_string()).join(format!("seed-{seed}"))
    }

    fn is_measured(&self, arm: &Arm, seed: Seed) -> bool {
        self.place(arm, seed).join(store::RECORD).is_file()
    }

    fn tail(&self, arm: &Arm, seed: Seed) -> Result<Value, Error> {
        let place = self.place(arm, seed);
        let record = store::load(&place).map_err(|error| {
            Error::new(error.to_string())
                .hint(format!("remove {}; --resume measures it again", place.display()))
        })?;
        self.question.tail_of(&record)
    }
}

fn median(tails: &[Value]) -> f64 {
    let mut figures: Vec<f64> = tails.iter().map(|tail| tail.figure()).collect();
    figures.sort_unstable_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// Keeps what comes back of one arm's guests.
struct Keeper<'a> {
    course: &'a Course,
    arm: &'a Arm,
    /// The guests' seeds.
    seeds: &'a [Seed],
    told: &'a mut dyn Told,
    failure: Option<String>,
    interrupted: bool,
}

impl Watcher for Keeper<'_> {
    fn begun(&mut self, index: usize) {
        self.told.begun(self.arm, self.seeds[index]);
    }

    fn ended(&mut self, index: usize, result: Result<Left, Error>, _: Duration) -> Result<(), Error> {
        let question = &self.course.question;
        let whole = result.and_then(|left| {
            plan::measured(&left, std::slice::from_ref(&question.load), record::LabTime::Instructions)
                .map(|_| left)
        });
        match whole {
            Ok(left) => kept::keep(&self.course.place(self.arm, self.seeds[index]), &left),
            Err(error) => {
                let hint = error.hint.map(|hint| format!("\n({hint})")).unwrap_or_default();
                self.failure.get_or_insert(error.message + &hint);
                Ok(())
            }
        }
    }

    fn stop(&mut self) -> bool {
        self.interrupted |= self.told.stop();
        self.interrupted || self.failure.is_some()
    }
}

#[cfg(test)]
#[path = "course_tests.rs"]
mod tests;
