//! Project tasks: `cargo xtask test`, `mend`, `tidy`, `dist`, `bench` and others. Each is a module; this file only chooses one.

#![allow(clippy::print_stdout, clippy::print_stderr)] // printing is what a task is for

mod arguments;
mod bench;
mod command;
mod dist;
mod faults;
mod lines;
mod mend;
mod notices;
mod packages;
mod parameters;
mod parts;
mod processes;
mod sanitized;
mod stages;
mod tally;
mod test;
mod tidy;
mod time_limit;
mod workspace;

use std::process::ExitCode;

use anyhow::{Result, bail};

use arguments::Arguments;

const HELP: &str = "\
Usage: cargo xtask TASK [OPTIONS]

  test [--quick | --later | --full [PART]] [--within SECONDS] [--stage NAME]
                  the one test command: formatting, clippy, tidy, unit, property and integration tests, then root's,
                  real-time and counting tests one after the other. As root it installs the Debian packages that are
                  missing. --quick: up to the integration tests, what a change needs.
                  --later: what CI runs after it: documentation, models, dist, fuzz targets, more serial tests.
                  --within: begin no further test then; what is left is named as skipped.
                  --full: the long tests, or a part of them
  mend [CRATE]    writes anew what integration tests compare with: snapshots, answers of commands, schemas,
                  generated documents
  faults [NAME]   puts one fault after another into a copy of the sources and runs the tests that must find it; those whose
                  names begin so, or all. xtask/src/faults/list.rs has the list
  tidy            what the house demands of the source, checked in seconds
  lines [--since COMMIT] [--crates]
                  lines of code of the product by what they are for, or by crate; beside them those of COMMIT
  dist [--target TRIPLE] [--run] [--packages]
                  static binaries in dist/, for every target whose standard library is installed;
                  --run: each runs, foreign ones under qemu-user; and the runtime's header and libraries.
                  --packages: archives, Debian packages, sources with all crates, and their checksums
  bench peers [--rounds N] [--seconds N] [--intervals 200us,1ms] [--cpus LIST] [--binary FILE]
                  against cyclictest, and jitterdebugger or another version of worstcase, runs taken in turn
  bench cost [--rounds N] [--cpu N] [--binary FILE]
                  operations by `worstcase cost` and by perf bench, stress-ng, sockperf and iperf3, in turn
  bench calls [--rounds N] [--seconds N] [--cpu N] [--binary FILE]
                  wake-ups by `measure --probe call` and by rt-tests, in turn
  bench noise [--rounds N] [--seconds N] [--cpu N] [--binary FILE]
                  what takes a CPU from a spinning thread, in turn with oslat
  bench record    time and instructions to record one sample
  bench check [--cases]
                  time to ask this machine all rules; shares of recipes with a known truth that are judged wrongly
  bench events [--em-odp DIRECTORY] [--rounds N]
                  what an event costs in the runtime, in turn with an em-odp built in DIRECTORY
  bench explain [--rounds N] [--seconds N]
                  what tracing for explanations costs a wake-up, switched on and off within a run
  bench lab [--rounds N] [--binary FILE]
                  time until a guest's command begins, and two guests side by side against one
  bench trace [--file FILE] [--rounds N]
                  events a second out of a trace.dat, against trace-cmd report
  notices         THIRD-PARTY.md anew: the licences of the crates in the programs
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
        Some("faults") => faults::run(arguments),
        Some("tidy") => tidy::run(arguments),
        Some("lines") => lines::run(arguments),
        Some("dist") => dist::run(arguments),
        Some("bench") => bench::run(arguments),
        Some("notices") => notices::run(arguments),
        Some("parameters") => parameters::run(arguments),
        None | Some("help" | "--help" | "-h") => {
            print!("{HELP}");
            Ok(true)
        }
        Some(other) => bail!("there is no task `{other}`\n\n{HELP}"),
    }
}
