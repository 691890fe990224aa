//! An experiment that runs: its bench, its answer, its end before that.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use lab::ladder::state::KernelTold;
use record::store;
use serde::Serialize;
use sys::signal::Signals;
use trial::Bench;
use tune::State;

use super::guests::Lab;
use super::live::Machine;
use super::question::{Place, Question};
use crate::commands::lab::choice;
use crate::commands::lab::several::Several;
use crate::error::{CommandError, Result};
use crate::output;

/// An experiment that was begun.
pub struct Run {
    /// What is asked.
    pub question: Question,
    /// Where its records are.
    pub directory: PathBuf,
    /// Where the journal of settings is.
    pub state: State,
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
        experiment: impl FnOnce(&mut dyn Bench) -> std::result::Result<Option<A>, trial::Error>,
    ) -> Result<Option<A>> {
        let (question, directory, signals) = (&self.question, self.directory.as_path(), &self.signals);
        let guests = match &question.place {
            Place::Here { .. } => {
                let state = &self.state;
                return Ok(experiment(&mut Machine { question, directory, state, signals })?);
            }
            Place::Guests(guests) => guests,
        };
        let kernel = choice::kernel(guests.kernel.as_ref())?;
        if KernelTold::of(&kernel) != guests.told {
            let message = format!("{} is not the kernel that was begun with", guests.kernel);
            return Err(CommandError::new(message, "begin anew in another directory"));
        }
        let binary = self.several.binary(kernel.architecture)?;
        let jobs = self.several.jobs(guests.time);
        Ok(experiment(&mut Lab { question, guests, kernel, binary, jobs, directory, signals })?)
    }

    /// What is said where it was told to stop. What is measured is kept.
    pub fn stopped(&self) -> Result<ExitCode> {
        let verb = if self.question.search { "search" } else { "trial" };
        output::words(&format!("go on with: worstcase tune {verb} --resume {}", self.directory.display()));
        Ok(ExitCode::from(if has_record(&self.directory) { 3 } else { 130 }))
    }

    /// Prints the answer.
    pub fn shown(&self, answer: &impl Serialize, text: &str) -> Result<()> {
        let text = match self.json {
            true => {
                let both = serde_json::json!({ "question": self.question, "answer": answer });
                serde_json::to_string(&both).map_err(|error| CommandError::new(error, ""))? + "\n"
            }
            false => text.to_owned(),
        };
        output::final_data(&text)?;
        output::words(&format!("records: {}", self.directory.display()));
        Ok(())
    }
}

/// Whether a block was measured to its end: what is a draft still is none.
fn has_record(directory: &Path) -> bool {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    let whole = |path: &PathBuf| path.extension().is_none_or(|end| end != "draft");
    entries.filter(whole).any(|path| path.ends_with(store::RECORD) || has_record(&path))
}
