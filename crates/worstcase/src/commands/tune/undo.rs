//! `worstcase tune undo`.

use std::process::ExitCode;

use clap::Args;
use sysroot::SysRoot;
use tune::holder::{self, Kind};
use tune::journal::{History, Lock};
use tune::undo::{Undone, differences};
use tune::{State, Target, boot_id, live};

use super::leftover::left_alone;
use super::{StateOption, shown};
use crate::output;
use failure::{Error, Result};

/// Put back what apply has changed, from the journal alone, and prove it
///
/// What somebody else has changed since is left as it is and listed. Exit code 1 if something does not read as before.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    worstcase tune undo           everything that apply changed\n  \
    worstcase tune undo --left    what killed commands left")]
pub struct Undo {
    /// Undo only what a killed command or process has left behind
    #[arg(long)]
    left: bool,

    #[command(flatten)]
    state: StateOption,
}

impl Undo {
    pub fn run(self) -> Result<ExitCode> {
        let state = self.state.state();
        let Some(history) = state.history()? else {
            output::final_data("nothing is applied\n")?;
            return Ok(ExitCode::SUCCESS);
        };
        if self.left && left_alone(&state, &history).is_none() {
            output::final_data("nothing is left: what is applied is answered for\n")?;
            return Ok(ExitCode::SUCCESS);
        }
        let lock = lock(&state)?;
        let Some(history) = state.history()? else { return Ok(ExitCode::SUCCESS) };
        let (text, is_closed) = undo(&state, &lock, &history)?;
        let (proof, is_proven) = proof(&history);
        // What is to be tried again is said already, and need not be a setting of the journal's.
        let proof = if is_closed || !is_proven { proof } else { String::new() };
        output::final_data(&(text + &proof))?;
        Ok(ExitCode::from(u8::from(!(is_closed && is_proven))))
    }
}

/// Refuses a journal that may be another boot's: what it lists has other owners by now.
pub fn check_boot(state: &State, history: &History) -> Result<()> {
    if state.knows_boot(history) {
        return Ok(());
    }
    Err(Error::new(
        format!(
            "the first line of the journal in {} is lost, and with it of which boot it is",
            state.directory().display()
        ),
        "if the machine was booted since, nothing of it holds: remove the journal; else the rest of it says what was where",
    ))
}

/// What everything says once more, and whether it is as before.
fn proof(history: &History) -> (String, bool) {
    if history.is_of_another_boot(&boot_id()) {
        return ("nothing of it holds any more\n".to_owned(), true);
    }
    let left = differences(&SysRoot::live(), &history.steps);
    if !left.is_empty() {
        let line = |(target, old, now): &(Target, String, String)| {
            format!("  {target}: {} before, {} now\n", shown::quoted(old), shown::quoted(now))
        };
        let lines: String = left.iter().map(line).collect();
        return (format!("{} not as before:\n{lines}", shown::settings(left.len())), false);
    }
    match history.damaged.is_empty() {
        true => ("proof: everything reads as before\n".to_owned(), true),
        false => (
            "what the journal still lists reads as before; it is damaged, and there may be more\n".to_owned(),
            false,
        ),
    }
}

/// Undoes what `history` tells. What was done in words, and whether the journal could be closed.
pub fn undo(state: &State, lock: &Lock, history: &History) -> Result<(String, bool)> {
    if history.is_of_another_boot(&boot_id()) {
        put_aside(state, lock);
        return Ok((
            "the machine was booted since: what was changed is gone with the other boot\n".to_owned(),
            true,
        ));
    }
    check_boot(state, history)?;
    for line in &history.damaged {
        output::warning(&format!("line {line} of the journal is damaged: what it recorded is not undone"));
    }
    let undone = tune::undo::undo(state, lock, history, &mut live(state.directory()));
    let text = put_back(state, lock, &undone)?;
    Ok((text, !undone.iter().any(|undone| undone.back.is_open())))
}

/// What was put back, in words; the journal is closed unless something is to be tried again.
pub fn put_back(state: &State, lock: &Lock, undone: &[Undone]) -> Result<String> {
    let text = shown::all_undone(undone);
    if undone.iter().any(|undone| undone.back.is_open()) {
        output::warning("not all could be put back: the journal is kept, worstcase tune undo tries again");
    } else {
        put_aside(state, lock);
    }
    Ok(text)
}

/// The lock, also where the process that undoes when the time has run out has it and is stopped: it is ended, and what it
/// has not done yet is done here.
fn lock(state: &State) -> Result<Lock> {
    match state.lock() {
        Err(_) if state.is_busy() && holder::is_stopped(state.directory(), Kind::Deadline) => {
            output::warning("the process that was to undo them is stopped: it is ended");
            end(state, Kind::Deadline)?;
            Ok(state.lock()?)
        }
        locked => Ok(locked?),
    }
}

/// What was put back is put back, whether the journal can be put aside or not: its disk may be read-only by now.
fn put_aside(state: &State, lock: &Lock) {
    if let Err(error) = finish(state, lock) {
        output::warning(&format!(
            "{error}: status goes on to show what was put back, until worstcase tune undo can put the journal aside"
        ));
    }
}

fn end(state: &State, kind: Kind) -> Result<()> {
    holder::end(state.directory(), kind).map_err(|errno| {
        Error::new(format!("end a process that holds settings: {errno}"), "ps shows worstcase-hold")
    })
}

/// Nothing holds any more: the journal is put aside, and nobody needs to hold or to undo anything.
pub fn finish(state: &State, lock: &Lock) -> Result<()> {
    let closed = state.close(lock);
    [Kind::Deadline, Kind::Latency].into_iter().try_for_each(|kind| end(state, kind))?;
    Ok(closed?)
}
