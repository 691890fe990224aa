//! `bench events`: what an event costs in the runtime, beside an em-odp that was built from source, or its facts' figures.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::arguments::Arguments;
use crate::workspace;

/// Programs of em-odp that are run in turn with ours, and their arguments: one core, then two.
const PROGRAMS: [(&str, &str); 4] = [("loop", "0x1"), ("pairs", "0x1"), ("loop", "0x3"), ("pairs", "0x3")];

/// Seconds that a program of em-odp runs.
const SECONDS: &str = "6";

/// `bench events [--em-odp DIRECTORY] [--rounds N]`: DIRECTORY holds em-odp's built `programs/performance`.
pub fn run(mut arguments: Arguments) -> Result<()> {
    let peer: Option<PathBuf> = arguments.value("--em-odp")?;
    let rounds: Option<usize> = arguments.value("--rounds")?;
    arguments.finish()?;
    let build = ["build", "--quiet", "--profile", "runtime", "--package", "runtime", "--example", "events"];
    ensure!(workspace::cargo().args(build).status()?.success(), "the optimised build failed");
    let ours = workspace::root().join("target/runtime/examples/events");
    for _ in 0..rounds.unwrap_or(1) {
        let status = Command::new(&ours).status().with_context(|| format!("starting {}", ours.display()))?;
        ensure!(status.success(), "{} ended with {status}", ours.display());
        if let Some(peer) = &peer {
            PROGRAMS.iter().try_for_each(|program| theirs(peer, program))?;
        }
    }
    Ok(())
}

/// Their programs run until they are stopped, and print a line of cycles an event now and then.
fn theirs(directory: &std::path::Path, (program, cores): &(&str, &str)) -> Result<()> {
    let path = directory.join("programs/performance").join(program);
    let arguments = ["--signal=INT", SECONDS];
    let output = Command::new("timeout").args(arguments).arg(&path).args(["-c", cores, "-t"]).output();
    let output = output.with_context(|| format!("starting {}", path.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("cycles")).collect();
    println!("em-odp {program}, cores {cores}: {}", lines.last().copied().unwrap_or("printed no figure"));
    Ok(())
}
