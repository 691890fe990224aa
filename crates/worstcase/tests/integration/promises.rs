//! SECURITY.md, docs/findings.md and the tests of audit say which tests hold what: each test that they name is there.

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

/// Rows of the tables of a document, from the workspace's directory; without their heads.
fn rows(document: &str) -> Vec<String> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().parent().unwrap();
    let text = fs::read_to_string(workspace.join(document)).unwrap();
    let is_head =
        |row: &&str| row.starts_with("| ---") || row.contains(" tests |") || row.contains("| test |");
    text.lines().filter(|line| line.starts_with('|') && !is_head(line)).map(str::to_owned).collect()
}

/// Rows whose column, counted from the last one, names no test, or one that is not there.
fn without_a_test(rows: &[String], column: usize) -> Vec<String> {
    let mut text = String::new();
    sources(Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap(), &mut text);
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("../xtask"), &mut text);
    // A stage of `xtask test --full` is a test with its name in quotes.
    let is_there =
        |name: &&str| text.contains(&format!("fn {name}(")) || text.contains(&format!("(\"{name}\", "));
    let lacks = |row: &&String| {
        let names = row.rsplit('|').nth(column).unwrap().split('`').skip(1).step_by(2);
        let names: Vec<&str> = names.filter(|name| name.matches('_').count() > 2).collect();
        names.is_empty() || !names.iter().all(is_there)
    };
    rows.iter().filter(lacks).cloned().collect()
}

fn numbered(rows: &[String]) -> usize {
    rows.iter().filter(|row| row[2..].starts_with(|first: char| first.is_ascii_digit())).count()
}

#[test]
fn every_promise_names_tests_that_are_there() {
    let rows = rows("SECURITY.md");
    assert_eq!((numbered(&rows), rows.len()), (10, 22), "promises, and what happens between apply and undo");
    assert_eq!(without_a_test(&rows, 1), [""; 0]);
}

#[test]
fn every_finding_has_a_test_that_is_there() {
    let rows = rows("docs/findings.md");
    assert_eq!(
        (numbered(&rows), rows.len()),
        (62, 62),
        "16 of security, 12 of control, 13 of boards, 21 of the first hour"
    );
    assert_eq!(without_a_test(&rows, 2), [""; 0]);
}

#[test]
fn every_class_of_what_check_misjudged_has_a_test_that_is_there() {
    let rows = rows("crates/audit/tests/README.md");
    assert_eq!(rows.len(), 45, "classes");
    assert_eq!(without_a_test(&rows, 1), [""; 0]);
}

#[test]
fn every_package_that_the_documents_install_from_the_checkout_is_one() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().parent().unwrap();
    let mut found = 0;
    for document in ["README.md", "CONTRIBUTING.md", "packaging/README.md"] {
        let text = fs::read_to_string(workspace.join(document)).unwrap();
        for place in text.split("cargo install --path ").skip(1) {
            let place = place.split([' ', '\n', '`']).next().unwrap();
            let manifest = fs::read_to_string(workspace.join(place).join("Cargo.toml")).unwrap_or_default();
            assert!(manifest.contains("[package]"), "{document}: {place} is a workspace without a package");
            found += 1;
        }
    }
    assert!(found > 0);
}
