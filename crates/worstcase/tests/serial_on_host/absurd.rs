//! Files of experiments, journals and guests with numbers that nobody would write: whatever stands in them, a command ends,
//! with one error at most, in bounded memory, and without a panic.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::process::{Command, Output};

use lab::bisect::{BisectPlan, Subject};
use lab::ladder::{LadderFile, LadderPlan};
use lab::state::{Plan, State};
use record::time::UtcTime;
use serde_json::Value;

use crate::numbers::{each, each_written};
use crate::support::{BINARY, is_root, skipped};

/// In bytes: what a program may have that shows an experiment of six blocks.
const MEMORY: &str = "2000000000";

fn worstcase(directory: &Path, words: &[&str]) -> Output {
    let mut command = Command::new("prlimit");
    command.args([&format!("--as={MEMORY}"), "timeout", "--kill-after=1", "30", BINARY]).args(words);
    command.current_dir(directory).output().unwrap()
}

/// What is wrong with how a command ended, if anything is.
fn fault(output: &Output) -> Option<String> {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let errors = said.lines().filter(|line| line.starts_with("error:")).count();
    let is_right = matches!(output.status.code(), Some(0..=3)) && errors <= 1 && !said.contains("panicked");
    (!is_right).then(|| format!("{:?} {said}", output.status))
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
        failures.extend(fault(&shown).map(|fault| format!("{what}: {fault}")));
    });
    assert!(count > 5, "{count} numbers: {made:?}");
    assert!(failures.is_empty(), "{failures:#?}");
}

/// No kernel has this name: no guest boots, however many there are to be.
const KERNEL: &str = "no-such-kernel";

const LADDER: &str = r#"
name = "small"
title = "Two kernels"
loads = ["idle"]
duration = "2s"
seeds = 3
processors = 1
memory = 536870912
disk = 1073741824
rung = [
    { name = "plain", title = "The first", kernel = "no-such-kernel" },
    { name = "words", title = "The second", kernel = "no-such-kernel", words = ["quiet"] },
]
"#;

fn begin(directory: &Path, plan: impl Plan) {
    State::new(plan, "0.1.0", UtcTime(0)).begin(directory).unwrap();
}

/// Experiments of all four sorts that have measured nothing, and what goes on with them.
fn begun(directory: &Path) -> Vec<(&'static str, &'static [&'static str])> {
    let trial = "tune trial /proc/sys/vm/swappiness=10 --blocks 6 --duration 100ms --warm-up 10ms \
                 --load-command false --out trial";
    worstcase(directory, &trial.split_whitespace().collect::<Vec<_>>());
    let trial = fs::read(directory.join("trial/experiment.json")).unwrap();
    let mut search: Value = serde_json::from_slice(&trial).unwrap();
    search["kind"] = "search".into();
    search["search"] = true.into();
    search["design"]["most-blocks"] = 60.into();
    search["design"]["threshold"] = 1_000.into();
    search["place"] = serde_json::json!({ "guests": {
        "kernel": KERNEL, "time": "wall", "words": [], "processors": 2, "memory": 536_870_912, "disk": 1_073_741_824,
        "programs": [],
    }});
    fs::create_dir(directory.join("search")).unwrap();
    fs::write(directory.join("search/experiment.json"), search.to_string()).unwrap();
    begin(&directory.join("ladder"), LadderPlan { ladder: LadderFile::parse(LADDER).unwrap() });
    let words = Subject::words(KERNEL.into(), &[], &["quiet".into(), "nosmt".into()]);
    begin(&directory.join("bisection"), BisectPlan::about(words));
    vec![
        ("trial", &["tune", "trial", "--resume", "trial"]),
        ("search", &["tune", "search", "--resume", "search"]),
        ("ladder", &["lab", "ladder", "--resume", "ladder"]),
        ("bisection", &["lab", "bisect", "--resume", "bisection"]),
    ]
}

#[test]
fn an_experiment_with_any_number_is_gone_on_with_or_refused() {
    if !is_root() {
        return skipped("a setting of the kernel takes root to try");
    }
    let directory = tempfile::tempdir().unwrap();
    let mut failures = Vec::new();
    for (name, command) in begun(directory.path()) {
        let file = directory.path().join(name).join("experiment.json");
        let good: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        let count = each_written(&good, |what, absurd| {
            fs::write(&file, absurd).unwrap();
            let ended = worstcase(directory.path(), command);
            failures.extend(fault(&ended).map(|fault| format!("{name}: {what}: {fault}")));
        });
        assert!(count > 3, "{name} has {count} numbers");
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

/// A line of a journal with its check sum.
fn line(json: &str) -> String {
    let mut sum = flate2::Crc::new();
    sum.update(json.as_bytes());
    format!("{:08x} {json}\n", sum.sum())
}

/// Lines of all sorts that have a number. There is no such setting, thread or interrupt, and nothing to put back.
fn lines_of_a_journal() -> Vec<Value> {
    let thread = serde_json::json!({"name": "nobody", "pid": 999_999_999, "tid": 999_999_999, "start": 40});
    let targets = [
        serde_json::json!({"file": "/proc/sys/vm/no_such_setting"}),
        serde_json::json!({"affinity": thread}),
        serde_json::json!({"scheduling": thread}),
        serde_json::json!({"interrupt": {"number": 24, "identity": "no such device"}}),
    ];
    let begin = serde_json::json!({
        "line": "begin", "id": "x", "tool-version": "0.1.0", "started": "", "boot-id": tune::boot_id(), "seconds": 9_000,
    });
    let mut lines = vec![begin];
    for (step, target) in targets.into_iter().enumerate() {
        lines.push(serde_json::json!({
            "line": "intend", "step": step, "rules": [], "target": target, "old": "1", "new": "2",
        }));
        let outcome = if step == 0 { "exact".into() } else { serde_json::json!({"refused": 16}) };
        lines.push(serde_json::json!({"line": "done", "step": step, "outcome": outcome}));
    }
    lines.push(serde_json::json!({"line": "withdrawn", "from": 9}));
    lines
}

#[test]
fn a_journal_with_any_number_is_undone_or_refused() {
    if !is_root() {
        return skipped("settings are undone by root");
    }
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("state");
    let lines = lines_of_a_journal();
    let (mut failures, mut count) = (Vec::new(), 0);
    for place in 0..lines.len() {
        count += each_written(&lines[place], |what, absurd| {
            let text = |(at, other): (usize, &Value)| match at == place {
                true => line(absurd),
                false => line(&other.to_string()),
            };
            let _ = fs::remove_dir_all(&state);
            fs::DirBuilder::new().mode(0o700).create(&state).unwrap();
            fs::write(state.join("journal"), lines.iter().enumerate().map(text).collect::<String>()).unwrap();
            for words in [&["tune", "status"][..], &["tune", "keep", "--reconcile"], &["tune", "undo"]] {
                let ended = worstcase(directory.path(), &[words, &["--state", "state"]].concat());
                failures
                    .extend(fault(&ended).map(|fault| format!("line {place}, {what}: {words:?}: {fault}")));
            }
        });
    }
    assert!(count > 10, "{count} numbers");
    assert!(failures.is_empty(), "{failures:#?}");
}
