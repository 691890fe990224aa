//! `worstcase tune keep`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use tune::apply::{End, OnRefusal, apply};
use tune::holder::{self, Kind};
use tune::journal::{History, Journal, Line, Taken};
use tune::status::reconcile;
use tune::{State, Step, boot_id, live};

use super::undo::check_boot;
use super::{StateOption, choice, shown};
use crate::output;
use failure::{Error, Result};

/// Keep what apply --for has changed until undo
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    worstcase tune keep                an apply --for stays\n  \
    worstcase tune keep --reconcile    write again what was reset")]
pub struct Keep {
    /// Write again, by name, what was reset: by ifup, hotplug, resume or another program
    #[arg(long)]
    reconcile: bool,

    /// Also write what this file asks for on devices that came later. Does nothing where something else is applied
    #[arg(long, value_name = "FILE", requires = "reconcile")]
    file: Option<PathBuf>,

    #[command(flatten)]
    state: StateOption,
}

impl Keep {
    pub fn run(self) -> Result<ExitCode> {
        let state = self.state.state();
        if let Some(file) = &self.file {
            return look_after(&state, &choice::whole(file));
        }
        let nothing = || Error::new("nothing is applied", "worstcase tune apply changes something first");
        state.history()?.ok_or_else(nothing)?;
        let lock = state.lock()?;
        let history = state.history()?.ok_or_else(nothing)?;
        if history.is_of_another_boot(&boot_id()) {
            return Err(Error::new("nothing holds: the machine was booted since", "apply it again"));
        }
        check_boot(&state, &history)?;
        let mut journal = state.resume(&lock, &history)?;
        let mut text = String::new();
        if self.reconcile {
            text += &reconciled(&reconcile(&mut live(state.directory()), &mut journal, &history)?);
        }
        // A repair is no decision to keep: what --for is to undo is still undone.
        if !self.reconcile
            && !history.kept
            && history.begin.as_ref().is_some_and(|begin| begin.seconds.is_some())
        {
            journal.promise(&Line::Kept)?;
            holder::end(state.directory(), Kind::Deadline)
                .map_err(|errno| Error::new(format!("end the process that would undo: {errno}"), ""))?;
            text += "kept until worstcase tune undo\n";
        } else if !self.reconcile {
            text += "kept already: no time was given\n";
        }
        output::final_data(&text)?;
        Ok(ExitCode::SUCCESS)
    }
}

fn reconciled(again: &[Taken]) -> String {
    shown::all_taken(again) + &format!("{} written again\n", shown::settings(again.len()))
}

/// What a service does from time to time, with nobody there: it waits for others, and where what is applied is not the
/// file's it does nothing, so that it never keeps what somebody tries for a while.
fn look_after(state: &State, file: &Path) -> Result<ExitCode> {
    let lock = state.wait_for_lock()?;
    let history = state.history()?.filter(|history| is_of(history, file));
    let Some(history) = history else {
        output::final_data(&format!("what {} says is not applied: nothing is done\n", file.display()))?;
        return Ok(ExitCode::SUCCESS);
    };
    let mut journal = state.resume(&lock, &history)?;
    let again = reconcile(&mut live(state.directory()), &mut journal, &history)?;
    let mut text = reconciled(&again);
    let added = add(state, &mut journal, &history, file)?;
    if !added.is_empty() {
        text += &(shown::all_taken(&added) + &format!("{} added\n", shown::settings(added.len())));
    }
    output::final_data(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Whether what holds was chosen by `file`, as a whole, in this boot.
fn is_of(history: &History, file: &Path) -> bool {
    let by = history.begin.as_ref().and_then(|begin| begin.choice.as_deref());
    history.applied && by.map(Path::new) == Some(file) && !history.is_of_another_boot(&boot_id())
}

/// Writes what the file asks for on the machine as it is now, but for what the journal lists already.
fn add(state: &State, journal: &mut Journal, history: &History, file: &Path) -> Result<Vec<Taken>> {
    let plan = choice::read(file)?.plan(None)?;
    let is_new = |step: &Step| history.steps.iter().all(|taken| taken.target != step.target);
    let steps: Vec<Step> = plan.steps.into_iter().filter(is_new).collect();
    if steps.is_empty() {
        return Ok(Vec::new());
    }
    let applied = apply(&mut live(state.directory()), journal, &steps, OnRefusal::GoOn, &mut |_| true);
    match applied.end {
        End::JournalFailed(error, _) => Err(error.into()),
        End::Applied | End::RolledBack(_) => Ok(applied.taken),
    }
}
