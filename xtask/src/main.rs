//! Project tasks: `cargo xtask test`, `mend`, `tidy`, `dist`, `bench`. Each is a module; this file only chooses one.

#![allow(clippy::print_stdout, clippy::print_stderr)] // printing is what a task is for

mod arguments;
mod bench;
mod command;
mod dist;
mod mend;
mod packages;
mod parameters;
mod processes;
mod stages;
mod tally;
mod test;
mod tidy;
mod workspace;

use std::process::ExitCode;

use anyhow::{Result, bail};

use arguments::Arguments;

const HELP: &str = "\
Usage: cargo xtask TASK [OPTIONS]

  test [--quick | --full] [--stage NAME]
                  the one test command: formatting, clippy, tidy, documentation, unit, property and integration
                  tests, then dist, root's, real-time and counting tests one after the other, fuzz targets.
                  --quick: up to the integration tests, what a change needs. --full: long tests too.
                  As root it installs the Debian packages that are missing.
  mend [CRATE]    writes anew what integration tests compare with: snapshots, answers of commands, schemas,
                  generated documents
  tidy            what the house demands of the source, checked in seconds
  dist [--target TRIPLE] [--run]
                  static binaries in dist/, for every target whose standard library is installed;
                  --run: each runs, foreign ones under qemu-user
  bench peers [--rounds N] [--seconds N] [--intervals 200us,1ms] [--cpus LIST]
                  against cyclictest (and jitterdebugger, if installed), runs taken in turn
  bench record    time and instructions to record one sample
  bench check     time to ask this machine all rules
  bench lab [--rounds N] [--binary FILE]
                  time until a guest's command begins, and two guests side by side against one
  bench trace [--file FILE] [--rounds N]
                  events a second out of a trace.dat, against trace-cmd report
  parameters      the table of boot parameters' names anew, from Debian's linux-doc packages
";

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Runs the task; says whether it found everything in order.
fn run() -> Result<bool> {
    let mut arguments = Arguments::from_command_line();
    match arguments.word().as_deref() {
        Some("test") => test::run(arguments),
        Some("mend") => mend::run(arguments),
        Some("tidy") => tidy::run(arguments),
        Some("dist") => dist::run(arguments),
        Some("bench") => bench::run(arguments),
        Some("parameters") => parameters::run(arguments),
        None | Some("help" | "--help" | "-h") => {
            print!("{HELP}");
            Ok(true)
        }
        Some(other) => bail!("there is no task `{other}`\n\n{HELP}"),
    }
}
