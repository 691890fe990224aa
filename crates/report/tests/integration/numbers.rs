//! Documents with a number in them that nobody would write, one after the other.
#![allow(dead_code)] // each executable needs some of it

use std::collections::BTreeSet;

use serde_json::Value;

/// What fits into no field of its type is refused where the record is read.
pub const ABSURD: [&str; 7] =
    ["0", "1", "-9223372036854775808", "4294967295", "9223372036854775807", "18446744073709551615", "1e308"];

/// Where such values stand, one of those that differ in places of lists only.
fn places(value: &Value, is_one: impl Fn(&Value) -> bool) -> Vec<String> {
    let mut kinds = BTreeSet::new();
    let mut paths = Vec::new();
    let mut open = vec![(String::new(), String::new(), value)];
    while let Some((path, kind, value)) = open.pop() {
        match value {
            one if is_one(one) && !kinds.contains(&kind) => {
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

/// Texts that begin with a number are one too: `2s`, `1000m`.
fn is_length(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit()) && text.ends_with(|c: char| c.is_ascii_lowercase())
}

/// What stands in place of a number in a file that no program wrote.
const WRITTEN: [&str; 5] = ["NaN", "-1", "1e999", "[[[[]]]]", "5,\"seeds\":4294967295,\"blocks\":4294967295"];
/// Likewise in a text that is a length.
const LENGTHS: [&str; 5] = ["0s", "-1s", "18446744073709551615s", "9223372036854775807ns", "1e308s"];

/// As [`each`], with texts that are lengths, and with what is no JSON number at all.
pub fn each_written(document: &Value, mut show: impl FnMut(&str, &str)) -> usize {
    const MARK: &str = "\"@\"";
    let mut marked = |path: &str, replacements: &mut dyn Iterator<Item = String>| {
        let mut with_mark = document.clone();
        *with_mark.pointer_mut(path).unwrap() = "@".into();
        let text = with_mark.to_string();
        replacements.for_each(|word| show(&format!("{path} = {word}"), &text.replace(MARK, &word)));
    };
    let found = places(document, |value| value.is_number() || value.as_str().is_some_and(is_length));
    for path in &found {
        match document.pointer(path).unwrap().is_number() {
            true => marked(path, &mut ABSURD.into_iter().chain(WRITTEN).map(str::to_owned)),
            false => marked(path, &mut LENGTHS.into_iter().map(|length| format!("{length:?}"))),
        }
    }
    found.len()
}

/// Has `show` show a document as often as it has numbers, each time with an absurd one.
pub fn each(document: &Value, mut show: impl FnMut(&str, Value)) -> usize {
    let numbers = places(document, Value::is_number);
    for path in &numbers {
        for number in ABSURD {
            let mut absurd = document.clone();
            *absurd.pointer_mut(path).unwrap() = serde_json::from_str(number).unwrap();
            show(&format!("{path} = {number}"), absurd);
        }
    }
    numbers.len()
}
