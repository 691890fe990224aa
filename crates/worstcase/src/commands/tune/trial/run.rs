//! An experiment that runs: its bench, its answer, its end before that.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use experiment::{Arm, Bench};
use lab::MadeOf;
use lab::kept::{self, Resumable};
use lab::kernels::Kernel;
use lab::ladder::state::KernelTold;
use lab::several::{Booter, Qemu};
use record::{KernelParameter, store};
use serde::Serialize;
use sys::signal::Signals;
use tune::State;

use super::guests::Lab;
use super::live::Machine;
use super::parameters;
use super::question::{Guests, Place, Question};
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
        experiment: impl FnOnce(&mut dyn Bench) -> std::result::Result<Option<A>, experiment::Error>,
    ) -> Result<Option<A>> {
        let guests = match &self.question.place {
            Place::Here { .. } => {
                let (question, directory) = (&self.question, self.directory.as_path());
                let (state, signals) = (&self.state, &self.signals);
                return experiment(&mut Machine { question, directory, state, signals });
            }
            Place::Guests(guests) => (**guests).clone(),
        };
        let kernel = choice::kernel(guests.kernel.as_ref())?;
        if !KernelTold::of(&kernel).is_of_same_kernel(&guests.told) {
            let message = format!("{} is not the kernel that was begun with", guests.kernel);
            return Err(CommandError::new(message, "begin anew in another directory"));
        }
        let binary = self.several.binary(kernel.architecture)?;
        let made_of = self.settle(&guests, &kernel, &binary)?;
        let (question, directory, signals) = (&self.question, self.directory.as_path(), &self.signals);
        let (jobs, guests) = (self.several.jobs(guests.time), &guests);
        experiment(&mut Lab { question, guests, kernel, binary, made_of, jobs, directory, signals })
    }

    /// What guests are made of: the same as those whose records are there.
    fn settle(&mut self, guests: &Guests, kernel: &Kernel, binary: &Path) -> Result<MadeOf> {
        let arm = Arm::off();
        let guest = self.question.guest(guests, kernel, binary, &arm, self.question.design.seed)?;
        let made_of = Qemu.made_of(&guest)?;
        let has_records = records(&self.directory) > 0;
        let Place::Guests(kept) = &mut self.question.place else { return Ok(made_of) };
        if kept.told.settle(&made_of, has_records, "trial")? {
            self.question.save(&self.directory)?;
        }
        Ok(made_of)
    }

    /// What the guests' kernel made of the parameters that were tried; none of this machine.
    pub fn parameters(&self) -> Result<Vec<KernelParameter>> {
        match self.question.place {
            Place::Here { .. } => Ok(Vec::new()),
            Place::Guests(_) => parameters::of(&self.question, &self.directory),
        }
    }

    /// What is said where it was interrupted. What is measured is kept.
    pub fn stopped(&self) -> Result<ExitCode> {
        let verb = if self.question.search { "search" } else { "trial" };
        let done = match records(&self.directory) {
            0 => "no block was measured".to_owned(),
            1 => "1 block is measured and kept".to_owned(),
            blocks => format!("{blocks} blocks are measured and kept"),
        };
        output::words(&format!("inconclusive: interrupted; {done}"));
        output::words(&format!("go on with: worstcase tune {verb} --resume {}", self.directory.display()));
        Ok(ExitCode::from(if records(&self.directory) > 0 { 3 } else { 130 }))
    }

    /// Prints the answer.
    pub fn shown(&self, answer: &impl Serialize, parameters: &[KernelParameter], text: &str) -> Result<()> {
        let text = match self.json {
            true => {
                let notes = self.question.design.settings.iter().map(|setting| {
                    serde_json::json!({
                        "setting": setting,
                        "notes": parameters::notes(&self.question, setting, parameters),
                    })
                });
                let both = serde_json::json!({
                    "question": self.question,
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

/// How many blocks were measured to their end: what is a draft was not.
fn records(directory: &Path) -> usize {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    let whole =
        |path: &PathBuf| path.extension().is_none_or(|end| end != "draft") && !kept::is_of_failed(path);
    let count = |path: PathBuf| usize::from(path.ends_with(store::RECORD)) + records(&path);
    entries.filter(whole).map(count).sum()
}
