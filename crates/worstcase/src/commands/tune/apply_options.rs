//! What is common to commands that change settings: the journal, the time limit, the summary.

use std::io::{self, BufRead, IsTerminal};
use std::process::ExitCode;

use clap::Args;
use record::time::UtcTime;
use sysroot::SysRoot;
use tune::apply::{Applied, End, OnRefusal, apply};
use tune::holder::{self, Role};
use tune::journal::{Begin, History, Journal, Line, Lock};
use tune::undo::Undone;
use tune::{Plan, State, Step, boot_id, live};
use units::{Nanos, errno_in_words};

use super::leftover::why_left;
use super::{StateOption, shown, undo};
use crate::output;
use failure::{Error, Result};

/// How settings are written, and for how long.
#[derive(Args)]
pub struct ApplyOptions {
    /// Undo by itself after this time, unless tune keep is typed; also when the terminal is gone
    #[arg(long = "for", value_name = "TIME", allow_hyphen_values = true, value_parser = time)]
    pub(super) time: Option<Nanos>,

    /// Ask for each setting on the terminal
    #[arg(long)]
    pub(super) ask: bool,

    /// Keep what the kernel takes when it refuses something
    #[arg(long)]
    pub(super) keep_going: bool,

    #[command(flatten)]
    pub(super) state: StateOption,
}

/// Beside what may be applied already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    /// Nothing: it is refused where something is.
    Nothing,
    /// What is there, in its journal: one undo takes back all.
    WhatHolds,
}

/// How long until it is undone: a second at least.
pub fn time(text: &str) -> std::result::Result<Nanos, String> {
    match crate::options::duration(text) {
        Ok(time) if time < Nanos::from_secs(1) => Err("it must be within 1s to 366d".to_owned()),
        other => other,
    }
}

impl ApplyOptions {
    /// Writes what `plan` comes to once nothing is left of commands that were killed. `choice` is the file that asks
    /// for it.
    pub fn run(self, begun: Begin, beside: Beside, plan: impl FnOnce() -> Result<Plan>) -> Result<ExitCode> {
        if self.ask && !io::stdin().is_terminal() {
            return Err(Error::new("--ask without a terminal to ask on", "leave it out"));
        }
        let state = self.state.state();
        let lock = state.lock()?;
        let holding = clear(&state, &lock)?;
        self.check(holding.as_ref(), beside)?;
        state.check_others()?;
        let plan = plan()?;
        if plan.steps.is_empty() {
            output::final_data(&shown::plan(&plan))?;
            return Ok(ExitCode::SUCCESS);
        }
        for conflict in &plan.conflicts {
            output::warning(&format!("{} {}", conflict.who, conflict.what));
        }
        let mut journal = match &holding {
            Some(history) => state.resume(&lock, history)?,
            None => begin(&state, &lock, self.seconds(), begun)?,
        };
        let mut kernel = live(state.directory());
        rely(&state, &lock, &mut journal, holding.is_some(), &plan)?;
        let on_refusal = if self.keep_going { OnRefusal::GoOn } else { OnRefusal::RollBack };
        let applied =
            apply(&mut kernel, &mut journal, &plan.steps, on_refusal, &mut |step| !self.ask || agreed(step));
        let mut end = Ending { state: &state, lock: &lock, journal, holding };
        self.tell(&mut end, &applied)
    }

    fn seconds(&self) -> Option<u64> {
        self.time.map(|time| time.0.div_ceil(1_000_000_000))
    }

    fn check(&self, holding: Option<&History>, beside: Beside) -> Result<()> {
        let refuse = |hint| Err(Error::new("settings are applied already", hint));
        match (holding, beside) {
            (None, _) => Ok(()),
            (Some(_), Beside::Nothing) => refuse("worstcase tune status shows them; undo them first"),
            (Some(_), Beside::WhatHolds) if self.time.is_some() => {
                refuse("leave out --for: this is undone together with them")
            }
            (Some(_), Beside::WhatHolds) => Ok(()),
        }
    }

    fn tell(&self, end: &mut Ending, applied: &Applied) -> Result<ExitCode> {
        let mut text = shown::all_taken(&applied.taken);
        text += &applied.left_out.iter().map(shown::left_out).collect::<String>();
        match &applied.end {
            End::Applied => {
                text += &self.summary(applied);
                if end.holding.is_none() && applied.taken.iter().all(|taken| taken.ours().is_none()) {
                    undo::finish(end.state, end.lock)?;
                }
                output::final_data(&text)?;
                let failed = applied.taken.iter().filter(|taken| taken.is_failure()).count();
                if failed > 0 {
                    output::warning(&format!("the kernel did not take {}", shown::settings(failed)));
                }
                Ok(ExitCode::from(u8::from(failed > 0)))
            }
            End::RolledBack(undone) => {
                text += &end.put_back(undone)?;
                output::final_data(&text)?;
                let hint = match rustix::process::geteuid().is_root() {
                    true => "leave its rule out with --except, or keep what can be changed with --keep-going",
                    false => "run it as root",
                };
                Err(Error::new("the kernel refused a setting: what was changed before it was put back", hint))
            }
            End::JournalFailed(error, undone) => {
                text += &end.put_back(undone)?;
                output::final_data(&text)?;
                Err(Error::new(
                    format!("{error}: what was changed before was put back"),
                    "make room for the journal, or name another directory with --state",
                ))
            }
        }
    }

