//! Signals that a LAVA dispatcher reads from a board's console (docs.lavasoftware.org, "Using the LAVA test shell").

use record::Record;

use super::{Outcome, cases};

/// A signal a load and CPU with its maximum, and one for the run.
pub fn lava(record: &Record) -> String {
    cases(record).iter().fold(String::new(), |text, case| {
        let result = match case.outcome {
            Outcome::Passed => "pass",
            Outcome::Failed(_) => "fail",
            Outcome::Unknown(_) => "unknown",
            Outcome::Skipped(_) => "skip",
        };
        let maximum = case.row().and_then(|row| Some((row.maximum?, row.unit)));
        let measured = maximum
            .map_or_else(String::new, |(maximum, unit)| format!(" UNITS={unit} MEASUREMENT={maximum}"));
        let name = identifier(&case.name);
        text + &format!("<LAVA_SIGNAL_TESTCASE TEST_CASE_ID={name} RESULT={result}{measured}>\n")
    })
}

/// LAVA ends an id at a blank, and reads no `>`.
fn identifier(name: &str) -> String {
    let is_kept = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    name.chars().map(|c| if is_kept(c) { c } else { '-' }).collect()
}
