//! An experiment that runs: its bench, its answer, its end before that.

use std::path::PathBuf;
use std::process::ExitCode;

use experiment::Bench;
use lab::bench::Guests;
use lab::kernels::Needed;
use lab::state::{Plan, State};
use record::KernelParameter;
use serde::Serialize;
use sys::signal::Signals;

use super::live::Machine;
use super::parameters;
use super::plan::{Place, TrialPlan};
use super::text;
use crate::commands::lab::choice;
use crate::commands::lab::several::{self, Several, Terminal};
use crate::error::{CommandError, Result};
use crate::output;

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
    /// What `experiment` makes of the bench, and what the guests' kernel made of the parameters that were tried.
    pub fn measured<A>(
        &mut self,
        experiment: impl FnOnce(&mut dyn Bench) -> std::result::Result<Option<A>, failure::Error>,
    ) -> Result<Option<(A, Vec<KernelParameter>)>> {
        let (plan, directory, signals) = (&self.state.plan.clone(), self.directory.as_path(), &self.signals);
        let setup = match &plan.place {
            Place::Here { .. } => {
                let answer = experiment(&mut Machine { plan, directory, state: &self.journal, signals })?;
                return Ok(answer.map(|answer| (answer, Vec::new())));
            }
            Place::Guests(setup) => setup,
        };
        let kernels = &mut |needed: &Needed| Ok(choice::kernel(needed.name().as_ref())?);
        let observer = &mut Terminal { planned: &|next| text::planned(plan, next), ..Terminal::of(signals) };
        let run = |guests: &mut Guests<'_, TrialPlan>| {
            let answer = experiment(guests)?;
            Ok(answer.map(|answer| (answer, parameters::tried(plan, &guests.parameters()))))
        };
        self.several.with_guests(&mut self.state, directory, setup.time, kernels, observer, run)
    }

    /// What is said where it was interrupted.
    pub fn stopped(&self) -> ExitCode {
        several::stopped(self.state.plan.kind(), &self.directory)
    }

    /// Prints the answer.
    pub fn shown(&self, answer: &impl Serialize, parameters: &[KernelParameter], text: &str) -> Result<()> {
        let text = match self.json {
            true => {
                let plan = &self.state.plan;
                let notes = plan.design.settings.iter().map(|setting| {
                    serde_json::json!({
                        "setting": setting,
                        "notes": parameters::notes(plan, setting, parameters),
                    })
                });
                let both = serde_json::json!({
                    "question": self.state,
                    "answer": answer,
                    "parameters": parameters,
                    "notes": notes.collect::<Vec<_>>(),
                });
                serde_json::to_string(&both).map_err(|error| CommandError::new(error, ""))? + "\n"
            }
            false => text.to_owned(),
        };
        output::final_data(&text)?;
        output::words(&format!("records: {}", self.directory.display()));
        Ok(())
    }
}
