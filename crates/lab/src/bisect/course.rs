//! A bisection that runs: it boots what is asked for, and keeps each guest's record.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use record::{KernelParameter, LabImages, ParameterAnswer, Record, store};
use units::Seed;

use super::arm::Changes;
use super::judge::{Asked, Judge, Oracle, Seeds, Tails};
use super::{Answer, Arm, Needed, Question, Step};
use crate::boot::{Failure, Guest, Outcome as Left};
use crate::kept::{self, Resumable};
use crate::kernels::Kernel;
use crate::ladder::plan;
use crate::ladder::state::KernelTold;
use crate::several::{self, Booter, Watcher};
use crate::{Error, MadeOf};

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
    /// What the kernel of the arms' guests made of their parameters.
    parameters: BTreeMap<Arm, Vec<KernelParameter>>,
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
        Self { question, directory: directory.to_path_buf(), parameters: BTreeMap::new() }
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
        let Question { subject, ratio, seeds, .. } = &self.question;
        let asked = Asked {
            count: subject.count(),
            bad: subject.bad(),
            is_ordered: subject.is_ordered(),
            ratio: *ratio,
            seeds: *seeds,
        };
        match Judge::of(asked, &mut Guests { course: self, means: &mut means }).answer() {
            Ok(answer) => Ok(Some(answer)),
            Err(Halt::Interrupted) => Ok(None),
            Err(Halt::Failed(error)) => Err(error),
        }
    }

    /// The tails of the guests of `arm` with these seeds, or why there are none. Boots those whose records are not there;
    /// the first guest that fails ends the arm.
    fn measure(&mut self, arm: &Arm, seeds: Seeds, means: &mut Means<'_>) -> Result<Tails, Halt> {
        let seeds = seeds.map(|seed| Seed(u64::from(seed)));
        let missing: Vec<Seed> = seeds.clone().filter(|&seed| !self.is_measured(arm, seed)).collect();
        let failure = if missing.is_empty() { None } else { self.boot(arm, &missing, means)? };
        if let Some(reason) = failure {
            return Ok(Err(reason));
        }
        let mut tails = Vec::new();
        for seed in seeds {
            let record = self.record(arm, seed)?;
            tails.push(self.question.tail_of(&record)?);
            let parameters = record.header.machine.lab.and_then(|lab| lab.parameters).unwrap_or_default();
            self.parameters.entry(arm.clone()).or_insert(parameters);
        }
        Ok(Ok(tails))
    }

    /// The changes all of whose parameters the kernel did not read, or refused.
    fn without_effect(&self) -> Changes {
        let subject = &self.question.subject;
        let answer = |word: &String| {
            let mut all = self.parameters.values().flatten();
            all.find(|parameter| parameter.word == *word).map(|parameter| parameter.answer)
        };
        let is_without = |word: &&String| answer(word).is_some_and(ParameterAnswer::is_without_effect);
        let changes = (0..subject.count()).filter(|&change| {
            let words = subject.parameters(change);
            !words.is_empty() && words.iter().all(is_without)
        });
        changes.collect()
    }

    /// Parameters of the good and the bad set-up that the kernel did not simply read, each once.
    fn doubtful(&self) -> Vec<KernelParameter> {
        let mut all: Vec<KernelParameter> = Vec::new();
        for arm in [Arm::good(), self.question.subject.bad()] {
            for parameter in self.parameters.get(&arm).into_iter().flatten() {
                if parameter.answer != ParameterAnswer::Read && !all.contains(parameter) {
                    all.push(parameter.clone());
                }
            }
        }
        all
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
        let binary = (means.binary)(&kernel)?;
        let guest = |&seed: &Seed| self.question.guest(arm, &kernel, seed, &binary);
        let guests: Vec<Guest> = seeds.iter().map(guest).collect();
        let made_of = guests.first().map(|guest| means.booter.made_of(guest)).transpose()?;
        let Some(made_of) = made_of else { return Ok(None) };
        self.note(&kernel, &made_of)?;
        let mut keeper =
            Keeper { course: self, arm, seeds, made_of, told: means.told, failure: None, interrupted: false };
        let finished = several::run(means.booter, &guests, means.jobs, &mut keeper)?;
        match keeper {
            Keeper { interrupted: true, .. } => Err(Halt::Interrupted),
            Keeper { failure: Some(reason), .. } => Ok(Some(reason)),
            _ if finished => Ok(None),
            _ => Err(Halt::Interrupted),
        }
    }

    /// Figures of two kernels of one name, of two emulators or of two worstcases must not stand in one bisection.
    fn note(&mut self, kernel: &Kernel, made_of: &MadeOf) -> Result<(), Error> {
        for begun in self.question.kernels.values().filter_map(|known| known.made_of.as_ref()) {
            let images = LabImages { binary: begun.images.binary.clone(), ..made_of.images.clone() };
            MadeOf { emulator: begun.emulator.clone(), images }.check(made_of, "bisection")?;
        }
        let now = KernelTold::of(kernel);
        let known = self.question.kernels.entry(kernel.name.clone()).or_insert_with(|| now.clone());
        if !known.is_of_same_kernel(&now) {
            return Err(Error::new(format!("{} is not the kernel that was begun with", kernel.name))
                .hint("begin anew in another directory"));
        }
        match known.settle(made_of, false, "bisection")? {
            true => self.question.save(&self.directory),
            false => Ok(()),
        }
    }

    fn place(&self, arm: &Arm, seed: Seed) -> PathBuf {
        self.directory.join(arm.to_string()).join(format!("seed-{seed}"))
    }

    fn is_measured(&self, arm: &Arm, seed: Seed) -> bool {
        self.place(arm, seed).join(store::RECORD).is_file()
    }

    fn record(&self, arm: &Arm, seed: Seed) -> Result<Record, Error> {
        let place = self.place(arm, seed);
        store::load(&place).map_err(|error| {
            Error::new(error.to_string())
                .hint(format!("remove {}; --resume measures it again", place.display()))
        })
    }
}

