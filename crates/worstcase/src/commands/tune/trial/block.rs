//! One block in one arm: measures with settings on, which are undone at its end, however it comes. Trials start it as a
//! process of its own, on this machine and in guests.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use record::Request;
use serde::{Deserialize, Serialize};
use sysroot::SysRoot;
use tune::apply::{End, OnRefusal, apply, rewrite};
use tune::journal::{Begin, Lock};
use tune::undo::differences;
use tune::{Plan, State, live};
use units::CpuList;

use super::setting::{self, Setting};
use crate::commands::applied;
use crate::commands::tune::apply_options::{begin, clear};
use crate::commands::tune::selection::Selection;
use crate::commands::tune::{shown, undo};
use crate::commands::{cost_rounds, measured};
use crate::output;
use failure::{Error, Result};

/// The first argument by which the binary knows that its second one is a [`Block`].
pub const ARGUMENT: &str = "__block";

/// What passes to the process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Block {
    /// Where the journal is; none where it is unless said otherwise.
    pub state: Option<PathBuf>,
    /// The settings that are on.
    pub on: Vec<String>,
    /// Those that are rewritten to what they say already.
    pub rewritten: Vec<String>,
    /// Profiles of rules.
    pub profile: Vec<String>,
    /// CPUs for real time alone.
    pub isolate: Option<CpuList>,
    /// Where what operations take is measured too, before the latencies.
    #[serde(default)]
    pub cost: Option<PathBuf>,
    /// The measuring.
    pub request: Request,
}

/// Measures the block in `message`. What went wrong is one line of JSON on standard output.
pub fn main(message: &str) -> ExitCode {
    let block = record::json::read::<Block>(message.as_bytes());
    let block = block.map_err(|error| Error::new(format!("read a block: {error}"), ""));
    let result = block.and_then(Block::run);
    if let Err(error) = &result {
        let _ = output::data(&(serde_json::to_string(error).unwrap_or_default() + "\n"));
    }
    output::ended(result)
}

impl Block {
    /// The arguments that make a worstcase binary measure this.
    pub fn arguments(&self) -> Result<[String; 2]> {
        record::message(ARGUMENT, self)
    }

    fn run(self) -> Result<ExitCode> {
        let (on, rewritten) = (parsed(&self.on)?, parsed(&self.rewritten)?);
        if on.is_empty() && rewritten.is_empty() {
            return self.measure();
        }
        let state = State::of_machine(self.state.as_deref().unwrap_or(Path::new(applied::STATE)));
        let selection = super::selection(&self.profile, self.isolate.as_ref())?;
        let lock = state.lock()?;
        with_settings((&state, &lock), &selection, &on, &rewritten, || self.measure())
    }

    fn measure(self) -> Result<ExitCode> {
        let seed = self.request.seed.unwrap_or_else(runner::plan::drawn_seed);
        self.cost.as_deref().map_or(Ok(()), |path| cost_rounds::one_round(path, seed))?;
        measured(self.request)
    }
}

/// Reads settings as they are written on the command line.
pub fn parsed(settings: &[String]) -> Result<Vec<Setting>> {
    settings.iter().map(|text| Setting::parse(text)).collect()
}

/// Does `work` while the settings `on` hold, and after `rewritten` were written as they are. What was written is undone at the end,
/// however it comes.
pub fn with_settings<T>(
    (state, lock): (&State, &Lock),
    selection: &Selection,
    on: &[Setting],
    rewritten: &[Setting],
    work: impl FnOnce() -> Result<T>,
) -> Result<T> {
    if clear(state, lock)?.is_some() {
        return Err(applied_already());
    }
    let on = setting::plan(on, selection, &SysRoot::live())?;
    rewrite_others(state, &setting::plan(rewritten, selection, &SysRoot::live())?, &on)?;
    if on.steps.is_empty() {
        return work();
    }
    while_applied(state, lock, &on, work)
}

/// The process that undoes waits for the lock, which this one has until it ends: by itself, or killed.
fn while_applied<T>(state: &State, lock: &Lock, plan: &Plan, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let mut journal = begin(state, lock, Some(0), Begin::default())?;
    let mut kernel = live(state.directory());
    let applied = apply(&mut kernel, &mut journal, &plan.steps, OnRefusal::RollBack, &mut |_| true);
    match &applied.end {
        End::Applied => {}
        End::RolledBack(undone) => {
            undo::put_back(state, lock, undone)?;
            let lines = shown::all_taken(&applied.taken);
            let refused = lines.lines().last().unwrap_or_default().trim().to_owned();
            return Err(Error::new(format!("a setting could not be written: {refused}"), "it was put back"));
        }
        End::JournalFailed(error, undone) => {
            undo::put_back(state, lock, undone)?;
            return Err(Error::new(error, "what was written was put back"));
        }
    }
    let done = work();
    let history = state.history()?.unwrap_or_default();
    undo::undo(state, lock, &history)?;
    match differences(&SysRoot::live(), &history.steps).first() {
        None => done,
        Some((target, old, now)) => {
            let message = format!("{target} is {now} after it was measured, and was {old} before");
            Err(Error::new(message, "somebody else changes it: worstcase tune plan names who may"))
        }
    }
}

/// Blocks are compared with what is there, and that is to be the machine itself.
pub fn applied_already() -> Error {
    Error::new("settings are applied already", "undo them first: worstcase tune undo")
}

/// Writes to the settings of `plan` what they say already, but for what `on` writes.
fn rewrite_others(state: &State, plan: &Plan, on: &Plan) -> Result<()> {
    let is_other = |step: &&tune::Step| on.steps.iter().all(|own| own.target != step.target);
    let steps: Vec<tune::Step> = plan.steps.iter().filter(is_other).cloned().collect();
    let moved = rewrite(&mut live(state.directory()), &steps);
    match moved.first() {
        None => Ok(()),
        Some((target, _)) => {
            let message = format!("{target} reads otherwise after its own value was written to it");
            Err(Error::new(message, "it cannot be tried: leave it out"))
        }
    }
}
