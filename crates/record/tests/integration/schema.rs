//! The JSON schemas of `record.json` and `journal.ndjson`: generated from the types, committed, and true.
//!
//! A difference is a change of the form that other programs read, and a new `SCHEMA_VERSION` unless it only adds what may
//! be absent, or another word to a list of words.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use crate::mend;
use crate::validator::validate;
use record::cost::{COST_VERSION, Cost};
use record::monitor::{MONITOR_VERSION, Monitoring};
use record::wake_path::WakePaths;
use record::ways::{WAYS_VERSION, Ways};
use record::{Record, SCHEMA_VERSION, journal, migrate};
use serde_json::{Value, json};

fn committed(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("schema").join(format!("{name}-{SCHEMA_VERSION}.json"))
}

fn schema(name: &str) -> Value {
    serde_json::from_slice(&fs::read(committed(name)).unwrap()).unwrap()
}

fn check_committed<T: schemars::JsonSchema>(name: &str) {
    let of_types = schemars::schema_for!(T).to_value();
    mend::check_generated(&committed(name), &(serde_json::to_string_pretty(&of_types).unwrap() + "\n"));
}

#[test]
fn schemas_are_those_of_the_types() {
    check_committed::<Record>("record");
    check_committed::<journal::Line>("journal");
    let numbered = |name: &str, version: u32, of_types: Value| {
        let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("schema/{name}-{version}.json"));
        mend::check_generated(&committed, &(serde_json::to_string_pretty(&of_types).unwrap() + "\n"));
    };
    numbered("cost", COST_VERSION, schemars::schema_for!(Cost).to_value());
    numbered("monitor", MONITOR_VERSION, schemars::schema_for!(Monitoring).to_value());
    numbered("ways", WAYS_VERSION, schemars::schema_for!(Ways).to_value());
    numbered("wake-paths", 1, schemars::schema_for!(WakePaths).to_value());
}

#[test]
fn a_file_that_is_not_up_to_date_is_named_with_the_first_line_that_differs() {
    let of = |committed, generated| mend::first_difference(committed, generated);
    assert_eq!(of("a\nb\n", "a\nc\n"), "line 2 is `b`, and is generated as `c`");
    assert_eq!(of("a\n", "a\nb\n"), "line 2 is no line, and is generated as `b`");
    assert_eq!(of("a\nb", "a\n"), "line 2 is `b`, and is generated as no line");
    assert_eq!(of("a", "a\n"), "only their line ends differ");
}

/// A file that a run of the program left.
fn left_by_a_run(name: &str) -> String {
    let records = Path::new(env!("CARGO_MANIFEST_DIR")).join("../worstcase/tests/records");
    fs::read_to_string(records.join(name)).unwrap()
}

fn records() -> Vec<Value> {
    let names = ["first", "again", "other-period", "version-2"];
    let of = |name: &&str| {
        let mut record = serde_json::from_str(&left_by_a_run(&format!("{name}/record.json"))).unwrap();
        migrate::record(&mut record);
        record
    };
    names.iter().map(of).collect()
}

/// The whole lines of a journal whose last one was cut.
fn journal_lines() -> Vec<Value> {
    let text = left_by_a_run("cut-off/journal.ndjson");
    let mut lines: Vec<&str> = text.lines().collect();
    assert!(serde_json::from_str::<Value>(lines.pop().unwrap()).is_err());
    let of = |line: &&str| {
        let mut line = serde_json::from_str(line).unwrap();
        migrate::line(&mut line);
        line
    };
    lines.iter().map(of).collect()
}

#[test]
fn what_a_run_leaves_is_as_the_schemas_say() {
    for record in records() {
        validate(&schema("record"), &record).unwrap();
        assert_kept(
            &record,
            &serde_json::to_value(serde_json::from_value::<Record>(record.clone()).unwrap()).unwrap(),
        );
    }
    for line in journal_lines() {
        validate(&schema("journal"), &line).unwrap();
        assert_kept(
            &line,
            &serde_json::to_value(serde_json::from_value::<journal::Line>(line.clone()).unwrap()).unwrap(),
        );
    }
}

/// All that `saved` holds is in `read` too.
fn assert_kept(saved: &Value, read: &Value) {
    match (saved, read) {
        (Value::Object(saved), Value::Object(read)) => {
            saved.iter().for_each(|(key, value)| {
                assert_kept(value, read.get(key).unwrap_or_else(|| panic!("{key}")))
            });
        }
        (Value::Array(saved), Value::Array(read)) => {
            assert_eq!(saved.len(), read.len());
            saved.iter().zip(read).for_each(|(saved, read)| assert_kept(saved, read));
        }
        _ => assert_eq!(saved, read),
    }
}

/// Changes the value at `pointer` of a good record; both the schema and the types must then refuse it.
fn check_refused(pointer: &str, value: Value) {
    let mut record = records().remove(0);
    *record.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = value.clone();
    assert!(validate(&schema("record"), &record).is_err(), "the schema takes {value} as {pointer}");
    assert!(serde_json::from_value::<Record>(record).is_err(), "the types take {value} as {pointer}");
}

#[test]
fn what_the_types_refuse_the_schema_refuses() {
    check_refused("/header/plan/cpus", json!([0, 1]));
    check_refused("/header/plan/warm_up", json!("1s"));
    check_refused("/header/plan/warm_up", json!(-1));
    check_refused("/header/plan/warm_up", json!(0.5));
    check_refused("/header/plan/priority", json!(100));
    check_refused("/header/plan/priority", json!(0));
    check_refused("/header/plan/policy", json!("FIFO"));
    check_refused("/header/machine/memory", json!(25));
    check_refused("/header/machine/memory", json!({"unreadable": "EACCES"}));
    check_refused("/scenarios", json!({}));
    check_refused("/scenarios/0/end", json!("broken"));
    check_refused("/scenarios/0/head", Value::Null);
    check_refused("/scenarios/0/series/0/observed", json!([[1, 2]]));
    check_refused("/scenarios/0/series/0/observed/cells/0", json!([1, 2, 3]));
    check_refused("/scenarios/0/series/0/cpu", json!("0"));
    check_refused("/judgement/verdict", json!("PASS"));
}

#[test]
fn a_schema_says_what_a_reader_needs() {
    let definitions = schema("record")["$defs"].clone();
    assert_eq!(definitions["CpuList"]["type"], "string");
    assert_eq!(
        (&definitions["Nanos"]["type"], &definitions["Nanos"]["minimum"]),
        (&json!("integer"), &json!(0))
    );
    let cells = &definitions["Histogram"]["properties"]["cells"]["items"];
    assert_eq!(
        (&cells["type"], &cells["minItems"], &cells["maxItems"]),
        (&json!("array"), &json!(2), &json!(2))
    );
    for name in ["count", "sum", "min", "max", "cells"] {
        assert!(definitions["Histogram"]["required"].as_array().unwrap().contains(&json!(name)), "{name}");
    }
    let undescribed: Vec<String> =
        ["record", "journal"].iter().flat_map(|name| undescribed(&schema(name))).collect();
    assert_eq!(undescribed, [""; 0], "fields without a word of what they are");
}

/// Properties of objects that have no description of their own.
fn undescribed(schema: &Value) -> Vec<String> {
    let definitions = schema["$defs"].as_object().unwrap();
    let fields = definitions.iter().flat_map(|(name, definition)| {
        let properties = definition["properties"].as_object().into_iter().flatten();
        properties.map(move |(field, schema)| (format!("{name}.{field}"), schema))
    });
    fields.filter(|(_, schema)| schema["description"].is_null()).map(|(field, _)| field).collect()
}
