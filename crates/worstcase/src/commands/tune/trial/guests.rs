//! Blocks that guests measure: one boot an arm and seed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use experiment::{Arm, Bench, Block, Figures, Planned};
use lab::MadeOf;
use lab::boot::{Failure, Outcome};
use lab::kept;
use lab::kernels::Kernel;
use lab::ladder::plan::measured;
use lab::several::{self, Qemu, Watcher};
use record::store;
use sys::signal::{Signal, Signals};
use units::Seed;

use super::question::{self, Question};
use super::text;
use crate::error::Result;
use crate::output::{self, Stream};

/// Guests.
pub struct Lab<'a> {
    /// What is asked.
    pub question: &'a Question,
    /// What they are made of.
    pub guests: &'a question::Guests,
    /// What they boot.
    pub kernel: Kernel,
    /// This program, for their architecture.
    pub binary: PathBuf,
    /// What they are made of.
    pub made_of: MadeOf,
    /// How many run side by side.
    pub jobs: usize,
    /// Where records are kept.
    pub directory: &'a Path,
    /// Ctrl-C and the like.
    pub signals: &'a Signals,
}

impl Bench for Lab<'_> {
    /// A guest with the same words and seed is not booted twice.
    fn measure(&mut self, blocks: &[Block]) -> std::result::Result<Option<Vec<Figures>>, experiment::Error> {
        let wanted: BTreeSet<(Seed, Arm)> =
            blocks.iter().map(|block| (block.seed, block.arm.clone())).collect();
        let is_missing = |(seed, arm): &(Seed, Arm)| !self.place(arm, *seed).join(store::RECORD).is_file();
        let missing: Vec<(Seed, Arm)> = wanted.into_iter().filter(is_missing).collect();
        if !self.boot(&missing)? {
            return Ok(None);
        }
        let figures = |block: &Block| {
            let record = store::load(&self.place(&block.arm, block.seed));
            let record = record.map_err(|error| experiment::Error::new(error.to_string(), error.hint))?;
            Figures::of(&record)
        };
        blocks.iter().map(figures).collect::<std::result::Result<_, _>>().map(Some)
    }

    fn planned(&mut self, planned: &Planned) {
        output::words(&text::planned(self.question, planned));
    }
}

impl Lab<'_> {
    fn place(&self, arm: &Arm, seed: Seed) -> PathBuf {
        self.directory.join(arm.to_string()).join(format!("seed-{seed}"))
    }

    /// False where it was told to stop.
    fn boot(&self, missing: &[(Seed, Arm)]) -> Result<bool> {
        let guest = |(seed, arm): &(Seed, Arm)| {
            self.question.guest(self.guests, &self.kernel, &self.binary, arm, *seed)
        };
        let guests = missing.iter().map(guest).collect::<Result<Vec<_>>>()?;
        let mut keeper = Keeper { lab: self, missing, done: 0, failure: None };
        let finished = several::run(&Qemu, &guests, self.jobs, &mut keeper)?;
        if output::is_terminal(Stream::Error) {
            output::end_progress();
        }
        match keeper.failure {
            Some(error) => Err(error.into()),
            None => Ok(finished),
        }
    }
}

/// Keeps what comes back.
struct Keeper<'a> {
    lab: &'a Lab<'a>,
    missing: &'a [(Seed, Arm)],
    done: usize,
    failure: Option<lab::Error>,
}

impl Watcher for Keeper<'_> {
    fn begun(&mut self, index: usize) {
        if output::is_terminal(Stream::Error) {
            let (seed, arm) = &self.missing[index];
            let of = self.missing.len();
            output::progress(&format!("{} of {of} guests done; {arm}, seed {seed} boots", self.done));
        }
    }

    fn ended(
        &mut self,
        index: usize,
        result: std::result::Result<Outcome, Failure>,
        _: Duration,
    ) -> std::result::Result<(), lab::Error> {
        let (seed, arm) = &self.missing[index];
        let question = self.lab.question;
        let loads = std::slice::from_ref(&question.conditions.load);
        let place = self.lab.place(arm, *seed);
        if let Ok(ended) = &result {
            // A file that was replaced while guests ran.
            self.lab.made_of.check(&ended.left.made_of, "trial")?;
        }
        let whole = result.and_then(|ended| match measured(&ended, loads, self.lab.guests.time) {
            Ok(_) => Ok(ended),
            Err(error) => Err(Failure { error, left: Some(Box::new(ended.left)) }),
        });
        match whole {
            Ok(ended) => kept::keep(&place, &ended.left)?,
            Err(failure) => {
                let error = kept::keep_failed(self.lab.directory, &place, failure);
                let named = lab::Error { message: format!("{arm}, seed {seed}: {}", error.message), ..error };
                self.failure.get_or_insert(named);
            }
        }
        self.done += 1;
        Ok(())
    }

    fn stop(&mut self) -> bool {
        self.failure.is_some() || self.lab.signals.next().is_some_and(|signal| signal != Signal::User1)
    }
}
