//! `worstcase explain`: why the worst wake-ups of a run were late.

mod beside;
mod live;
pub mod tracer;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use record::{Explanation, store};
use report::text::count_of;

use crate::output::{self, Stream};
use failure::{Error, Result};

/// Show why the worst wake-ups of a run were late
///
/// Reads the record of `worstcase bench --explain`: causes over all late wake-ups of each load, and the account of the worst
/// one, in pieces that sum to its latency. --export writes what was traced around them for tools that show traces.
///
/// With --live it watches the threads of a program, or threads of its own, and explains each late wake-up when it comes.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Explain {
    /// Directory that a run left, or its record.json
    #[arg(value_name = "DIR", required_unless_present = "live")]
    record: Option<PathBuf>,

    #[command(flatten)]
    live: live::Options,

    /// Print the explanations as JSON
    #[arg(long, conflicts_with = "export")]
    json: bool,

    /// Write the events and accounts of the late wake-ups for another tool
    #[arg(long, value_name = "FORM", requires = "output")]
    export: Option<Form>,

    /// File for --export
    #[arg(short, long, value_name = "FILE", requires = "export")]
    output: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  worstcase bench --loads io --explain --out run          measure, then trace
  worstcase explain run                                   show it again
  worstcase explain run --export perfetto -o run.trace    for ui.perfetto.dev
  worstcase explain --live --pid 4711 --threshold 1ms     watch a program";

/// Forms that other tools read.
#[derive(Clone, Copy, ValueEnum)]
enum Form {
    /// trace-cmd report, KernelShark
    #[value(name = "trace.dat")]
    TraceDat,
    /// ui.perfetto.dev, trace_processor
    Perfetto,
    /// As --json, into a file
    Json,
}

impl Form {
    const fn readers(self) -> &'static str {
        match self {
            Self::TraceDat => "trace-cmd report and KernelShark",
            Self::Perfetto => "ui.perfetto.dev and trace_processor",
            Self::Json => "programs",
        }
    }

    fn file(self, explanations: &[Explanation]) -> Result<Vec<u8>> {
        Ok(match self {
            Self::TraceDat => formats::trace_dat::file(explanations),
            Self::Perfetto => formats::perfetto::file(explanations),
            Self::Json => json(explanations)?.into_bytes(),
        })
    }
}

fn json(explanations: &[Explanation]) -> Result<String> {
    let text = serde_json::to_string(explanations);
    Ok(text.map_err(|error| Error::new(error, ""))? + "\n")
}

impl Explain {
    pub fn run(self) -> Result<ExitCode> {
        if self.live.is_live() {
            self.live.watch(self.json)?;
            return Ok(ExitCode::SUCCESS);
        }
        if let Some(option) = self.live.first_given() {
            let message = format!("{option} is about wake-ups that are watched, not those of a record");
            return Err(Error::new(message, "leave it out, or watch this machine: worstcase explain --live"));
        }
        let path = self.record.unwrap_or_default();
        let record = store::load(&path)?;
        if record.explanations.is_empty() {
            let (whys, hints): (Vec<_>, Vec<_>) = report::explanation::not_explained(&record).unzip();
            let (why, hint) = match hints.first() {
                Some(hint) => (whys.join("; "), *hint),
                None => {
                    ("this run was not traced".to_owned(), "worstcase bench --explain measures and explains")
                }
            };
            return Err(Error::new(format!("{}: {why}", path.display()), hint));
        }
        if let Some((form, file)) = self.export.zip(self.output) {
            let has_none = record.explanations.iter().all(|one| one.hits.is_empty());
            if has_none && !matches!(form, Form::Json) {
                let message =
                    format!("{}: no wake-up was explained, so there is nothing to export", path.display());
                return Err(Error::new(message, format!("worstcase explain {} says why", path.display())));
            }
            output::named_file(&file, &form.file(&record.explanations)?, &[&path])?;
            let hits = record.explanations.iter().map(|one| one.hits.len()).sum::<usize>();
            let hits = count_of(hits as u64, "late wake-up");
            output::news(&format!("{}: {hits}, for {}", file.display(), form.readers()));
            return Ok(ExitCode::SUCCESS);
        }
        let text = if self.json {
            json(&record.explanations)?
        } else {
            let style = output::style(Stream::Output);
            let steps = report::next::run::of_explanations(
                &record,
                &path.display().to_string(),
                &crate::commands::tune::trial::changes_something,
            );
            report::explanation::text(&record, &style) + "\n" + &report::next::text(&steps, &style)
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
    fn every_rule_that_is_named_against_a_handler_is_there() {
        use record::HandlerKind::{Call, Interrupt, Nmi, Softirq, Timer, Vector, Work};
        let rules = Rules::built_in().unwrap();
        let named = [(Vector, "local_timer"), (Softirq, "NET_RX"), (Softirq, "RCU"), (Softirq, "SCHED")];
        let others = [Interrupt, Vector, Softirq, Call, Timer, Work, Nmi].map(|kind| (kind, ""));
        for (kind, name) in named.into_iter().chain(others) {
            for id in cures::of_handler(kind, name).rules {
                assert!(rules.get(id).is_some(), "{kind:?}: no rule {id}: crates/explain/src/cures.rs");
            }
        }
    }

    #[test]
    fn every_rule_that_is_named_against_a_cause_is_there() {
        let rules = Rules::built_in().unwrap();
        for class in cures::CLASSES {
            for id in cures::of(class).rules {
                assert!(rules.get(id).is_some(), "{class:?}: no rule {id}: crates/explain/src/cures.rs");
            }
            let tried = cures::trial(class).and_then(|id| rules.get(id));
            assert_eq!(tried.is_some(), cures::trial(class).is_some(), "{class:?}");
            assert!(tried.is_none_or(|rule| !rule.cure.runtime.is_empty()), "{class:?} cannot be tried");
        }
    }
}
