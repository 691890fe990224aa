//! What `check --against` says: differences, ordered by what they mean for latency.

use audit::Outcome;
use audit::against::{Change, RuleDifference, SymbolDifference};

use crate::findings::{MARK, outcome};
use crate::style::{Style, Tone};
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
    let changes: Vec<Change> = differences.iter().map(|difference| difference.change).collect();
    let mut lines = head(&changes, ours, theirs, style);
    for difference in &known {
        lines.push(marked(difference.change, &change(difference), style));
        let meaning: Vec<String> = difference
            .meaning
            .iter()
            .map(|meaning| {
                let now_fails = difference.change == Change::Worse;
                let what = if now_fails { &meaning.problem } else { &meaning.title };
                format!("{what} ({})", meaning.rule)
            })
            .collect();
        lines.extend(wrap(&" ".repeat(MARK), &meaning.join("; "), MARK, style.width));
    }
    if all {
        lines.extend(others.iter().map(|difference| {
            clip(&harmless(&format!("{}{}", " ".repeat(MARK), change(difference))), style.width)
        }));
    } else if !others.is_empty() {
        lines.push(format!(
            "not shown without --all: {} of which no rule speaks",
            count_of(others.len() as u64, "difference")
        ));
    }
    finished(lines)
}

/// Rules on which the machines called `ours` and `theirs` differ.
pub fn audits(differences: &[RuleDifference], ours: &str, theirs: &str, all: bool, style: &Style) -> String {
    let changes: Vec<Change> = differences.iter().map(|difference| difference.change).collect();
    let mut lines = head(&changes, ours, theirs, style);
    let (changed, others): (Vec<_>, Vec<_>) =
        differences.iter().partition(|difference| difference.ours.0 != difference.theirs.0);
    let shown: Vec<_> = if all { changed.iter().chain(&others).collect() } else { changed.iter().collect() };
    for difference in shown {
        let now_fails = difference.theirs.0 == Outcome::Failed;
        let what = if now_fails { &difference.problem } else { &difference.title };
        let severity = difference.severity.name();
        lines.push(marked(difference.change, &format!("{what} ({}, {severity})", difference.rule), style));
        for (name, (found, value)) in [(ours, &difference.ours), (theirs, &difference.theirs)] {
            let text = format!("{}{name}: {}: {value}", " ".repeat(MARK), outcome(*found));
            lines.push(clip(&harmless(&text), style.width));
        }
    }
    if !all && !others.is_empty() {
        lines.push(format!(
            "not shown without --all: {} in value alone",
            count_of(others.len() as u64, "difference")
        ));
    }
    finished(lines)
}

fn head(changes: &[Change], ours: &str, theirs: &str, style: &Style) -> Vec<String> {
    let count = |wanted| changes.iter().filter(|change| **change == wanted).count();
    let counts = Change::ALL.map(|change| (count(change), change.name()));
    let counts: Vec<String> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, name)| format!("{count} {name}"))
        .collect();
    let all = count_of(changes.len() as u64, "difference");
    let all = if counts.is_empty() { all } else { format!("{all}: {}", counts.join(", ")) };
    let mut lines = wrap("against: ", &harmless(&format!("{ours} -> {theirs}: {all}")), 9, style.width);
    if count(Change::Other) > 0 {
        let meaning = "other: no rule passes on one side and fails on the other";
        lines.extend(wrap("         ", meaning, 9, style.width));
    }
    lines.push(String::new());
    lines
}

/// One line, behind what it is for latency.
fn marked(change: Change, text: &str, style: &Style) -> String {
    let tone = match change {
        Change::Worse => Tone::Bad,
        Change::Better => Tone::Good,
        Change::Other => Tone::Plain,
    };
    let text = clip(&harmless(text), style.width.saturating_sub(MARK));
    style.paint(tone, &format!("{:<MARK$}", change.name())) + &style.paint(Tone::Strong, &text)
}

fn finished(lines: Vec<String>) -> String {
    lines.into_iter().map(|line| line + "\n").collect()
}

fn change(difference: &SymbolDifference) -> String {
    let said = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
    format!("{}: {} -> {}", difference.symbol, said(&difference.ours), said(&difference.theirs))
}
