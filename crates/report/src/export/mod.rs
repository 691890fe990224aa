//! A run's figures in the forms of other programs: tables (CSV, Markdown), test results (JUnit, TAP, LAVA), one line.
//!
//! A row is a load on a CPU, or on all of them together. Test results are those of the rows of single CPUs and of the run: a
//! row fails where it exceeds the limit, and the run fails, is an error or unknown where its verdict is, so that what was
//! not measured to its end passes nowhere.

mod csv;
mod json;
mod junit;
mod lava;
mod line;
mod markdown;
mod row;
mod tap;

pub use csv::csv;
pub use json::json;
pub use junit::junit;
pub use lava::lava;
pub use line::line;
pub use markdown::markdown;
pub use row::{FigureRow, rows};
pub use tap::tap;

use record::Record;
use record::verdict::Verdict;

/// What a build server is to make of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Outcome {
    Passed,
    /// The limit was exceeded: by what.
    Failed(String),
    /// Nothing can be said: why. Never a pass.
    Unknown(String),
}

/// A test: a load on a CPU, or the run.
struct Case {
    name: String,
    outcome: Outcome,
    /// The figures, for those who read them; none for the run.
    row: Option<FigureRow>,
}

/// The rows of single CPUs, then the run itself.
fn cases(record: &Record) -> Vec<Case> {
    let limit = record.header.plan.limit;
    let single = rows(record).into_iter().filter(|row| row.cpu != row::ALL);
    let mut cases: Vec<_> = single
        .map(|row| {
            let outcome = match (row.maximum, limit) {
                (None, _) => Outcome::Unknown("nothing was measured".into()),
                (Some(maximum), Some(limit)) if maximum > limit.0 => {
                    Outcome::Failed(format!("maximum {maximum} {} above the limit of {}", row.unit, limit.0))
                }
                _ if !row.marks.is_empty() => Outcome::Unknown(row.marks.join(", ")),
                _ => Outcome::Passed,
            };
            Case { name: row.name(), outcome, row: Some(row) }
        })
        .collect();
    let reasons = record.judgement.reasons.join("; ");
    let outcome = match record.judgement.verdict {
        Verdict::Measured | Verdict::Pass => Outcome::Passed,
        Verdict::Fail => Outcome::Failed(reasons),
        Verdict::Error | Verdict::Inconclusive => {
            Outcome::Unknown(format!("{}: {reasons}", record.judgement.verdict))
        }
    };
    cases.push(Case { name: "run".into(), outcome, row: None });
    cases
}
