//! The stages of `cargo xtask test`, in their order.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result};

use crate::command;
use crate::tally::Tally;
use crate::time_limit::{OVER, TimeLimit};
use crate::workspace::{self, cargo};
use crate::{dist, packages, parts, tidy};

/// How soon a stage is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// What a change needs before it is looked at: all that is neither root's nor a matter of time, within minutes.
    Quick,
    /// The test command: every behaviour.
    Normal,
    /// What CI runs after it.
    Later,
}

/// One stage.
pub struct Stage {
    /// What `--stage` takes.
    pub name: &'static str,
    /// When it runs.
    pub depth: Depth,
    /// What it does; the tally says how it went.
    pub run: fn(TimeLimit) -> Result<Tally>,
}

/// All stages. What measures, counts or needs root comes after what may run side by side, and never beside it.
pub const ALL: [Stage; 15] = [
    Stage { name: "packages", depth: Depth::Normal, run: |_| packages::provide() },
    Stage {
        name: "formatting",
        depth: Depth::Quick,
        run: |_| single("formatting", &["fmt", "--all", "--check"]),
    },
    Stage { name: "clippy", depth: Depth::Quick, run: |_| single("clippy", CLIPPY) },
    Stage { name: "tidy", depth: Depth::Quick, run: |_| tidy::stage() },
    Stage { name: "unit tests", depth: Depth::Quick, run: |_| unit() },
    Stage { name: "integration tests", depth: Depth::Quick, run: |_| integration() },
    Stage { name: "documentation tests", depth: Depth::Quick, run: |_| documentation_tests() },
    // They are run later; that they follow the types that they use is seen here.
    Stage { name: "clippy of fuzz targets", depth: Depth::Normal, run: |_| fuzz_clippy() },
    Stage { name: "serial tests", depth: Depth::Normal, run: |limit| serial(Depth::Normal, limit) },
    Stage { name: "documentation", depth: Depth::Later, run: |_| documentation() },
    Stage { name: "models", depth: Depth::Later, run: |_| models() },
    // Before the later serial tests: a guest of another architecture runs what it makes.
    Stage { name: "dist", depth: Depth::Later, run: |_| dist::stage() },
    Stage { name: "fuzz targets", depth: Depth::Later, run: |_| fuzz() },
    // The last two, for a time limit leaves out single tests and targets of them.
    Stage { name: "later serial tests", depth: Depth::Later, run: |limit| serial(Depth::Later, limit) },
    Stage { name: "other targets", depth: Depth::Later, run: dist::others },
];

const CLIPPY: &[&str] = &["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"];

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

fn unit() -> Result<Tally> {
    tests("unit tests", &UNITS, &["--show-output"])
}

const UNITS: [&str; 3] = ["--workspace", "--lib", "--bins"];

/// The long tests of libraries and programs, and of integration tests that may run side by side.
pub fn simulations() -> Result<Tally> {
    let (_, ordinary) = integration_tests()?;
    let mut selection = UNITS.to_vec();
    selection.extend(ordinary.iter().flat_map(|name| ["--test", name]));
    tests("simulations", &selection, &["--show-output", "--ignored"])
}

/// `cargo doc` has nothing to warn of.
fn documentation() -> Result<Tally> {
    let mut cargo = cargo();
    cargo.args(["doc", "--workspace", "--no-deps", "--all-features"]).env("RUSTDOCFLAGS", "-D warnings");
    checked("documentation", &mut cargo).map(Tally::of)
}

/// The runtime's rings under loom, which tries all orders in which two threads can take turns. In a directory of its own:
/// the flag is another build of everything.
fn models() -> Result<Tally> {
    let mut cargo = cargo();
    cargo.args(["test", "--package", "runtime", "--lib", "--release", "--", "models"]);
    cargo.env("RUSTFLAGS", "--cfg loom").env("CARGO_TARGET_DIR", workspace::root().join("target/loom"));
    let outcome = command::logged(&mut cargo, &workspace::logs().join("models.log"))?;
    if !outcome.success {
        println!("{}", outcome.failures());
    }
    Ok(Tally::from_cargo_test(&outcome.text, outcome.success))
}

fn documentation_tests() -> Result<Tally> {
    tests("documentation tests", &["--workspace", "--doc"], &["--show-output"])
}

