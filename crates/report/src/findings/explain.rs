//! Everything about one rule, and what this machine says to it.

use audit::{Asker, Finding, Grade, Outcome, Rule};

use super::{outcome, seen};
use crate::style::{Style, Tone};
use crate::text::wrap;

/// Columns of the word in front of a paragraph.
const HEAD: usize = 13;

/// A paragraph: its word, its text.
type Part = (&'static str, String);

/// What is behind a rule, and what the machine says.
pub fn explain(rule: &Rule, finding: &Finding, style: &Style) -> String {
    let title = format!("{} ({}, {})", rule.title, finding.severity.name(), rule.layer);
    let mut lines: Vec<String> = wrap(&format!("{}: ", rule.id), &title, 2, style.width)
        .into_iter()
        .map(|line| style.paint(Tone::Strong, &line))
        .collect();
    let parts = here(finding).into_iter().chain(why(rule)).chain(cures(finding)).chain(background(rule));
    lines.extend(parts.flat_map(|(head, text)| wrap(&format!("{head:<HEAD$}"), &text, HEAD, style.width)));
    lines.into_iter().map(|line| line + "\n").collect()
}

/// What was read, and what came of it.
fn here(finding: &Finding) -> Vec<Part> {
    let wanted =
        if finding.wanted.is_empty() { String::new() } else { format!("; wanted {}", finding.wanted) };
    let said = match finding.outcome {
        Outcome::Failed | Outcome::Passed => format!("{}{wanted}", seen(finding)),
        _ => format!("{}{wanted}", finding.reason.clone().unwrap_or_default()),
    };
    let verdict = ("here", format!("{}: {said}", outcome(finding.outcome)));
    let evidence = finding.evidence.iter().map(|evidence| {
        ("", format!("{}: {} ({})", evidence.fact, evidence.value, evidence.from.join(", ")))
    });
    let next_boot = finding.next_boot.iter().map(|change| ("next boot", change.clone()));
    std::iter::once(verdict).chain(evidence).chain(next_boot).collect()
}

fn why(rule: &Rule) -> Vec<Part> {
    let grade = match rule.evidence {
        Grade::Measured => "measured",
        Grade::Mechanism => "mechanism: how it works is documented, how much it matters was not measured",
        Grade::Folklore => "folklore: repeated, neither measured nor explained",
    };
    let behind = rule.figure.as_ref().map_or_else(|| grade.to_owned(), |figure| format!("{grade}: {figure}"));
    let costs = rule.costs.iter().map(|(kind, words)| ("costs", format!("{kind}: {words}")));
    let contradiction = rule.contradiction.iter().map(|words| ("contradicted", words.clone()));
    [("why", rule.why.clone()), ("evidence", behind)].into_iter().chain(costs).chain(contradiction).collect()
}

fn cures(finding: &Finding) -> Vec<Part> {
    finding.cure.iter().map(|cure| ("cure", format!("{}: {}", cure.domain.name(), cure.text))).collect()
}

fn background(rule: &Rule) -> Vec<Part> {
    let wants = rule.wanted.iter().map(|(asker, want)| match asker {
        Asker::Profile(profile) => format!("{profile}: {want}"),
        Asker::Any => format!("any: {want}"),
    });
    let wants: Vec<String> = wants.collect();
    let applies: Vec<String> = rule.applies.iter().map(ToString::to_string).collect();
    let unless: Vec<String> = rule.unless.iter().map(ToString::to_string).collect();
    let parts = [
        ("wanted", wants.join("; ")),
        ("applies", applies.join(" and ")),
        ("unless", unless.join(" or ")),
        ("conflicts", rule.conflicts.join(", ")),
        ("seeds", rule.seeds.join(", ")),
        ("source", rule.source.join("; ")),
    ];
    parts.into_iter().filter(|(_, text)| !text.is_empty()).collect()
}
