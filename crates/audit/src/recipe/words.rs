//! Kernel parameters.

use std::collections::BTreeMap;

use machine::command_line::each_counts;
use machine::grammar::{self, Kind, modules};
use machine::{CommandLine, parameters};
use units::KernelVersion;

use super::boot_rules;
use super::known::{self, KNOWN, WordKind};
use super::nearest::{nearest, nearest_of};
use super::statements::{Statement, Word};
use super::{Remark, RemarkId, Target};
use crate::Severity;

/// Bytes of a kernel command line on x86 and arm64 (COMMAND_LINE_SIZE).
const LONGEST_LINE: usize = 2048;

/// What is wrong with the words, one by one and together.
pub fn remarks(text: &str, statements: &[Statement], target: Target) -> Vec<Remark> {
    let words: Vec<&Word> = statements
        .iter()
        .filter_map(|statement| match statement {
            Statement::Word(word) => Some(word),
            _ => None,
        })
        .collect();
    let mut remarks: Vec<Remark> = words.iter().flat_map(|word| of_one(word, &words, target)).collect();
    remarks.extend(not_built(text, statements, &words));
    let mut lines: BTreeMap<usize, Vec<&Word>> = BTreeMap::new();
    for word in words.into_iter().filter(|word| word.on_command_line && !word.for_init) {
        lines.entry(word.line).or_default().push(word);
    }
    remarks.extend(lines.values().flat_map(|line| together(line, target)));
    let is_said = |of: &Remark| remarks.iter().any(|said| said.line == of.line && said.excerpt == of.excerpt);
    let by_rules = lines.values().flat_map(|line| boot_rules::remarks(line, target));
    let by_rules: Vec<Remark> = by_rules.filter(|remark| !is_said(remark)).collect();
    remarks.extend(by_rules);
    remarks
}

/// Parameters whose code a symbol of the configuration builds.
const BUILT_BY: [(&str, &str); 12] = [
    ("nohz_full", "NO_HZ_FULL"),
    ("rcu_nocbs", "RCU_NOCB_CPU"),
    ("rcu_nocb_poll", "RCU_NOCB_CPU"),
    ("isolcpus", "CPU_ISOLATION"),
    ("preempt", "PREEMPT_DYNAMIC"),
    ("threadirqs", "IRQ_FORCED_THREADING"),
    ("transparent_hugepage", "TRANSPARENT_HUGEPAGE"),
    ("hugepages", "HUGETLBFS"),
    ("psi", "PSI"),
    ("cpufreq.default_governor", "CPU_FREQ"),
    ("intel_idle.max_cstate", "INTEL_IDLE"),
    ("intel_pstate", "X86_INTEL_PSTATE"),
];

/// Parameters of code that the same text's configuration leaves out.
fn not_built(text: &str, statements: &[Statement], words: &[&Word]) -> Vec<Remark> {
    let is_off = |name: &str| {
        text.contains(&format!("without CONFIG_{name} ")) || text.contains(&format!("without CONFIG_{name}."))
            || statements.iter().any(|statement| {
            matches!(statement, Statement::Symbol(symbol) if symbol.name == name && symbol.value.as_deref() == Some("n"))
        })
    };
    let of = |word: &&Word| {
        let (_, symbol) = BUILT_BY.iter().find(|(name, _)| parameters::same(name, &word.name))?;
        is_off(symbol).then(|| {
            let message = format!("the kernel is built without {symbol}, and does not know the word");
            Remark::new(word.line, RemarkId::NoEffect, Severity::Error, shown(word), message)
        })
    };
    words.iter().filter_map(of).collect()
}

