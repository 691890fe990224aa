//! Facts whose name says how they are read.

use record::Fact;
use rustix::io::Errno;
use units::{CpuId, CpuList};

use super::{COMMAND_LINE, Item, Reading, Survey, Value, next_boot};
use machine::kernel_config::Setting;
use sysroot::SysRoot;
use sysroot::parsed;

/// What stands before a name's colon, with what stands behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind<'a> {
    Config(&'a str),
    ConfigOn(&'a str),
    Boot(&'a str),
    Requested(&'a str),
    BootAny(&'a str),
    File(&'a str),
    Choice(&'a str),
    Cpus(&'a str),
    Each(&'a str),
    Sysctl(&'a str),
    Path(&'a str),
    Modules(&'a str),
}

/// The kind of a name; none if it is not of that form.
pub(super) fn of(name: &str) -> Option<Kind<'_>> {
    let (kind, rest) = name.split_once(':')?;
    let is_path = rest.starts_with('/') && rest.len() > 1;
    let is_pattern = is_path && (rest.contains('*') || rest.contains(ISOLATED));
    let is_word = !rest.is_empty() && !rest.contains(|c: char| c.is_whitespace() || c == '=');
    let is_list = is_word && rest.split(',').all(|word| !word.is_empty());
    let is_symbol = |text: &str| {
        text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') && !text.starts_with("CONFIG_")
    };
    match kind {
        "config" if is_word && is_symbol(rest) => Some(Kind::Config(rest)),
        "config-on" if is_list && rest.split(',').all(is_symbol) => Some(Kind::ConfigOn(rest)),
        "boot-any" if is_list => Some(Kind::BootAny(rest)),
        "modules" if is_list && !rest.contains('/') => Some(Kind::Modules(rest)),
        "path" if is_path && !is_pattern => Some(Kind::Path(rest)),
        "boot" if is_word => Some(Kind::Boot(rest)),
        "requested" if is_word => Some(Kind::Requested(rest)),
        "file" if is_path && !is_pattern => Some(Kind::File(rest)),
        "choice" if is_path && !is_pattern => Some(Kind::Choice(rest)),
        "cpus" if is_path && !is_pattern => Some(Kind::Cpus(rest)),
        "each" if is_pattern => Some(Kind::Each(rest)),
        "sysctl" if is_word && !rest.contains('/') => Some(Kind::Sysctl(rest)),
        _ => None,
    }
}

/// Reads a fact of a kind.
pub(super) fn read(survey: &Survey, kind: Kind<'_>) -> Reading {
    match kind {
        Kind::Config(symbol) => config(survey, symbol),
        Kind::ConfigOn(symbols) => config_on(survey, symbols),
        Kind::BootAny(words) => boot_any(survey, words),
        Kind::Modules(names) => modules(&survey.root, names),
        Kind::Path(path) => Reading::new(presence(&survey.root, path), &[path]),
        Kind::Boot(word) => boot(survey, word),
        Kind::Requested(word) => next_boot::requested(survey, word),
        Kind::File(path) => Reading::new(file(&survey.root, path), &[path]),
        Kind::Choice(path) => Reading::new(choice(&survey.root, path), &[path]),
        Kind::Cpus(path) => Reading::new(cpus(&survey.root, path), &[path]),
        Kind::Each(pattern) => each(survey, pattern),
        Kind::Sysctl(name) => {
            let path = format!("/proc/sys/{}", name.replace('.', "/"));
            Reading::new(file(&survey.root, &path), &[&path])
        }
    }
}

fn config(survey: &Survey, symbol: &str) -> Reading {
    let configuration = survey.configuration();
    let setting = configuration.config.value().map(|config| config.get(symbol));
    let value = match setting {
        Some(Some(setting)) => Fact::Value(of_setting(setting)),
        Some(None) => Fact::Absent,
        None => lost(&configuration.config),
    };
    let from = configuration.from.iter().map(|path| format!("CONFIG_{symbol} in {path}"));
    Reading { value, from: from.collect() }
}

fn of_setting(setting: &Setting) -> Value {
    match setting {
        Setting::Number(number) => Value::Number(*number),
        Setting::Text(text) => Value::Text(text.clone()),
        other => Value::Text(other.to_string()),
    }
}

fn boot(survey: &Survey, word: &str) -> Reading {
    let line = survey.command_line();
    let (value, times) = match line {
        Fact::Value(line) => (
            line.value(word).map_or(Fact::Absent, |text| Fact::Value(number_or_text(text))),
            line.all(word).count(),
        ),
        other => (lost(other), 0),
    };
    let from = match times {
        0 | 1 => COMMAND_LINE.to_owned(),
        _ => format!("{COMMAND_LINE}, which has {word} {times} times"),
    };
    Reading { value, from: vec![from] }
}

/// The symbols that are built in or modules.
fn config_on(survey: &Survey, symbols: &str) -> Reading {
    let configuration = survey.configuration();
    let on = |symbol: &str| {
        configuration.has(symbol).then(|| Item { name: symbol.to_owned(), value: "y".to_owned() })
    };
    let value = match &configuration.config {
        Fact::Value(_) => Fact::Value(Value::List(symbols.split(',').filter_map(on).collect())),
        other => lost(other),
    };
    Reading { value, from: configuration.from.clone() }
}

/// The words that are given, each with its value.
fn boot_any(survey: &Survey, words: &str) -> Reading {
    let value = match survey.command_line() {
        Fact::Value(line) => {
            let given = words.split(',').filter_map(|word| Some((word, line.value(word)?)));
            Fact::Value(given.map(|(word, value)| Item { name: word.to_owned(), value }).collect::<Vec<_>>())
        }
        other => lost(other),
    };
    Reading::new(value, &[COMMAND_LINE])
}

/// The modules that are loaded, or built in with parameters.
fn modules(root: &SysRoot, names: &str) -> Reading {
    let is_there = |name: &&str| root.exists(&format!("{MODULES}/{}", name.replace('-', "_")));
    let answers = names.split(',').map(|name| is_there(&name).map(|()| name));
    let value = match root.exists(MODULES) {
        Fact::Value(()) => {
            let loaded = answers.filter_map(|answer| answer.value().copied());
            Fact::Value(
                loaded.map(|name| Item { name: name.to_owned(), value: "loaded".into() }).collect::<Vec<_>>(),
            )
        }
        other => lost(&other),
    };
    Reading::new(value, &[MODULES])
}

/// One directory a module (Documentation/ABI/stable/sysfs-module).
const MODULES: &str = "/sys/module";

/// Whether there is something at a path.
fn presence(root: &SysRoot, path: &str) -> Fact<bool> {
    match root.exists(path) {
        Fact::Absent => Fact::Value(false),
        there => there.map(|()| true),
    }
}

/// The state of a fact without a value.
pub(super) fn lost<T, U>(fact: &Fact<T>) -> Fact<U> {
    match fact {
        Fact::Value(_) | Fact::Unsupported => Fact::Unsupported,
        Fact::Absent => Fact::Absent,
        Fact::Unreadable(errno) => Fact::Unreadable(*errno),
    }
}

/// A driver that has no answer says so by these: the thing is not supported rather than hidden.
pub(super) fn supported<T>(fact: Fact<T>) -> Fact<T> {
    let without = [Errno::NODEV, Errno::INVAL, Errno::NXIO, Errno::OPNOTSUPP].map(Errno::raw_os_error);
    match fact {
        Fact::Unreadable(errno) if without.contains(&errno) => Fact::Unsupported,
        fact => fact,
    }
}

/// A file's text with one blank for each run of them, or its number.
pub(super) fn file(root: &SysRoot, path: &str) -> Fact<Value> {
    supported(root.read(path)).map(number_or_text)
}

/// A number only where it would be printed as the text is: `007` and `1e3` stay texts.
pub(super) fn number_or_text(text: String) -> Value {
    match text.parse::<i64>() {
        Ok(number) if number.to_string() == text => Value::Number(number),
        _ => {
            Value::Text(text.split(['\t', ' ']).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" "))
        }
    }
}

/// The word in brackets or parentheses.
pub(super) fn choice(root: &SysRoot, path: &str) -> Fact<String> {
    supported(root.read(path)).and_then(|text| parsed(chosen(&text).ok_or(())))
}

/// The word in brackets or parentheses of a text such as `always [madvise] never`.
pub fn chosen(text: &str) -> Option<String> {
    let between =
        |open, close| text.split_once(open)?.1.split_once(close).map(|(word, _)| word.trim().to_owned());
    between('[', ']').or_else(|| between('(', ')')).filter(|word: &String| !word.is_empty())
}

/// A set of CPUs as the kernel prints it in that file.
pub(super) fn cpus(root: &SysRoot, path: &str) -> Fact<CpuList> {
    if is_mask(path) {
        supported(root.read(path)).and_then(|text| parsed(CpuList::from_mask(&text).ok_or(())))
    } else {
        supported(root.cpu_list(path))
    }
}

/// Files in which the kernel prints a mask; elsewhere it prints lists.
const MASKS: [&str; 19] = [
    "smp_affinity",
    "default_smp_affinity",
    "affinity_hint",
    "effective_affinity",
    "rps_cpus",
    "xps_cpus",
    "rps_default_mask",
    "tracing_cpumask",
    "thread_siblings",
    "core_siblings",
    "core_cpus",
    "cluster_cpus",
    "die_cpus",
    "package_cpus",
    "book_siblings",
    "drawer_siblings",
    "shared_cpu_map",
    "cpumap",
    "prof_cpu_mask",
];

/// Whether the kernel prints CPUs as a mask in the file of that name, and takes them so.
pub fn is_mask(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    MASKS.contains(&name) || (path.contains("/workqueue/") && name.starts_with("cpumask"))
}

/// What stands for the number of each isolated CPU.
const ISOLATED: &str = "{isolated}";

/// No pattern gives more files: a machine with more has other worries.
const MOST_FILES: usize = 100_000;

fn each(survey: &Survey, pattern: &str) -> Reading {
    let patterns: Vec<String> = if pattern.contains(ISOLATED) {
        survey.isolated.iter().map(|CpuId(cpu)| pattern.replace(ISOLATED, &cpu.to_string())).collect()
    } else {
        vec![pattern.to_owned()]
    };
    let value = match matching(&survey.root, &patterns) {
        Ok(paths) => items(&survey.root, paths),
        Err(errno) => Fact::Unreadable(errno),
    };
    Reading::new(value, &[pattern])
}

/// One item a file that has a value. One that is hidden hides them all: it might be the one that matters.
fn items(root: &SysRoot, paths: Vec<String>) -> Fact<Vec<Item>> {
    let mut items = Vec::new();
    for path in paths {
        match supported(root.read(&path)) {
            Fact::Value(text) => items.push(Item { name: path, value: text }),
            Fact::Absent | Fact::Unsupported => {}
            Fact::Unreadable(errno) => return Fact::Unreadable(errno),
        }
    }
    if items.is_empty() { Fact::Absent } else { Fact::Value(items) }
}

/// The paths that fit, in the order of their names: `*` stands for any part of one name.
///
/// # Errors
/// The errno of a directory that cannot be listed.
pub fn matching(root: &SysRoot, patterns: &[String]) -> Result<Vec<String>, i32> {
    let mut found = Vec::new();
    for pattern in patterns {
        let mut paths = vec![String::new()];
        for part in pattern.split('/').filter(|part| !part.is_empty()) {
            let mut longer = Vec::new();
            for path in &paths {
                longer.extend(one_deeper(root, path, part)?);
            }
            longer.truncate(MOST_FILES);
            paths = longer;
        }
        found.extend(paths);
    }
    Ok(found)
}

fn one_deeper(root: &SysRoot, directory: &str, part: &str) -> Result<Vec<String>, i32> {
    let Some((start, end)) = part.split_once('*') else { return Ok(vec![format!("{directory}/{part}")]) };
    let fits = |name: &&String| {
        name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
    };
    match root.list(directory) {
        Fact::Value(names) => {
            let mut names: Vec<&String> = names.iter().filter(fits).collect();
            names.sort_by_cached_key(|name| by_number(name));
            Ok(names.into_iter().map(|name| format!("{directory}/{name}")).collect())
        }
        Fact::Absent | Fact::Unsupported => Ok(Vec::new()),
        Fact::Unreadable(errno) => Err(errno),
    }
}

/// So that `cpu10` comes after `cpu2`.
fn by_number(name: &str) -> (String, u64) {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    (stem.to_owned(), name[stem.len()..].parse().unwrap_or(0))
}
