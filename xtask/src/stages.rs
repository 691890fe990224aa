//! The stages of `cargo xtask test`, in their order.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result};

use crate::command;
use crate::tally::Tally;
use crate::workspace::{self, cargo};
use crate::{dist, packages, tidy};

/// How much is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// What a change needs before it is looked at: all that is neither root's nor a matter of time, within minutes.
    Quick,
    /// All that has to hold.
    Normal,
    /// Long tests too.
    Full,
}

/// One stage.
pub struct Stage {
    /// What `--stage` takes.
    pub name: &'static str,
    /// The least depth at which it runs.
    pub from: Depth,
    /// What it does; the tally says how it went.
    pub run: fn(Depth) -> Result<Tally>,
}

/// All stages. What measures, counts or needs root comes after what may run side by side, and never beside it.
pub const ALL: [Stage; 11] = [
    Stage { name: "packages", from: Depth::Normal, run: |_| packages::provide() },
    Stage {
        name: "formatting",
        from: Depth::Quick,
        run: |_| single("formatting", &["fmt", "--all", "--check"]),
    },
    Stage { name: "clippy", from: Depth::Quick, run: |_| single("clippy", CLIPPY) },
    Stage { name: "tidy", from: Depth::Quick, run: |_| tidy::stage() },
    Stage { name: "documentation", from: Depth::Quick, run: |_| documentation() },
    Stage { name: "unit tests", from: Depth::Quick, run: unit },
    Stage { name: "integration tests", from: Depth::Quick, run: integration },
    Stage { name: "documentation tests", from: Depth::Quick, run: |_| documentation_tests() },
    // Before the serial tests: guests of other architectures run what it makes.
    Stage { name: "dist", from: Depth::Normal, run: |_| dist::stage() },
    Stage { name: "serial tests", from: Depth::Normal, run: serial },
    Stage { name: "fuzz targets", from: Depth::Normal, run: |_| fuzz() },
];

const CLIPPY: &[&str] = &["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"];

/// Integration tests whose names begin so run one after the other, one test at a time: they are root's, they measure
/// real threads, or they count what other tests would add to.
const SERIAL: &str = "serial_";

/// One `cargo` command that is right or wrong.
fn single(name: &str, arguments: &[&str]) -> Result<Tally> {
    checked(name, cargo().args(arguments)).map(Tally::of)
}

/// Runs `command`, prints the end of what it said if it failed.
fn checked(name: &str, command: &mut Command) -> Result<bool> {
    let outcome =
        command::logged(command, &workspace::logs().join(format!("{}.log", name.replace(' ', "-"))))?;
    if !outcome.success {
        println!("{}", outcome.tail());
    }
    Ok(outcome.success)
}

fn unit(depth: Depth) -> Result<Tally> {
    tests("unit tests", &["--workspace", "--lib", "--bins"], harness(depth, false))
}

/// `cargo doc` has nothing to warn of.
fn documentation() -> Result<Tally> {
    let mut cargo = cargo();
    // Who reads these pages reads the source too: a link to a private item is no fault.
    let flags = "-D warnings -A rustdoc::private_intra_doc_links";
    cargo.args(["doc", "--workspace", "--no-deps", "--all-features"]).env("RUSTDOCFLAGS", flags);
    checked("documentation", &mut cargo).map(Tally::of)
}

fn documentation_tests() -> Result<Tally> {
    tests("documentation tests", &["--workspace", "--doc"], &["--show-output"])
}

fn integration(depth: Depth) -> Result<Tally> {
    let (_, ordinary) = integration_tests()?;
    if ordinary.is_empty() {
        return Ok(Tally::default());
    }
    let mut selection = vec!["--workspace"];
    selection.extend(ordinary.iter().flat_map(|name| ["--test", name]));
    tests("integration tests", &selection, harness(depth, false))
}

fn serial(depth: Depth) -> Result<Tally> {
    let (serial, _) = integration_tests()?;
    let mut tally = Tally::default();
    for executable in &serial {
        for (portion, tests) in portions(executable)? {
            let start = Instant::now();
            let one = one_portion(executable, &portion, &tests, depth)?;
            let Tally { passed, failed, skipped } = &one;
            let seconds = start.elapsed().as_secs();
            println!("  {portion}: {passed} passed, {failed} failed, {} skipped, {seconds} s", skipped.len());
            tally.add(one);
        }
    }
    Ok(tally)
}

