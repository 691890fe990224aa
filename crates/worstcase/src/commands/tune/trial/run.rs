//! An experiment that runs: its bench, its answer, its end before that.

use std::path::PathBuf;
use std::process::ExitCode;

use experiment::Bench;
use lab::bench::Guests;
use lab::kernels::Needed;
use lab::state::{Plan, State};
use sys::signal::Signals;

use super::live::Machine;
use super::plan::{Place, TrialPlan};
use super::shown::shown;
use super::text;
use crate::commands::lab::choice;
use crate::commands::lab::several::{self, Several, Terminal};
use failure::Result;

/// An experiment that was begun.
pub struct Run {
    /// What is asked.
    pub state: State<TrialPlan>,
    /// Where its records are.
    pub directory: PathBuf,
    /// Where the journal of settings is.
    pub journal: tune::State,
    /// How many guests run side by side, and by which program.
    pub several: Several,
    /// Ctrl-C and the like.
    pub signals: Signals,
    /// Whether the answer is for programs.
    pub json: bool,
}

impl Run {
    /// What `experiment` makes of the bench.
    pub fn measured<A>(
        &mut self,
        experiment: impl FnOnce(&mut dyn Bench) -> std::result::Result<Option<A>, failure::Error>,
    ) -> Result<Option<A>> {
        let (plan, directory, signals) = (&self.state.plan.clone(), self.directory.as_path(), &self.signals);
        let setup = match &plan.place {
            Place::Here { .. } => {
                let mut machine = Machine { plan, directory, state: &self.journal, signals };
                return experiment(&mut machine);
            }
            Place::Guests(setup) => setup,
        };
        let kernels = &mut |needed: &Needed| Ok(choice::kernel(needed.name().as_ref())?);
        let observer = &mut Terminal { planned: &|next| text::planned(plan, next), ..Terminal::of(signals) };
        let run = |guests: &mut Guests<'_, TrialPlan>| experiment(guests);
        self.several.with_guests(&mut self.state, directory, setup.time, kernels, observer, run)
    }

    /// Shows the answer.
    pub fn conclude(&self) -> Result<()> {
        shown(&self.directory)?.conclude(&self.directory, self.json)
    }

    /// What is said where it was interrupted.
    pub fn stopped(&self) -> ExitCode {
        several::stopped(self.state.plan.kind(), &self.directory)
    }
}
