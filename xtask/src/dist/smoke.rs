//! What was built is run: on the processor where it can, else in an emulator.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::targets::Target;
use crate::processes;
use crate::tally::Tally;

/// A binary's own check: it says its version, and it measures for a second without privileges.
pub fn run(target: &Target, binary: &Path) -> Result<Tally> {
    let Some(emulator) = target.emulator() else {
        let why = format!("target {} was built but not run: needs qemu-user-static", target.triple);
        println!("  skipped: {why}");
        return Ok(Tally::skip("dist --run", why));
    };
    let start = |arguments: &[&str]| answer(emulator, binary, arguments);
    let checked = says_its_version(start).and_then(|()| measures(start));
    match &checked {
        Ok(measured) => {
            println!("    runs{}, {measured}", emulator.map_or(String::new(), |by| format!(" under {by}")))
        }
        Err(error) => println!("    FAILED to run {}: {error:#}", target.triple),
    }
    Ok(Tally::of(checked.is_ok()))
}

fn says_its_version(start: impl Fn(&[&str]) -> Result<String>) -> Result<()> {
    let version = start(&["--version"])?;
    let expected = env!("CARGO_PKG_VERSION");
    ensure!(version.contains(expected), "--version says `{}`, not {expected}", version.trim());
    Ok(())
}

/// The last line of `measure --json` is the record; it must hold wake-ups.
fn measures(start: impl Fn(&[&str]) -> Result<String>) -> Result<String> {
    let text = start(&["measure", "--duration", "1s", "--policy", "other", "--json"])?;
    let last = text.lines().last().context("measure --json printed nothing")?;
    let line: Value = serde_json::from_str(last).context("the last line of measure --json")?;
    let record: record::Record = serde_json::from_value(line["record"].clone()).context("the record")?;
    let series = record.scenarios.iter().flat_map(|scenario| &scenario.series);
    let (measured, expected) = series.fold((0, 0), |(measured, expected), series| {
        (measured + series.observed.summary().count, expected + series.expected)
    });
    ensure!(measured > 0, "no wake-up was measured");
    Ok(format!("{measured} wake-ups measured of {expected} due"))
}

/// Standard output of one run. Any exit but that of an error is well: a bad environment is what an emulator is.
fn answer(emulator: Option<&str>, binary: &Path, arguments: &[&str]) -> Result<String> {
    const LIMIT: std::time::Duration = std::time::Duration::from_secs(120);
    let mut command = match emulator {
        Some(emulator) => Command::new(emulator),
        None => Command::new(binary),
    };
    if emulator.is_some() {
        command.arg(binary);
    }
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().with_context(|| format!("starting {command:?}"))?;
    let guard = Guard::after(child.id(), LIMIT);
    let output = child.wait_with_output()?;
    drop(guard);
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(matches!(output.status.code(), Some(0 | 1 | 3)), "{}: {}", output.status, errors.trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Kills a process and its descendants after a while, unless it is dropped before.
struct Guard(Option<std::sync::mpsc::Sender<()>>, Option<std::thread::JoinHandle<()>>);

impl Guard {
    fn after(pid: u32, limit: std::time::Duration) -> Self {
        let (cancel, cancelled) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            if cancelled.recv_timeout(limit) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                processes::kill_tree(pid);
            }
        });
        Self(Some(cancel), Some(thread))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.take();
        self.1.take().map(std::thread::JoinHandle::join);
    }
}
