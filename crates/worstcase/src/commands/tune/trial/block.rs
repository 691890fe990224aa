//! `worstcase tune block`: one block in one arm. It is what trials start, on this machine and in guests.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Args;
use sysroot::SysRoot;
use tune::apply::{End, OnRefusal, apply, rewrite};
use tune::journal::Lock;
use tune::undo::differences;
use tune::{Plan, State, live};
use units::CpuList;

use super::setting::{self, Setting};
use crate::commands::tune::course::{begin, clear};
use crate::commands::tune::{StateOption, shown, undo};
use crate::error::{CommandError, Result};

/// Measure with settings on; they are undone at its end, however it comes
#[derive(Args)]
pub struct Block {
    /// Write to this setting what it says already; can be given several times
    #[arg(long, value_name = "SETTING")]
    rewrite: Vec<String>,

    /// Profiles of rules
    #[arg(long, value_name = "PROFILE")]
    profile: Vec<String>,

    /// CPUs for real time alone
    #[arg(long, value_name = "CPUS")]
    isolate: Option<CpuList>,

    #[command(flatten)]
    state: StateOption,

    /// The settings
    settings: Vec<String>,

    /// The measuring
    #[arg(last = true, required = true)]
    bench: Vec<OsString>,
}

impl Block {
    pub fn run(self) -> Result<ExitCode> {
        let parsed = |settings: &[String]| {
            settings.iter().map(|text| Setting::parse(text)).collect::<Result<Vec<_>>>()
        };
        let (on, rewritten) = (parsed(&self.settings)?, parsed(&self.rewrite)?);
        if on.is_empty() && rewritten.is_empty() {
            return self.measure();
        }
        let state = self.state.state();
        let lock = state.lock()?;
        if clear(&state, &lock)?.is_some() {
            return Err(super::live::applied_already());
        }
        let selection = super::selection(&self.profile, self.isolate.as_ref())?;
        let on = setting::plan(&on, &selection, &SysRoot::live())?;
        rewrite_others(&state, &setting::plan(&rewritten, &selection, &SysRoot::live())?, &on)?;
        if on.steps.is_empty() {
            return self.measure();
        }
        self.applied(&state, &lock, &on)
    }

    /// The process that undoes waits for the lock, which this one has until it ends: by itself, or killed.
    fn applied(self, state: &State, lock: &Lock, plan: &Plan) -> Result<ExitCode> {
        let mut journal = begin(state, lock, Some(0), None)?;
        let mut kernel = live(state.directory());
        let applied = apply(&mut kernel, &mut journal, &plan.steps, OnRefusal::RollBack, &mut |_| true);
        match &applied.end {
            End::Applied => {}
            End::RolledBack(undone) => {
                undo::put_back(state, lock, undone)?;
                let told = shown::all_taken(&applied.taken);
                let refused = told.lines().last().unwrap_or_default().trim().to_owned();
                return Err(CommandError::new(
                    format!("a setting could not be written: {refused}"),
                    "it was put back",
                ));
            }
            End::JournalFailed(error, undone) => {
                undo::put_back(state, lock, undone)?;
                return Err(CommandError::new(error, "what was written was put back"));
            }
        }
        let measured = self.measure();
        let history = state.history()?.unwrap_or_default();
        undo::undo(state, lock, &history)?;
        let left = differences(&SysRoot::live(), &history.steps);
        match left.first() {
            None => measured,
            Some((target, old, now)) => {
                let message = format!("{target} is {now} after the block, and was {old} before it");
                Err(CommandError::new(message, "somebody else changes it: worstcase tune plan names who may"))
            }
        }
    }

    fn measure(&self) -> Result<ExitCode> {
        crate::commands::run(self.bench.iter().cloned())
    }
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
            Err(CommandError::new(message, "it cannot be tried: leave it out"))
        }
    }
}
