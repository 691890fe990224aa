//! `worstcase report`: records shown again; several side by side.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use record::{Record, store};

use crate::error::{CommandError, Result};
use crate::output::{self, Stream};

/// Shows what runs left, also of runs that were cut off. The exit code says whether it could be shown, not the verdict.
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
        if let Some(path) = self.page_path() {
            let page = report::page::page(&records).map_err(|error| CommandError::new(error, ""))?;
            store::write_whole(&path, page.as_bytes())?;
            output::words(&format!("report: {}", path.display()));
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
