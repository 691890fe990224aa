//! JSON that a command printed, against the schema that `worstcase schema` prints.

use std::process::Command;

use serde_json::Value;

use super::BINARY;
use crate::validator::validate;

/// Panics where `value` is not as the schema of `form` says.
pub fn check(form: &str, value: &Value) {
    let schema = Command::new(BINARY).args(["schema", form]).output().unwrap();
    let schema: Value = serde_json::from_slice(&schema.stdout).unwrap();
    validate(&schema, value).unwrap_or_else(|error| panic!("{form}: {error}"));
}
