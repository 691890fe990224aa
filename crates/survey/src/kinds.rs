//! Facts whose name says how they are read.

use machine::kernel_config::Setting;
use record::Fact;
use sysroot::SysRoot;
use units::CpuId;

use crate::files::{choice, cpus, file, matching, number_or_text, supported};
use crate::next_boot;
use crate::survey::{COMMAND_LINE, Survey};
use crate::switches::Switch;
use crate::value::{Item, Reading, Value, lost};

/// What stands before a name's colon, with what stands behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind<'a> {
    Config(&'a str),
    ConfigOn(&'a str),
    Switch(Switch<'a>),
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
        "switch" if is_word => Switch::of(rest).filter(|switch| is_symbol(switch.symbol())).map(Kind::Switch),
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
        Kind::Switch(switch) => switch.read(survey),
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
            let path = machine::taken::file_of_sysctl(name);
            Reading::new(file(&survey.root, &path), &[&path])
        }
    }
}

fn config(survey: &Survey, symbol: &str) -> Reading {
    let configuration = survey.configuration();
    let setting = configuration.config.value().map(|config| config.get(symbol));
    let value = match setting {
        Some(Some(setting)) => Fact::Value(of_setting(setting)),
        Some(None) if survey.lacks(symbol) => Fact::Absent,
        Some(None) => Fact::Unsupported,
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
        Fact::Value(config) => {
            let list: Vec<Item> = symbols.split(',').filter_map(on).collect();
            let is_known = |symbol: &str| config.get(symbol).is_some() || survey.lacks(symbol);
            // One that is on fails the others with it; none of several is off before all are known.
            let is_open = list.is_empty() && !symbols.split(',').all(is_known);
            if is_open { Fact::Unsupported } else { Fact::Value(Value::List(list)) }
        }
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

/// What stands for the number of each isolated CPU.
const ISOLATED: &str = "{isolated}";

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
