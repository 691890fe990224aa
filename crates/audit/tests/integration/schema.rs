//! The JSON schema of findings: generated from the types, committed, and true.
//!
//! A difference is a change of the form that other programs read, and a new `SCHEMA_VERSION` unless it only adds what may
//! be absent, or another word to a list of words.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::fs;
use std::path::{Path, PathBuf};

use crate::mend;
use crate::support::{audit_of_everything, rules};
use crate::validator::validate;
use audit::{Audit, SCHEMA_VERSION};
use serde_json::{Value, json};

fn committed() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("schema").join(format!("findings-{SCHEMA_VERSION}.json"))
}

fn schema() -> Value {
    serde_json::from_slice(&fs::read(committed()).unwrap()).unwrap()
}

#[test]
fn the_schema_is_that_of_the_types() {
    let of_types = schemars::schema_for!(Audit).to_value();
    mend::check_generated(&committed(), &(serde_json::to_string_pretty(&of_types).unwrap() + "\n"));
}

#[test]
fn findings_are_as_the_schema_says_and_are_read_back() {
    let audit = audit_of_everything(&rules());
    let json = serde_json::to_value(&audit).unwrap();
    validate(&schema(), &json).unwrap();
    assert_eq!(serde_json::from_value::<Audit>(json).unwrap(), audit);
}

#[test]
fn what_the_types_refuse_the_schema_refuses() {
    let good = serde_json::to_value(audit_of_everything(&rules())).unwrap();
    for (pointer, value) in [
        ("/verdict", json!("FAIL")),
        ("/findings", json!({})),
        ("/findings/0/outcome", json!("broken")),
        ("/findings/0/severity", json!(3)),
        ("/findings/0/evidence/0/value", json!({"unreadable": "EACCES"})),
        ("/findings/0/cure/0/domain", json!("elsewhere")),
        ("/profiles/kernel", json!("windows")),
        ("/division/isolated", json!([2, 3])),
    ] {
        let mut bad = good.clone();
        *bad.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = value.clone();
        assert!(validate(&schema(), &bad).is_err(), "the schema takes {value} as {pointer}");
        assert!(serde_json::from_value::<Audit>(bad).is_err(), "the types take {value} as {pointer}");
    }
}
