//! Files of experiments that somebody else wrote: whatever number stands in them, a command ends, and without a panic.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::numbers::each;
use crate::support::{BINARY, is_root, skipped};

/// In bytes: what a program may have that shows an experiment of six blocks.
const MEMORY: &str = "2000000000";

fn worstcase(directory: &Path, words: &[&str]) -> Output {
    let mut command = Command::new("prlimit");
    command.args([&format!("--as={MEMORY}"), "timeout", "--kill-after=1", "30", BINARY]).args(words);
    command.current_dir(directory).output().unwrap()
}

#[test]
fn any_number_in_an_experiment_is_shown_or_refused() {
    if !is_root() {
        return skipped("a setting of the kernel takes root to try");
    }
    let directory = tempfile::tempdir().unwrap();
    let trial =
        "tune trial /proc/sys/vm/swappiness=10 --blocks 6 --duration 100ms --warm-up 10ms --out trial";
    let made = worstcase(directory.path(), &trial.split_whitespace().collect::<Vec<_>>());
    let file = directory.path().join("trial/experiment.json");
    let good: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let mut failures = Vec::new();
    let count = each(&good, |what, absurd| {
        fs::write(&file, absurd.to_string()).unwrap();
        let shown = worstcase(directory.path(), &["report", "trial"]);
        let said = String::from_utf8_lossy(&shown.stderr).into_owned();
        if !matches!(shown.status.code(), Some(0..=3)) || said.contains("panicked") {
            failures.push(format!("{what}: {:?} {said}", shown.status));
        }
    });
    assert!(count > 5, "{count} numbers: {made:?}");
    assert!(failures.is_empty(), "{failures:#?}");
}
