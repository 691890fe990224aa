//! A run's figures in the forms of other programs: tables (CSV, Markdown), test results (JUnit, TAP, LAVA), one line.
//!
//! A row is a load on a CPU, or on all of them together. Test results are those of the rows of single CPUs and of the run: a
//! row fails where it exceeds the limit and the run fails, and the run fails, is an error or unknown where its verdict is, so
//! that what was not measured to its end passes nowhere, and a program that counts failures and errors decides as the exit
//! code does.

mod csv;
mod json;
mod junit;
mod lava;
mod line;
mod markdown;
mod row;
mod tap;

pub use csv::{csv, csv_of_several};
pub use json::json;
pub use junit::junit;
pub use lava::lava;
pub use line::line;
pub(crate) use markdown::escaped;
pub use markdown::markdown;
pub use row::{FigureRow, rows};
pub use tap::tap;

use record::Record;
use record::verdict::Verdict;

/// The name of the test that is the run itself.
const RUN: &str = "run";

/// What a build server is to make of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Outcome {
    Passed,
    /// The limit was exceeded: by what.
    Failed(String),
    /// Nothing can be said, and the run does not pass with it: why.
    Unknown(String),
    /// Nothing can be said, and the run passes without: why. No pass either.
    Skipped(String),
}

/// A test: a load on a CPU, or the run.
struct Case {
    name: String,
    outcome: Outcome,
    about: About,
}

/// What else is said of a test.
enum About {
    /// The figures of a load on a CPU.
    Row(Box<FigureRow>),
    /// The verdict of the whole run with its reasons: doubts about the run are in no row.
    Run(String),
}

impl Case {
    /// The figures, for those who read them; none for the run.
    fn row(&self) -> Option<&FigureRow> {
        match &self.about {
            About::Row(row) => Some(row),
            About::Run(_) => None,
        }
    }
}

/// The rows of single CPUs, then the run itself.
fn cases(record: &Record) -> Vec<Case> {
    let limit = record.header.plan.limit.map(|limit| limit.0);
    let verdict = record.judgement.verdict;
    let single = rows(record).into_iter().filter(|row| row.cpu != row::ALL);
    let mut cases: Vec<_> = single
        .map(|row| Case {
            name: row.name(),
            outcome: outcome(&row, limit, verdict),
            about: About::Row(row.into()),
        })
        .collect();
    let reasons = record.judgement.reasons.join("; ");
    let about = About::Run(format!("verdict of the whole run: {verdict}: {reasons}"));
    let outcome = match verdict {
        Verdict::Measured | Verdict::Pass => Outcome::Passed,
        Verdict::Fail => Outcome::Failed(reasons),
        Verdict::Error | Verdict::Inconclusive => Outcome::Unknown(format!("{verdict}: {reasons}")),
    };
    cases.push(Case { name: RUN.into(), outcome, about });
    cases
}

/// What a row says in a run of that verdict.
fn outcome(row: &FigureRow, limit: Option<u64>, verdict: Verdict) -> Outcome {
    let exceeded = limit.and_then(|limit| exceeded(row, limit));
    let unknown = match (exceeded, row.maximum) {
        (Some(exceeded), _) if verdict == Verdict::Fail => return Outcome::Failed(exceeded),
        // In an emulator's time no latency is one of any machine.
        (Some(exceeded), _) => exceeded,
        (None, None) => "nothing was measured".into(),
        (None, Some(_)) if !row.marks.is_empty() => row.marks.join(", "),
        (None, Some(_)) => return Outcome::Passed,
    };
    match verdict {
        Verdict::Measured | Verdict::Pass => Outcome::Skipped(unknown),
        Verdict::Fail | Verdict::Error | Verdict::Inconclusive => Outcome::Unknown(unknown),
    }
}

/// How a row is above the limit: by its greatest value, or by what never came.
fn exceeded(row: &FigureRow, limit: u64) -> Option<String> {
    let unit = row.unit;
    match (row.maximum, row.over_limit) {
        (Some(maximum), _) if maximum > limit => {
            Some(format!("maximum {maximum} {unit} above the limit of {limit}"))
        }
        (_, Some(over)) if over > 0 => Some(format!(
            "{over} of {} above the limit of {limit} {unit}",
            row.samples.saturating_add(row.missed)
        )),
        _ => None,
    }
}
