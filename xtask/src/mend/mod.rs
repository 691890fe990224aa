//! `cargo xtask mend`: what tests compare with, written anew. Snapshots, answers of commands, schemas and
//! generated documents are all of that kind; whether the new ones are right is for the reader of `git diff` to say.

mod inline;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::arguments::Arguments;
use crate::command;
use crate::workspace::{self, Package, cargo};

/// By which `in_tests.rs`, insta and trycmd know that they are to write; insta then passes, so that each test comes to its
/// last snapshot.
const WRITE: [(&str, &str); 4] =
    [("WORSTCASE_MEND", "1"), ("INSTA_UPDATE", "always"), ("INSTA_FORCE_PASS", "1"), ("TRYCMD", "overwrite")];

/// `mend [CRATE]`
pub fn run(mut arguments: Arguments) -> Result<bool> {
    let package = arguments.word();
    arguments.finish()?;
    let before = changed()?;
    // What they fail at is seen when they run again.
    for (mut test, log) in tests(package.as_deref())? {
        command::logged(test.envs(WRITE), &log)?;
    }
    for pending in pending_snapshots()? {
        accept(&pending)?;
    }
    let mut success = true;
    for (mut test, log) in tests(package.as_deref())? {
        let outcome = command::logged(&mut test, &log)?;
        if !outcome.success {
            println!("{}", outcome.failures());
            success = false;
        }
    }
    let after = changed()?;
    let written = after.iter().filter(|(file, content)| before.get(*file) != Some(content));
    written.for_each(|(file, _)| println!("written: {file}"));
    println!("{}", if after == before { "nothing was written" } else { "now look at git diff" });
    Ok(success)
}

/// The tests that compare with what is committed, of one crate or of all, each with its log: integration tests, and unit
/// tests of crates that include `in_tests.rs`.
fn tests(asked: Option<&str>) -> Result<Vec<(Command, PathBuf)>> {
    let packages: Vec<Package> = workspace::packages()?
        .into_iter()
        .filter(|package| asked.is_none_or(|asked| package.name == asked))
        .collect();
    let test = |selection: &[&str], packages: Vec<&Package>, log: &str| {
        let mut cargo = cargo();
        cargo.args(["test", "--all-features", "--no-fail-fast"]).args(selection);
        packages.iter().for_each(|package| _ = cargo.args(["--package", &package.name]));
        (!packages.is_empty()).then(|| (cargo, workspace::logs().join(log)))
    };
    let has_integration = |package: &&Package| package.tests.iter().any(|test| test == "integration");
    let integration = packages.iter().filter(has_integration).collect();
    let unit = packages.iter().filter(compares_in_unit_tests).collect();
    let integration = test(&["--test", "integration"], integration, "mend.log");
    let tests: Vec<_> = integration.into_iter().chain(test(&["--lib"], unit, "mend-unit.log")).collect();
    ensure!(!tests.is_empty(), "no test of `{}` compares with a committed text", asked.unwrap_or_default());
    Ok(tests)
}

fn compares_in_unit_tests(package: &&Package) -> bool {
    let library = workspace::root().join("crates").join(&package.name).join("src/lib.rs");
    fs::read_to_string(library).is_ok_and(|source| source.contains("mend/in_tests.rs"))
}

/// Files that differ from what is committed, with what is in them: one that was changed before is often written again.
fn changed() -> Result<BTreeMap<String, Option<Vec<u8>>>> {
    let mut git = Command::new("git");
    git.args(["status", "--porcelain", "--untracked-files=all"]).current_dir(workspace::root());
    let text = command::output(&mut git)?;
    let content = |line: &str| fs::read(workspace::root().join(line.get(3..)?)).ok();
    Ok(text.lines().map(|line| (line.to_owned(), content(line))).collect())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unit_tests_that_compare_are_mended_too() {
        let run = |package| {
            let tests = tests(Some(package)).unwrap();
            let words = |(test, _): &(Command, PathBuf)| {
                test.get_args().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
            };
            tests.iter().map(words).collect::<Vec<_>>()
        };
        let common = "test --all-features --no-fail-fast";
        assert_eq!(run("formats"), [format!("{common} --lib --package formats")]);
        let record = ["--test integration", "--lib"].map(|kind| format!("{common} {kind} --package record"));
        assert_eq!(run("record"), record);
        let error = tests(Some("units")).unwrap_err().to_string();
        assert_eq!(error, "no test of `units` compares with a committed text");
    }
}
