//! `worstcase report`: records shown again, several side by side; an experiment with its comparisons.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use record::{Record, store};
use units::Nanos;

use super::experiments::{self, Shown};
use crate::error::{CommandError, Result};
use crate::options;
use crate::output::{self, Stream};

/// Show records again, side by side for several
///
/// Also those of runs that were cut off. The directory of a trial, search, bisection or ladder is shown as its command showed it. The exit code says whether they could be shown, not what their verdicts are.
#[derive(Args)]
pub struct Report {
    /// Directories that runs left, or their record.json; the directory of an experiment
    #[arg(required = true, value_name = "DIR")]
    records: Vec<PathBuf>,

    /// Write the page to this file [default for one directory: its report.html]
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Print the table of every CPU as well
    #[arg(long)]
    per_cpu: bool,

    /// Estimate the latency that is exceeded once in this time on average, at most ten times the run; refused where the
    /// run does not carry it
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = options::duration)]
    extreme: Option<Nanos>,

    /// Print the record as JSON, with --extreme the estimates; several as an array
    #[arg(long)]
    json: bool,
}

impl Report {
    pub fn run(self) -> Result<ExitCode> {
        if let [directory] = &self.records[..] {
            if let Some(shown) = experiments::find(directory) {
                return self.experiment(&shown?);
            }
        }
        let records =
            self.records.iter().map(|path| store::load(path)).collect::<std::result::Result<Vec<_>, _>>()?;
        output::final_data(&self.text(&records)?)?;
        let Some(path) = self.page_path() else { return Ok(ExitCode::SUCCESS) };
        let page =
            report::page::page_with(&records, self.extreme).map_err(|error| CommandError::new(error, ""))?;
        output::page(&path, &page, self.html.is_some())?;
        Ok(ExitCode::SUCCESS)
    }

    fn experiment(&self, shown: &Shown) -> Result<ExitCode> {
        if self.per_cpu || self.extreme.is_some() {
            let hint = "name one of its records: they lie in directories below it";
            return Err(CommandError::new(
                "--per-cpu and --extreme are about a record, not an experiment",
                hint,
            ));
        }
        shown.print(self.json)?;
        self.page_path().map_or(Ok(()), |path| shown.write_page(&path, self.html.is_some()))?;
        Ok(ExitCode::SUCCESS)
    }

    fn text(&self, records: &[Record]) -> Result<String> {
        let json = |value: serde_json::Result<String>| {
            value.map(|text| text + "\n").map_err(|error| CommandError::new(error, ""))
        };
        let style = output::style(Stream::Output);
        let text = match (self.json, records, self.extreme) {
            (true, records, Some(exposure)) => {
                let of_each = |record| report::extreme::estimates(record, exposure);
                let estimates: Vec<_> = records.iter().map(of_each).collect();
                return json(match &estimates[..] {
                    [only] => serde_json::to_string(only),
                    several => serde_json::to_string(several),
                });
            }
            (true, [record], None) => return json(serde_json::to_string(record)),
            (true, records, None) => return json(serde_json::to_string(records)),
            (false, [record], _) => report::table::bench(record, self.per_cpu, &style),
            (false, records, _) => report::compare::compare(records, &style),
        };
        let mut text = text;
        if let Some(exposure) = self.extreme {
            for record in records {
                text += &format!("\n{}", report::extreme::text(record, exposure, &style));
            }
        }
        Ok(text)
    }

    fn page_path(&self) -> Option<PathBuf> {
        let own = || match &self.records[..] {
            [directory] if directory.is_dir() => Some(directory.join(store::PAGE)),
            _ => None,
        };
        self.html.clone().or_else(own)
    }
}