fn integration() -> Result<Tally> {
    let (_, ordinary) = integration_tests()?;
    if ordinary.is_empty() {
        return Ok(Tally::default());
    }
    let mut selection = vec!["--workspace"];
    selection.extend(ordinary.iter().flat_map(|name| ["--test", name]));
    tests("integration tests", &selection, &["--show-output"])
}

fn serial(depth: Depth, limit: TimeLimit) -> Result<Tally> {
    let (serial, _) = integration_tests()?;
    let mut tally = Tally::default();
    for executable in &serial {
        let wanted = |test: &str| parts::is_later(executable, test) == (depth == Depth::Later);
        tally.add(portion_by_portion(executable, &[], wanted, limit)?);
    }
    Ok(tally)
}

/// The tests of a serial executable whose paths begin so and that are ignored otherwise.
pub fn long(executable: &str, begin: &str) -> Result<Tally> {
    portion_by_portion(executable, &["--ignored"], |test| test.starts_with(begin), TimeLimit::of(None))
}

fn portion_by_portion(
    executable: &str,
    which: &[&str],
    wanted: impl Fn(&str) -> bool,
    limit: TimeLimit,
) -> Result<Tally> {
    let mut tally = Tally::default();
    for (portion, tests) in portions(executable, which, wanted)? {
        if limit.is_over() {
            tests.iter().for_each(|test| tally.add(Tally::skip(test, OVER)));
            continue;
        }
        let start = Instant::now();
        let one = one_portion(executable, &portion, which, &tests)?;
        let Tally { passed, failed, skipped } = &one;
        let seconds = start.elapsed().as_secs();
        println!("  {portion}: {passed} passed, {failed} failed, {} skipped, {seconds} s", skipped.len());
        tally.add(one);
    }
    Ok(tally)
}

/// The tests of an executable, by the first module that they are in, so that each portion has its log, its time and its
/// time limit.
fn portions(
    executable: &str,
    which: &[&str],
    wanted: impl Fn(&str) -> bool,
) -> Result<BTreeMap<String, Vec<String>>> {
    let list = ["test", "--all-features", "--workspace", "--test", executable, "--", "--list"];
    let text = command::output(cargo().args(list).args(which))?;
    let mut portions: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for test in text.lines().filter_map(|line| line.strip_suffix(": test")).filter(|test| wanted(test)) {
        let portion = match test.split_once("::") {
            Some((module, _)) => format!("{executable} {module}"),
            None => executable.to_owned(),
        };
        portions.entry(portion).or_default().push(test.to_owned());
    }
    Ok(portions)
}

/// The whole workspace is named even for one test: with another set of features everything would be built anew.
fn one_portion(executable: &str, portion: &str, which: &[&str], names: &[String]) -> Result<Tally> {
    let mut harness = vec!["--show-output", "--test-threads=1", "--exact"];
    harness.extend(which);
    harness.extend(names.iter().map(String::as_str));
    tests(portion, &["--workspace", "--test", executable], &harness)
}

/// Names of integration tests: those that run alone, and the others.
fn integration_tests() -> Result<(BTreeSet<String>, BTreeSet<String>)> {
    let names = workspace::packages()?.into_iter().flat_map(|package| package.tests);
    Ok(names.partition(|test| test.starts_with(parts::SERIAL)))
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

fn fuzz_directory() -> PathBuf {
    workspace::root().join("fuzz")
}

/// What a stage of fuzz targets comes to where libFuzzer cannot be built.
fn without_libfuzzer(stage: &str) -> Option<Tally> {
    command::find("c++").is_none().then(|| Tally::skip(stage, "needs package g++ (apt-get install)"))
}

/// In release, for the later build takes libFuzzer from here.
fn fuzz_clippy() -> Result<Tally> {
    let stage = "clippy of fuzz targets";
    if let Some(skipped) = without_libfuzzer(stage) {
        return Ok(skipped);
    }
    let mut clippy = cargo();
    clippy.current_dir(fuzz_directory()).args(["clippy", "--release", "--bins", "--", "-D", "warnings"]);
    checked(stage, &mut clippy).map(Tally::of)
}

/// Each target as `fuzz/README.md` runs it, as many at once as there are CPUs, for they only look for what breaks.
fn fuzz() -> Result<Tally> {
    let directory = fuzz_directory();
    if let Some(skipped) = without_libfuzzer("fuzz targets") {
        return Ok(skipped);
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
