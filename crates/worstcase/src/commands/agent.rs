//! `worstcase-agent`: what measures and reads, for boards. Its records are those of `worstcase`, which makes pages of them
//! elsewhere.

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use super::{bench, echo, load, measure, monitor, samples, snapshot};
use crate::output;

/// Measures the worst-case latency of a Linux system; worstcase reports and explains it elsewhere.
#[derive(Parser)]
#[command(
    name = "worstcase-agent",
    version = env!("WORSTCASE_VERSION"),
    about,
    after_help = "Exit codes: 0 pass, 1 fail, 2 error, 3 inconclusive, 130 interrupted before anything was measured.\n\
                  The page of a record: worstcase report DIR, on any machine"
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    // It makes no page: its help must not speak of one.
    #[command(
        about = "Measure this machine under load: a table, a record and a verdict in one go",
        long_about = "Measure this machine under load: a table, a record and a verdict in one go\n\n\
                      Wakes a real-time thread on every CPU, under one load after the other, and leaves a directory with \
                      the record. With --limit the exit code says whether the requirement was met."
    )]
    Bench(Box<bench::Bench>),
    Echo(echo::Echo),
    Measure(Box<measure::Measure>),
    Monitor(monitor::Monitor),
    Load(load::Load),
    Samples(samples::Samples),
    Snapshot(snapshot::Snapshot),
}

/// All commands with their arguments.
pub fn all() -> clap::Command {
    Arguments::command()
}

/// What `worstcase-agent` does with its arguments.
pub fn main() -> ExitCode {
    let command = match Arguments::try_parse_from(super::words_of(std::env::args_os())) {
        Ok(Arguments { command }) => command,
        Err(error) => return output::usage(error),
    };
    output::ended(match command {
        Command::Bench(bench) => bench.run(&runner::Means::default(), None),
        Command::Echo(echo) => echo.run(),
        Command::Measure(measure) => measure.run(&runner::Means::default(), None),
        Command::Monitor(monitor) => monitor.run(),
        Command::Load(load) => load.run(),
        Command::Samples(samples) => samples.run(),
        Command::Snapshot(snapshot) => snapshot.run(),
    })
}
