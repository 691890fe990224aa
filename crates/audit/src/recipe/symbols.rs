//! Symbols of the kernel's configuration.

use std::collections::BTreeMap;

use machine::grammar::mainline::{self, Presence};
use machine::{grammar, parameters};
use units::KernelVersion;

use super::known::KNOWN;
use super::nearest::nearest_of;
use super::statements::{Statement, Symbol};
use super::{Remark, RemarkId, Target};
use crate::Severity;

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
    remarks.extend(of_no_kernel(&symbols, target));
    remarks.extend(symbols.iter().filter_map(|symbol| of_another_kind(symbol, target)));
    remarks.extend(alone(&symbols, statements));
    remarks.extend(without_need(&symbols));
    remarks.extend(neither(&symbols));
    remarks.extend(contradictions(&symbols));
    remarks
}

/// Lines that look like a configuration's and are none.
pub fn forms(text: &str) -> Vec<Remark> {
    let bare = without_prefix(text).into_iter().map(|(line, shown)| {
        let message = "a configuration's symbols begin with CONFIG_: tools pass over this line";
        let instead = format!("CONFIG_{shown}");
        Remark::new(line, RemarkId::NotMerged, Severity::Error, shown, message).instead(instead)
    });
    bare.chain(lines_of(text)).collect()
}

