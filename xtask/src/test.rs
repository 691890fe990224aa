//! `cargo xtask test`: the one test command.

use std::time::Instant;

use anyhow::{Result, anyhow, ensure};

use crate::arguments::Arguments;
use crate::dist::delivery;
use crate::faults;
use crate::packages::{self, is_root};
use crate::parts::{self, Long, Part};
use crate::sanitized;
use crate::stages::{self, Depth, Stage};
use crate::tally::Tally;
use crate::time_limit::{OVER, TimeLimit};

/// `test [--quick | --later | --full [PART]] [--within SECONDS] [--stage NAME]`
pub fn run(mut arguments: Arguments) -> Result<bool> {
    if arguments.flag("--full") {
        return full(arguments);
    }
    let depth = match (arguments.flag("--quick"), arguments.flag("--later")) {
        (true, true) => return Err(anyhow!("--quick and --later exclude each other")),
        (true, false) => Depth::Quick,
        (false, true) => Depth::Later,
        (false, false) => Depth::Normal,
    };
    let only: Option<String> = arguments.value("--stage")?;
    let limit = TimeLimit::of(arguments.value("--within")?);
    arguments.finish()?;
    let mut tally = Tally::default();
    for stage in chosen(depth, only.as_deref())? {
        if limit.is_over() {
            tally.add(Tally::skip(stage.name, OVER));
        } else {
            tally.add(announced(stage.name, || (stage.run)(limit)));
        }
    }
    conclude(tally)
}

/// The long tests: a part of them, or all.
fn full(mut arguments: Arguments) -> Result<bool> {
    let name = arguments.word();
    arguments.finish()?;
    let parts = parts::chosen(name.as_deref())?;
    let mut tally = announced("packages", packages::provide);
    for part in parts {
        tally.add(announced(part.name, || run_part(part)));
    }
    conclude(tally)
}

/// Runs all of a part.
fn run_part(part: &Part) -> Result<Tally> {
    let mut tally = Tally::default();
    for tests in part.tests {
        let one = match tests {
            Long::Simulations => stages::simulations()?,
            Long::Delivery => delivery::stage()?,
            Long::Sanitized => sanitized::stage()?,
            Long::Faults => faults::stage()?,
            Long::Serial(executable, begin) => stages::long(executable, begin)?,
        };
        if one == Tally::default() {
            return Err(anyhow!("{} has an entry that no test belongs to", part.name));
        }
        tally.add(one);
    }
    Ok(tally)
}

fn chosen(depth: Depth, only: Option<&str>) -> Result<Vec<&'static Stage>> {
    let asked = |stage: &&Stage| match (only, depth) {
        (Some(name), _) => stage.name == name,
        (None, Depth::Later) => stage.depth == Depth::Later || stage.name == "packages",
        (None, depth) => stage.depth <= depth,
    };
    let chosen: Vec<_> = stages::ALL.iter().filter(asked).collect();
    let names: Vec<_> = stages::ALL.iter().map(|stage| stage.name).collect();
    ensure!(!chosen.is_empty(), "no such stage: there are {}", names.join(", "));
    Ok(chosen)
}

/// Runs a stage between two lines; one that cannot be run has failed.
fn announced(name: &str, run: impl FnOnce() -> Result<Tally>) -> Tally {
    println!("== {name}");
    let start = Instant::now();
    let tally = run().unwrap_or_else(|error| {
        println!("error: {error:#}");
        Tally::of(false)
    });
    let Tally { passed, failed, skipped } = &tally;
    let (skipped, seconds) = (skipped.len(), start.elapsed().as_secs_f64());
    println!("== {name}: {passed} passed, {failed} failed, {skipped} skipped, {seconds:.1} s");
    tally
}

/// Names what was skipped, and says the sum on a line of its own.
fn conclude(mut tally: Tally) -> Result<bool> {
    for skip in &tally.skipped {
        println!("skipped: {}{}{}", skip.what, if skip.what.is_empty() { "" } else { ": " }, skip.why);
    }
    if is_ci() && is_root() {
        for refused in tally.refuse_avoidable() {
            println!("FAILED: {}: skipped where it could have run: {}", refused.what, refused.why);
        }
    }
    println!("{} passed, {} failed, {} skipped", tally.passed, tally.failed, tally.skipped.len());
    Ok(tally.failed == 0)
}

/// Whether the project's machine runs this: what it can provide must be there.
fn is_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true" || value == "1")
}
