//! `worstcase explain`: why the worst wake-ups of a run were late.

pub mod tracer;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use record::store;

use crate::error::{CommandError, Result};
use crate::output::{self, Stream};

/// Say why the worst wake-ups of a run were late
///
/// Reads the record of `worstcase bench --explain`: causes over all late wake-ups of each load, and the account of the worst
/// one, in pieces that sum to its latency.
#[derive(Args)]
pub struct Explain {
    /// Directory that a run left, or its record.json
    #[arg(value_name = "DIR")]
    record: PathBuf,

    /// Print the explanations as JSON
    #[arg(long)]
    json: bool,
}

impl Explain {
    pub fn run(self) -> Result<ExitCode> {
        let record = store::load(&self.record)?;
        if record.explanations.is_empty() {
            let message = format!("{}: this run was not traced", self.record.display());
            return Err(CommandError::new(message, "worstcase bench --explain measures and explains"));
        }
        let text = if self.json {
            let text = serde_json::to_string(&record.explanations);
            text.map_err(|error| CommandError::new(error, ""))? + "\n"
        } else {
            report::explanation::text(&record, &output::style(Stream::Output))
        };
        output::final_data(&text)?;
        Ok(ExitCode::SUCCESS)
    }
}

#[cfg(test)]
mod tests {
    use audit::Rules;
    use explain::cures;

    #[test]
    fn every_rule_that_is_named_against_a_cause_is_there() {
        let rules = Rules::built_in().unwrap();
        for class in cures::CLASSES {
            for id in cures::of(class).rules {
                assert!(rules.get(id).is_some(), "{class:?}: no rule {id}: crates/explain/src/cures.rs");
            }
        }
    }
}
