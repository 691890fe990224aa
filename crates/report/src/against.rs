//! What `check --against` says: differences, ordered by what they mean for latency.

use audit::against::{RuleDifference, SymbolDifference};
use audit::{Outcome, Severity};

use crate::style::{Style, Tone};
use crate::text::{clip, count_of, harmless, wrap};

/// Columns of the word in front of a difference.
const MARK: usize = 9;

/// Symbols that differ between the configurations called `ours` and `theirs`. `all` shows those too of which no rule speaks.
pub fn configs(
    differences: &[SymbolDifference],
    ours: &str,
    theirs: &str,
    all: bool,
    style: &Style,
) -> String {
    let (known, others): (Vec<_>, Vec<_>) =
        differences.iter().partition(|difference| !difference.meaning.is_empty());
    let mut lines = head(differences.len(), ours, theirs, style);
    for difference in &known {
        let severity = difference.meaning.first().map_or(Severity::Note, |meaning| meaning.severity);
        lines.push(marked(severity, &change(difference), style));
        let meaning: Vec<String> = difference
            .meaning
            .iter()
            .map(|meaning| format!("{} ({})", meaning.title, meaning.rule))
            .collect();
        lines.extend(wrap(&" ".repeat(MARK), &meaning.join("; "), MARK, style.width));
    }
    if all {
        lines.extend(others.iter().map(|difference| {
            clip(&harmless(&format!("{}{}", " ".repeat(MARK), change(difference))), style.width)
        }));
    } else if !others.is_empty() {
        lines.push(format!(
            "{} of which no rule speaks (--all shows them)",
            count_of(others.len() as u64, "more difference")
        ));
    }
    finished(lines)
}

/// Rules on which the machines called `ours` and `theirs` differ.
pub fn audits(differences: &[RuleDifference], ours: &str, theirs: &str, all: bool, style: &Style) -> String {
    let mut lines = head(differences.len(), ours, theirs, style);
    let (changed, others): (Vec<_>, Vec<_>) =
        differences.iter().partition(|difference| difference.ours.0 != difference.theirs.0);
    let shown: Vec<_> = if all { changed.iter().chain(&others).collect() } else { changed.iter().collect() };
    for difference in shown {
        lines.push(marked(
            difference.severity,
            &format!("{} ({})", difference.title, difference.rule),
            style,
        ));
        for (name, (outcome, value)) in [(ours, &difference.ours), (theirs, &difference.theirs)] {
            let text = format!("{}{name}: {}: {value}", " ".repeat(MARK), word(*outcome));
            lines.push(clip(&harmless(&text), style.width));
        }
    }
    if !all && !others.is_empty() {
        lines.push(format!(
            "{} in value alone (--all shows them)",
            count_of(others.len() as u64, "more difference")
        ));
    }
    finished(lines)
}

fn head(count: usize, ours: &str, theirs: &str, style: &Style) -> Vec<String> {
    let mut lines = wrap(
        "against: ",
        &harmless(&format!("{ours} -> {theirs}: {}", count_of(count as u64, "difference"))),
        9,
        style.width,
    );
    lines.push(String::new());
    lines
}

fn finished(lines: Vec<String>) -> String {
    lines.into_iter().map(|line| line + "\n").collect()
}

fn change(difference: &SymbolDifference) -> String {
    let said = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
    format!("{}: {} -> {}", difference.symbol, said(&difference.ours), said(&difference.theirs))
}

fn marked(severity: Severity, text: &str, style: &Style) -> String {
    let (word, tone) = match severity {
        Severity::Error => ("error", Tone::Bad),
        Severity::Warning => ("warning", Tone::Doubtful),
        Severity::Note => ("note", Tone::Plain),
    };
    style.paint(tone, &format!("{word:<MARK$}"))
        + &style.paint(Tone::Strong, &clip(&harmless(text), style.width.saturating_sub(MARK)))
}

fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Failed => "fails",
        Outcome::Unreadable => "unreadable",
        Outcome::Passed => "passes",
        Outcome::Unsupported => "unknown",
        Outcome::NotApplicable => "not asked",
    }
}
