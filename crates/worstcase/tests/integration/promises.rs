//! SECURITY.md promises what tests hold: each test that it names is there.

use std::fs;
use std::path::Path;

fn sources(directory: &Path, text: &mut String) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, text);
        } else if path.extension().is_some_and(|end| end == "rs") {
            text.push_str(&fs::read_to_string(path).unwrap());
        }
    }
}

#[test]
fn every_promise_names_tests_that_are_there() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let promises = fs::read_to_string(crates.parent().unwrap().join("SECURITY.md")).unwrap();
    let mut text = String::new();
    sources(crates, &mut text);
    let is_head = |row: &&str| row.starts_with("| ---") || row.ends_with(" tests |");
    let rows: Vec<&str> = promises.lines().filter(|line| line.starts_with('|') && !is_head(line)).collect();
    let numbered = rows.iter().filter(|row| row[2..].starts_with(|first: char| first.is_ascii_digit()));
    assert_eq!((numbered.count(), rows.len()), (10, 22), "promises, and what happens between apply and undo");
    for row in rows {
        let tests = row.rsplit('|').nth(1).unwrap().split('`').skip(1).step_by(2);
        let tests: Vec<&str> = tests.filter(|name| name.matches('_').count() > 2).collect();
        assert!(!tests.is_empty(), "{row}");
        for test in tests {
            assert!(text.contains(&format!("fn {test}(")), "{test} is promised and not there");
        }
    }
}