fn of_one(word: &Word, all: &[&Word], target: Target) -> Vec<Remark> {
    let mut remarks: Vec<Remark> = name(word, target).into_iter().collect();
    let value = word.value.as_deref().unwrap_or_default();
    let stands_beside =
        |text: &String| all.iter().any(|other| other.line == word.line && shown(other) == *text);
    let is_of_word = |known: &&known::Value| {
        parameters::same(&known.name, &word.name)
            && known.value == value
            && !known.unless.as_ref().is_some_and(stands_beside)
    };
    for known in KNOWN.value.iter().filter(is_of_word) {
        let id = if known.severity == Severity::Note { RemarkId::NoEffect } else { RemarkId::Dangerous };
        remarks.push(
            Remark::new(word.line, id, known.severity, shown(word), &*known.text)
                .perhaps_instead(known.instead.as_deref()),
        );
    }
    let is_meant = word.is_advised
        && !value.is_empty()
        && value.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b",-_;:".contains(&b));
    if word.on_command_line || is_meant && grammar::parameter(&word.name).is_some() {
        remarks.extend(refused(word, target));
    }
    if word.on_command_line {
        remarks.extend(members(word, value, target));
    }
    if word.name == "threadirqs" && target.preempt_rt == Some(true) {
        remarks.push(Remark::new(
            word.line,
            RemarkId::NoEffect,
            Severity::Note,
            shown(word),
            "PREEMPT_RT threads interrupts in any case",
        ));
    }
    remarks
}

/// A value that the kernel does not take, or a word that does not reach it.
fn refused(word: &Word, target: Target) -> Option<Remark> {
    let error = |id, message: String| Remark::new(word.line, id, Severity::Error, shown(word), message);
    if word.for_init {
        let is_kernels = !parameters::versions_with(&word.name).is_empty();
        let message = "stands behind --: the kernel hands it to init".to_owned();
        return is_kernels.then(|| error(RemarkId::NoEffect, message));
    }
    let Some(fault) = grammar::judge(&word.name, word.value.as_deref(), target.version) else {
        return if grammar::parameter(&word.name).is_none() { refused_by_module(word, target) } else { None };
    };
    Some(error(RemarkId::Malformed, fault.message).perhaps_instead(fault.instead.as_deref()))
}

/// Whether the kernel has such a word.
fn name(word: &Word, target: Target) -> Option<Remark> {
    let of = |id, severity, message: String| Remark::new(word.line, id, severity, shown(word), message);
    let is_of_version = |until: &Option<String>| {
        let until = until.as_ref().and_then(|until| until.parse::<KernelVersion>().ok());
        until.is_none_or(|until| target.version.is_none_or(|version| version >= until))
    };
    let mut known = KNOWN.word.iter().filter(|known| is_of_version(&known.until));
    if let Some(known) = known.find(|known| parameters::same(&known.name, &word.name)) {
        let (id, severity) = match known.kind {
            WordKind::Known => return None,
            WordKind::Elsewhere => (RemarkId::Elsewhere, Severity::Note),
            WordKind::Never => (RemarkId::Unknown, Severity::Error),
            WordKind::Gone => (RemarkId::Gone, Severity::Error),
        };
        return Some(of(id, severity, known.text.clone()).perhaps_instead(known.instead.as_deref()));
    }
    let versions = parameters::versions_with(&word.name);
    if !versions.is_empty() {
        return other_version(word, versions, target);
    }
    let is_of_module =
        word.name.split_once('.').is_some_and(|(module, name)| modules::parameter(module, name).is_some());
    if is_of_module
        || parameters::is_undocumented(&word.name)
        || word.on_command_line && grammar::parameter(&word.name).is_some()
    {
        return None;
    }
    if let Some(remark) = elsewhere(word) {
        return Some(remark);
    }
    let names = grammar::parameters().map(|parameter| parameter.name);
    let near = nearest(&word.name).or_else(|| nearest_of(&word.name, names).filter(|_| word.on_command_line));
    if let Some(nearest) = near {
        let message = format!(
            "is not known to any kernel; {nearest} is meant, and without it nothing happens: the kernel hands what it does not know to init, in silence"
        );
        return Some(of(RemarkId::Misspelt, Severity::Error, message).instead(nearest));
    }
    // A word with a dot may be a parameter of a module that the documents do not name.
    let judged = word.on_command_line
        && !word.for_init
        && parameters::reader_of(&word.name).is_none()
        && !word.name.contains('.');
    if word.name.starts_with("CONFIG_") {
        let message =
            "is a symbol of the configuration: it has no effect on a kernel command line".to_owned();
        return word.on_command_line.then(|| of(RemarkId::Unknown, Severity::Error, message));
    }
    // What the sources of both ends lack, no version between them has.
    let is_read = grammar::is_looked_at(target.version);
    let severity = if is_read { Severity::Error } else { Severity::Warning };
    judged.then(|| {
        of(
            RemarkId::Unknown,
            severity,
            "is in no kernel's document of boot parameters: the kernel hands such a word to init".to_owned(),
        )
    })
}

