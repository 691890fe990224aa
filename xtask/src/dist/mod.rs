//! `cargo xtask dist`: static binaries, what they weigh, and that they run.
//!
//! A static build on a gnu target wants an explicit `--target`: without one the flag would reach procedural macros,
//! which are libraries that the compiler loads.

pub mod delivery;
mod emulator;
mod library;
mod packages;
mod smoke;
pub mod targets;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, anyhow, ensure};

use crate::arguments::Arguments;
use crate::command;
use crate::tally::Tally;
use crate::time_limit::{OVER, TimeLimit};
use crate::workspace;
use targets::Target;

/// A program that is delivered.
pub struct Program {
    name: &'static str,
    /// What it may weigh on x86-64 with glibc, in bytes: above that, `dist` fails.
    limit: u64,
}

/// All of them. The aims are 5,000,000 and 1,500,000: a limit goes up only with a new command, by what that takes. The last were
/// the probe of the kernel's calls with the counters around every scenario (100 KB, 79 KB in the agent), what `check --recipe`
/// compares of quantities, claims and other programs' files (126 KB), trials without steal (27 KB), and how programs wait (35 KB, 23 KB in the agent). What
/// the programs consist of, and what made them smaller, is in docs/size.md.
const PROGRAMS: [Program; 2] =
    [Program { name: "worstcase", limit: 6_980_000 }, Program { name: "worstcase-agent", limit: 2_590_000 }];

/// What sizes are judged on: other compilers and C libraries differ by a tenth.
const JUDGED: &str = "x86_64-unknown-linux-gnu";

/// `dist [--target TRIPLE] [--run] [--packages]`
pub fn run(mut arguments: Arguments) -> Result<bool> {
    let only: Option<String> = arguments.value("--target")?;
    let runs = arguments.flag("--run");
    let is_packed = arguments.flag("--packages");
    arguments.finish()?;
    let targets = chosen(only.as_deref())?;
    let mut tally = deliver_all(&targets, runs)?;
    if is_packed && tally.failed == 0 {
        let ready: Vec<&Target> = targets.into_iter().filter(|target| hindrance(target).is_none()).collect();
        packages::pack(&ready)?;
    }
    if only.is_none() {
        tally.add(library::deliver()?);
    }
    Ok(tally.failed == 0)
}

fn chosen(only: Option<&str>) -> Result<Vec<&'static Target>> {
    let Some(only) = only else { return Ok(targets::ALL.iter().collect()) };
    let found: Vec<_> = targets::ALL.iter().filter(|target| target.triple == only).collect();
    let known: Vec<_> = targets::ALL.iter().map(|target| target.triple).collect();
    ensure!(!found.is_empty(), "no target `{only}`: there are {}", known.join(", "));
    Ok(found)
}

/// Builds, weighs and runs what this machine and its guests of another architecture run.
pub fn stage() -> Result<Tally> {
    let (here, _): (Vec<_>, Vec<_>) = targets::ALL.iter().partition(|target| target.is_for_tests());
    let mut tally = deliver_all(&here, true)?;
    tally.add(library::deliver()?);
    Ok(tally)
}

/// The same for every other target that can be built here: one after the other, for each takes minutes.
pub fn others(limit: TimeLimit) -> Result<Tally> {
    let mut tally = Tally::default();
    for target in targets::ALL.iter().filter(|target| !target.is_for_tests()) {
        tally.add(if limit.is_over() { Tally::skip(target.triple, OVER) } else { deliver(target, true)? });
    }
    Ok(tally)
}

fn deliver_all(targets: &[&Target], runs: bool) -> Result<Tally> {
    let ready: Vec<&Target> = targets.iter().copied().filter(|target| hindrance(target).is_none()).collect();
    build_together(&ready)?;
    let mut tally = Tally::default();
    for target in targets {
        tally.add(deliver(target, runs)?);
    }
    Ok(tally)
}

/// Optimising as a whole keeps one core busy a target, so all are built side by side; whether each was, its own build says.
fn build_together(targets: &[&Target]) -> Result<()> {
    let mut cargo = release();
    for target in targets {
        aim(&mut cargo, target)?;
    }
    if targets.len() > 1 {
        command::logged(&mut cargo, &workspace::logs().join("dist.log"))?;
    }
    Ok(())
}

fn deliver(target: &Target, runs: bool) -> Result<Tally> {
    if let Some(why) = hindrance(target) {
        println!("  skipped: target {why}");
        return Ok(Tally::skip("dist", format!("target {why}")));
    }
    if let Err(error) = build(target) {
        return Ok(failed(target, &error));
    }
    let mut tally = Tally::default();
    for program in &PROGRAMS {
        tally.add(deliver_one(target, program, runs)?);
    }
    Ok(tally)
}

