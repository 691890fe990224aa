//! JUnit XML as build servers read it (github.com/testmoapp/junitxml collects what they agree on): a test suite a layer,
//! a test case a rule.

use super::sentences;
use crate::finding::{Audit, Finding, Outcome};
use crate::rule::Severity;

/// The findings. A failed rule of severity error is a failure, as the exit code has it; what could not be read is an error
/// where the verdict depends on it; failed warnings and notes are skipped with what they say, as are rules that were not asked.
pub fn junit(audit: &Audit) -> String {
    let mut layers: Vec<&str> = audit.findings.iter().map(|finding| finding.layer.as_str()).collect();
    layers.sort_unstable();
    layers.dedup();
    let all: Vec<&Finding> = audit.findings.iter().collect();
    let suites: String = layers.into_iter().map(|layer| suite(audit, layer)).collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"worstcase check\" {}>\n{suites}</testsuites>\n",
        counts(&all)
    )
}

fn suite(audit: &Audit, layer: &str) -> String {
    let findings: Vec<&Finding> = audit.findings.iter().filter(|finding| finding.layer == layer).collect();
    let cases: String = findings.iter().map(|finding| case(finding)).collect();
    format!("  <testsuite name=\"{}\" {}>\n{cases}  </testsuite>\n", printable::xml(layer), counts(&findings))
}

/// What becomes of a finding.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Passed,
    Failure,
    Error,
    Skipped,
}

fn kind(finding: &Finding) -> Kind {
    match finding.outcome {
        Outcome::Passed => Kind::Passed,
        Outcome::Failed if finding.severity == Severity::Error => Kind::Failure,
        Outcome::Failed => Kind::Skipped,
        Outcome::Unreadable if finding.severity == Severity::Error => Kind::Error,
        Outcome::Unreadable | Outcome::Unsupported | Outcome::NotApplicable => Kind::Skipped,
    }
}

fn counts(findings: &[&Finding]) -> String {
    let count = |wanted: Kind| findings.iter().filter(|finding| kind(finding) == wanted).count();
    format!(
        "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\"",
        findings.len(),
        count(Kind::Failure),
        count(Kind::Error),
        count(Kind::Skipped)
    )
}

fn case(finding: &Finding) -> String {
    let head = format!(
        "    <testcase classname=\"worstcase.{}\" name=\"{}\"",
        printable::xml(&finding.layer),
        printable::xml(&finding.rule)
    );
    let message = printable::xml(&match finding.outcome {
        Outcome::Failed if kind(finding) == Kind::Skipped => {
            format!("{}: {}", finding.severity.name(), sentences(finding))
        }
        _ => sentences(finding),
    });
    let inside = match kind(finding) {
        Kind::Passed => return head + "/>\n",
        Kind::Failure => element("failure", finding.severity.name(), &message, &printable::xml(&finding.why)),
        Kind::Error => element("error", "unreadable", &message, &printable::xml(&finding.why)),
        Kind::Skipped => format!("<skipped message=\"{message}\"/>"),
    };
    format!("{head}>{inside}</testcase>\n")
}

fn element(name: &str, kind: &str, message: &str, text: &str) -> String {
    format!("<{name} type=\"{kind}\" message=\"{message}\">{text}</{name}>")
}