/// A word on a kernel command line that is a setting of something else.
fn elsewhere(word: &Word) -> Option<Remark> {
    if !word.on_command_line || word.for_init {
        return None;
    }
    let error =
        |message: String| Remark::new(word.line, RemarkId::Unknown, Severity::Error, shown(word), message);
    if let Some(name) = word.name.strip_prefix("systemd.").filter(|name| name.contains(char::is_uppercase)) {
        let small: String = name
            .chars()
            .flat_map(|c| ['_'].into_iter().filter(move |_| c.is_uppercase()).chain(c.to_lowercase()))
            .collect();
        let message =
            "systemd's words on the kernel command line have small letters: it passes over this".to_owned();
        return Some(
            error(message)
                .instead(format!("systemd.{}", small.replace("c_p_u", "cpu").trim_start_matches('_'))),
        );
    }
    let path = grammar::files::path_of(&word.name);
    let is_setting =
        grammar::settings::is_there(&path, None) == Some(true) || grammar::files::file(&path).is_some();
    if is_setting && word.name.contains('.') {
        return Some(
            error("is a setting of sysctl, which the kernel takes with sysctl. before it".to_owned())
                .instead(format!("sysctl.{}", shown(word))),
        );
    }
    let behind_dot =
        |name: &str| name.split_once('.').is_some_and(|(_, name)| parameters::same(name, &word.name));
    if let Some(parameter) = grammar::parameters().find(|parameter| behind_dot(parameter.name)) {
        return Some(
            error(format!("is a parameter of a module: {} is meant", parameter.name)).instead(parameter.name),
        );
    }
    let is_file = |path: &str| path.rsplit_once('/').is_some_and(|(_, name)| name == word.name);
    if let Some(file) = grammar::files::files().find(|file| is_file(file.path) && word.name.len() > 6) {
        return Some(error(format!("is no kernel parameter: {} is a file", file.path)));
    }
    of_module(word)
}

/// A word with a module's name before its dot that is none of the module's parameters.
fn of_module(word: &Word) -> Option<Remark> {
    let (module, name) = word.name.split_once('.')?;
    let known = modules::parameters(module)?;
    if modules::parameter(module, name).is_some() {
        return None;
    }
    let names: Vec<&str> = known.iter().map(|parameter| parameter.name).collect();
    let meant = nearest_of(name, names.iter().copied());
    let message = match (meant, names.len()) {
        (Some(meant), _) => format!("{module} has no such parameter: {module}.{meant} is meant"),
        (None, 0) => format!("{module} has no parameters: nothing happens"),
        (None, 1..=8) => format!("{module} has no such parameter: it has {}", names.join(", ")),
        _ => format!("{module} has no such parameter"),
    };
    Some(
        Remark::new(word.line, RemarkId::Unknown, Severity::Error, shown(word), message)
            .perhaps_instead(meant.map(|meant| format!("{module}.{meant}")).as_deref()),
    )
}

/// A value for a parameter of a module whose type it does not have; a version that does not have the parameter.
fn refused_by_module(word: &Word, target: Target) -> Option<Remark> {
    let (module, name) = word.name.split_once('.')?;
    let parameter = modules::parameter(module, name)?;
    let error = |id, message: String| Some(Remark::new(word.line, id, Severity::Error, shown(word), message));
    if parameter.is_of(target.version) == Some(false) {
        let version = target.version.map_or_else(String::new, |version| version.to_string());
        return error(RemarkId::Gone, format!("{module} of {version} has no such parameter"));
    }
    let value = word.value.as_deref();
    let is_list = value.is_some_and(|value| value.contains(','));
    let fault = parameter.kind.fault(value, target.version).filter(|_| !is_list)?;
    error(RemarkId::Malformed, format!("{}; the kernel refuses it", fault.message))
}