fn deliver_one(target: &Target, program: &Program, runs: bool) -> Result<Tally> {
    let kept = keep(target, program);
    let weighed = kept.and_then(|binary| weigh(target, program, &binary).map(|()| binary));
    let weighed = weighed.and_then(|binary| names_no_path(&binary).map(|()| binary));
    let binary = match weighed {
        Ok(binary) => binary,
        Err(error) => return Ok(failed(target, &error)),
    };
    let mut tally = Tally::of(true);
    if runs {
        tally.add(smoke::run(target, &binary)?);
    }
    Ok(tally)
}

fn failed(target: &Target, error: &anyhow::Error) -> Tally {
    println!("  FAILED {}: {error:#}", target.triple);
    Tally::of(false)
}

/// What keeps us from building for `target`.
fn hindrance(target: &Target) -> Option<String> {
    let Target { triple, packages, .. } = target;
    if !target.has_std() {
        return Some(format!("{triple}: std not installed (rustup target add {triple})"));
    }
    let packages = packages.join(" ");
    (!target.links()).then(|| format!("{triple}: no linker (apt-get install {packages})"))
}

/// Builds all programs, or fails with what the compiler said.
fn build(target: &Target) -> Result<()> {
    let mut cargo = release();
    aim(&mut cargo, target)?;
    let log = workspace::logs().join(format!("dist-{}.log", target.triple));
    let outcome = command::logged(&mut cargo, &log)?;
    ensure!(outcome.success, "the build failed\n{}", outcome.tail());
    Ok(())
}

/// Builds `worstcase` and puts it into `dist/`.
pub fn worstcase(target: &Target) -> Result<PathBuf> {
    build(target)?;
    keep(target, &PROGRAMS[0])
}

fn release() -> Command {
    let mut cargo = workspace::cargo();
    cargo.args(["build", "--release", "--locked", "--package", "worstcase"]);
    cargo
}

/// Has `cargo` build for `target` too.
fn aim(cargo: &mut Command, target: &Target) -> Result<()> {
    let variable = format!("CARGO_TARGET_{}", target.triple.to_uppercase().replace('-', "_"));
    let linker = target.linker().ok_or_else(|| anyhow!("no linker for {}", target.triple))?;
    cargo.args(["--target", target.triple]);
    // With `linker=cc`, rustc takes it for a plain one; left to itself it calls it with its own lld.
    if linker != "cc" {
        cargo.env(format!("{variable}_LINKER"), linker);
    }
    cargo.env(format!("{variable}_RUSTFLAGS"), flags(target, linker));
    Ok(())
}

/// Leaves out the tables for unwinding of both standard libraries. Relative to the workspace, where rustc runs: the path of
/// the workspace must not be in the flags, from which names in the program are made.
const SCRIPT: &str = "xtask/src/dist/no_unwind_tables.ld";

/// Static, and without unwind tables, because a panic ends the program anyway.
const STATIC: [&str; 2] = ["-C target-feature=+crt-static", "-C force-unwind-tables=no"];

/// Sequences of instructions that occur several times become functions: 5 % less. Not every target's compiler can.
const OUTLINED: &str = "-C llvm-args=-enable-machine-outliner=always -C llvm-args=-machine-outliner-reruns=3";

/// Equal functions once, and relative relocations as a bitmap (glibc 2.36 and later read it in static programs too). `sys` stands in
/// for parts of glibc that nothing reaches; where another version divides them otherwise, the first of two definitions is taken.
const SMALLER: [&str; 4] = [
    "-C link-arg=-Wl,--icf=all",
    "-C link-arg=-Wl,-z,pack-relative-relocs",
    "--cfg=lean_libc",
    "-C link-arg=-Wl,-z,muldefs",
];

/// What rustc is called with. The linker's own words are lld's, which is the default of one target from Rust 1.90 on.
fn flags(target: &Target, linker: &str) -> String {
    let mut flags: Vec<String> = STATIC.map(str::to_owned).to_vec();
    if target.triple.starts_with("x86_64") {
        flags.push(OUTLINED.to_owned());
    }
    if target.triple == "x86_64-unknown-linux-gnu" && linker == "cc" && cfg!(target_arch = "x86_64") {
        flags.extend(SMALLER.map(str::to_owned));
        flags.push(format!("-C link-arg=-Wl,-T,{SCRIPT}"));
    }
    flags.extend(unnamed(&workspace::root(), "/worstcase"));
    flags.extend(cargo_home().and_then(|home| unnamed(&home, "/cargo")));
    flags.join(" ")
}

/// Where Cargo keeps the sources of other crates.
fn cargo_home() -> Option<PathBuf> {
    let own = || std::env::home_dir().map(|home| home.join(".cargo"));
    std::env::var_os("CARGO_HOME").map(PathBuf::from).or_else(own)
}

