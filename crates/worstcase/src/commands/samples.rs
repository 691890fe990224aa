//! `worstcase samples`: the file that --samples-file wrote, as text.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::BufReader;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use record::samples::{Block, Header, Reader};
use record::{Grid, Lab, Unit};

use crate::output;
use failure::{Error, Result};

/// Print the file that --samples-file wrote
///
/// One line a sample: scenario, load, CPU, activation, when it was due in the scenario, latency; in nanoseconds, or in
/// instructions of a guest of the lab.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    worstcase bench --samples-file all.samples        keep every sample\n  \
    worstcase samples all.samples --at-least 100us    those of 100 us and more")]
pub struct Samples {
    /// The file
    file: PathBuf,

    /// Only latencies of this or more
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = crate::options::length)]
    at_least: Option<units::Nanos>,
}

impl Samples {
    pub fn run(self) -> Result<ExitCode> {
        let hint = "give the file that --samples-file wrote";
        let failed = |error: &dyn std::fmt::Display| {
            Error::new(format!("read {}: {error}", self.file.display()), hint)
        };
        let file = files::open(&self.file).map_err(|error| failed(&error.source))?;
        let mut reader = Reader::new(BufReader::new(file)).map_err(|error| failed(&error))?;
        let header = reader.header().cloned();
        let unit = header.as_ref().and_then(|header| header.lab.as_ref()).map(Lab::unit).unwrap_or_default();
        let counted = if unit == Unit::Instructions { "instructions" } else { "ns" };
        if !self.print(&format!("scenario,load,cpu,activation,due_{counted},latency_{counted}\n"))? {
            return Ok(ExitCode::SUCCESS);
        }
        let mut lost = BTreeMap::new();
        for block in reader.by_ref() {
            let block = block.map_err(|error| failed(&error))?;
            if block.lost > 0 {
                lost.insert((block.scenario, block.series), block.lost);
            }
            if !self.print(&self.lines(header.as_ref(), &block))? {
                return Ok(ExitCode::SUCCESS);
            }
        }
        for ((scenario, series), lost) in lost {
            output::warning(&format!(
                "scenario {scenario}, series {series}: {lost} samples are not in the file, they came faster than it \
                 could be written; gaps in the other series are missed activations"
            ));
        }
        if reader.damaged_bytes() > 0 {
            output::warning(&format!(
                "{} bytes of the file are damaged and were skipped",
                reader.damaged_bytes()
            ));
            return Ok(ExitCode::from(2));
        }
        Ok(ExitCode::SUCCESS)
    }

    fn lines(&self, header: Option<&Header>, block: &Block) -> String {
        let load = header.and_then(|header| header.scenarios.get(usize::from(block.scenario)));
        let load = quoted(load.map_or("", |scenario| scenario.load.as_str()));
        let cpu = header.and_then(|header| header.cpus.get(usize::from(block.series)).copied().flatten());
        let cpu = cpu.map_or(String::new(), |cpu| cpu.to_string());
        let grid = header.map_or(Grid::fixed(0, block.interval.0), |header| header.grid(block));
        let wanted = |latency: units::Nanos| self.at_least.is_none_or(|least| latency >= least);
        block
            .samples
            .iter()
            .filter(|(_, latency)| wanted(*latency))
            .map(|(activation, latency)| {
                let due = grid.since_first(*activation);
                format!("{},{load},{cpu},{activation},{},{}\n", block.scenario, due.0, latency.0)
            })
            .collect()
    }

    fn print(&self, text: &str) -> Result<bool> {
        output::data(text).map_err(|error| output::lost(&error))
    }
}

/// A field of a CSV line: in quotes where it holds what would end it, as the name of a user's own command may (RFC 4180).
fn quoted(field: &str) -> Cow<'_, str> {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\"")).into()
    } else {
        field.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_ends_where_its_line_says() {
        let quoted = ["vm", "command:a,b", "say \"x\""].map(quoted);
        assert_eq!(quoted, ["vm", "\"command:a,b\"", "\"say \"\"x\"\"\""]);
    }
}
