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

/// What a terminal is sent by a command of this program there; none where there is no script(1).
fn on_a_terminal(directory: &Path, words: &str) -> Option<String> {
    let mut script = Command::new("script");
    script.args(["-qec", &format!("{BINARY} {words}"), "/dev/null"]).current_dir(directory);
    let shown =
        script.env("TERM", "xterm").env("LC_ALL", "C.UTF-8").env("WORSTCASE_CACHE", directory.join("cache"));
    match shown.output() {
        Ok(output) => Some(String::from_utf8(output.stdout).unwrap()),
        Err(_) => {
            skipped("needs script(1)");
            None
        }
    }
}

fn assert_obeys_nothing(shown: &str, words: &str) {
    assert!(shown.contains("marked"), "{words}: {shown}");
    for forbidden in ["\u{1b}[8m", "\u{1b}[2J", "\u{1b}]", "\u{7}", "\u{9b}", "\u{202e}"] {
        assert!(!shown.contains(forbidden), "{words}: {forbidden:?}: {shown:?}");
    }
}

#[test]
fn files_of_others_put_no_command_on_a_terminal() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::create_dir_all(at("cache/evil")).unwrap();
    fs::write(at("cache/evil/image"), "").unwrap();
    let kernel = serde_json::json!({
        "name": "evil", "architecture": "amd64", "release": COMMANDS, "image": "image", "origin": COMMANDS,
    });
    fs::write(at("cache/evil/kernel.json"), kernel.to_string()).unwrap();
    fs::write(at("config"), format!("CONFIG_MODULES=y\nCONFIG_HZ={COMMANDS}\nCONFIG_{COMMANDS}\n")).unwrap();
    fs::write(at("recipe.md"), format!("    sysctl -w kernel.{COMMANDS}=1\n")).unwrap();
    fs::write(at(COMMANDS), "no record").unwrap();
    for words in ["lab kernels list", "check --kconfig config", "check --recipe recipe.md", "report marked*"]
    {
        let Some(shown) = on_a_terminal(directory.path(), words) else { return };
        assert_obeys_nothing(&shown, words);
    }
}

/// The commands that move the cursor are our own.
#[test]
fn a_table_on_a_terminal_is_drawn_in_place() {
    let directory = tempfile::tempdir().unwrap();
    let words = "measure --duration 2500ms --warm-up 10ms --cpus 0";
    let Some(shown) = on_a_terminal(directory.path(), words) else { return };
    // Heads, one CPU, and the time.
    for sequence in ["[3A", "[K"] {
        let own = shown.matches(&format!("\u{1b}{sequence}")).count();
        assert!(own > 0 && own == shown.matches(sequence).count(), "{sequence}: {shown:?}");
    }
    assert!(shown.contains(" s left\u{1b}"), "{shown:?}");
}

#[test]
fn names_of_others_put_no_command_on_a_terminal() {
    let first = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/records/first/record.json");
    let mut record: Value = serde_json::from_slice(&fs::read(first).unwrap()).unwrap();
    let count = put_into(&mut record);
    assert!(count > 20, "{count} texts");
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("record.json"), serde_json::to_vec(&record).unwrap()).unwrap();
    for words in
        ["--per-cpu --notes", "--json", "--format csv", "--format markdown", "--format junit", "record.json"]
    {
        let words = format!("report record.json {words}");
        let Some(shown) = on_a_terminal(directory.path(), &words) else { return };
        assert_obeys_nothing(&shown, &words);
    }
}
