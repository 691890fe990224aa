//! Findings in the forms of other programs.

mod junit;
mod sarif;
mod tap;

pub use junit::junit;
pub use sarif::sarif;
pub use tap::tap;

use record::verdict::Verdict;

use crate::finding::{Audit, Finding, Outcome};
use crate::rule::Severity;

/// What becomes of a finding where a program decides by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Passed,
    /// The exit code is the one for failed.
    Failure,
    /// Unknown, and the verdict depends on it: no pass.
    Error,
    /// What the verdict does not depend on.
    Skipped,
}

/// Failed rules of severity error alone fail, as the exit code has it.
fn kind(finding: &Finding) -> Kind {
    match finding.outcome {
        Outcome::Passed => Kind::Passed,
        Outcome::Failed if finding.severity == Severity::Error => Kind::Failure,
        Outcome::Failed => Kind::Skipped,
        Outcome::Unreadable if finding.severity == Severity::Error => Kind::Error,
        Outcome::Unreadable | Outcome::Unsupported | Outcome::NotApplicable => Kind::Skipped,
    }
}

/// The name of a case that stands for the whole audit.
const VERDICT: &str = "verdict";

/// Why nothing passed, where no single finding says so: readers of these forms take a list of skipped cases, or an empty one, for a pass.
fn nothing_judged(audit: &Audit) -> Option<&'static str> {
    let is_said = audit.findings.iter().any(|finding| matches!(kind(finding), Kind::Error | Kind::Failure));
    let is_open = audit.verdict == Verdict::Inconclusive && !is_said;
    is_open.then_some("no rule could be judged: nothing is known, and nothing passes")
}

/// What was read, or why nothing was, and the cure: one sentence each.
fn sentences(finding: &Finding) -> String {
    let seen = match (&finding.reason, finding.evidence.first()) {
        (Some(reason), _) => reason.clone(),
        (None, Some(evidence)) => evidence.value.to_string(),
        (None, None) => String::new(),
    };
    let wanted =
        if finding.wanted.is_empty() { String::new() } else { format!(" (wanted {})", finding.wanted) };
    let cure = finding.cure.first().filter(|_| finding.outcome == Outcome::Failed);
    let cure = cure.map_or_else(String::new, |cure| format!(". Cure: {}{}", cure.domain.verb(), cure.text));
    format!("{}: {seen}{wanted}{cure}", finding.headline())
}
