//! `worstcase tune plan`.

use std::path::PathBuf;
use std::process::ExitCode;

use audit::Rules;
use clap::Args;

use super::choice::Choice;
use super::{shown, summary};
use crate::commands::check::subject::root_at;
use crate::output;
use failure::{Error, Result};

/// Say what would be changed, what each change is likely to gain, and what it costs
///
/// Changes nothing. Alike changes are one line, the likeliest gain first. Gains are estimates of how often such a change cuts the
/// worst case, from measurements where there are some and from the mechanism else: tune trial measures yours.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    worstcase tune plan                      for the whole machine\n  \
    worstcase tune plan --isolate 1          to isolate CPU 1\n  \
    worstcase tune plan --isolate 1 --all    every write")]
pub struct Plan {
    #[command(flatten)]
    choice: Choice,

    /// List every write, and what cannot be changed with the reason
    #[arg(long, conflicts_with = "json")]
    all: bool,

    /// The plan as one JSON object
    #[arg(long)]
    json: bool,

    /// For the machine whose /proc and /sys are in a directory, or in a file that worstcase snapshot wrote
    #[arg(long, value_name = "PATH")]
    root: Option<PathBuf>,
}

impl Plan {
    pub fn run(self) -> Result<ExitCode> {
        let plan = self.choice.plan(self.root.as_deref())?;
        output::final_data(&match self.json {
            true => serde_json::to_string_pretty(&plan).unwrap_or_default() + "\n",
            false => self.text(&plan)?,
        })?;
        Ok(ExitCode::SUCCESS)
    }

    fn text(&self, plan: &tune::Plan) -> Result<String> {
        let root = root_at(self.root.as_deref())?;
        let selection = self.choice.selection()?;
        let next_boot = selection.next_boot(&root, self.all)?.unwrap_or_default();
        if self.all {
            let next = shown::what_next(plan, "worstcase tune apply");
            return Ok(shown::plan(plan) + &shown::paragraphs(&next_boot) + &next);
        }
        let rules = Rules::built_in().map_err(|error| Error::new(error, ""))?;
        let arguments = self.root.is_none().then(|| self.choice.arguments());
        let division = selection.division(&root)?;
        Ok(summary::summary(plan, &rules, &selection, &division, &next_boot, arguments.as_deref()))
    }
}
