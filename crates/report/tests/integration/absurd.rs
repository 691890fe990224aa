//! Records that somebody else wrote: whatever number stands in them, they are shown, and nothing stops at a sum.

use std::collections::BTreeSet;

use record::cost::Cost;
use serde_json::Value;

use crate::sample::plain;

const ABSURD: [u64; 3] = [0, i64::MAX as u64, u64::MAX];

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
fn each(document: &Value, show: impl Fn(&str, Value)) -> usize {
    let numbers = numbers(document);
    for path in &numbers {
        for number in ABSURD {
            let mut absurd = document.clone();
            *absurd.pointer_mut(path).unwrap() = number.into();
            show(&format!("{path} = {number}"), absurd);
        }
    }
    numbers.len()
}

#[test]
fn any_number_in_a_record_of_costs_is_shown_and_compared() {
    let good =
        crate::cost::record(9, &mut units::Seed(1).stream("costs"), |number, _| f64::from(number + 1) * 1e4);
    let document = serde_json::to_value(&good).unwrap();
    let count = each(&document, |what, absurd| {
        let Ok(cost) = serde_json::from_value::<Cost>(absurd) else { return };
        if cost.plan.refusal().is_some() {
            return;
        }
        let shown = std::panic::catch_unwind(|| {
            let texts = [
                report::cost::text(&cost, &plain()),
                report::cost::compared(&good, &cost, &plain()),
                report::cost::page(&cost, Some(&good)).unwrap(),
                report::cost::json(&report::cost::against(&cost, &good)),
            ];
            texts.map(|text| text.len())
        });
        assert!(shown.is_ok(), "{what}");
    });
    assert!(count > 10, "{count}");
}
