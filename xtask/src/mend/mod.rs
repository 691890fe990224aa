//! `cargo xtask mend`: what integration tests compare with, written anew. Snapshots, answers of commands, schemas and
//! generated documents are all of that kind; whether the new ones are right is for the reader of `git diff` to say.

mod inline;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::arguments::Arguments;
use crate::command;
use crate::workspace::{self, cargo};

/// By which `in_tests.rs`, insta and trycmd know that they are to write; insta then passes, so that each test comes to its
/// last snapshot.
const WRITE: [(&str, &str); 4] =
    [("WORSTCASE_MEND", "1"), ("INSTA_UPDATE", "always"), ("INSTA_FORCE_PASS", "1"), ("TRYCMD", "overwrite")];

/// `mend [CRATE]`
pub fn run(mut arguments: Arguments) -> Result<bool> {
    let package = arguments.word();
    arguments.finish()?;
    let before = changed()?;
    let log = workspace::logs().join("mend.log");
    // What it fails at is seen when it runs again.
    command::logged(tests(package.as_deref()).envs(WRITE), &log)?;
    for pending in pending_snapshots()? {
        accept(&pending)?;
    }
    let outcome = command::logged(&mut tests(package.as_deref()), &log)?;
    if !outcome.success {
        println!("{}", outcome.failures());
    }
    let after = changed()?;
    after.iter().filter(|file| !before.contains(file)).for_each(|file| println!("written: {file}"));
    println!("{}", if after.is_empty() { "nothing has changed" } else { "now look at git diff" });
    Ok(outcome.success)
}

/// The tests that compare with what is committed, of one crate or of all.
fn tests(package: Option<&str>) -> Command {
    let mut cargo = cargo();
    cargo.args(["test", "--all-features", "--no-fail-fast", "--test", "integration"]);
    match package {
        Some(package) => cargo.args(["--package", package]),
        None => cargo.arg("--workspace"),
    };
    cargo
}

/// Files that differ from what is committed.
fn changed() -> Result<Vec<String>> {
    let text =
        command::output(Command::new("git").args(["status", "--porcelain"]).current_dir(workspace::root()))?;
    Ok(text.lines().map(str::to_owned).collect())
}

/// What insta left of snapshots that stand in the source of a test.
fn pending_snapshots() -> Result<Vec<PathBuf>> {
    let list = ["ls-files", "-z", "--others", "--ignored", "--exclude=*.pending-snap", "crates"];
    let text = command::output(Command::new("git").args(list).current_dir(workspace::root()))?;
    Ok(text.split_terminator('\0').map(|path| workspace::root().join(path)).collect())
}

/// Writes the snapshots of `.NAME.rs.pending-snap` into `NAME.rs`.
fn accept(pending: &Path) -> Result<()> {
    let name = pending.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
    let source = pending.with_file_name(name.trim_start_matches('.'));
    let text = fs::read_to_string(&source).with_context(|| format!("reading {}", source.display()))?;
    let snapshots = inline::read(&fs::read_to_string(pending)?)?;
    let mended = inline::put(&text, &snapshots).with_context(|| format!("in {}", source.display()))?;
    fs::write(&source, mended).with_context(|| format!("writing {}", source.display()))?;
    fs::remove_file(pending).with_context(|| format!("removing {}", pending.display()))
}
