//! Guests that measure the blocks of an experiment: boots those whose records are not there, and keeps what comes back.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use experiment::bisect::Step;
use experiment::{Arm, Attempt, Bench, Block, Figures, Parameters, Planned};
use record::{Record, store};

use crate::boot::{Failure, Guest, Outcome};
use crate::kernels::{Kernel, Needed};
use crate::several::{self, Booter, Watcher};
use crate::state::{Plan, State};
use crate::{Error, MadeOf, kept, measure};

/// Follows how far an experiment is.
pub trait Observer {
    /// The guest called `name` boots; so many of so many have ended.
    fn begun(&mut self, _name: &str, _progress: (usize, usize)) {}
    /// The guest called `name` has ended after so long, or failed.
    fn ended(&mut self, _name: &str, _progress: (usize, usize), _result: Result<Duration, &Error>) {}
    /// What a search is going to measure.
    fn planned(&mut self, _: &Planned) {}
    /// Two arms of a bisection were compared.
    fn compared(&mut self, _: &Step) {}
    /// Asked several times a second; true ends the experiment. What is done is kept.
    fn stop(&mut self) -> bool;
}

/// What boots guests, and what with.
pub struct Means<'a> {
    /// What boots guests.
    pub booter: &'a dyn Booter,
    /// Where kernels come from.
    pub kernels: &'a mut dyn FnMut(&Needed) -> Result<Kernel, Error>,
    /// This program, for the guests' architecture, which the kernel names.
    pub binary: &'a dyn Fn(&Kernel) -> Result<PathBuf, Error>,
    /// How many guests run at once.
    pub jobs: usize,
    /// Follows how far it is.
    pub observer: &'a mut dyn Observer,
}

/// The guests of an experiment in its directory.
pub struct Guests<'a, P> {
    state: &'a mut State<P>,
    directory: &'a Path,
    means: Means<'a>,
    parameters: Parameters,
}

/// What a guest is booted for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// It measures latencies under the loads.
    Latencies,
    /// It measures what operations take.
    Costs,
}

/// What a guest that fails does to the others.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OnFailure {
    GoOn,
    End,
}

/// Why guests have not all measured.
enum Halt {
    Stopped,
    /// Of this arm, by the guest of that name if one has booted.
    Arm(Option<String>, Error),
    Failed(Error),
}

impl From<Error> for Halt {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// What a guest measures, and where its record is kept.
struct Job {
    /// Its place, seen from the experiment's directory.
    name: String,
    guest: Guest,
    made_of: MadeOf,
    purpose: Purpose,
}

impl Purpose {
    /// The file by which a guest is known to have measured.
    fn file(self) -> &'static str {
        match self {
            Self::Latencies => store::RECORD,
            Self::Costs => record::cost::FILE,
        }
    }

    fn place<P: Plan>(self, plan: &P, block: &Block) -> String {
        match self {
            Self::Latencies => plan.place(block),
            Self::Costs => plan.cost_place(block),
        }
    }
}

impl<'a, P: Plan> Guests<'a, P> {
    /// Those of `state`, whose records are in `directory`.
    pub fn of(state: &'a mut State<P>, directory: &'a Path, means: Means<'a>) -> Self {
        Self { state, directory, means, parameters: Parameters::new() }
    }

    /// Has all of `blocks` measured, by guests with several loads: one that fails does not stop the others. False where the
    /// user stopped it.
    ///
    /// # Errors
    /// Where what came back cannot be kept, or a kernel is missing.
    pub fn measure_all(&mut self, blocks: &[Block]) -> Result<bool, Error> {
        self.boot_all(blocks, Purpose::Latencies)
    }

    /// Has what operations take measured in the arm of each of `blocks`, as [`Guests::measure_all`].
    ///
    /// # Errors
    /// As for that.
    pub fn measure_costs(&mut self, blocks: &[Block]) -> Result<bool, Error> {
        self.boot_all(blocks, Purpose::Costs)
    }

    fn boot_all(&mut self, blocks: &[Block], purpose: Purpose) -> Result<bool, Error> {
        match self.boot(blocks, purpose, OnFailure::GoOn) {
            Ok(()) => Ok(true),
            Err(Halt::Stopped) => Ok(false),
            Err(Halt::Failed(error) | Halt::Arm(_, error)) => Err(error),
        }
    }

