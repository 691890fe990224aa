//! `worstcase report`: records shown again; several side by side.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use record::{Record, store};
use units::Nanos;

use crate::error::{CommandError, Result};
use crate::options;
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
        let records =
            self.records.iter().map(|path| store::load(path)).collect::<std::result::Result<Vec<_>, _>>()?;
        output::final_data(&self.text(&records)?)?;
        let own = match &self.records[..] {
            [directory] if self.html.is_none() && directory.is_dir() => Some(directory),
            _ => None,
        };
        if self.html.is_none() && own.is_none() {
            return Ok(ExitCode::SUCCESS);
        }
        let page =
            report::page::page_with(&records, self.extreme).map_err(|error| CommandError::new(error, ""))?;
        if let Some(file) = &self.html {
            files::write_named(file, page.as_bytes())?;
            output::words(&format!("report: {}", file.display()));
        }
        // Nobody asked for this one: a record that may only be read can be shown all the same.
        if let Some(directory) = own {
            match write_beside(directory, &page) {
                Ok(()) => output::words(&format!("report: {}", directory.join(store::PAGE).display())),
                Err(why) => output::words(&format!("note: no page written, {why}: --html FILE")),
            }
        }
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
}

/// Writes the page beside a record, unless the directory is another user's, who did not ask for it.
fn write_beside(directory: &Path, page: &str) -> std::result::Result<(), String> {
    let written = files::Directory::open(directory).and_then(|directory| match directory.is_ours()? {
        true => directory.write_whole(store::PAGE, page.as_bytes()).map(|()| true),
        false => Ok(false),
    });
    match written {
        Ok(true) => Ok(()),
        Ok(false) => Err(format!("{} belongs to another user", directory.display())),
        Err(error) => Err(error.to_string()),
    }
}
