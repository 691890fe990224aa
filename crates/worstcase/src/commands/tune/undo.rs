//! `worstcase tune undo`.

use std::process::ExitCode;

use clap::Args;
use sysroot::SysRoot;
use tune::holder::{self, Kind};
use tune::journal::{History, Lock};
use tune::undo::{Undone, differences, restore};
use tune::{State, Target, boot_id, live};

use super::leftover::left_alone;
use super::{StateOption, shown};
use crate::error::{CommandError, Result};
use crate::output;

/// Put back what apply has changed, from the journal alone, and prove it
///
/// What somebody else has changed since is left as it is and listed. Exit code 1 if something does not read as before.
#[derive(Args)]
pub struct Undo {
    /// Only what a command or a process that was killed has left, as nobody answers for it
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
        let lock = state.lock()?;
        let Some(history) = state.history()? else { return Ok(ExitCode::SUCCESS) };
        let (text, _) = undo(&state, &lock, &history)?;
        let (proof, is_proven) = proof(&history);
        output::final_data(&(text + &proof))?;
        Ok(ExitCode::from(u8::from(!is_proven)))
    }
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
            "what the journal still tells of reads as before; it is damaged, and there may be more\n"
                .to_owned(),
            false,
        ),
    }
}

/// Undoes what `history` tells. What was done in words, and whether the journal could be closed.
pub fn undo(state: &State, lock: &Lock, history: &History) -> Result<(String, bool)> {
    if history.is_of_another_boot(&boot_id()) {
        state.close(lock)?;
        return Ok((
            "the machine was booted since: what was changed is gone with the other boot\n".to_owned(),
            true,
        ));
    }
    for line in &history.damaged {
        output::words(&format!(
            "warning: line {line} of the journal is damaged: what it recorded is not undone"
        ));
    }
    let undone = restore(&mut live(state.directory()), &history.steps);
    let text = put_back(state, lock, &undone)?;
    Ok((text, !undone.iter().any(|undone| undone.back.is_open())))
}

/// What was put back, in words; the journal is closed unless something is to be tried again.
pub fn put_back(state: &State, lock: &Lock, undone: &[Undone]) -> Result<String> {
    let text = shown::all_undone(undone);
    if undone.iter().any(|undone| undone.back.is_open()) {
        output::words(
            "warning: not all could be put back: the journal is kept, worstcase tune undo tries again",
        );
    } else {
        finish(state, lock)?;
    }
    Ok(text)
}

/// Nothing holds any more: the journal is put aside, and nobody needs to hold or to undo anything.
pub fn finish(state: &State, lock: &Lock) -> Result<()> {
    state.close(lock)?;
    for kind in [Kind::Deadline, Kind::Latency] {
        holder::end(state.directory(), kind).map_err(|errno| {
            CommandError::new(
                format!("end a process that holds settings: {errno}"),
                "ps shows worstcase-hold",
            )
        })?;
    }
    Ok(())
}
