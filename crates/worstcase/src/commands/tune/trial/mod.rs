//! `worstcase tune trial` and `worstcase tune search`: does a setting help, and which of them suffice?

mod block;
mod live;
mod options;
mod parameters;
mod plan;
mod run;
mod setting;
mod shown;
mod text;

use std::process::ExitCode;

use clap::Args;
use experiment::{Answer, Effect, Found, Outcome};
use lab::state::Kind;
use units::CpuList;

use super::selection::Selection;
use failure::{Error, Result};
use options::Options;

pub use block::{ARGUMENT as BLOCK, main as block, parsed, with_settings};
pub use setting::{Setting, changes_something};
pub use shown::shown;

const TRIALS: &str = "\
Examples:
  worstcase tune trial rn-thp rn-compaction --load io          two rules
  worstcase tune trial /proc/sys/vm/swappiness=10              a kernel's file
  worstcase tune trial threadirqs --kernel debian-6.1-amd64    in guests
  worstcase tune trial --resume DIR                            go on with it";

const SEARCHES: &str = "\
Examples:
  worstcase tune search --load io               all settings, under io
  worstcase tune search rn-thp rn-compaction    these";

/// Measure whether settings help: off and on in random order, equal exposure, the same load
///
/// Each round has one block of each arm, in random order: all off, each setting on, and control, which writes the present
/// value of every setting again. On is compared with control within rounds, by an exact test: helps, harms, no effect of 20
/// % or more, or undecided. With several settings a false "helps" or "harms" of any of them comes in at most 1 of 20
/// trials. Each setting is undone at the end of its block, also after Ctrl-C and kill -9. With --kernel guests measure, one
/// boot a block. Exit code 0: each setting helps; 1: one does not; 3: undecided, or not read by the kernel.
#[derive(Args)]
#[command(after_help = format!("{TRIALS}\n\n{}", setting::GRAMMAR))]
pub struct Trial {
    /// What to try, each by itself
    #[arg(value_name = "SETTING", required_unless_present = "resume")]
    settings: Vec<String>,

    #[command(flatten)]
    options: Options,
}

/// Find a set of settings that does what all of them do together
///
/// Measures all settings on, and estimates from the spread how many blocks the search takes. Then it leaves out one setting
/// after the other, drops those that the tail does not need, and confirms what is left in fresh blocks: a set that
/// suffices, not always the smallest. For each setting that is left it prints the price, which is the tail without it, and
/// says where that does not show the setting to be needed. Exit code 0: found; 1: all together do not help; 3: undecided.
#[derive(Args)]
#[command(after_help = format!("{SEARCHES}\n\n{}", setting::GRAMMAR))]
pub struct Search {
    /// What to search [default: every rule that worstcase tune plan would make pass on this machine]
    #[arg(value_name = "SETTING")]
    settings: Vec<String>,

    #[command(flatten)]
    options: Options,
}

impl Trial {
    pub fn run(self) -> Result<ExitCode> {
        let mut run = self.options.begin(self.settings, Kind::Trial)?;
        let design = run.state.plan.design.clone();
        let Some(answer) = run.measured(|bench| experiment::trial(&design, bench))? else {
            return Ok(run.stopped());
        };
        run.conclude()?;
        Ok(ExitCode::from(code_of_trial(&answer)))
    }
}

#[cfg(test)]
impl Trial {
    /// What is asked.
    fn plan(self) -> Result<plan::TrialPlan> {
        self.options.plan(self.settings, Kind::Trial)
    }
}

impl Search {
    pub fn run(self) -> Result<ExitCode> {
        let mut run = self.options.begin(self.settings, Kind::Search)?;
        let design = run.state.plan.design.clone();
        let Some(found) = run.measured(|bench| experiment::search(&design, bench))? else {
            return Ok(run.stopped());
        };
        run.conclude()?;
        Ok(ExitCode::from(code_of_search(&found)))
    }
}

fn code_of_trial(answer: &Answer) -> u8 {
    let verdicts = || answer.settings.iter().map(|tried| tried.verdict);
    if verdicts().any(|verdict| verdict == Effect::Undecided) {
        3
    } else {
        u8::from(verdicts().any(|verdict| verdict != Effect::Helps))
    }
}

fn code_of_search(found: &Found) -> u8 {
    match found.outcome {
        Outcome::Sufficient => 0,
        Outcome::NothingHelps => 1,
        Outcome::Inconclusive(_) => 3,
    }
}

/// Kernel parameters cannot be tried on a machine that runs.
pub fn refuse_parameters(settings: &[Setting]) -> Result<()> {
    let Some(word) = settings.iter().find(|setting| setting.is_parameter()) else { return Ok(()) };
    if let Some(file) = word.as_file() {
        return Err(Error::new(
            format!("{word} is the name that sysctl has for a file"),
            format!("did you mean {file}?"),
        ));
    }
    let hint = "try it in guests: tune trial and tune search take --kernel NAME (worstcase lab kernels list); a rule, a file or \
                threads are written as worstcase tune trial --help says";
    Err(Error::new(format!("{word} is a kernel parameter: it takes effect at the next boot only"), hint))
}

/// Where rules look: `profile` as it was given.
fn selection(profile: &[String], isolate: Option<&CpuList>) -> Result<Selection> {
    let parsed = profile.iter().map(|name| name.parse());
    let profile = parsed.collect::<std::result::Result<_, audit::UnknownProfile>>();
    let hint = "several with commas: worstcase tune plan --help names them";
    let profile = profile.map_err(|error| Error::new(error, hint))?;
    Ok(Selection { profile, isolate: isolate.cloned(), ..Selection::default() })
}
