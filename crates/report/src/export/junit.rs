//! JUnit XML as build servers read it (github.com/testmoapp/junitxml collects what they agree on): a test case a load and
//! CPU, and one for the run.

use record::Record;

use super::row::FigureRow;
use super::{About, Case, Outcome, cases};

/// The run as one test suite. What nothing can be said of is an error, so that a build does not pass with it, or skipped where
/// the run passes without.
pub fn junit(record: &Record) -> String {
    let cases = cases(record);
    let count = |is: fn(&Outcome) -> bool| cases.iter().filter(|case| is(&case.outcome)).count();
    let counts = format!(
        "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\"",
        cases.len(),
        count(|outcome| matches!(outcome, Outcome::Failed(_))),
        count(|outcome| matches!(outcome, Outcome::Unknown(_))),
        count(|outcome| matches!(outcome, Outcome::Skipped(_)))
    );
    let body: String = cases.iter().map(case).collect();
    let host = printable::xml(&record.header.machine.host);
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"worstcase bench\" {counts}>\n  \
         <testsuite name=\"{host}\" {counts}>\n{body}  </testsuite>\n</testsuites>\n"
    )
}

fn case(case: &Case) -> String {
    let head = format!("    <testcase classname=\"worstcase.bench\" name=\"{}\"", printable::xml(&case.name));
    let outcome = match &case.outcome {
        Outcome::Passed => String::new(),
        Outcome::Failed(why) => format!("<failure type=\"limit\" message=\"{}\"/>", printable::xml(why)),
        Outcome::Skipped(why) => format!("<skipped message=\"{}\"/>", printable::xml(why)),
        Outcome::Unknown(why) => format!("<error type=\"unknown\" message=\"{}\"/>", printable::xml(why)),
    };
    let words = match &case.about {
        About::Row(row) => figures(row),
        About::Run(verdict) => format!("<system-out>{}</system-out>", printable::xml(verdict)),
    };
    format!("{head}>{outcome}{words}</testcase>\n")
}

fn figures(row: &FigureRow) -> String {
    let value = |value: Option<u64>| value.map_or_else(|| "-".into(), |value| value.to_string());
    format!(
        "<system-out>median {}, p99.9 {}, maximum {} {}; samples {}, missed {}</system-out>",
        value(row.p50),
        value(row.p99_9),
        value(row.maximum),
        row.unit,
        row.samples,
        row.missed
    )
}
