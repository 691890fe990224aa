//! Documents with a number in them that nobody would write, one after the other.

use std::collections::BTreeSet;

use serde_json::Value;

/// What fits into no field of its type is refused where the record is read.
pub const ABSURD: [&str; 7] =
    ["0", "1", "-9223372036854775808", "4294967295", "9223372036854775807", "18446744073709551615", "1e308"];

/// Where numbers stand, one of those that differ in places of lists only.
fn numbers(value: &Value) -> Vec<String> {
    let mut kinds = BTreeSet::new();
    let mut paths = Vec::new();
    let mut open = vec![(String::new(), String::new(), value)];
    while let Some((path, kind, value)) = open.pop() {
        match value {
            Value::Number(_) if !kinds.contains(&kind) => {
                kinds.insert(kind);
                paths.push(path);
            }
            Value::Array(values) => open.extend(
                values
                    .iter()
                    .enumerate()
                    .map(|(at, value)| (format!("{path}/{at}"), format!("{kind}/*"), value)),
            ),
            Value::Object(fields) => {
                open.extend(
                    fields
                        .iter()
                        .map(|(name, value)| (format!("{path}/{name}"), format!("{kind}/{name}"), value)),
                );
            }
            _ => {}
        }
    }
    paths
}

/// Has `show` show a document as often as it has numbers, each time with an absurd one.
pub fn each(document: &Value, mut show: impl FnMut(&str, Value)) -> usize {
    let numbers = numbers(document);
    for path in &numbers {
        for number in ABSURD {
            let mut absurd = document.clone();
            *absurd.pointer_mut(path).unwrap() = serde_json::from_str(number).unwrap();
            show(&format!("{path} = {number}"), absurd);
        }
    }
    numbers.len()
}
