//! The commands: one file each.

mod bench;
mod check;
mod lab;
mod load;
mod measure;
mod measure_display;
mod partition;
mod report;
mod samples;
mod snapshot;
pub mod tune;

use std::process::ExitCode;

use clap::Subcommand;

use crate::error::Result;

/// What the user asks for.
#[derive(Subcommand)]
pub enum Command {
    Bench(Box<bench::Bench>),
    Check(Box<check::Check>),
    Measure(Box<measure::Measure>),
    Lab(lab::Lab),
    Load(load::Load),
    Partition(Box<partition::Partition>),
    Report(report::Report),
    Samples(samples::Samples),
    Snapshot(snapshot::Snapshot),
    Tune(Box<tune::Tune>),
}

impl Command {
    /// Does it; the exit code carries the verdict.
    pub fn run(self) -> Result<ExitCode> {
        match self {
            Self::Bench(bench) => bench.run(),
            Self::Check(check) => check.run(),
            Self::Measure(measure) => measure.run(),
            Self::Lab(lab) => lab.run(),
            Self::Load(load) => load.run(),
            Self::Partition(partition) => partition.run(),
            Self::Report(report) => report.run(),
            Self::Samples(samples) => samples.run(),
            Self::Snapshot(snapshot) => snapshot.run(),
            Self::Tune(tune) => tune.run(),
        }
    }
}
