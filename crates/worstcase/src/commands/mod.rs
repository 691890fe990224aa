//! The commands: one file each.

mod bench;
mod load;
mod measure;
mod measure_display;
mod report;
mod samples;

use std::process::ExitCode;

use clap::Subcommand;

use crate::error::Result;

/// What the user asks for.
#[derive(Subcommand)]
pub enum Command {
    /// Measure this machine under load: table, report and verdict in one go
    Bench(Box<bench::Bench>),
    /// Measure live, until Ctrl-C or --duration
    Measure(Box<measure::Measure>),
    /// Run one load alone, or explain them all
    Load(load::Load),
    /// Show records again, side by side for several
    Report(report::Report),
    /// Print the file that --samples-file wrote
    Samples(samples::Samples),
}

impl Command {
    /// Does it; the exit code carries the verdict.
    pub fn run(self) -> Result<ExitCode> {
        match self {
            Self::Bench(bench) => bench.run(),
            Self::Measure(measure) => measure.run(),
            Self::Load(load) => load.run(),
            Self::Report(report) => report.run(),
            Self::Samples(samples) => samples.run(),
        }
    }
}