/// Panics name their place in the source: by a path that is the same wherever it is built. Cargo divides flags at blanks,
/// so a path that has one stays as it is.
fn unnamed(path: &Path, name: &str) -> Option<String> {
    let path = path.to_str().filter(|path| !path.contains(' '))?;
    Some(format!("--remap-path-prefix={path}={name}"))
}

/// Puts a program that was built into `dist/`.
fn keep(target: &Target, program: &Program) -> Result<PathBuf> {
    let root = workspace::root();
    let built = root.join("target").join(target.triple).join("release").join(program.name);
    let dist = root.join("dist");
    fs::create_dir_all(&dist).with_context(|| format!("creating {}", dist.display()))?;
    let kept = dist.join(format!("{}-{}-{}", program.name, env!("CARGO_PKG_VERSION"), target.triple));
    fs::copy(&built, &kept).with_context(|| format!("copying {} to {}", built.display(), kept.display()))?;
    Ok(kept)
}

/// Prints size and checksum; fails where the binary is too large, or not static.
fn weigh(target: &Target, program: &Program, binary: &Path) -> Result<()> {
    let size = fs::metadata(binary).with_context(|| format!("reading {}", binary.display()))?.len();
    let sum = command::output(Command::new("sha256sum").arg("--binary").arg(binary))?;
    let sum = sum.split_whitespace().next().unwrap_or_default();
    let name = binary.file_name().unwrap_or_default().to_string_lossy();
    let limit = program.limit;
    println!("  {name}: {size} bytes ({} % of {limit}), sha256 {sum}", size * 100 / limit);
    ensure!(is_static(binary)?, "{name} wants a dynamic loader");
    within(&name, size, program, target)
}

/// Fails where a program that is judged by its size weighs more than it may.
fn within(name: &str, size: u64, program: &Program, target: &Target) -> Result<()> {
    let limit = program.limit;
    ensure!(
        size <= limit || target.triple != JUDGED,
        "{name} has {size} bytes, at most {limit}: what grew? The limits are in xtask/src/dist/mod.rs"
    );
    Ok(())
}

/// Fails where the binary names a directory of the machine that it was built on.
fn names_no_path(binary: &Path) -> Result<()> {
    let bytes = fs::read(binary).with_context(|| format!("reading {}", binary.display()))?;
    for path in [Some(workspace::root()), cargo_home()].into_iter().flatten() {
        let path = path.join("").display().to_string();
        let found = bytes.windows(path.len()).any(|window| window == path.as_bytes());
        ensure!(!found, "{} names {path}, a directory of this machine", binary.display());
    }
    Ok(())
}

/// Whether no program header asks for an interpreter.
fn is_static(binary: &Path) -> Result<bool> {
    let headers = command::output(Command::new("readelf").args(["--program-headers", "--wide"]).arg(binary))?;
    Ok(!headers.contains("INTERP"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dynamic_program_is_distinguished_from_a_static_one() {
        let me = std::env::current_exe().unwrap();
        assert!(!is_static(&me).unwrap(), "the test itself is linked with the shared C library");
    }

    #[test]
    fn a_program_above_its_budget_is_not_delivered() {
        let judged = chosen(Some(JUDGED)).unwrap()[0];
        for program in &PROGRAMS {
            let limit = program.limit;
            assert!(within(program.name, limit, program, judged).is_ok());
            let error = within(program.name, limit + 1, program, judged).unwrap_err().to_string();
            assert!(error.contains(&format!("{} bytes, at most {limit}", limit + 1)), "{error}");
        }
    }

    #[test]
    fn an_unknown_target_is_refused_with_the_known_ones() {
        let error = chosen(Some("pdp11-unknown-unix")).err().unwrap().to_string();
        assert!(error.contains("powerpc-unknown-linux-gnu"), "{error}");
    }

    #[test]
    fn a_path_of_this_machine_in_a_binary_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let binary = directory.path().join("binary");
        fs::write(&binary, format!("\0{}/crates/x.rs\0", workspace::root().display())).unwrap();
        let error = names_no_path(&binary).unwrap_err().to_string();
        assert!(error.contains("a directory of this machine"), "{error}");
        fs::write(&binary, "/worstcase/crates/x.rs").unwrap();
        names_no_path(&binary).unwrap();
    }

    #[test]
    fn flags_name_the_workspace_only_to_have_it_unnamed() {
        let target = targets::ALL.iter().find(|target| target.triple == JUDGED).unwrap();
        let (flags, root) = (flags(target, "cc"), workspace::root().display().to_string());
        let naming: Vec<&str> = flags.split(' ').filter(|word| word.contains(&root)).collect();
        assert_eq!(naming, [format!("--remap-path-prefix={root}=/worstcase")]);
    }
}
