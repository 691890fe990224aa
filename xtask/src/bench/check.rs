//! `bench check`: how long it takes to ask this machine all rules, and how often recipes with a known truth are judged wrongly.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use super::spread::Spread;
use crate::arguments::Arguments;
use crate::workspace;

/// What DESIGN allows.
const MILLISECONDS: f64 = 50.0;

/// Times whole runs of the optimised binary, and runs that do nothing, in turn. With `--cases`, recipes that were judged wrongly are
/// printed.
pub fn run(mut arguments: Arguments) -> Result<()> {
    let verbose = arguments.flag("--cases");
    arguments.finish()?;
    let status =
        workspace::cargo().args(["build", "--quiet", "--release", "--package", "worstcase"]).status()?;
    ensure!(status.success(), "the optimised build failed");
    let rounds: Vec<(f64, f64)> =
        (0..21).map(|_| Ok((timed(&["check", "--json"])?, timed(&["--version"])?))).collect::<Result<_>>()?;
    let spread = |of: fn(&(f64, f64)) -> f64| Spread::of(rounds.iter().map(of)).context("no round");
    let whole = spread(|round| round.0)?;
    println!("check, all rules, this machine     {whole} ms    budget: at most {MILLISECONDS} ms");
    println!("a start of the program alone       {} ms", spread(|round| round.1)?);
    super::corpus::run(&binary(), verbose)
}

fn binary() -> PathBuf {
    workspace::root().join("target/release/worstcase")
}

/// The milliseconds from the start of a program to its end.
fn timed(arguments: &[&str]) -> Result<f64> {
    let start = Instant::now();
    let status =
        Command::new(binary()).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    let elapsed = start.elapsed();
    ensure!(matches!(status.code(), Some(0 | 1 | 3)), "worstcase {arguments:?} ended with {status}");
    Ok(elapsed.as_secs_f64() * 1e3)
}
