//! What a machine would read, found among what a person reads.

use machine::parameters;

use super::known::KNOWN;
use super::nearest::nearest;

/// One thing that a recipe says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Statement {
    /// A word for the kernel command line.
    Word(Word),
    /// A line or mention of the kernel's configuration.
    Symbol(Symbol),
    /// A setting of /proc/sys.
    Sysctl { line: usize, name: String, value: String },
    /// A command for a shell.
    Command { line: usize, words: Vec<String> },
}

/// A word for the kernel command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    pub line: usize,
    pub name: String,
    pub value: Option<String>,
    /// Whether it stands on a kernel command line, all of whose words are meant for the kernel; else it was met in prose.
    pub on_command_line: bool,
}

/// A symbol of the kernel's configuration, without `CONFIG_`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    pub line: usize,
    pub name: String,
    /// `y`, `m`, `n` or a value; none where it is only mentioned.
    pub value: Option<String>,
}

/// All statements, by line.
pub fn find(text: &str) -> Vec<Statement> {
    text.lines().enumerate().flat_map(|(index, line)| of_line(index + 1, line)).collect()
}

fn of_line(number: usize, line: &str) -> Vec<Statement> {
    let line = without_bullet(line);
    if let Some(symbol) = symbol_line(number, line) {
        return vec![Statement::Symbol(symbol)];
    }
    if let Some(words) = command_line(line) {
        return words.iter().map(|word| Statement::Word(parameter(number, word, true))).collect();
    }
    if let Some((name, value)) = sysctl_line(line) {
        return vec![Statement::Sysctl { line: number, name, value }];
    }
    let mut statements: Vec<Statement> = command(number, line).into_iter().collect();
    statements.extend(mentions(number, line));
    statements
}

fn without_bullet(line: &str) -> &str {
    line.trim().trim_start_matches(['\u{2022}', '*']).trim_start()
}

/// `CONFIG_X=y` or `# CONFIG_X is not set`, whatever follows.
fn symbol_line(number: usize, line: &str) -> Option<Symbol> {
    if let Some(rest) = line.strip_prefix("# CONFIG_").or_else(|| line.strip_prefix("#CONFIG_")) {
        let name = symbol_name(rest);
        return rest[name.len()..].trim_start().starts_with("is not set").then(|| Symbol {
            line: number,
            name: name.to_owned(),
            value: Some("n".to_owned()),
        });
    }
    let rest = line.strip_prefix("CONFIG_")?;
    let name = symbol_name(rest);
    let value = rest[name.len()..].strip_prefix('=')?;
    let value = value.split([' ', '\t']).next().unwrap_or(value);
    (!name.is_empty()).then(|| Symbol { line: number, name: name.to_owned(), value: Some(value.to_owned()) })
}

fn symbol_name(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    &text[..end]
}

/// The words of a kernel command line, in whatever wrapping.
fn command_line(line: &str) -> Option<Vec<String>> {
    let assignments = ["GRUB_CMDLINE_LINUX_DEFAULT", "GRUB_CMDLINE_LINUX", "GRUB_CMDLINE_XEN_DEFAULT"];
    let after_assignment = assignments.iter().find_map(|name| {
        let rest = line.trim_start_matches("export ").strip_prefix(name)?;
        rest.strip_prefix("+=").or_else(|| rest.strip_prefix('='))
    });
    let lowercase = line.to_ascii_lowercase();
    let after = |prefix: &str| lowercase.starts_with(prefix).then(|| line.get(prefix.len()..)).flatten();
    let after_bootargs = || {
        let from = line.find("setenv bootargs")? + "setenv bootargs".len();
        line.get(from..)
    };
    let rest = after_assignment
        .or_else(after_bootargs)
        .or_else(|| after("append "))
        .or_else(|| after("options "))
        .or_else(|| line.find("--args=").and_then(|at| line.get(at + 7..)))
        .or_else(|| {
            line.trim_start_matches(['#', ' '])
                .starts_with("BOOT_IMAGE=")
                .then(|| line.trim_start_matches(['#', ' ']))
        })
        .or_else(|| all_are_parameters(line).then_some(line))?;
    Some(split(rest))
}

