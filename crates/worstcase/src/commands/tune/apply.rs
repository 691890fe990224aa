//! `worstcase tune apply`.

use std::io::{self, BufRead, IsTerminal};
use std::process::ExitCode;

use clap::Args;
use record::time::UtcTime;
use tune::apply::{Applied, End, OnRefusal, apply};
use tune::holder::{self, Role};
use tune::journal::{Begin, Journal, Line, Lock};
use tune::{Live, State, Step, boot_id, in_words};
use units::Nanos;

use super::choice::Choice;
use super::leftover::why_left;
use super::selection::Selection;
use super::{StateOption, shown, undo};
use crate::error::{CommandError, Result};
use crate::output;

/// Write what plan shows, read back each write, and keep a journal
///
/// Where the kernel refuses something, everything is put back. That it keeps interrupts and threads where they are is
/// told and no refusal.
#[derive(Args)]
pub struct Apply {
    #[command(flatten)]
    choice: Choice,

    /// Undo by itself after this time, unless tune keep is typed; also when the terminal is gone
    #[arg(long = "for", value_name = "TIME", allow_hyphen_values = true, value_parser = time)]
    time: Option<Nanos>,

    /// Ask for each setting on the terminal
    #[arg(long)]
    ask: bool,

    /// Keep what the kernel takes when it refuses something
    #[arg(long)]
    keep_going: bool,

    #[command(flatten)]
    state: StateOption,
}

/// How long until it is undone: a second at least.
pub fn time(text: &str) -> std::result::Result<Nanos, String> {
    match crate::options::duration(text) {
        Ok(time) if time < Nanos::from_secs(1) => Err("it must be within 1s to 366d".to_owned()),
        other => other,
    }
}

impl Apply {
    /// Of these settings, as `tune apply` does it, undone after `time` if there is one.
    pub fn of(selection: Selection, time: Option<Nanos>, state: StateOption) -> Self {
        Self { choice: Choice::of(selection), time, ask: false, keep_going: false, state }
    }

    /// Does it.
    pub fn run(self) -> Result<ExitCode> {
        if self.ask && !io::stdin().is_terminal() {
            return Err(CommandError::new("--ask without a terminal to ask on", "leave it out"));
        }
        let state = self.state.state();
        let lock = state.lock()?;
        clear(&state, &lock)?;
        let plan = self.choice.plan(None)?;
        if plan.steps.is_empty() {
            output::final_data(&shown::plan(&plan))?;
            return Ok(ExitCode::SUCCESS);
        }
        for conflict in &plan.conflicts {
            output::words(&format!("warning: {} {}", conflict.who, conflict.what));
        }
        let mut journal = self.begin(&state, &lock)?;
        let mut hand = Live::new(state.directory());
        let on_refusal = if self.keep_going { OnRefusal::GoOn } else { OnRefusal::RollBack };
        let applied =
            apply(&mut hand, &mut journal, &plan.steps, on_refusal, &mut |step| !self.ask || agreed(step));
        self.tell(&state, &lock, &applied)
    }

    /// The journal's beginning, and the process that undoes when the time has run out.
    fn begin(&self, state: &State, lock: &Lock) -> Result<Journal> {
        let started = UtcTime(sys::clock::unix_seconds()).to_string();
        let id = format!("{started}-{}", std::process::id());
        let seconds = self.time.map(|time| time.0.div_ceil(1_000_000_000));
        let tool_version = env!("CARGO_PKG_VERSION").to_owned();
        let mut journal = state.begin(lock)?;
        journal.promise(&Line::Begin(Begin {
            id: id.clone(),
            tool_version,
            started,
            boot_id: boot_id(),
            seconds,
            choice: self.choice.source(),
        }))?;
        if let Some(seconds) = seconds {
            if let Err(errno) = holder::start(state.directory(), Role::Deadline(seconds, id)) {
                state.close(lock)?;
                let why = in_words(errno.raw_os_error());
                let message = format!("start the process that undoes after --for: {why}");
                return Err(CommandError::new(message, "nothing was changed; try without --for"));
            }
        }
        Ok(journal)
    }

    fn tell(&self, state: &State, lock: &Lock, applied: &Applied) -> Result<ExitCode> {
        let mut text = shown::all_taken(&applied.taken);
        text += &applied.left_out.iter().map(shown::left_out).collect::<String>();
        match &applied.end {
            End::Applied => {
                text += &self.summary(applied);
                if applied.taken.iter().all(|taken| taken.ours().is_none()) {
                    undo::finish(state, lock)?;
                }
                output::final_data(&text)?;
                Ok(ExitCode::SUCCESS)
            }
            End::RolledBack(undone) => {
                text += &undo::put_back(state, lock, undone)?;
                output::final_data(&text)?;
                let hint = match rustix::process::geteuid().is_root() {
                    true => "leave its rule out with --except, or keep what can be changed with --keep-going",
                    false => "run it as root",
                };
                Err(CommandError::new(
                    "the kernel refused a setting: what was changed before it was put back",
                    hint,
                ))
            }
            End::JournalFailed(error, undone) => {
                text += &undo::put_back(state, lock, undone)?;
                output::final_data(&text)?;
                Err(CommandError::new(
                    format!("{error}: what was changed before was put back"),
                    "make room for the journal, or name another directory with --state",
                ))
            }
        }
    }

    fn summary(&self, applied: &Applied) -> String {
        let held = applied.taken.iter().filter(|taken| taken.held()).count();
        let count = applied.taken.len();
        let end = match self.time {
            Some(time) => format!("undone by itself after {time} unless worstcase tune keep is typed"),
            None => "worstcase tune undo puts them back".to_owned(),
        };
        format!("{} written, {held} as asked for; {end}\n", shown::settings(count))
    }
}

/// Asks for one step.
fn agreed(step: &Step) -> bool {
    output::words(shown::step(step).trim_end());
    output::words("write it? [y/N]");
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).is_ok() && answer.trim().eq_ignore_ascii_case("y")
}

/// Takes away what an earlier command has left: of another boot, or of one that was killed. What somebody answers for
/// is not touched.
fn clear(state: &State, lock: &Lock) -> Result<()> {
    let Some(history) = state.history()? else { return Ok(()) };
    if history.is_of_another_boot(&boot_id()) {
        output::words("settings of an earlier boot are gone with it; their journal is put aside");
        return Ok(state.close(lock)?);
    }
    let Some(why) = why_left(state, &history) else {
        let hint = "worstcase tune status shows them; undo them first";
        return Err(CommandError::new("settings are applied already", hint));
    };
    output::words(&format!("warning: settings are left: {why}; they are undone first"));
    let (text, all_closed) = undo::undo(state, lock, &history)?;
    output::words(text.trim_end());
    match all_closed {
        true => Ok(()),
        false => {
            Err(CommandError::new("what was left could not be undone", "worstcase tune status says what"))
        }
    }
}