/// The tests of an executable, by the first module that they are in, so that each portion has its log, its time and its
/// time limit.
fn portions(executable: &str) -> Result<BTreeMap<String, Vec<String>>> {
    let list = ["test", "--all-features", "--workspace", "--test", executable, "--", "--list"];
    let text = command::output(cargo().args(list))?;
    let mut portions: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for test in text.lines().filter_map(|line| line.strip_suffix(": test")) {
        let portion = match test.split_once("::") {
            Some((module, _)) => format!("{executable} {module}"),
            None => executable.to_owned(),
        };
        portions.entry(portion).or_default().push(test.to_owned());
    }
    Ok(portions)
}

/// The whole workspace is named even for one test: with another set of features everything would be built anew.
fn one_portion(executable: &str, portion: &str, names: &[String], depth: Depth) -> Result<Tally> {
    let mut harness = harness(depth, true).to_vec();
    harness.push("--exact");
    harness.extend(names.iter().map(String::as_str));
    tests(portion, &["--workspace", "--test", executable], &harness)
}

/// Names of integration tests: those that run alone, and the others.
fn integration_tests() -> Result<(BTreeSet<String>, BTreeSet<String>)> {
    let names = workspace::packages()?.into_iter().flat_map(|package| package.tests);
    Ok(names.partition(|test| test.starts_with(SERIAL)))
}

/// Arguments to the test harness.
fn harness(depth: Depth, one_at_a_time: bool) -> &'static [&'static str] {
    match (depth == Depth::Full, one_at_a_time) {
        (false, false) => &["--show-output"],
        (false, true) => &["--show-output", "--test-threads=1"],
        (true, false) => &["--show-output", "--include-ignored"],
        (true, true) => &["--show-output", "--include-ignored", "--test-threads=1"],
    }
}

/// One `cargo test`, its results added up.
fn tests(name: &str, selection: &[&str], harness: &[&str]) -> Result<Tally> {
    let mut cargo = cargo();
    cargo.args(["test", "--all-features", "--no-fail-fast"]).args(selection).arg("--").args(harness);
    let log = workspace::logs().join(format!("{}.log", name.replace(' ', "-")));
    let outcome = command::logged(&mut cargo, &log)?;
    if !outcome.success {
        println!("{}", outcome.failures());
    }
    Ok(Tally::from_cargo_test(&outcome.text, outcome.success))
}

/// Seconds that each fuzz target runs: enough to see that it builds and that what lies near its seeds is sound.
const FUZZ_SECONDS: u32 = 10;

/// Each target as `fuzz/README.md` runs it, as many at once as there are CPUs, for they only look for what breaks.
fn fuzz() -> Result<Tally> {
    let directory = workspace::root().join("fuzz");
    if command::find("c++").is_none() {
        return Ok(Tally::skip("fuzz targets", "needs package g++ (apt-get install)"));
    }
    let mut build = cargo();
    build.current_dir(&directory).args(["build", "--release", "--bins"]);
    if !checked("fuzz build", &mut build)? {
        return Ok(Tally::of(false));
    }
    let targets = workspace::binaries(&directory.join("Cargo.toml"))?;
    let run = |target: &String| checked(&format!("fuzz {target}"), &mut fuzz_target(&directory, target)?);
    let mut tally = Tally::default();
    for several in targets.chunks(thread::available_parallelism().map_or(1, usize::from)) {
        let ended = thread::scope(|scope| {
            let running: Vec<_> = several.iter().map(|target| scope.spawn(move || run(target))).collect();
            running.into_iter().map(|thread| thread.join().unwrap_or(Ok(false))).collect::<Vec<_>>()
        });
        ended.into_iter().try_for_each(|ended| ended.map(|ended| tally.add(Tally::of(ended))))?;
    }
    Ok(tally)
}

/// Cargo takes the flags that libFuzzer needs from the directory's own settings, so it is started there.
fn fuzz_target(directory: &Path, target: &str) -> Result<Command> {
    let (corpus, artifacts) = (format!("corpus/{target}"), format!("artifacts/{target}/"));
    for below in [&corpus, &artifacts] {
        let path = directory.join(below);
        fs::create_dir_all(&path).with_context(|| format!("creating {}", path.display()))?;
    }
    let mut cargo = cargo();
    cargo.current_dir(directory).args(["run", "--release", "--bin", target, "--"]);
    cargo
        .arg(format!("-max_total_time={FUZZ_SECONDS}"))
        .arg(format!("-artifact_prefix={artifacts}"))
        .arg(corpus);
    let seeds = format!("seeds/{target}");
    if directory.join(&seeds).is_dir() {
        cargo.arg(seeds);
    }
    Ok(cargo)
}
