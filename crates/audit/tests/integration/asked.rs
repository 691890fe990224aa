//! The facts that rules ask stand in a list beside `survey`, so that a snapshot can be taken without any rules.

use std::collections::BTreeSet;
use std::path::Path;

use audit::Rules;

use crate::mend;

#[test]
fn a_snapshot_reads_whatever_a_rule_asks() {
    let rules = Rules::built_in().unwrap();
    let asked: BTreeSet<&str> = rules
        .all()
        .iter()
        .flat_map(|rule| {
            let conditions = rule.applies.iter().chain(&rule.unless).map(|condition| &condition.fact);
            [&rule.fact].into_iter().chain(&rule.also).chain(conditions)
        })
        .map(String::as_str)
        .collect();
    let list: String = asked.iter().map(|fact| format!("{fact}\n")).collect();
    mend::check_generated(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../survey/src/asked.txt"), &list);
}
