//! Kernel parameters.

use std::collections::BTreeMap;

use machine::parameters;
use units::{CpuList, KernelVersion};

use super::known::{KNOWN, WordKind};
use super::nearest::nearest;
use super::statements::{Statement, Word};
use super::{Remark, RemarkId, Target};
use crate::Severity;

/// Words that may stand several times.
const REPEATABLE: [&str; 10] = [
    "console",
    "earlycon",
    "hugepages",
    "hugepagesz",
    "memmap",
    "mem",
    "cgroup_disable",
    "modprobe.blacklist",
    "module_blacklist",
    "systemd.mask",
];

/// Words whose value ends in a CPU list, perhaps behind flags.
const LISTS: [&str; 6] =
    ["isolcpus", "nohz_full", "rcu_nocbs", "irqaffinity", "workqueue.unbound_cpus", "evl.oob_cpus"];

/// The flags that isolcpus has (kernel/sched/isolation.c).
const FLAGS: [&str; 3] = ["nohz", "domain", "managed_irq"];

/// Bytes of a kernel command line on x86 and arm64 (COMMAND_LINE_SIZE).
const LONGEST_LINE: usize = 2048;

/// What is wrong with the words, one by one and together.
pub fn remarks(statements: &[Statement], target: Target) -> Vec<Remark> {
    let words: Vec<&Word> = statements
        .iter()
        .filter_map(|statement| match statement {
            Statement::Word(word) => Some(word),
            _ => None,
        })
        .collect();
    let mut remarks: Vec<Remark> = words.iter().flat_map(|word| of_one(word, target)).collect();
    let mut lines: BTreeMap<usize, Vec<&Word>> = BTreeMap::new();
    for word in words.into_iter().filter(|word| word.on_command_line) {
        lines.entry(word.line).or_default().push(word);
    }
    remarks.extend(lines.values().flat_map(|line| together(line)));
    remarks
}

