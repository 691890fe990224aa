//! A ladder that runs: guest after guest, what comes back is kept at once.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::plan::{guest, measured};
use super::state::KernelTold;
use super::{Cell, CellState, State};
use crate::Error;
use crate::boot::{Failure, Guest, Outcome};
use crate::kept::{self, Resumable};
use crate::kernels::Kernel;
use crate::several::{self, Booter, Watcher};

/// Who is told how far a ladder is.
pub trait Told {
    /// `cell` boots.
    fn begun(&mut self, cell: &Cell);
    /// `cell` is done or failed, as its state says; `left` cells are not.
    fn ended(&mut self, cell: &Cell, left: usize);
    /// Asked several times a second; true ends the run. What is done is kept.
    fn stop(&mut self) -> bool;
}

/// A ladder in its directory.
#[derive(Debug)]
pub struct Course {
    /// How far it is.
    pub state: State,
    directory: PathBuf,
}

impl Course {
    /// Begins in `directory`, which is made; one that holds something is refused.
    ///
    /// # Errors
    /// Where it cannot be made or written to.
    pub fn begin(state: State, directory: &Path) -> Result<Self, Error> {
        kept::begin(directory, "ladder")?;
        state.save(directory)?;
        Ok(Self { state, directory: directory.to_path_buf() })
    }

    /// Goes on in `directory`.
    ///
    /// # Errors
    /// Where there is no ladder.
    pub fn resume(directory: &Path) -> Result<Self, Error> {
        Ok(Self { state: State::load(directory)?, directory: directory.to_path_buf() })
    }

    /// Where it is.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Runs all cells that are not done, `jobs` at once. A cell that fails does not stop the others. Gives back whether
    /// all were run.
    ///
    /// # Errors
    /// Where what came back cannot be kept, or a kernel is missing.
    pub fn run(
        &mut self,
        booter: &dyn Booter,
        kernels: &BTreeMap<String, Kernel>,
        binary: &Path,
        jobs: usize,
        told: &mut dyn Told,
    ) -> Result<bool, Error> {
        let waiting = self.state.waiting();
        let guests = waiting.iter().map(|&cell| self.guest(cell, kernels, binary));
        let guests = guests.collect::<Result<Vec<_>, _>>()?;
        self.settle(booter, &guests)?;
        let mut keeper = Keeper { left: waiting.len(), course: self, waiting, told };
        several::run(booter, &guests, jobs, &mut keeper)
    }

    /// Guests of all kernels are made of what those were that ran before.
    fn settle(&mut self, booter: &dyn Booter, guests: &[Guest]) -> Result<(), Error> {
        let is_done = |cell: &Cell| matches!(cell.state, CellState::Done { .. });
        let mut settled = BTreeSet::new();
        for guest in guests {
            let name = &guest.kernel.name;
            if !settled.insert(name.clone()) {
                continue;
            }
            let made_of = booter.made_of(guest)?;
            let has_guests =
                self.state.cells.iter().any(|cell| is_done(cell) && self.kernel_of(cell) == Some(name));
            self.known(name)?.settle(&made_of, has_guests, "ladder")?;
            self.state.emulator = Some(made_of.emulator);
        }
        self.state.save(&self.directory)
    }

    fn kernel_of(&self, cell: &Cell) -> Option<&String> {
        let rung = self.state.ladder.rungs.iter().find(|rung| rung.name == cell.rung);
        rung.map(|rung| &rung.kernel)
    }

    fn known(&mut self, kernel: &str) -> Result<&mut KernelTold, Error> {
        let known = self.state.kernels.get_mut(kernel);
        known.ok_or_else(|| Error::new(format!("the ladder was begun without kernel {kernel}")))
    }

    fn guest(&self, cell: usize, kernels: &BTreeMap<String, Kernel>, binary: &Path) -> Result<Guest, Error> {
        let (ladder, cell) = (&self.state.ladder, &self.state.cells[cell]);
        let rung = ladder.rungs.iter().find(|rung| rung.name == cell.rung);
        let found = rung.and_then(|rung| Some((rung, kernels.get(&rung.kernel)?)));
        let (rung, kernel) =
            found.ok_or_else(|| Error::new(format!("there is no kernel for rung {}", cell.rung)))?;
        Ok(guest(ladder, rung, kernel, cell.seed, binary))
    }
}

/// Keeps what comes back and tells of it.
struct Keeper<'a> {
    course: &'a mut Course,
    /// The cells of the guests.
    waiting: Vec<usize>,
    left: usize,
    told: &'a mut dyn Told,
}

impl Watcher for Keeper<'_> {
    fn begun(&mut self, index: usize) {
        self.told.begun(&self.course.state.cells[self.waiting[index]]);
    }

    fn ended(
        &mut self,
        index: usize,
        result: Result<Outcome, Failure>,
        taken: Duration,
    ) -> Result<(), Error> {
        let cell = self.waiting[index];
        let place = self.course.state.place(&self.course.directory, cell);
        let state = match result {
            Ok(outcome) => {
                // A file that was replaced while the ladder ran.
                let kernel =
                    self.course.kernel_of(&self.course.state.cells[cell]).cloned().unwrap_or_default();
                self.course.known(&kernel)?.settle(&outcome.left.made_of, true, "ladder")?;
                let ladder = &self.course.state.ladder;
                // A guest that measured too little leaves a trace of why.
                let whole = measured(&outcome, &ladder.loads, ladder.time).map(drop);
                kept::keep(&place, &outcome.left)?;
                let seconds = (taken.as_secs_f64() * 10.0).round() / 10.0;
                whole.map_or_else(|error| CellState::Failed(error.message), |()| CellState::Done { seconds })
            }
            Err(failure) => {
                CellState::Failed(kept::keep_failed(&self.course.directory, &place, failure).with_hint())
            }
        };
        self.course.state.cells[cell].state = state;
        self.course.state.save(&self.course.directory)?;
        self.left -= 1;
        self.told.ended(&self.course.state.cells[cell], self.left);
        Ok(())
    }

    fn stop(&mut self) -> bool {
        self.told.stop()
    }
}

#[cfg(test)]
#[path = "course_tests.rs"]
mod tests;