    /// Boots each of `blocks` whose record is not there, once. Before that all kernels are looked at.
    fn boot(&mut self, blocks: &[Block], purpose: Purpose, on_failure: OnFailure) -> Result<(), Halt> {
        let missing = self.missing(blocks, purpose);
        if missing.is_empty() {
            return Ok(());
        }
        let has_guests = blocks.iter().any(|block| self.is_measured(block, purpose));
        let mut kernels: BTreeMap<&Arm, (Kernel, PathBuf)> = BTreeMap::new();
        let mut made_of: BTreeMap<String, MadeOf> = BTreeMap::new();
        let mut jobs = Vec::new();
        for block in missing {
            if !kernels.contains_key(&block.arm) {
                let kernel = self.kernel(&block.arm)?;
                let binary = (self.means.binary)(&kernel)?;
                kernels.insert(&block.arm, (kernel, binary));
            }
            let Some((kernel, binary)) = kernels.get(&block.arm) else { continue };
            let plan = &self.state.plan;
            let guest = match purpose {
                Purpose::Latencies => plan.guest(&block.arm, block.seed, kernel, binary)?,
                Purpose::Costs => plan.cost_guest(&block.arm, block.seed, kernel, binary)?,
            };
            if !made_of.contains_key(&kernel.name) {
                made_of.insert(kernel.name.clone(), self.means.booter.made_of(&guest)?);
            }
            let made_of = made_of[&kernel.name].clone();
            jobs.push(Job { name: purpose.place(&self.state.plan, block), guest, made_of, purpose });
        }
        let mut is_new = false;
        for job in &jobs {
            is_new |= self.state.settle(&job.guest.kernel, &job.made_of, has_guests)?;
        }
        if is_new {
            self.state.save(self.directory)?;
        }
        self.run(&jobs, on_failure)
    }

    /// Those whose records are not there; of blocks that one guest measures the first.
    fn missing<'b>(&self, blocks: &'b [Block], purpose: Purpose) -> Vec<&'b Block> {
        let mut guests = BTreeSet::new();
        let mut missing = Vec::new();
        for block in blocks {
            if guests.insert((block.seed, &block.arm)) && !self.is_measured(block, purpose) {
                missing.push(block);
            }
        }
        missing
    }

    fn is_measured(&self, block: &Block, purpose: Purpose) -> bool {
        let place = self.directory.join(purpose.place(&self.state.plan, block));
        place.join(purpose.file()).is_file()
    }

    fn run(&mut self, jobs: &[Job], on_failure: OnFailure) -> Result<(), Halt> {
        let guests: Vec<Guest> = jobs.iter().map(|job| job.guest.clone()).collect();
        let (plan, directory, observer) = (&self.state.plan, self.directory, &mut *self.means.observer);
        let mut keeper =
            Keeper { plan, directory, jobs, on_failure, observer, done: 0, failure: None, stopped: false };
        let finished = several::run(self.means.booter, &guests, self.means.jobs, &mut keeper)?;
        match keeper {
            Keeper { stopped: true, .. } => Err(Halt::Stopped),
            Keeper { failure: Some((name, error)), .. } => Err(Halt::Arm(Some(name), error)),
            _ if finished => Ok(()),
            _ => Err(Halt::Stopped),
        }
    }

    fn kernel(&mut self, arm: &Arm) -> Result<Kernel, Halt> {
        let needed = self.state.plan.kernel(arm)?;
        (self.means.kernels)(&needed).map_err(|error| match &needed {
            // Ctrl-C ends a build too.
            _ if self.means.observer.stop() => Halt::Stopped,
            // What cannot be built is an arm that cannot be measured; a kernel that is not there is a slip of the pen.
            Needed::Built(_) => Halt::Arm(None, error),
            Needed::Named(_) => Halt::Failed(error),
        })
    }

    /// The figures of each of `blocks`, booted now or before.
    fn figures(&mut self, blocks: &[Block]) -> Result<Vec<Figures>, Halt> {
        self.boot(blocks, Purpose::Latencies, OnFailure::End)?;
        let mut all = Vec::new();
        for block in blocks {
            let record = self.record(block)?;
            all.push(self.state.plan.figures(&record).map_err(Error::from)?);
            let parameters = record.header.machine.lab.and_then(|lab| lab.parameters).unwrap_or_default();
            self.parameters.entry(block.arm.clone()).or_insert(parameters);
        }
        Ok(all)
    }

    fn record(&self, block: &Block) -> Result<Record, Error> {
        let place = self.place(block);
        store::load(&place).map_err(|error| {
            Error::new(error.to_string())
                .hint(format!("remove {}; --resume measures it again", place.display()))
        })
    }

    fn place(&self, block: &Block) -> PathBuf {
        self.directory.join(self.state.plan.place(block))
    }
}

