//! Symbols of the kernel's configuration.

use std::collections::BTreeMap;

use machine::{grammar, parameters};
use units::KernelVersion;

use super::known::KNOWN;
use super::nearest::nearest_of;
use super::statements::{Statement, Symbol};
use super::{Remark, RemarkId, Target};
use crate::Severity;

/// Options of one choice: at most one is `y` (kernel/Kconfig.hz, Kconfig.preempt, kernel/time/Kconfig).
const CHOICES: [&[&str]; 4] = [
    &["HZ_100", "HZ_250", "HZ_300", "HZ_1000"],
    &["PREEMPT_NONE", "PREEMPT_VOLUNTARY", "PREEMPT", "PREEMPT_LAZY"],
    &["HZ_PERIODIC", "NO_HZ_IDLE", "NO_HZ_FULL"],
    &[
        "CPU_FREQ_DEFAULT_GOV_PERFORMANCE",
        "CPU_FREQ_DEFAULT_GOV_POWERSAVE",
        "CPU_FREQ_DEFAULT_GOV_USERSPACE",
        "CPU_FREQ_DEFAULT_GOV_ONDEMAND",
        "CPU_FREQ_DEFAULT_GOV_CONSERVATIVE",
        "CPU_FREQ_DEFAULT_GOV_SCHEDUTIL",
    ],
];

/// What is wrong with the symbols, one by one and together.
pub fn remarks(statements: &[Statement], target: Target) -> Vec<Remark> {
    let symbols: Vec<&Symbol> = statements
        .iter()
        .filter_map(|statement| match statement {
            Statement::Symbol(symbol) => Some(symbol),
            _ => None,
        })
        .collect();
    let mut remarks: Vec<Remark> = symbols.iter().filter_map(|symbol| gone(symbol, target)).collect();
    remarks.extend(symbols.iter().filter_map(|symbol| of_another_kind(symbol)));
    remarks.extend(alone(&symbols, statements));
    remarks.extend(contradictions(&symbols));
    remarks
}

/// Lines that look like a configuration's and are none.
pub fn forms(text: &str) -> Vec<Remark> {
    text.lines().enumerate().filter_map(|(index, line)| form(index + 1, line.trim())).collect()
}

/// A symbol that the target's source does not have.
fn gone(symbol: &Symbol, target: Target) -> Option<Remark> {
    let known = KNOWN.symbol.iter().find(|known| known.name == symbol.name)?;
    let bound = |text: &Option<String>| text.as_deref().and_then(|text| text.parse::<KernelVersion>().ok());
    let is_before = |bound: KernelVersion| target.version.is_some_and(|version| version < bound);
    let is_there = match (bound(&known.since), bound(&known.until)) {
        (Some(since), _) => !is_before(since),
        (None, Some(until)) => is_before(until),
        (None, None) => false,
    };
    if is_there && !known.elsewhere {
        return None;
    }
    let message = known.text.clone().unwrap_or_else(|| {
        let until = known.until.as_deref().unwrap_or_default();
        format!("kernel {until} does not have it: a merge drops it without a word")
    });
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

/// A name that is nearly a symbol's, or a value that a symbol of that type cannot have.
fn of_another_kind(symbol: &Symbol) -> Option<Remark> {
    let value = symbol.value.as_deref()?;
    let error = |id, message: String| Remark::new(symbol.line, id, Severity::Error, shown(symbol), message);
    if let Some(known) = grammar::symbols::symbol(&symbol.name) {
        return known.fault(value).map(|message| error(RemarkId::Malformed, message));
    }
    if !is_value(value) {
        let message = "is y, m, n, a number, or a text in straight quotes".to_owned();
        return Some(error(RemarkId::Malformed, message));
    }
    if KNOWN.symbol.iter().any(|known| known.name == symbol.name) {
        return None;
    }
    let meant =
        nearest_of(&symbol.name, grammar::symbols::names().filter(|name| is_near(name, &symbol.name)))?;
    let message = format!("no kernel has such a symbol: CONFIG_{meant} is meant");
    Some(error(RemarkId::Misspelt, message).instead(format!("CONFIG_{meant}={value}")))
}

/// What a configuration takes for a value, whatever the symbol; a reader fills in what is open.
fn is_value(value: &str) -> bool {
    let is_open = value.is_empty()
        || value.contains(['<', '$', '{', '@', '\u{2026}'])
        || value.contains("...")
        || value.len() > 1 && value.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
    let digits = value.strip_prefix("0x").or_else(|| value.strip_prefix('-')).unwrap_or(value);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_open || matches!(value, "y" | "m" | "n") || value.starts_with('"') || is_number
}

/// Other symbols than those of the table differ in a letter or a number too: a slip that is none must leave the length alike.
fn is_near(known: &str, name: &str) -> bool {
    let numbers = |text: &str| text.chars().filter(char::is_ascii_digit).collect::<String>();
    numbers(known) == numbers(name) && name.len() >= 10
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
                Remark::new(symbol.line, RemarkId::NoEffect, Severity::Note, shown(symbol), &*known.text)
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
            // Flatscher sets NO_HZ_IDLE and NO_HZ_FULL one after the other: only one of a choice can be y.
            remarks.push(Remark::new(
                last.line.max(first.line),
                RemarkId::Contradiction,
                Severity::Error,
                format!("{} {}", shown(first), shown(last)),
                "are options of one choice: only the last stays y",
            ));
        }
    }
    remarks
}

/// One such line.
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
    let wordy = wordy || matches!(after, "=Y" | "=M" | "=N");
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
