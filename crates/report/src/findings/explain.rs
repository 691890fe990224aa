//! Everything about one rule, and what this machine says to it.

use audit::{Asker, Finding, Grade, Outcome, Rule};

use super::{outcome, seen};
use crate::style::Style;
use crate::why::{Part, entry};

/// What is behind a rule, and what the machine says.
pub fn explain(rule: &Rule, finding: &Finding, style: &Style) -> String {
    let title = format!("{} ({}, {})", finding.headline(), finding.severity.name(), rule.layer);
    let background = background(rule, &finding.wanted);
    let parts = here(finding).into_iter().chain(why(rule)).chain(cures(finding)).chain(background);
    entry(&rule.id, &title, &parts.collect::<Vec<_>>(), style)
}

/// What was read, and what came of it.
fn here(finding: &Finding) -> Vec<Part> {
    let wanted =
        if finding.wanted.is_empty() { String::new() } else { format!("; wanted {}", finding.wanted) };
    let said = match finding.outcome {
        Outcome::Failed | Outcome::Passed => format!("{}{wanted}", seen(finding)),
        _ => format!("{}{wanted}", finding.reason.clone().unwrap_or_default()),
    };
    let should = (finding.outcome == Outcome::Failed).then(|| ("should be", finding.title.clone()));
    let verdict = ("here", format!("{}: {said}", outcome(finding.outcome)));
    let evidence = finding.evidence.iter().map(|evidence| {
        (
            "",
            format!(
                "{}: {} ({})",
                evidence.fact,
                short(&evidence.value.to_string()),
                evidence.from.join(", ")
            ),
        )
    });
    let next_boot = finding.next_boot.iter().map(|change| ("next boot", change.clone()));
    should.into_iter().chain([verdict]).chain(evidence).chain(next_boot).collect()
}

/// The first items of a list: a large machine has hundreds of interrupts.
fn short(value: &str) -> String {
    const SHOWN: usize = 8;
    let items: Vec<&str> = value.split(", ").collect();
    match items.get(..SHOWN) {
        Some(first) if items.len() > SHOWN + 1 => format!("{}, ... (all: check --json)", first.join(", ")),
        _ => value.to_owned(),
    }
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
    let gain = rule.gain.map(|gain| ("gain", format!("{}, as far as is known", gain.name())));
    let why = [("why", rule.why.clone()), ("evidence", behind)];
    why.into_iter().chain(gain).chain(costs).chain(contradiction).collect()
}

fn cures(finding: &Finding) -> Vec<Part> {
    finding.cure.iter().map(|cure| ("cure", format!("{}: {}", cure.domain.name(), cure.text))).collect()
}

/// What else a rule has, and what it wants where that is not only the `said`.
fn background(rule: &Rule, said: &str) -> Vec<Part> {
    let wants = rule.wanted.iter().map(|(asker, want)| match asker {
        Asker::Profile(profile) => format!("{profile}: {want}"),
        Asker::Any if rule.wanted.len() > 1 => format!("otherwise: {want}"),
        Asker::Any => want.to_string(),
    });
    let wants: Vec<String> = wants.collect();
    let applies: Vec<String> = rule.applies.iter().map(ToString::to_string).collect();
    let unless: Vec<String> = rule.unless.iter().map(ToString::to_string).collect();
    let wants = Some(wants.join("; ")).filter(|wants| wants != said);
    let parts = [
        ("wanted", wants.unwrap_or_default()),
        ("applies", applies.join(" and ")),
        ("unless", unless.join(" or ")),
        ("conflicts", rule.conflicts.join(", ")),
        ("papers", papers(&rule.papers)),
        ("source", rule.source.join("; ")),
    ];
    parts.into_iter().filter(|(_, text)| !text.is_empty()).collect()
}

/// `Enea (optimizing ...); EVL (Xenomai 4 ...)`.
fn papers(names: &[String]) -> String {
    let full = |name: &String| match audit::PAPERS.iter().find(|(short, _)| short == name) {
        Some((short, paper)) => format!("{short} ({paper})"),
        None => name.clone(),
    };
    names.iter().map(full).collect::<Vec<_>>().join("; ")
}
