//! JUnit XML as build servers read it (github.com/testmoapp/junitxml collects what they agree on): a test suite a layer,
//! a test case a rule.

use super::{Kind, VERDICT, kind, nothing_judged, sentences};
use crate::finding::{Audit, Finding, Outcome};

/// The findings. A failed rule of severity error is a failure, as the exit code has it; what could not be read is an error
/// where the verdict depends on it; failed warnings and notes are skipped with what they say, as are rules that were not asked.
/// Where no rule could be judged, a case of its own is an error.
pub fn junit(audit: &Audit) -> String {
    let mut layers: Vec<&str> = audit.findings.iter().map(|finding| finding.layer.as_str()).collect();
    layers.sort_unstable();
    layers.dedup();
    let all: Vec<&Finding> = audit.findings.iter().collect();
    let mut suites: String = layers.into_iter().map(|layer| suite(audit, layer)).collect();
    let mut kinds: Vec<Kind> = all.iter().map(|finding| kind(finding)).collect();
    if let Some(why) = nothing_judged(audit) {
        suites += &unjudged(why);
        kinds.push(Kind::Error);
    }
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"worstcase check\" {}>\n{suites}</testsuites>\n",
        counts(&kinds)
    )
}

/// A suite of the one case that says why nothing passed.
fn unjudged(why: &str) -> String {
    let error = element("error", "inconclusive", why, "");
    let case =
        format!("    <testcase classname=\"worstcase.{VERDICT}\" name=\"{VERDICT}\">{error}</testcase>\n");
    format!("  <testsuite name=\"{VERDICT}\" {}>\n{case}  </testsuite>\n", counts(&[Kind::Error]))
}

fn suite(audit: &Audit, layer: &str) -> String {
    let findings: Vec<&Finding> = audit.findings.iter().filter(|finding| finding.layer == layer).collect();
    let cases: String = findings.iter().map(|finding| case(finding)).collect();
    let kinds: Vec<Kind> = findings.iter().map(|finding| kind(finding)).collect();
    format!("  <testsuite name=\"{}\" {}>\n{cases}  </testsuite>\n", printable::xml(layer), counts(&kinds))
}

fn counts(kinds: &[Kind]) -> String {
    let count = |wanted: Kind| kinds.iter().filter(|kind| **kind == wanted).count();
    format!(
        "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\"",
        kinds.len(),
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