impl<P: Plan> Bench for Guests<'_, P> {
    fn measure(&mut self, blocks: &[Block]) -> Result<Option<Vec<Figures>>, failure::Error> {
        match self.figures(blocks) {
            Ok(figures) => Ok(Some(figures)),
            Err(Halt::Stopped) => Ok(None),
            Err(Halt::Failed(error) | Halt::Arm(None, error)) => Err(error.into()),
            Err(Halt::Arm(Some(name), error)) => {
                Err(Error { message: format!("{name}: {}", error.message), ..error }.into())
            }
        }
    }

    fn attempt(&mut self, blocks: &[Block]) -> Result<Option<Attempt>, failure::Error> {
        match self.figures(blocks) {
            Ok(figures) => Ok(Some(Ok(figures))),
            Err(Halt::Stopped) => Ok(None),
            Err(Halt::Failed(error)) => Err(error.into()),
            Err(Halt::Arm(None, error)) => Ok(Some(Err(error.message))),
            Err(Halt::Arm(Some(_), error)) => Ok(Some(Err(error.with_hint()))),
        }
    }

    fn planned(&mut self, planned: &Planned) {
        self.means.observer.planned(planned);
    }

    fn compared(&mut self, step: &Step) {
        self.means.observer.compared(step);
    }

    fn parameters(&self) -> Parameters {
        self.parameters.clone()
    }
}

/// Keeps what comes back.
struct Keeper<'a, P> {
    plan: &'a P,
    directory: &'a Path,
    jobs: &'a [Job],
    on_failure: OnFailure,
    observer: &'a mut dyn Observer,
    done: usize,
    /// The first guest that failed, where that ends the others.
    failure: Option<(String, Error)>,
    stopped: bool,
}

impl<P: Plan> Keeper<'_, P> {
    /// Keeps what a guest left, if it has measured what it was to measure.
    fn keep(&self, job: &Job, result: Result<Outcome, Failure>) -> Result<Result<(), Error>, Error> {
        if let Ok(ended) = &result {
            // A file that was replaced while guests ran.
            job.made_of.check(&ended.left.made_of, self.plan.kind().name())?;
        }
        let whole = result.and_then(|ended| match self.check(job, &ended) {
            Ok(()) => Ok(ended),
            Err(error) => Err(Failure { error, left: Some(Box::new(ended.left)) }),
        });
        let place = self.directory.join(&job.name);
        match whole {
            Ok(ended) => kept::keep(&place, &ended.left).map(Ok),
            Err(failure) => Ok(Err(kept::keep_failed(self.directory, &place, failure))),
        }
    }

    fn check(&self, job: &Job, ended: &Outcome) -> Result<(), Error> {
        if job.purpose == Purpose::Costs {
            return measure::cost_measured(ended).map(drop);
        }
        let record = measure::measured(ended, self.plan.loads(), job.guest.time)?;
        match self.on_failure {
            OnFailure::GoOn => Ok(()),
            OnFailure::End => Ok(self.plan.figures(&record).map(drop)?),
        }
    }
}

impl<P: Plan> Watcher for Keeper<'_, P> {
    fn begun(&mut self, index: usize) {
        self.observer.begun(&self.jobs[index].name, (self.done, self.jobs.len()));
    }

    fn ended(
        &mut self,
        index: usize,
        result: Result<Outcome, Failure>,
        taken: Duration,
    ) -> Result<(), Error> {
        let job = &self.jobs[index];
        let kept = self.keep(job, result)?;
        self.done += 1;
        let progress = (self.done, self.jobs.len());
        self.observer.ended(&job.name, progress, kept.as_ref().map(|()| taken));
        if let (Err(error), OnFailure::End) = (kept, self.on_failure) {
            self.failure.get_or_insert((job.name.clone(), error));
        }
        Ok(())
    }

    fn stop(&mut self) -> bool {
        self.stopped |= self.observer.stop();
        self.stopped || self.failure.is_some()
    }
}
