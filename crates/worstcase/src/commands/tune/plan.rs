//! `worstcase tune plan`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::choice::Choice;
use super::shown;
use crate::commands::check::subject::root_at;
use crate::error::Result;
use crate::output;

/// Say what would be written where, and what cannot be changed and why not
///
/// Changes nothing.
#[derive(Args)]
pub struct Plan {
    #[command(flatten)]
    choice: Choice,

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
            false => {
                let next_boot = self.choice.selection()?.next_boot(&root_at(self.root.as_deref())?)?;
                let next_boot = next_boot.map_or(String::new(), |text| shown::paragraphs(&text));
                shown::plan(&plan) + &next_boot + &shown::what_next(&plan, "worstcase tune apply")
            }
        })?;
        Ok(ExitCode::SUCCESS)
    }
}
