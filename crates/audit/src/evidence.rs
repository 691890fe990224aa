//! What was read of a fact, for a reader.

use survey::{Reading, Value};

use crate::finding::Evidence;

/// What was read of the fact `name`.
pub(crate) fn evidence(name: &str, reading: Reading) -> Evidence {
    Evidence { fact: name.to_owned(), value: reading.value.map(|value| shown(&value)), from: reading.from }
}

/// A value for a reader: an empty one must be seen.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::Text(text) if text.is_empty() => "set, without a value".to_owned(),
        Value::Cpus(cpus) if cpus.is_empty() => "no CPU".to_owned(),
        value => value.to_string(),
    }
}
