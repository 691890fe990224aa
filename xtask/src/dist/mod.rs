//! `cargo xtask dist`: static binaries, what they weigh, and that they run.
//!
//! A static build on a gnu target wants an explicit `--target`: without one the flag would reach procedural macros,
//! which are libraries that the compiler loads.

mod emulator;
mod smoke;
pub mod targets;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, anyhow, ensure};

use crate::arguments::Arguments;
use crate::command;
use crate::tally::Tally;
use crate::workspace;
use targets::Target;

/// A program that is delivered.
pub struct Program {
    name: &'static str,
    /// What it may weigh on x86-64, in bytes (the design's budgets).
    budget: u64,
}

/// All of them.
const PROGRAMS: [Program; 2] = [
    Program { name: "worstcase", budget: 3_000_000 },
    Program { name: "worstcase-agent", budget: 2_500_000 },
];

/// `dist [--target TRIPLE] [--run]`
pub fn run(mut arguments: Arguments) -> Result<bool> {
    let only: Option<String> = arguments.value("--target")?;
    let runs = arguments.flag("--run");
    arguments.finish()?;
    Ok(deliver_all(&chosen(only.as_deref())?, runs)?.failed == 0)
}

fn chosen(only: Option<&str>) -> Result<Vec<&'static Target>> {
    let Some(only) = only else { return Ok(targets::ALL.iter().collect()) };
    let found: Vec<_> = targets::ALL.iter().filter(|target| target.triple == only).collect();
    let known: Vec<_> = targets::ALL.iter().map(|target| target.triple).collect();
    ensure!(!found.is_empty(), "no target `{only}`: there are {}", known.join(", "));
    Ok(found)
}

/// Builds, weighs and runs for every target that can be built here.
pub fn stage() -> Result<Tally> {
    deliver_all(&chosen(None)?, true)
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
    let weighed = keep(target, program).and_then(|binary| weigh(target, program, &binary).map(|()| binary));
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

/// Equal functions once, and relative relocations as a bitmap (glibc 2.36 and later read it in static programs too).
const SMALLER: &str = " -C link-arg=-Wl,--icf=all -C link-arg=-Wl,-z,pack-relative-relocs";

/// Static; without unwind tables, because a panic ends the program anyway; and where the linker is lld (the default of
/// this one target from Rust 1.90 on), with equal functions folded and the tables of both standard libraries left out.
fn flags(target: &Target, linker: &str) -> String {
    let lld = target.triple == "x86_64-unknown-linux-gnu" && linker == "cc" && cfg!(target_arch = "x86_64");
    let script = workspace::root().join("xtask/src/dist/no_unwind_tables.ld").display().to_string();
    let smaller = match lld {
        // Cargo divides the flags at blanks.
        true if !script.contains(' ') => format!("{SMALLER} -C link-arg=-Wl,-T,{script}"),
        true => SMALLER.to_owned(),
        false => String::new(),
    };
    format!("-C target-feature=+crt-static -C force-unwind-tables=no{smaller}")
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

/// Prints size and checksum, and says where the budget is passed; fails where the binary is not static.
fn weigh(target: &Target, program: &Program, binary: &Path) -> Result<()> {
    let size = fs::metadata(binary).with_context(|| format!("reading {}", binary.display()))?.len();
    let sum = command::output(Command::new("sha256sum").arg("--binary").arg(binary))?;
    let sum = sum.split_whitespace().next().unwrap_or_default();
    let name = binary.file_name().unwrap_or_default().to_string_lossy();
    let Program { budget, .. } = program;
    let share = size * 100 / budget;
    println!("  {name}: {size} bytes ({share} % of the budget of {budget}), sha256 {sum}");
    if size > *budget && target.triple == "x86_64-unknown-linux-gnu" {
        println!("  OVER BUDGET: {name}");
    }
    ensure!(is_static(binary)?, "{name} wants a dynamic loader");
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
    fn an_unknown_target_is_refused_with_the_known_ones() {
        let error = chosen(Some("pdp11-unknown-unix")).err().unwrap().to_string();
        assert!(error.contains("powerpc-unknown-linux-gnu"), "{error}");
    }
}
