//! Records of older programs in the form of this one: JSON in, JSON out.
//!
//! Up to version 2 a record was of the timer alone. Its plan, the head of a scenario and a series held what belongs to the
//! instrument beside what all instruments have. From version 3 on that lies under the instrument's name.

use serde_json::{Map, Value, json};

/// The first version in which scenarios have instruments.
const INSTRUMENTS: u32 = 3;

/// Whether JSON of `version` has to be brought into the present form.
pub fn is_old(version: u32) -> bool {
    version < INSTRUMENTS
}

/// A `record.json` of an old version. What is not there stays away: reading it as a record says what is missing.
pub fn record(record: &mut Value) {
    at(record, &["header"], header);
    for_each(record, "scenarios", scenario);
}

/// A line of an old `journal.ndjson`.
pub fn line(line: &mut Value) {
    at(line, &["begin"], header);
    at(line, &["scenario"], head);
    at(line, &["ended"], scenario);
}

fn header(header: &mut Map<String, Value>) {
    header.insert("schema_version".into(), json!(INSTRUMENTS));
    let Some(Value::Object(plan)) = header.get_mut("plan") else { return };
    let timer = take(plan, &["intervals", "wake", "runtime", "clock", "phase"]);
    plan.remove("probe");
    plan.insert("instrument".into(), json!({ "timer": timer }));
}

fn scenario(scenario: &mut Map<String, Value>) {
    if let Some(Value::Object(of_head)) = scenario.get_mut("head") {
        head(of_head);
    }
    let Some(Value::Array(all)) = scenario.get_mut("series") else { return };
    for series in all.iter_mut().filter_map(Value::as_object_mut) {
        let timer = take(series, &["first_due", "tick_phases", "expected", "late", "missed", "warm_up"]);
        series.insert("timer".into(), timer);
    }
}

fn head(head: &mut Map<String, Value>) {
    let timer = take(head, &["interval", "phases", "sweeps"]);
    head.insert("setup".into(), json!({ "timer": timer }));
}

/// The fields of these names, as an object of their own.
fn take(from: &mut Map<String, Value>, names: &[&str]) -> Value {
    let fields = names.iter().filter_map(|&name| Some((name.to_owned(), from.remove(name)?)));
    Value::Object(fields.collect())
}

fn at(value: &mut Value, path: &[&str], change: fn(&mut Map<String, Value>)) {
    let place = path.iter().try_fold(value, |value, &name| value.get_mut(name));
    if let Some(Value::Object(object)) = place {
        change(object);
    }
}

fn for_each(value: &mut Value, name: &str, change: fn(&mut Map<String, Value>)) {
    let list = value.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten();
    list.filter_map(Value::as_object_mut).for_each(change);
}
