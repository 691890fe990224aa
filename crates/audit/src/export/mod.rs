//! Findings in the forms of other programs.

mod junit;
mod sarif;
mod tap;

pub use junit::junit;
pub use sarif::sarif;
pub use tap::tap;

use crate::finding::{Finding, Outcome};

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