/// A line of parameters and nothing else, as in cmdline.txt: most of its words are documented, one has a value.
fn all_are_parameters(line: &str) -> bool {
    let words = split(line);
    let known = words.iter().filter(|word| is_known(name_of(word))).count();
    line.contains('=') && !words.is_empty() && known * 2 > words.len()
}

fn is_known(name: &str) -> bool {
    !parameters::versions_with(name).is_empty()
        || KNOWN.word.iter().any(|word| parameters::same(&word.name, name))
        || parameters::reader_of(name).is_some()
}

/// At blanks outside quotes; quotes of any shape around a whole word or line are taken off.
fn split(text: &str) -> Vec<String> {
    let text = text.trim().trim_matches(is_quote);
    let (mut words, mut word, mut quoted) = (Vec::new(), String::new(), false);
    for c in text.chars() {
        match c {
            '"' => quoted = !quoted,
            c if c.is_whitespace() && !quoted => words.push(std::mem::take(&mut word)),
            c => word.push(c),
        }
    }
    words.push(word);
    words.retain(|word| word.chars().any(|c| c.is_ascii_alphanumeric()));
    words
}

fn is_quote(c: char) -> bool {
    matches!(c, '"' | '\'' | '\u{2018}'..='\u{201f}')
}

fn name_of(word: &str) -> &str {
    word.split('=').next().unwrap_or(word)
}

fn parameter(line: usize, word: &str, on_command_line: bool) -> Word {
    let (name, value) = match word.split_once('=') {
        Some((name, value)) => (name, Some(value.to_owned())),
        None => (word, None),
    };
    Word { line, name: name.to_owned(), value, on_command_line }
}

/// `kernel.sched_rt_runtime_us = -1`, also behind `sysctl -w`.
fn sysctl_line(line: &str) -> Option<(String, String)> {
    let line = line
        .trim_start_matches(['$', '#', ' '])
        .trim_start_matches("sudo ")
        .trim_start_matches("sysctl ")
        .trim_start_matches("-w ");
    let (name, value) = line.split_once('=')?;
    let (name, value) = (name.trim(), value.trim().trim_matches(is_quote));
    let branch = name.split(['.', '/']).next()?;
    let is_setting =
        ["kernel", "vm", "net", "fs", "dev", "user"].contains(&branch) && name.len() > branch.len();
    let one_word = !name.contains(char::is_whitespace) && !value.is_empty();
    (is_setting && one_word).then(|| (name.replace('/', "."), value.to_owned()))
}

/// A line behind a prompt, or one that begins with a program that these recipes use.
fn command(number: usize, line: &str) -> Option<Statement> {
    const PROGRAMS: [&str; 16] = [
        "echo",
        "stress",
        "stress-ng",
        "cyclictest",
        "latmus",
        "chrt",
        "taskset",
        "systemctl",
        "hwlatdetect",
        "mpstat",
        "pidstat",
        "vmstat",
        "ping",
        "cat",
        "setenv",
        "fw_setenv",
    ];
    let bare = line.trim_start_matches("~ ").trim_start_matches(['$', '#']).trim_start();
    let words: Vec<String> = bare.trim_start_matches("sudo ").split_whitespace().map(str::to_owned).collect();
    let program = words.first()?.rsplit('/').next()?.to_owned();
    (line.starts_with("$ ") || PROGRAMS.contains(&program.as_str()))
        .then_some(Statement::Command { line: number, words })
}

/// Parameters with a value and symbols that are met in prose.
fn mentions(number: usize, line: &str) -> Vec<Statement> {
    let mentioned = |word: &str| -> Option<Statement> {
        let word = word.trim_matches(|c: char| is_quote(c) || "()[]{},.;:!?".contains(c));
        if let Some(rest) = word.strip_prefix("CONFIG_") {
            let name = symbol_name(rest);
            let value = rest[name.len()..].strip_prefix('=').map(str::to_owned);
            return (!name.is_empty())
                .then(|| Statement::Symbol(Symbol { line: number, name: name.to_owned(), value }));
        }
        let word = parameter(number, word, false);
        let looks_like_one = word.value.is_some() && (is_known(&word.name) || nearest(&word.name).is_some());
        looks_like_one.then_some(Statement::Word(word))
    };
    line.split_whitespace().filter_map(mentioned).collect()
}
