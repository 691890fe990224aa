//! `worstcase tune keep`.

use std::process::ExitCode;

use clap::Args;
use tune::holder::{self, Kind};
use tune::journal::Line;
use tune::status::reconcile;
use tune::{Live, boot_id};

use super::{StateOption, shown};
use crate::error::{CommandError, Result};
use crate::output;

/// Keep what apply --for has changed until undo
#[derive(Args)]
pub struct Keep {
    /// Write again, by name, what was reset: by ifup, hotplug, resume or another program
    #[arg(long)]
    reconcile: bool,

    #[command(flatten)]
    state: StateOption,
}

impl Keep {
    /// Does it.
    pub fn run(self) -> Result<ExitCode> {
        let state = self.state.state();
        let nothing =
            || CommandError::new("nothing is applied", "worstcase tune apply changes something first");
        state.history()?.ok_or_else(nothing)?;
        let lock = state.lock()?;
        let history = state.history()?.ok_or_else(nothing)?;
        if history.is_of_another_boot(&boot_id()) {
            return Err(CommandError::new("nothing holds: the machine was booted since", "apply it again"));
        }
        let mut journal = state.resume(&lock, &history)?;
        let mut text = String::new();
        if self.reconcile {
            let again = reconcile(&mut Live::new(state.directory()), &mut journal, &history)?;
            text += &shown::all_taken(&again);
            text += &format!("{} written again\n", shown::settings(again.len()));
        }
        if !history.kept && history.begin.as_ref().is_some_and(|begin| begin.seconds.is_some()) {
            journal.promise(&Line::Kept)?;
            holder::end(state.directory(), Kind::Deadline).map_err(|errno| {
                CommandError::new(format!("end the process that would undo: {errno}"), "")
            })?;
            text += "kept until worstcase tune undo\n";
        } else if !self.reconcile {
            text += "kept already: no time was given\n";
        }
        output::final_data(&text)?;
        Ok(ExitCode::SUCCESS)
    }
}
