//! The runtime under ThreadSanitizer and Miri, which watch for data races and undefined behaviour while its tests run. Both need a
//! nightly toolchain, and are skipped by name where there is none.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::command;
use crate::tally::Tally;
use crate::workspace;

/// Tests that pages faulted in by the sanitizer itself would fail.
const COUNTS_FAULTS: &str = "the_steady_state";

/// Both.
pub fn stage() -> Result<Tally> {
    let mut tally = thread_sanitizer()?;
    tally.add(miri()?);
    Ok(tally)
}

/// The standard library is built anew: what it synchronises by must be seen too.
fn thread_sanitizer() -> Result<Tally> {
    if !has_sources() {
        return Ok(Tally::skip(
            "ThreadSanitizer",
            "needs rustup's nightly toolchain with rust-src: not installed",
        ));
    }
    let mut cargo =
        nightly(&["test", "-Zbuild-std", "--target", "x86_64-unknown-linux-gnu", "--package", "runtime"]);
    cargo.args(["--lib", "--test", "serial_machine", "--no-fail-fast"]);
    cargo.args(["--", "--test-threads=1", "--skip", COUNTS_FAULTS]);
    cargo.env("RUSTFLAGS", "-Zsanitizer=thread");
    run(cargo, "thread-sanitizer")
}

/// The rings and what wakes a core; what takes millions of steps takes hours there.
fn miri() -> Result<Tally> {
    if command::output(&mut nightly(&["miri", "--version"])).is_err() {
        return Ok(Tally::skip("Miri", "needs rustup's nightly toolchain with miri: not installed"));
    }
    let mut cargo = nightly(&["miri", "test", "--package", "runtime", "--lib", "--", "ring::", "wait::"]);
    cargo.env("MIRIFLAGS", "-Zmiri-disable-isolation");
    run(cargo, "miri")
}

/// In a directory of their own: the flags are another build of everything.
fn run(mut cargo: Command, name: &str) -> Result<Tally> {
    cargo.env("CARGO_TARGET_DIR", workspace::root().join("target").join(name));
    let outcome = command::logged(&mut cargo, &workspace::logs().join(format!("{name}.log")))?;
    if !outcome.success {
        println!("{}", outcome.failures());
    }
    Ok(Tally::from_cargo_test(&outcome.text, outcome.success))
}

/// cargo of the nightly toolchain: the one that runs this has its own in the environment.
fn nightly(arguments: &[&str]) -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly", "cargo"]).args(arguments).current_dir(workspace::root());
    command.env_remove("RUSTC").env_remove("RUSTDOC").env_remove("CARGO");
    command
}

fn has_sources() -> bool {
    let root =
        command::output(Command::new("rustup").args(["run", "nightly", "rustc", "--print", "sysroot"]));
    root.is_ok_and(|root| Path::new(root.trim()).join("lib/rustlib/src/rust/library").is_dir())
}