fn lines_of(text: &str) -> Vec<Remark> {
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

/// A value that a symbol of that type cannot have.
fn of_another_kind(symbol: &Symbol, target: Target) -> Option<Remark> {
    let value = symbol.value.as_deref()?;
    let error = |message: String| {
        Some(Remark::new(symbol.line, RemarkId::Malformed, Severity::Error, shown(symbol), message))
    };
    if let Some(known) = grammar::symbols::symbol(&symbol.name) {
        return known.fault(value).and_then(error);
    }
    if !is_value(value) {
        return error("is y, m, n, a number, or a text in straight quotes".to_owned());
    }
    let Presence::Present(known) = mainline::presence(&symbol.name, target.version) else { return None };
    let message = match known.kind? {
        "bool" if value == "m" => "is y or not set, not `m`: it is no part that can be a module",
        "int" | "hex" if matches!(value, "y" | "m") || value.starts_with('"') => "is a number",
        "string" if !value.starts_with('"') && value != "n" => "is a text in straight quotes",
        "bool" | "tristate" if !matches!(value, "y" | "m" | "n") => "is y, m or not set",
        _ => return None,
    };
    (!is_open(value)).then(|| error(message.to_owned()))?
}

/// Beginnings of symbols that patches and other trees add: EVL, Xenomai, Android, grsecurity, TuxOnIce, kernels of boards.
const FOREIGN: [&str; 18] = [
    "DEBUG_HARD_LOCKS",
    "IRQ_PIPELINE",
    "EVL",
    "DOVETAIL",
    "OOB",
    "XENO",
    "IPIPE",
    "COBALT",
    "ANDROID_",
    "GKI_",
    "GRKERNSEC",
    "PAX_",
    "TOI_",
    "BCM2",
    "SCHED_BORE",
    "SCHED_BMQ",
    "SCHED_PDS",
    "MUQSS",
];

/// Symbols that no mainline kernel has, or not the target's.
fn of_no_kernel(symbols: &[&Symbol], target: Target) -> Vec<Remark> {
    let is_foreign = |name: &str| {
        FOREIGN.iter().any(|start| name.starts_with(start))
            || KNOWN.symbol.iter().any(|known| known.name == name)
    };
    let set = symbols.iter().filter(|symbol| symbol.value.is_some() && !is_foreign(&symbol.name));
    let remarks: Vec<Remark> = set.clone().filter_map(|symbol| absent(symbol, target)).collect();
    // A whole configuration of a vendor's kernel has many that only its own sources know.
    if remarks.len() > 3 && remarks.len() * 20 > set.count() {
        let all = remarks.len();
        let first = remarks.into_iter().next();
        let message = format!("and {} more are of no mainline kernel: another tree's, not judged", all - 1);
        return first
            .map(|first| Remark::new(first.line, RemarkId::Elsewhere, Severity::Note, first.excerpt, message))
            .into_iter()
            .collect();
    }
    remarks
}

fn absent(symbol: &Symbol, target: Target) -> Option<Remark> {
    let error = |id, message: String| Remark::new(symbol.line, id, Severity::Error, shown(symbol), message);
    let is_left_out = symbol.value.as_deref() == Some("n");
    match mainline::presence(&symbol.name, target.version) {
        Presence::Present(_) => None,
        Presence::OtherVersion(_) if is_left_out => None,
        Presence::OtherVersion(only) => {
            let version = target.version.map_or_else(String::new, |version| version.to_string());
            Some(error(
                RemarkId::Gone,
                format!("Linux {only} has it, {version} does not: a merge drops it without a word"),
            ))
        }
        Presence::Absent => {
            let meant = nearest_of(&symbol.name, mainline::names());
            if is_left_out && meant.is_none() {
                return None;
            }
            let message = match meant {
                Some(meant) => format!("no kernel has such a symbol: CONFIG_{meant} is meant"),
                None => {
                    "no mainline kernel from 6.1 to 6.12 has such a symbol: a merge drops it without a word"
                        .to_owned()
                }
            };
            let value = symbol.value.as_deref().unwrap_or("y");
            let instead = meant.map(|meant| format!("CONFIG_{meant}={value}"));
            Some(error(RemarkId::Misspelt, message).perhaps_instead(instead.as_deref()))
        }
        Presence::Unknown => {
            let near = |name: &&str| is_near(name, &symbol.name);
            let known = mainline::names().any(|name| name == symbol.name);
            let meant =
                nearest_of(&symbol.name, grammar::symbols::names().filter(near)).filter(|_| !known)?;
            let message = format!("no kernel has such a symbol: CONFIG_{meant} is meant");
            Some(error(RemarkId::Misspelt, message).instead(format!("CONFIG_{meant}")))
        }
    }
}

/// What a configuration takes for a value, whatever the symbol; a reader fills in what is open.
fn is_value(value: &str) -> bool {
    let digits = value.strip_prefix("0x").or_else(|| value.strip_prefix('-')).unwrap_or(value);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_open(value) || matches!(value, "y" | "m" | "n") || value.starts_with('"') || is_number
}

/// What a reader fills in.
fn is_open(value: &str) -> bool {
    value.is_empty()
        || value.contains(['<', '$', '{', '@', '\u{2026}'])
        || value.contains("...")
        || value.len() > 1 && value.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
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

/// Symbols that are set beside others, left out, that they depend on (Kconfig of 6.1 and 6.12).
const NEEDS: [(&str, &str); 16] = [
    ("PREEMPT_RT", "EXPERT"),
    ("NO_HZ_FULL", "SMP"),
    ("CPU_ISOLATION", "SMP"),
    ("CPUSETS", "CGROUPS"),
    ("RT_GROUP_SCHED", "CGROUPS"),
    ("NUMA_BALANCING", "NUMA"),
    ("TRANSPARENT_HUGEPAGE_ALWAYS", "TRANSPARENT_HUGEPAGE"),
    ("TRANSPARENT_HUGEPAGE_MADVISE", "TRANSPARENT_HUGEPAGE"),
    ("TIMERLAT_TRACER", "FTRACE"),
    ("OSNOISE_TRACER", "FTRACE"),
    ("HWLAT_TRACER", "FTRACE"),
    ("FUNCTION_TRACER", "FTRACE"),
    ("IKCONFIG_PROC", "IKCONFIG"),
    ("INTEL_IDLE", "CPU_IDLE"),
    ("X86_INTEL_PSTATE", "CPU_FREQ"),
    ("CPU_FREQ_DEFAULT_GOV_PERFORMANCE", "CPU_FREQ"),
];

/// Symbols that depend on the absence of another (kernel/Kconfig.preempt, mm/Kconfig of 6.12).
const EXCLUDES: [(&str, &str); 3] =
    [("PREEMPT_DYNAMIC", "PREEMPT_RT"), ("TRANSPARENT_HUGEPAGE", "PREEMPT_RT"), ("SLUB_TINY", "PREEMPT_RT")];

/// CONFIG_HZ follows from the choice HZ_100 and its like.
fn frequency(symbols: &[&Symbol]) -> Option<Remark> {
    let set = |name: &str| {
        symbols
            .iter()
            .rev()
            .find(|symbol| symbol.name == name)
            .and_then(|symbol| Some((*symbol, symbol.value.clone()?)))
    };
    let (symbol, hertz) = set("HZ")?;
    let chosen = ["100", "250", "300", "1000"]
        .into_iter()
        .find(|choice| set(&format!("HZ_{choice}")).is_some_and(|(_, value)| value == "y"))?;
    (hertz != chosen).then(|| {
        let message = format!("follows from CONFIG_HZ_{chosen}=y, and is {chosen}");
        Remark::new(symbol.line, RemarkId::Contradiction, Severity::Error, shown(symbol), message)
    })
}

/// RCU_NOCB_CPU depends on RCU_EXPERT or NO_HZ_FULL (kernel/rcu/Kconfig).
fn neither(symbols: &[&Symbol]) -> Option<Remark> {
    let last = |name: &str| symbols.iter().rev().find(|symbol| symbol.name == name);
    let is =
        |name: &str, value: &str| last(name).is_some_and(|symbol| symbol.value.as_deref() == Some(value));
    let symbol = last("RCU_NOCB_CPU").filter(|_| is("RCU_NOCB_CPU", "y"))?;
    (is("RCU_EXPERT", "n") && is("NO_HZ_FULL", "n")).then(|| {
        let message = "depends on RCU_EXPERT or NO_HZ_FULL, and both are left out here: a merge drops it";
        Remark::new(symbol.line, RemarkId::Contradiction, Severity::Error, shown(symbol), message)
            .instead("CONFIG_RCU_EXPERT=y")
    })
}

fn without_need(symbols: &[&Symbol]) -> Vec<Remark> {
    let value = |name: &str| {
        symbols
            .iter()
            .rev()
            .find(|symbol| symbol.name == name)
            .map(|symbol| (*symbol, symbol.value.as_deref()))
    };
    let is_without = |(name, need): &(&str, &str)| {
        let (symbol, set) = value(name)?;
        let left_out = value(need)?.1 == Some("n");
        (set == Some("y") && left_out).then(|| {
            let message =
                format!("depends on CONFIG_{need}, which is left out here: a merge drops it without a word");
            Remark::new(symbol.line, RemarkId::Contradiction, Severity::Error, shown(symbol), message)
                .instead(format!("CONFIG_{need}=y"))
        })
    };
    let excluded = EXCLUDES.iter().filter_map(|(name, other)| {
        let (symbol, set) = value(name)?;
        let both = set == Some("y") && value(other)?.1 == Some("y");
        both.then(|| {
            let message = format!("cannot be beside CONFIG_{other}=y: one of the two is dropped");
            Remark::new(symbol.line, RemarkId::Contradiction, Severity::Error, shown(symbol), message)
        })
    });
    NEEDS.iter().filter_map(is_without).chain(excluded).chain(frequency(symbols)).collect()
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
    for choice in grammar::symbols::CHOICES {
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

/// `PREEMPT_RT=y`, with the prefix left out: all lines of the text are such, and name symbols.
pub fn without_prefix(text: &str) -> Vec<(usize, String)> {
    let lines = text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty() && !line.trim_start().starts_with('#'));
    let bare = |line: &str| {
        let (name, value) = line.trim().split_once('=')?;
        let is_symbol = name.len() > 2 && mainline::names().any(|known| known == name);
        (matches!(value, "y" | "m" | "n") && is_symbol).then(|| line.trim().to_owned())
    };
    lines.map(|(index, line)| Some((index + 1, bare(line)?))).collect::<Option<_>>().unwrap_or_default()
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
    let second =
        after.split_whitespace().skip(1).find(|word| word.starts_with("CONFIG_") || word.contains('='));
    if let Some(second) = second.filter(|_| after.starts_with('=') && !after.contains(['"', '#', '&', ';'])) {
        let message = format!(
            "a configuration has one symbol a line: `{second}` behind it is lost, and none of it belongs on a kernel command line"
        );
        return Some(Remark::new(number, RemarkId::Malformed, Severity::Error, line, message));
    }
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
