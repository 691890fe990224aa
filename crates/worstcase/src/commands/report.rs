//! `worstcase report`: records shown again; several side by side.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use record::{Record, store};

use crate::error::{CommandError, Result};
use crate::output::{self, Stream};

/// Show records again, side by side for several
///
/// Also those of runs that were cut off. The exit code says whether they could be shown, not what their verdicts are.
#[derive(Args)]
pub struct Report {
    /// Directories that runs left, or their record.json
    #[arg(required = true, value_name = "DIR")]
    records: Vec<PathBuf>,

    /// Write the page to this file [default for one directory: its report.html]
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Print the table of every CPU as well
    #[arg(long)]
    per_cpu: bool,

    /// Print the record as JSON; several as an array
    #[arg(long)]
    json: bool,
}

impl Report {
    /// Does it.
    pub fn run(self) -> Result<ExitCode> {
        let records =
            self.records.iter().map(|path| store::load(path)).collect::<std::result::Result<Vec<_>, _>>()?;
        output::final_data(&self.text(&records)?)?;
        let Some(path) = self.page_path() else { return Ok(ExitCode::SUCCESS) };
        let page = report::page::page(&records).map_err(|error| CommandError::new(error, ""))?;
        match store::write_whole(&path, page.as_bytes()) {
            Ok(()) => output::words(&format!("report: {}", path.display())),
            // Nobody asked for the page: a record that may only be read can be shown all the same.
            Err(error) if self.html.is_none() => output::words(&format!("warning: {error}")),
            Err(error) => return Err(error.into()),
        }
        Ok(ExitCode::SUCCESS)
    }

    fn text(&self, records: &[Record]) -> Result<String> {
        let json = |value: serde_json::Result<String>| {
            value.map(|text| text + "\n").map_err(|error| CommandError::new(error, ""))
        };
        let style = output::style(Stream::Output);
        match (self.json, records) {
            (true, [record]) => json(serde_json::to_string(record)),
            (true, records) => json(serde_json::to_string(records)),
            (false, [record]) => Ok(report::table::bench(record, self.per_cpu, &style)),
            (false, records) => Ok(report::compare::compare(records, &style)),
        }
    }

    fn page_path(&self) -> Option<PathBuf> {
        let own = || match &self.records[..] {
            [directory] if directory.is_dir() => Some(directory.join(store::PAGE)),
            _ => None,
        };
        self.html.clone().or_else(own)
    }
}