/// Guests that are booted.
struct Guests<'a, 'b> {
    course: &'a mut Course,
    means: &'a mut Means<'b>,
}

impl Oracle for Guests<'_, '_> {
    type Halt = Halt;

    fn tails(&mut self, arm: &Arm, seeds: Seeds) -> Result<Tails, Halt> {
        self.course.measure(arm, seeds, self.means)
    }

    fn without_effect(&self) -> Changes {
        self.course.without_effect()
    }

    fn parameters(&self) -> Vec<KernelParameter> {
        self.course.doubtful()
    }

    fn answered(&mut self, step: &Step) {
        self.means.told.answered(step);
    }

    fn failed(&self, message: String) -> Halt {
        Error::new(message).into()
    }
}

/// Keeps what comes back of one arm's guests.
struct Keeper<'a> {
    course: &'a Course,
    arm: &'a Arm,
    /// The guests' seeds.
    seeds: &'a [Seed],
    made_of: MadeOf,
    told: &'a mut dyn Told,
    failure: Option<String>,
    interrupted: bool,
}

impl Watcher for Keeper<'_> {
    fn begun(&mut self, index: usize) {
        self.told.begun(self.arm, self.seeds[index]);
    }

    fn ended(&mut self, index: usize, result: Result<Left, Failure>, _: Duration) -> Result<(), Error> {
        let question = &self.course.question;
        let place = self.course.place(self.arm, self.seeds[index]);
        if let Ok(ended) = &result {
            // A file that was replaced while guests ran.
            self.made_of.check(&ended.left.made_of, "bisection")?;
        }
        let whole = result.and_then(|ended| {
            let loads = std::slice::from_ref(&question.load);
            match plan::measured(&ended, loads, record::LabTime::Instructions) {
                Ok(_) => Ok(ended),
                Err(error) => Err(Failure { error, left: Some(Box::new(ended.left)) }),
            }
        });
        match whole {
            Ok(ended) => kept::keep(&place, &ended.left),
            Err(failure) => {
                let reason = kept::keep_failed(&self.course.directory, &place, failure).with_hint();
                self.failure.get_or_insert(reason);
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
