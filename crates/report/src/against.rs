//! What `check --against` says: differences, ordered by what they mean for latency.

use audit::Severity;
use audit::against::{RuleDifference, SymbolDifference};

use crate::findings::{MARK, marked, outcome};
use crate::style::Style;
use crate::text::{clip, count_of, harmless, wrap};

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
        for (name, (found, value)) in [(ours, &difference.ours), (theirs, &difference.theirs)] {
            let text = format!("{}{name}: {}: {value}", " ".repeat(MARK), outcome(*found));
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
