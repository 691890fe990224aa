//! What was built is run: on the processor where it can, else in an emulator.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use record::Record;
use serde_json::Value;

use super::emulator::Runner;
use super::targets::Target;
use crate::command;
use crate::processes;
use crate::tally::Tally;
use crate::workspace;

/// An emulated machine is slow, but not that slow.
const LIMIT: Duration = Duration::from_secs(120);

/// A binary's own check: it says its version, and it measures for a second without privileges.
pub fn run(target: &Target, binary: &Path) -> Result<Tally> {
    let Some(emulator) = target.emulator() else {
        return Ok(skip(target, "needs qemu-user-static"));
    };
    let Some(runner) = Runner::find(binary, emulator)? else {
        return Ok(skip(
            target,
            "this kernel has neither a binfmt_misc handler for it nor, before 6.7, one for a sandbox",
        ));
    };
    let start = |arguments: &[&str]| answer(runner.command(binary).args(arguments));
    let checked = says_its_version(start).and_then(|()| measures(start));
    match &checked {
        Ok(measured) => {
            println!("    runs{}: {measured}", emulator.map_or(String::new(), |by| format!(" under {by}")))
        }
        Err(error) => println!("    FAILED to run {}: {error:#}", target.triple),
    }
    Ok(Tally::of(checked.is_ok()))
}

fn skip(target: &Target, why: &str) -> Tally {
    println!("    skipped: built but not run: {why}");
    Tally::skip(format!("running {}", target.triple), why)
}

fn says_its_version(start: impl Fn(&[&str]) -> Result<String>) -> Result<()> {
    let version = start(&["--version"])?;
    names_version_and_commit(version.trim(), commit().as_deref())
}

/// The commit that the programs are built from, where the workspace is a checkout.
fn commit() -> Option<String> {
    let root = workspace::root();
    let mut git = Command::new("git");
    git.args(["log", "-1", "--abbrev=12", "--format=%h"]).current_dir(&root);
    let of_checkout = || command::output(&mut git).ok().filter(|_| root.join(".git").exists());
    std::env::var("WORSTCASE_COMMIT").ok().or_else(of_checkout).map(|commit| commit.trim().to_owned())
}

fn names_version_and_commit(said: &str, commit: Option<&str>) -> Result<()> {
    for expected in [Some(env!("CARGO_PKG_VERSION")), commit].into_iter().flatten() {
        ensure!(said.contains(expected), "--version says `{said}`, not {expected}");
    }
    Ok(())
}

/// The last line of `measure --json` is the record; it must hold wake-ups.
fn measures(start: impl Fn(&[&str]) -> Result<String>) -> Result<String> {
    let text = start(&["measure", "--duration", "1s", "--policy", "other", "--json"])?;
    let last = text.lines().last().context("measure --json printed nothing")?;
    let line: Value = serde_json::from_str(last).context("the last line of measure --json")?;
    let record: Record = serde_json::from_value(line["record"].clone()).context("the record")?;
    let series = record.scenarios.iter().flat_map(|scenario| &scenario.series);
    let (measured, expected) = series.fold((0, 0), |(measured, expected), series| {
        (measured + series.observed.summary().count, expected + series.expected())
    });
    ensure!(measured > 0, "no wake-up was measured");
    Ok(format!("{measured} wake-ups measured of {expected} due"))
}

/// Standard output of one run. Any exit but that of an error is well: a bad environment is what an emulator is.
fn answer(command: &mut Command) -> Result<String> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().with_context(|| format!("starting {command:?}"))?;
    let pid = child.id();
    let (done, is_done) = mpsc::channel::<()>();
    let guard = std::thread::spawn(move || {
        if is_done.recv_timeout(LIMIT) == Err(RecvTimeoutError::Timeout) {
            processes::kill_tree(pid);
        }
    });
    let output = child.wait_with_output();
    drop(done);
    // It ends at once, and has nothing to say.
    let _ = guard.join();
    let output = output?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(matches!(output.status.code(), Some(0 | 1 | 3)), "{}: {}", output.status, errors.trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_without_its_commit_is_not_delivered() {
        let said = concat!("worstcase ", env!("CARGO_PKG_VERSION"), " (0123456789ab, 2026-01-01)");
        assert!(names_version_and_commit(said, Some("0123456789ab")).is_ok());
        assert!(names_version_and_commit(said, Some("ba9876543210")).is_err());
        assert!(names_version_and_commit("worstcase 9.9 (0123456789ab)", Some("0123456789ab")).is_err());
        assert!(names_version_and_commit(said, None).is_ok(), "an archive has no commit");
    }
}
