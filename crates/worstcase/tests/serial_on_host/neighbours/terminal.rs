//! What others wrote, on a terminal.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::{BINARY, skipped};

/// Hides what follows, clears the screen, sets the title, turns the direction of writing round.
const COMMANDS: &str = "marked\u{1b}[8m\u{1b}[2J\u{1b}]0;title\u{7}\u{9b}2J\u{202e}";

/// Adds them to every text that can be any text, and says to how many.
fn put_into(record: &mut Value) -> usize {
    let (mut paths, mut open) = (Vec::new(), vec![(String::new(), &*record)]);
    while let Some((path, value)) = open.pop() {
        match value {
            Value::String(_) => paths.push(path),
            Value::Array(values) => {
                open.extend(values.iter().enumerate().map(|(at, value)| (format!("{path}/{at}"), value)));
            }
            Value::Object(fields) => {
                open.extend(fields.iter().map(|(name, value)| (format!("{path}/{name}"), value)));
            }
            _ => {}
        }
    }
    let mut count = 0;
    for path in paths {
        let text = record.pointer_mut(&path).unwrap();
        let before = text.clone();
        *text = Value::String(format!("{}{COMMANDS}", before.as_str().unwrap()));
        match record::store::parse(&serde_json::to_vec(record).unwrap()) {
            Ok(_) => count += 1,
            Err(_) => *record.pointer_mut(&path).unwrap() = before,
        }
    }
    count
}

#[test]
fn names_of_others_put_no_command_on_a_terminal() {
    if Command::new("script").arg("--version").output().is_err() {
        return skipped("needs script(1)");
    }
    let first = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/records/first/record.json");
    let mut record: Value = serde_json::from_slice(&fs::read(first).unwrap()).unwrap();
    let count = put_into(&mut record);
    assert!(count > 20, "{count} texts");
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("record.json"), serde_json::to_vec(&record).unwrap()).unwrap();
    for words in
        ["--per-cpu --notes", "--json", "--format csv", "--format markdown", "--format junit", "record.json"]
    {
        let command = format!("{BINARY} report record.json {words}");
        let mut script = Command::new("script");
        script.args(["-qec", &command, "/dev/null"]).current_dir(directory.path());
        let shown = script.env("TERM", "xterm").env("LC_ALL", "C.UTF-8").output().unwrap();
        let shown = String::from_utf8(shown.stdout).unwrap();
        assert!(shown.contains("marked"), "{words}: {shown}");
        for forbidden in ["\u{1b}[8m", "\u{1b}[2J", "\u{1b}]", "\u{7}", "\u{9b}", "\u{202e}"] {
            assert!(!shown.contains(forbidden), "{words}: {forbidden:?}: {shown:?}");
        }
    }
}