    fn summary(&self, applied: &Applied) -> String {
        let held = applied.taken.iter().filter(|taken| taken.held()).count();
        let count = applied.taken.iter().filter(|taken| taken.ours().is_some()).count();
        let state = self.state.argument();
        let end = match self.time {
            Some(time) => format!("undone by itself after {time} unless worstcase tune keep{state} is typed"),
            None => format!("worstcase tune undo{state} puts them back"),
        };
        let refused = match applied.taken.len() - count {
            0 => String::new(),
            refused => format!(", {refused} refused"),
        };
        let read_back = match held == count {
            true => " and read back".to_owned(),
            false => format!(", {held} read back as written"),
        };
        shown::lines(&format!("{} written{read_back}{refused}; {end}", shown::settings(count)), 0)
    }
}

/// The journal's beginning, and the process that undoes when so many seconds have run out and the lock is free.
pub(super) fn begin(state: &State, lock: &Lock, seconds: Option<u64>, begun: Begin) -> Result<Journal> {
    let started = UtcTime(sys::clock::unix_seconds()).to_string();
    let id = format!("{started}-{}", std::process::id());
    let tool_version = env!("CARGO_PKG_VERSION").to_owned();
    let online = tune::undo::online(&SysRoot::live());
    let begin = Begin { id: id.clone(), tool_version, started, boot_id: boot_id(), seconds, online, ..begun };
    let mut journal = state.begin(lock)?;
    journal.promise(&Line::Begin(begin))?;
    if let Some(seconds) = seconds {
        if let Err(errno) = holder::start(state.directory(), Role::Deadline(seconds, id)) {
            state.close(lock)?;
            let why = errno_in_words(errno.raw_os_error());
            let message = format!("start the process that undoes in the end: {why}");
            return Err(Error::new(message, "nothing was changed"));
        }
    }
    Ok(journal)
}

/// Has the journal say what the plan rests on; where it cannot, nothing is begun.
fn rely(state: &State, lock: &Lock, journal: &mut Journal, holds_more: bool, plan: &Plan) -> Result<()> {
    journal.rely(&plan.relied).or_else(|error| {
        if !holds_more {
            undo::finish(state, lock)?;
        }
        Err(Error::new(error, "nothing was changed"))
    })
}

/// Asks for one step.
fn agreed(step: &Step) -> bool {
    output::words(shown::step(step).trim_end());
    output::words("write it? [y/N]");
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).is_ok() && answer.trim().eq_ignore_ascii_case("y")
}

/// What it ends with.
struct Ending<'a> {
    state: &'a State,
    lock: &'a Lock,
    journal: Journal,
    /// What was applied before and stays.
    holding: Option<History>,
}

impl Ending<'_> {
    /// What was put back, in words. The journal is closed, or goes on without it where it lists more.
    fn put_back(&mut self, undone: &[Undone]) -> Result<String> {
        let Some(history) = &self.holding else { return undo::put_back(self.state, self.lock, undone) };
        if !undone.iter().any(|undone| undone.back.is_open()) {
            // Unsaid, the next undo finds that these read as before.
            let _ = self.journal.promise(&Line::Withdrawn { from: history.steps.len() });
        }
        Ok(shown::all_undone(undone))
    }
}

/// Takes away what an earlier command has left: of another boot, or of one that was killed. What somebody answers for
/// is not touched, and is given back.
pub(super) fn clear(state: &State, lock: &Lock) -> Result<Option<History>> {
    let Some(history) = state.history()? else { return Ok(None) };
    if history.is_of_another_boot(&boot_id()) {
        output::words("settings of an earlier boot are gone with it; their journal is put aside");
        state.close(lock)?;
        return Ok(None);
    }
    let Some(why) = why_left(state, &history) else { return Ok(Some(history)) };
    output::warning(&format!("settings are left: {why}; they are undone first"));
    let (text, all_closed) = undo::undo(state, lock, &history)?;
    output::words(text.trim_end());
    match all_closed {
        true => Ok(None),
        false => Err(Error::new("what was left could not be undone", "worstcase tune status says what")),
    }
}
