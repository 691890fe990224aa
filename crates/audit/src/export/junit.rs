//! JUnit XML as build servers read it (github.com/testmoapp/junitxml collects what they agree on): a test suite a layer,
//! a test case a rule.

use super::sentences;
use crate::finding::{Audit, Finding, Outcome};
use crate::rule::Severity;

/// The findings. Every failed rule is a failure, its severity the type; what could not be read is an error where the
/// verdict depends on it; what was not asked is skipped.
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
    format!("  <testsuite name=\"{}\" {}>\n{cases}  </testsuite>\n", escaped(layer), counts(&findings))
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
        Outcome::Failed => Kind::Failure,
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
        escaped(&finding.layer),
        escaped(&finding.rule)
    );
    let message = escaped(&sentences(finding));
    let inside = match kind(finding) {
        Kind::Passed => return head + "/>\n",
        Kind::Failure => element("failure", finding.severity.name(), &message, &escaped(&finding.why)),
        Kind::Error => element("error", "unreadable", &message, &escaped(&finding.why)),
        Kind::Skipped => format!("<skipped message=\"{message}\"/>"),
    };
    format!("{head}>{inside}</testcase>\n")
}

fn element(name: &str, kind: &str, message: &str, text: &str) -> String {
    format!("<{name} type=\"{kind}\" message=\"{message}\">{text}</{name}>")
}

/// For XML: without the characters that it takes for its own or does not know at all.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&apos;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}
