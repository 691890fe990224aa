//! Symbols of the kernel's configuration.

use std::collections::BTreeMap;

use machine::parameters;

use super::known::KNOWN;
use super::statements::{Statement, Symbol};
use super::{Remark, RemarkId, Target};
use crate::Severity;

/// Options of one choice: at most one is `y` (kernel/Kconfig.hz, Kconfig.preempt, kernel/time/Kconfig).
const CHOICES: [&[&str]; 3] = [
    &["HZ_100", "HZ_250", "HZ_300", "HZ_1000"],
    &["PREEMPT_NONE", "PREEMPT_VOLUNTARY", "PREEMPT", "PREEMPT_LAZY"],
    &["HZ_PERIODIC", "NO_HZ_IDLE", "NO_HZ_FULL"],
];

/// What is wrong with the symbols, one by one and together.
pub fn remarks(text: &str, statements: &[Statement], target: Target) -> Vec<Remark> {
    let symbols: Vec<&Symbol> = statements
        .iter()
        .filter_map(|statement| match statement {
            Statement::Symbol(symbol) => Some(symbol),
            _ => None,
        })
        .collect();
    let mut remarks: Vec<Remark> = symbols.iter().filter_map(|symbol| gone(symbol, target)).collect();
    remarks.extend(alone(&symbols, statements));
    remarks.extend(contradictions(&symbols));
    remarks.extend(text.lines().enumerate().filter_map(|(index, line)| form(index + 1, line.trim())));
    remarks
}

/// A symbol that the target's source does not have.
fn gone(symbol: &Symbol, target: Target) -> Option<Remark> {
    let known = KNOWN.symbol.iter().find(|known| known.name == symbol.name)?;
    let until = known.until.parse().ok()?;
    if target.version.is_some_and(|version| version < until) {
        return None;
    }
    let message = known
        .text
        .clone()
        .unwrap_or_else(|| format!("kernel {until} does not have it: a merge drops it without a word"));
    let (id, severity) = if known.elsewhere {
        (RemarkId::Elsewhere, Severity::Note)
    } else {
        (RemarkId::Gone, Severity::Error)
    };
    Some(
        Remark::new(symbol.line, id, severity, shown(symbol), message)
            .perhaps_instead(known.instead.as_deref()),
    )
}

/// A symbol that is set for the sake of a kernel parameter which the recipe does not have.
fn alone(symbols: &[&Symbol], statements: &[Statement]) -> Vec<Remark> {
    let has_word = |need: &str| {
        let (name, flag) = need.split_once('=').map_or((need, None), |(name, flag)| (name, Some(flag)));
        statements.iter().any(|statement| match statement {
            Statement::Word(word) => {
                parameters::same(&word.name, name)
                    && flag.is_none_or(|flag| word.value.as_ref().is_some_and(|value| value.contains(flag)))
            }
            _ => false,
        })
    };
    let without = KNOWN.alone.iter().filter(|known| !known.needs.iter().any(|need| has_word(need)));
    without
        .filter_map(|known| {
            let symbol = symbols
                .iter()
                .find(|symbol| symbol.name == known.name && symbol.value.as_deref() == Some("y"))?;
            Some(
                Remark::new(symbol.line, RemarkId::NoEffect, Severity::Warning, shown(symbol), &*known.text)
                    .instead(&*known.instead),
            )
        })
        .collect()
}

fn contradictions(symbols: &[&Symbol]) -> Vec<Remark> {
    let mut remarks = Vec::new();
    let mut seen: BTreeMap<&str, &Symbol> = BTreeMap::new();
    for symbol in symbols.iter().filter(|symbol| symbol.value.is_some()) {
        if let Some(before) = seen.insert(&symbol.name, symbol).filter(|before| before.value != symbol.value)
        {
            remarks.push(Remark::new(
                symbol.line,
                RemarkId::Contradiction,
                Severity::Warning,
                shown(symbol),
                format!("line {} says {}: the last one wins", before.line, shown(before)),
            ));
        }
    }
    for choice in CHOICES {
        let chosen: Vec<&&Symbol> = choice
            .iter()
            .filter_map(|name| seen.get(name))
            .filter(|symbol| symbol.value.as_deref() == Some("y"))
            .collect();
        if let [first, .., last] = chosen.as_slice() {
            // S3 sets NO_HZ_IDLE and NO_HZ_FULL one after the other: only one of a choice can be y.
            remarks.push(Remark::new(
                last.line.max(first.line),
                RemarkId::Contradiction,
                Severity::Warning,
                format!("{} {}", shown(first), shown(last)),
                "are options of one choice: only the last stays y",
            ));
        }
    }
    remarks
}

/// Lines that look like a configuration's and are none.
fn form(number: usize, line: &str) -> Option<Remark> {
    if let Some(rest) = line.strip_prefix("# CONFIG_").or_else(|| line.strip_prefix("#CONFIG_")) {
        let after = rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
        let exact = line.starts_with("# ") && after == " is not set";
        let meant = after.trim_start().starts_with("is not set") || after.starts_with('=');
        return (meant && !exact).then(|| {
            let name = &rest[..rest.len() - after.len()];
            Remark::new(number, RemarkId::NotMerged, Severity::Warning, line.chars().take(60).collect::<String>(), "tools that merge fragments want exactly `# CONFIG_X is not set`: this line is a comment to them").instead(format!("# CONFIG_{name} is not set"))
        });
    }
    let rest = line.strip_prefix("CONFIG_")?;
    let after = rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
    let spaced = after.starts_with([' ', '\t']) && after.trim_start().starts_with('=');
    let wordy = ["yes", "no", "true", "false", "on", "off"]
        .iter()
        .any(|word| after.eq_ignore_ascii_case(&format!("={word}")));
    (spaced || wordy).then(|| {
        Remark::new(
            number,
            RemarkId::Malformed,
            Severity::Error,
            line,
            "a configuration says CONFIG_X=y, without blanks and with y, m or n",
        )
    })
}

fn shown(symbol: &Symbol) -> String {
    match symbol.value.as_deref() {
        Some("n") => format!("# CONFIG_{} is not set", symbol.name),
        Some(value) => format!("CONFIG_{}={value}", symbol.name),
        None => format!("CONFIG_{}", symbol.name),
    }
}