/// The word is documented, but perhaps not for the target.
fn other_version(word: &Word, versions: &[KernelVersion], target: Target) -> Option<Remark> {
    let version = target.version?;
    let (oldest, newest) = (versions.first()?, versions.last()?);
    if *oldest > parameters::VERSIONS[0] && version <= parameters::VERSIONS[0] {
        let message = format!("is documented from {oldest} on, not for {}", parameters::VERSIONS[0]);
        return Some(Remark::new(word.line, RemarkId::Unknown, Severity::Error, shown(word), message));
    }
    let last = parameters::VERSIONS[parameters::VERSIONS.len() - 1];
    (*newest < last && version >= last).then(|| {
        Remark::new(
            word.line,
            RemarkId::Gone,
            Severity::Warning,
            shown(word),
            format!("is documented up to {newest}, not for {last} any more"),
        )
    })
}

/// CPUs that the target does not have, and lists that suppose how it numbers them.
fn members(word: &Word, value: &str, target: Target) -> Vec<Remark> {
    let is_list = grammar::parameter(&word.name)
        .is_some_and(|known| matches!(known.kind, Kind::Cpus { .. } | Kind::FlaggedCpus(_)));
    let text = behind_flags(value);
    let last = target.processors.map(|processors| processors.saturating_sub(1));
    let known = grammar::cpu_list(text, None, target.version).ok().filter(|_| is_list);
    let Some(list) = known else { return Vec::new() };
    let is_isolcpus = parameters::same(&word.name, "isolcpus");
    let takes_cpus_away = is_isolcpus || parameters::same(&word.name, "nohz_full");
    let error = |id, message: String| Remark::new(word.line, id, Severity::Error, shown(word), message);
    let mut remarks = Vec::new();
    if let Some(last) = last.filter(|_| !text.contains(['N', 'l'])) {
        if let Some(beyond) = list.iter().find(|cpu| cpu.0 > last) {
            let message = format!("CPU {beyond} does not exist here: the last is {last}");
            remarks.push(error(RemarkId::Malformed, message));
        } else if list.len() == last as usize + 1 && takes_cpus_away {
            remarks.push(error(RemarkId::Dangerous, "leaves no CPU for everything else".to_owned()));
        }
    }
    if is_isolcpus && supposes_siblings(text) {
        let message = "two stretches of the same length suppose that hyperthreads are numbered after all cores; they are not on every machine";
        remarks.push(
            Remark::new(word.line, RemarkId::Assumption, Severity::Note, shown(word), message)
                .instead("read /sys/devices/system/cpu/cpu*/topology/thread_siblings_list"),
        );
    }
    remarks
}

fn behind_flags(value: &str) -> &str {
    let mut rest = value;
    while rest.starts_with(|c: char| c.is_ascii_lowercase()) && !rest.starts_with("all") {
        rest = rest.split_once(',').map_or("", |(_, rest)| rest);
    }
    rest
}

/// `0-3,8-11`: two ranges of one length with a gap between.
fn supposes_siblings(list: &str) -> bool {
    let ranges: Vec<(u32, u32)> = list
        .split(',')
        .filter_map(|range| {
            let (from, to) = range.split_once('-')?;
            Some((from.parse().ok()?, to.parse().ok()?))
        })
        .collect();
    match ranges.as_slice() {
        [(a, b), (c, d)] => list.matches(',').count() == 1 && a < b && b < c && b - a == d.wrapping_sub(*c),
        _ => false,
    }
}

