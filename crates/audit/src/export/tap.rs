//! Test Anything Protocol (testanything.org): a test point a rule. Version 13, which every harness knows; the escapes are
//! those that version 14 wrote down.

use std::fmt::Write;

use serde_json::{Value, json};

use super::{Kind, VERDICT, kind, nothing_judged, sentences};
use crate::finding::{Audit, Finding, Outcome};

/// The findings. A failed warning or note carries the directive TODO, with which a harness does not fail: the plan
/// passes where the verdict does. What could not be read is not ok where the verdict depends on it, and neither is an audit in
/// which no rule could be judged.
pub fn tap(audit: &Audit) -> String {
    let unjudged = nothing_judged(audit);
    let points = audit.findings.len() + usize::from(unjudged.is_some());
    let mut text = format!("TAP version 13\n1..{points}\n");
    for (index, finding) in audit.findings.iter().enumerate() {
        // Writing to a text does not fail.
        let _ = point(&mut text, index + 1, finding);
    }
    if let Some(why) = unjudged {
        let _ = writeln!(text, "not ok {points} - {VERDICT}: {why}");
    }
    text
}

fn point(text: &mut String, number: usize, finding: &Finding) -> std::fmt::Result {
    let description = printable::tap(&format!("{} {}", finding.rule, finding.headline()));
    let reason = || printable::tap(finding.reason.as_deref().unwrap_or("unknown here"));
    let (ok, directive) = match kind(finding) {
        Kind::Passed => ("ok", String::new()),
        Kind::Failure | Kind::Error => ("not ok", String::new()),
        Kind::Skipped if finding.outcome == Outcome::Failed => {
            ("not ok", format!(" # TODO {}", finding.severity.name()))
        }
        Kind::Skipped => ("ok", format!(" # SKIP {}", reason())),
    };
    writeln!(text, "{ok} {number} - {description}{directive}")?;
    if matches!(finding.outcome, Outcome::Failed | Outcome::Unreadable) {
        writeln!(text, "  ---")?;
        for (key, value) in [
            ("message", json!(sentences(finding))),
            ("severity", json!(finding.severity.name())),
            ("wanted", json!(finding.wanted)),
            ("from", json!(finding.evidence.first().map(|evidence| &evidence.from))),
        ] {
            diagnostic(text, key, &value)?;
        }
        writeln!(text, "  ...")?;
    }
    Ok(())
}

/// A line of the block below a test point, which is YAML; JSON is YAML too.
fn diagnostic(text: &mut String, key: &str, value: &Value) -> std::fmt::Result {
    writeln!(text, "  {key}: {}", printable::json(&value.to_string()))
}
