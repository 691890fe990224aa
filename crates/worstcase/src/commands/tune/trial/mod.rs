//! `worstcase tune trial` and `worstcase tune search`: does a setting help, and which of them suffice?

mod block;
mod experiment;
mod guests;
mod live;
mod question;
mod run;
mod setting;
mod text;

use std::process::ExitCode;

use clap::Args;
use trial::{Answer, Effect, Found, Outcome};
use units::CpuList;

use super::selection::Selection;
use crate::error::{CommandError, Result};
use experiment::Experiment;

pub use block::Block;

/// Measure whether settings help: off and on in random order, equal exposure, the same load
///
/// Blocks with the setting on and off take turns in an order drawn by lot, beside a control arm in which it is rewritten
/// to what it says already. The tails are compared by the exact interval of the Mann-Whitney test: helps, harms, no effect
/// visible, or undecided. Each setting is undone at the end of its block, also after Ctrl-C and kill -9. With --kernel
/// guests measure, one boot a block. Exit code 0: each setting helps; 1: one does not; 3: undecided.
#[derive(Args)]
#[command(after_help = setting::GRAMMAR)]
pub struct Trial {
    /// What to try, each by itself
    #[arg(value_name = "SETTING", required_unless_present = "resume")]
    settings: Vec<String>,

    #[command(flatten)]
    experiment: Experiment,
}

/// Find the smallest set of settings that does what all of them do together
///
/// Begins with all on, leaves out one after the other, goes on without those that the tail does not need, and confirms what
/// is left in fresh blocks. Each setting that is left has its price: what dropping it costs in the tail. Exit code 0:
/// found; 1: all together do not help; 3: undecided.
#[derive(Args)]
#[command(after_help = setting::GRAMMAR)]
pub struct Search {
    /// What to search [default: every rule that worstcase tune plan would make pass on this machine]
    #[arg(value_name = "SETTING")]
    settings: Vec<String>,

    #[command(flatten)]
    experiment: Experiment,
}

impl Trial {
    /// Does it.
    pub fn run(self) -> Result<ExitCode> {
        let mut run = self.experiment.begin(self.settings, false)?;
        let design = run.question.design.clone();
        let Some(answer) = run.measured(|bench| trial::trial(&design, bench))? else { return run.stopped() };
        run.shown(&answer, &text::trial(&run.question, &answer))?;
        Ok(ExitCode::from(code_of_trial(&answer)))
    }
}

impl Search {
    /// Does it.
    pub fn run(self) -> Result<ExitCode> {
        let mut run = self.experiment.begin(self.settings, true)?;
        let design = run.question.design.clone();
        let Some(found) = run.measured(|bench| trial::search(&design, bench))? else { return run.stopped() };
        run.shown(&found, &text::search(&run.question, &found))?;
        Ok(ExitCode::from(code_of_search(&found)))
    }
}

fn code_of_trial(answer: &Answer) -> u8 {
    let verdicts = || answer.settings.iter().map(|tried| tried.verdict);
    if verdicts().any(|verdict| matches!(verdict, None | Some(Effect::Undecided))) {
        3
    } else {
        u8::from(verdicts().any(|verdict| verdict != Some(Effect::Helps)))
    }
}

fn code_of_search(found: &Found) -> u8 {
    match found.outcome {
        Outcome::Sufficient => 0,
        Outcome::NothingHelps => 1,
        Outcome::Inconclusive(_) => 3,
    }
}

/// Where rules look: `profile` as it was given.
fn selection(profile: &[String], isolate: Option<&CpuList>) -> Result<Selection> {
    let parsed = profile.iter().map(|name| name.parse());
    let profile = parsed.collect::<std::result::Result<_, audit::UnknownProfile>>();
    let hint = "several with commas: worstcase tune plan --help names them";
    let profile = profile.map_err(|error| CommandError::new(error, hint))?;
    Ok(Selection { profile, isolate: isolate.cloned(), ..Selection::default() })
}