fn of_one(word: &Word, target: Target) -> Vec<Remark> {
    let mut remarks: Vec<Remark> = name(word, target).into_iter().collect();
    let value = word.value.as_deref().unwrap_or_default();
    for known in
        KNOWN.value.iter().filter(|known| parameters::same(&known.name, &word.name) && known.value == value)
    {
        let id = if known.severity == Severity::Note { RemarkId::NoEffect } else { RemarkId::Dangerous };
        remarks.push(
            Remark::new(word.line, id, known.severity, shown(word), &*known.text)
                .perhaps_instead(known.instead.as_deref()),
        );
    }
    if LISTS.iter().any(|list| parameters::same(list, &word.name)) && !is_placeholder(value) {
        remarks.extend(list(word, value, target));
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

/// `<list>`, `LIST`, `${CPUS}`: a reader fills it in.
fn is_placeholder(value: &str) -> bool {
    value.starts_with(['<', '$', '{'])
        || value.chars().all(|c| c.is_ascii_uppercase() || c == '_') && !value.is_empty()
}

/// Whether the kernel has such a word.
fn name(word: &Word, target: Target) -> Option<Remark> {
    let of = |id, severity, message: String| Remark::new(word.line, id, severity, shown(word), message);
    if let Some(known) = KNOWN.word.iter().find(|known| parameters::same(&known.name, &word.name)) {
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
    if let Some(nearest) = nearest(&word.name) {
        let message = format!(
            "is not known to any kernel; {nearest} is meant, and without it nothing happens: the kernel hands what it does not know to init, in silence"
        );
        return Some(of(RemarkId::Misspelt, Severity::Error, message).instead(nearest));
    }
    // A word with a dot may be a parameter of a module that the documents do not name.
    let judged =
        word.on_command_line && parameters::reader_of(&word.name).is_none() && !word.name.contains('.');
    judged.then(|| {
        of(
            RemarkId::Unknown,
            Severity::Warning,
            "is in no kernel's document of boot parameters: the kernel hands such a word to init".to_owned(),
        )
    })
}

/// The word is documented, but perhaps not for the target.
fn other_version(word: &Word, versions: &[KernelVersion], target: Target) -> Option<Remark> {
    let version = target.version?;
    let (oldest, newest) = (versions.first()?, versions.last()?);
    if *oldest > parameters::VERSIONS[0] && version <= parameters::VERSIONS[0] {
        let message = format!("is documented from {oldest} on, not for {}", parameters::VERSIONS[0]);
        return Some(Remark::new(word.line, RemarkId::Unknown, Severity::Warning, shown(word), message));
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

/// The flags and the list of CPUs.
fn list(word: &Word, value: &str, target: Target) -> Vec<Remark> {
    let malformed = |message: String| {
        vec![Remark::new(word.line, RemarkId::Malformed, Severity::Error, shown(word), message)]
    };
    let (flags, cpus) = flags_and_list(value);
    let is_isolcpus = parameters::same(&word.name, "isolcpus");
    if let Some(flag) = flags.iter().find(|flag| !is_isolcpus || !FLAGS.contains(flag)) {
        let hint = if is_isolcpus {
            format!(
                "`{flag}` is no flag of isolcpus ({}): the kernel skips it, and what it was to do is not done",
                FLAGS.join(", ")
            )
        } else {
            format!("`{flag}` is no CPU")
        };
        return malformed(hint);
    }
    if cpus == "all" || (cpus.is_empty() && word.name == "rcu_nocbs") {
        return Vec::new();
    }
    match cpus.parse::<CpuList>() {
        Err(error) => malformed(format!("{error}: the kernel drops the whole word")),
        Ok(list) if list.is_empty() => malformed("names no CPU".to_owned()),
        Ok(list) => members(word, &cpus, &list, is_isolcpus, target),
    }
}

fn flags_and_list(value: &str) -> (Vec<&str>, String) {
    let (flags, cpus): (Vec<&str>, Vec<&str>) = value.split(',').partition(|part| {
        part.starts_with(|c: char| c.is_ascii_alphabetic()) && *part != "all" && *part != "N"
    });
    (flags, cpus.join(","))
}

fn members(word: &Word, text: &str, list: &CpuList, is_isolcpus: bool, target: Target) -> Vec<Remark> {
    let mut remarks = Vec::new();
    if let Some(processors) = target.processors {
        if let Some(beyond) = list.iter().find(|cpu| cpu.0 >= processors) {
            let message =
                format!("CPU {beyond} does not exist here: the last is {}", processors.saturating_sub(1));
            remarks.push(Remark::new(word.line, RemarkId::Malformed, Severity::Error, shown(word), message));
        } else if list.len() == processors as usize && is_isolcpus {
            remarks.push(Remark::new(
                word.line,
                RemarkId::Dangerous,
                Severity::Error,
                shown(word),
                "leaves no CPU for everything else",
            ));
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
fn together(words: &[&Word]) -> Vec<Remark> {
    let mut remarks = duplicates(words);
    let list = |name: &str| {
        words.iter().find(|word| parameters::same(&word.name, name)).and_then(|word| {
            let cpus = flags_and_list(word.value.as_deref()?).1;
            Some((*word, cpus.parse::<CpuList>().ok()?))
        })
    };
    let (isolated, tickless, offloaded, interrupts) =
        (list("isolcpus"), list("nohz_full"), list("rcu_nocbs"), list("irqaffinity"));
    if let (Some((isolcpus, isolated)), Some((nohz_full, tickless))) = (&isolated, &tickless) {
        if isolated != tickless {
            let message =
                format!("isolates {isolated}, but {} stops the tick on {tickless}", shown(nohz_full));
            remarks.push(
                Remark::new(
                    isolcpus.line,
                    RemarkId::Contradiction,
                    Severity::Warning,
                    shown(isolcpus),
                    message,
                )
                .instead("the same CPUs in both"),
            );
        }
    }
    let isolated = isolated.or_else(|| tickless.clone());
    if let Some((word, isolated)) = &isolated {
        if let Some((irqaffinity, _)) =
            interrupts.filter(|(_, cpus)| cpus.iter().any(|cpu| isolated.contains(cpu)))
        {
            remarks.push(
                Remark::new(
                    irqaffinity.line,
                    RemarkId::Contradiction,
                    Severity::Error,
                    shown(irqaffinity),
                    format!("sends interrupts to CPUs that {} sets apart", shown(word)),
                )
                .instead("the CPUs that are left"),
            );
        }
        if let Some((rcu_nocbs, cpus)) =
            offloaded.filter(|(_, cpus)| !cpus.iter().any(|cpu| isolated.contains(cpu)))
        {
            remarks.push(Remark::new(
                rcu_nocbs.line,
                RemarkId::Contradiction,
                Severity::Error,
                shown(rcu_nocbs),
                format!(
                    "offloads the callbacks of {cpus}, not those of the CPUs that {} sets apart",
                    shown(word)
                ),
            ));
        }
    }
    let length: usize = words.iter().map(|word| shown(word).len() + 1).sum();
    if let Some(first) = words.first().filter(|_| length > LONGEST_LINE) {
        remarks.push(Remark::new(
            first.line,
            RemarkId::Malformed,
            Severity::Error,
            shown(first),
            format!("the line is {length} bytes long: x86 and arm64 cut it at {LONGEST_LINE}"),
        ));
    }
    remarks
}

fn duplicates(words: &[&Word]) -> Vec<Remark> {
    let mut remarks = Vec::new();
    for (index, word) in words.iter().enumerate() {
        let before = words[..index].iter().find(|before| {
            parameters::same(&before.name, &word.name) && !REPEATABLE.contains(&word.name.as_str())
        });
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
