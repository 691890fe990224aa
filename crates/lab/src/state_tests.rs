use std::fs;

use tempfile::TempDir;

use super::*;
use crate::bisect::{BisectPlan, Subject};

fn state() -> State<BisectPlan> {
    let subject = Subject::words("k".into(), &[], &["a".into()]);
    State::new(BisectPlan::about(subject), "0.1.0", UtcTime(0))
}

/// A directory with that file, which is what is saved of a bisection with one text replaced by another.
fn directory(file: &str, from: &str, to: &str) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    state().save(directory.path()).unwrap();
    let path = directory.path().join(FILE);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{text}");
    fs::remove_file(path).unwrap();
    fs::write(directory.path().join(file), text.replacen(from, to, 1)).unwrap();
    directory
}

fn refused(from: &str, to: &str) -> (String, String) {
    let directory = directory(FILE, from, to);
    let error = State::<BisectPlan>::load(directory.path(), Kind::Bisection).err().unwrap();
    (error.message.rsplit_once(FILE).unwrap().1.to_owned(), error.hint.unwrap())
}

#[test]
fn it_is_read_back_as_it_was_written() {
    let directory = tempfile::tempdir().unwrap();
    state().begin(&directory.path().join("new")).unwrap();
    assert_eq!(State::load(&directory.path().join("new"), Kind::Bisection).unwrap(), state());
}

#[test]
fn what_cannot_be_gone_on_with_says_why() {
    let whole = serde_json::to_string_pretty(&state()).unwrap();
    assert!(refused(&whole, "{").0.starts_with(": it is no bisection: EOF"));
    assert!(refused(&whole, "{}").0.starts_with(": it is no bisection: missing field"));
    let (message, hint) = refused("\"load\":", "\"laod\":");
    assert!(message.starts_with(": it is no bisection: missing field `load`"), "{message}");
    assert!(hint.contains("`worstcase lab bisect`"));
    assert!(refused("\"seeds\": 5", "\"seeds\": 4").0.contains("4 guests of an arm are too few"));
}

#[test]
fn another_version_is_named_with_what_to_finish_it_with() {
    let (message, hint) = refused("\"schema_version\": 3", "\"schema_version\": 4");
    assert_eq!(message, ": its form has version 4, not 3");
    assert_eq!(
        hint,
        "worstcase 0.1.0 began it: finish it with that one, or begin anew (`worstcase lab bisect`)"
    );
    let (message, _) = refused("\"schema_version\": 3", "\"schema-version\": 1");
    assert_eq!(message, ": its form has version 1, not 3");
}

#[test]
fn another_sort_of_experiment_is_named_with_its_command() {
    let (message, hint) = refused("\"bisection\"", "\"ladder\"");
    assert_eq!(message, ": it is a ladder, no bisection");
    assert_eq!(hint, "`worstcase lab ladder --resume` goes on with it");
}

#[test]
fn a_file_of_a_former_version_is_still_read() {
    let version = "\"schema_version\": 3,\n  \"kind\": \"bisection\",";
    let directory = directory("bisect.json", version, "\"schema_version\": 2,");
    assert_eq!(State::load(directory.path(), Kind::Bisection).unwrap(), state());
}
