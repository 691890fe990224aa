//! Every rule that ships: it parses, names facts that somebody reads, and says where it comes from.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use audit::Rules;
use survey::Survey;

#[test]
fn every_rule_that_ships_is_whole() {
    let rules = Rules::built_in().unwrap();
    let faults = rules.faults(Survey::known);
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}
