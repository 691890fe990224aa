//! `worstcase lab bisect` with real guests: what is planted is found, and what is inert is acquitted.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use crate::support::guests;

use std::path::Path;
use std::process::{Command, Output, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_worstcase");
const KERNEL: &str = "debian-6.1-amd64";
/// Words that the kernel passes on to process 1 or passes over.
const INERT: &str =
    "inert.1=1 inert.2=2 inert.3=3 inert.4=4 inert.5=5 inert.6=6 inert.7=7 inert.8=8 inert.9=9";

/// Whether guests cannot run here; says why.
fn hindered() -> bool {
    let kernel = ["--version", "6.1", "--flavour", "plain", "--arch", "amd64"];
    guests::hindered(&["qemu-system-x86_64"], &[&kernel])
}

/// Idle guests of half a second, which is soon over: what is planted lengthens every wake-up.
fn bisect(words: &str, out: &Path) -> Output {
    let mut command = Command::new(PROGRAM);
    command.args(["lab", "bisect", "--kernel", KERNEL, "--append", "preempt=full", "--words", words]);
    command.args(["--load", "idle", "--duration", "500ms", "--warm-up", "100ms", "--json"]);
    command.arg("--out").arg(out).stdin(Stdio::null()).output().unwrap()
}

fn answer(output: &Output) -> serde_json::Value {
    let said = String::from_utf8_lossy(&output.stderr);
    let value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"));
    crate::support::schema::check("bisection", &value);
    value
}

#[test]
#[ignore = "long"]
fn ten_inert_words_leave_none_guilty() {
    if hindered() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let output = bisect(&format!("{INERT} inert.10=10"), directory.path());
    let shown = answer(&output);
    assert_eq!(shown["answer"]["outcome"], "none-guilty", "{shown:#}");
    assert_eq!(output.status.code(), Some(0));
}

/// The function tracer lengthens every function of the kernel: the path from timer to thread gets several times as long.
#[test]
#[ignore = "long"]
fn a_debug_option_that_lengthens_a_known_path_shows_up_as_longer() {
    if hindered() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let output = bisect("ftrace=function", directory.path());
    let shown = answer(&output);
    assert_eq!(shown["answer"]["outcome"], "guilty", "{shown:#}");
    let steps = shown["answer"]["steps"].as_array().unwrap();
    let step = |arm: &str| steps.iter().find(|step| step["arm"] == arm).unwrap();
    assert_eq!(step("control")["reading"], "stayed");
    assert_eq!(step("with-1")["reading"], "rose");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
#[ignore = "long"]
fn the_planted_one_of_ten_words_is_found() {
    if hindered() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let words = INERT.replacen("inert.7", "ftrace=function inert.7", 1);
    let output = bisect(&words, directory.path());
    let shown = answer(&output);
    assert_eq!(shown["answer"]["outcome"], "guilty", "{shown:#}");
    assert_eq!(shown["answer"]["culprits"], serde_json::json!([[6]]), "{shown:#}");
    assert_eq!(output.status.code(), Some(1));
}