/// Words of one kernel command line that do not go together.
fn together(words: &[&Word], target: Target) -> Vec<Remark> {
    let mut remarks = duplicates(words);
    remarks.extend(parted(words));
    let line = CommandLine {
        words: words
            .iter()
            .map(|word| machine::command_line::Word { name: word.name.clone(), value: word.value.clone() })
            .collect(),
        for_init: Vec::new(),
    };
    for misfit in grammar::together(&line, target.version) {
        let Some(word) = words.get(misfit.place) else { continue };
        remarks.push(Remark::new(
            word.line,
            RemarkId::Contradiction,
            Severity::Error,
            shown(word),
            misfit.fault.message,
        ));
    }
    remarks.extend(differing(words, target));
    let length: usize = words.iter().map(|word| shown(word).len() + 1).sum();
    if let Some(first) = words.first().filter(|_| length > LONGEST_LINE) {
        let message = format!("the line is {length} bytes long: x86 and arm64 cut it at {LONGEST_LINE}");
        remarks.push(Remark::new(first.line, RemarkId::Malformed, Severity::Error, shown(first), message));
    }
    remarks
}

/// Lists of one line that are hardly meant to differ.
fn differing(words: &[&Word], target: Target) -> Vec<Remark> {
    let list = |name: &str| {
        let word = words.iter().rev().find(|word| parameters::same(&word.name, name))?;
        let cpus = grammar::cpu_list(behind_flags(word.value.as_deref()?), None, target.version).ok()?;
        Some((*word, cpus))
    };
    let (isolated, tickless, offloaded) = (list("isolcpus"), list("nohz_full"), list("rcu_nocbs"));
    let mut remarks = Vec::new();
    if let (Some((word, isolated)), Some((other, tickless))) = (&isolated, &tickless) {
        if isolated != tickless {
            let message = format!("isolates {isolated}, but {} stops the tick on {tickless}", shown(other));
            remarks.push(
                Remark::new(word.line, RemarkId::Contradiction, Severity::Note, shown(word), message)
                    .instead("the same CPUs in both"),
            );
        }
    }
    let apart = isolated.or(tickless);
    if let (Some((word, apart)), Some((rcu_nocbs, cpus))) = (apart, offloaded) {
        if !cpus.is_empty() && cpus.intersection(&apart).is_empty() {
            let message = format!(
                "offloads the callbacks of {cpus}, not those of the CPUs that {} sets apart",
                shown(word)
            );
            remarks.push(Remark::new(
                rcu_nocbs.line,
                RemarkId::Contradiction,
                Severity::Error,
                shown(rcu_nocbs),
                message,
            ));
        }
    }
    remarks
}

/// `isolcpus=2, 3`: a blank ends the value, and init gets the rest.
fn parted(words: &[&Word]) -> Option<Remark> {
    let is_rest = |word: &Word| {
        word.value.is_none() && word.name.bytes().all(|byte| byte.is_ascii_digit() || b",-".contains(&byte))
    };
    let is_list = |word: &Word| {
        grammar::parameter(&word.name)
            .is_some_and(|known| matches!(known.kind, Kind::Cpus { .. } | Kind::FlaggedCpus(_)))
    };
    let pair = words.windows(2).find(|pair| is_list(pair[0]) && is_rest(pair[1]))?;
    let message = format!("a blank ends the list: {} is a word of its own, for init", pair[1].name);
    Some(Remark::new(pair[0].line, RemarkId::Malformed, Severity::Error, shown(pair[0]), message))
}

fn duplicates(words: &[&Word]) -> Vec<Remark> {
    let mut remarks = Vec::new();
    for (index, word) in words.iter().enumerate() {
        let before = words[..index]
            .iter()
            .find(|before| parameters::same(&before.name, &word.name) && !each_counts(&word.name));
        if let Some(before) = before.filter(|before| before.value != word.value) {
            let message =
                format!("stands beside {}: which of the two counts depends on the word", shown(before));
            remarks.push(Remark::new(
                word.line,
                RemarkId::Duplicate,
                Severity::Warning,
                shown(word),
                message,
            ));
        }
    }
    remarks
}

fn shown(word: &Word) -> String {
    let text =
        word.value.as_ref().map_or_else(|| word.name.clone(), |value| format!("{}={value}", word.name));
    if text.chars().count() <= 60 { text } else { text.chars().take(59).chain(['\u{2026}']).collect() }
}
