//! What a machine would read, found among what a person reads.

use machine::{grammar, parameters};

use super::commands;
use super::known::KNOWN;
use super::loaders;
use super::nearest::nearest;
use super::prose;

/// A value for a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    pub line: usize,
    /// An absolute path.
    pub path: String,
    pub value: String,
    /// As the recipe says it.
    pub shown: String,
}

/// One thing that a recipe says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Statement {
    /// A word for the kernel command line.
    Word(Word),
    /// A line or mention of the kernel's configuration.
    Symbol(Symbol),
    /// A setting of /proc/sys.
    Sysctl { line: usize, name: String, value: String },
    /// A value for a file of the kernel.
    Write(Write),
    /// A command for a shell.
    Command { line: usize, words: Vec<String> },
}

impl Statement {
    /// Its line, from 1.
    pub fn line(&self) -> usize {
        match self {
            Self::Word(word) => word.line,
            Self::Symbol(symbol) => symbol.line,
            Self::Write(write) => write.line,
            Self::Sysctl { line, .. } | Self::Command { line, .. } => *line,
        }
    }

    /// Whether it is a command.
    pub fn is_command(&self) -> bool {
        matches!(self, Self::Command { .. })
    }

    /// Its line, from 1.
    pub fn line_mut(&mut self) -> &mut usize {
        match self {
            Self::Word(word) => &mut word.line,
            Self::Symbol(symbol) => &mut symbol.line,
            Self::Write(write) => &mut write.line,
            Self::Sysctl { line, .. } | Self::Command { line, .. } => line,
        }
    }
}

/// A word for the kernel command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    pub line: usize,
    pub name: String,
    pub value: Option<String>,
    /// Whether it stands on a kernel command line, all of whose words are meant for the kernel; else it was met in prose.
    pub on_command_line: bool,
    /// Whether it stands behind `--`, so that init gets it.
    pub for_init: bool,
    /// Whether a sentence that it was met in advises it.
    pub is_advised: bool,
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
    let mut found = Vec::new();
    let (mut continues, mut is_command) = (false, false);
    for (index, line) in text.lines().enumerate() {
        // What follows a command's backslash is its arguments, which are judged with it.
        if !(continues && is_command) {
            let statements = of_line(index + 1, line);
            is_command = matches!(statements.as_slice(), [Statement::Command { .. }]);
            found.extend(statements);
        }
        continues = line.ends_with('\\');
    }
    found
}

fn of_line(number: usize, line: &str) -> Vec<Statement> {
    let line = without_bullet(line);
    if let Some(symbol) = symbol_line(number, line) {
        return vec![Statement::Symbol(symbol)];
    }
    if let Some(text) = command_line(line) {
        return command_words(number, text);
    }
    if let Some((name, value)) = sysctl_line(line) {
        return vec![Statement::Sysctl { line: number, name, value }];
    }
    match command(number, line) {
        Some(command) => vec![command],
        None => mentions(number, line),
    }
}

fn without_bullet(line: &str) -> &str {
    loaders::without_prompt(line.trim().trim_start_matches(['\u{2022}', '*']).trim_start())
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

/// Settings of sysctl that the kernel makes before init runs, since 5.8 (fs/proc/proc_sysctl.c).
const SETTING: &str = "sysctl.";

/// The words of a kernel command line; those behind `--` are init's. Variables of a shell or a boot loader are left out.
pub fn command_words(line: usize, text: &str) -> Vec<Statement> {
    let words = split(&without_variables(text));
    let dashes = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let of = |(place, word): (usize, &String)| {
        let word = parameter(line, word, true);
        let setting = word.name.strip_prefix(SETTING).zip(word.value.as_ref());
        match setting.filter(|_| place < dashes) {
            Some((name, value)) => Statement::Sysctl { line, name: name.to_owned(), value: value.clone() },
            None => Statement::Word(Word { for_init: place > dashes, ..word }),
        }
    };
    words
        .iter()
        .enumerate()
        .filter(|(place, word)| *place != dashes && !word.starts_with('$'))
        .map(of)
        .collect()
}

/// Without `${name:+...}` and `${name}` where a word begins with it: a boot loader or a shell puts whole words there.
fn without_variables(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let begins = rest[..at]
            .chars()
            .next_back()
            .or(kept.chars().next_back())
            .is_none_or(|c| c.is_whitespace() || is_quote(c));
        let mut depth = 0;
        let end = rest[at..].char_indices().find(|(_, c)| {
            depth += i32::from(*c == '{') - i32::from(*c == '}');
            *c == '}' && depth == 0
        });
        let Some((end, _)) = end else { break };
        let upto = at + end + 1;
        kept += &rest[..if begins { at } else { upto }];
        if begins {
            kept.push(' ');
        }
        rest = &rest[upto..];
    }
    kept + rest
}

/// The kernel command line on a line, in whatever wrapping.
fn command_line(line: &str) -> Option<&str> {
    let line = line.strip_prefix("export ").unwrap_or(line);
    if let Some(text) = assigned(line).or_else(|| listed(line)).or_else(|| assigned_in_sentence(line)) {
        return Some(text);
    }
    let behind = |mark: &str| line.find(mark).and_then(|at| line.get(at + mark.len()..));
    let first = line.split_whitespace().next()?.to_ascii_lowercase();
    let rest = line.get(first.len()..).map(str::trim);
    match first.as_str() {
        "setenv" | "fw_setenv" => return behind("bootargs ").map(up_to_command),
        // A variable of U-Boot with commands in it, as printenv shows it.
        word if word.ends_with("=setenv") => return behind("setenv bootargs ").map(up_to_command),
        "options" | "append" if rest?.contains('=') && !prose::introduces(line) => return rest,
        // The kernel's file stands before its words.
        "linux" | "linuxefi" | "linux16" | "kernel" if rest?.starts_with(['/', '(', '$']) => {
            return Some(rest?.split_once(char::is_whitespace).map_or("", |(_, words)| words));
        }
        _ => {}
    }
    behind("Kernel command line:")
        .or_else(|| line.starts_with("BOOT_IMAGE=").then_some(line))
        .or_else(|| all_are_parameters(line).then_some(line))
}

/// `NAME="words"` of files that hold a kernel command line; `+=`, `:append` and blanks as their formats have them.
fn assigned(line: &str) -> Option<&str> {
    const NAMES: [&str; 10] = [
        "GRUB_CMDLINE_LINUX_DEFAULT",
        "GRUB_CMDLINE_LINUX",
        "GRUB_CMDLINE_XEN_DEFAULT",
        "APPEND",
        "CMDLINE",
        "KERNEL_CMDLINE",
        "bootargs",
        // armbianEnv.txt, and uEnv.txt of BeagleBoard.org
        "extraargs",
        "optargs",
        "cmdline",
    ];
    let rest = NAMES.iter().find_map(|name| {
        let rest = line.strip_prefix(name)?;
        Some(rest.strip_prefix(":append").unwrap_or(rest).trim_start())
    })?;
    let value = rest
        .strip_prefix("+=")
        .or_else(|| rest.strip_prefix("?="))
        .or_else(|| rest.strip_prefix('='))?
        .trim();
    let value = value.trim_end_matches(';');
    // A comment or another command may follow the closing quote.
    let quoted = value.strip_prefix('"').and_then(|inner| Some(&inner[..inner.rfind('"')?]));
    Some(quoted.unwrap_or(value))
}

/// What stands before a `;` outside quotes: U-Boot's next command.
fn up_to_command(text: &str) -> &str {
    let mut quoted = None;
    for (at, c) in text.char_indices() {
        match (quoted, c) {
            (None, ';') => return &text[..at],
            (None, '"' | '\'') => quoted = Some(c),
            (Some(quote), c) if c == quote => quoted = None,
            _ => {}
        }
    }
    text
}

/// A line of parameters and nothing else, as in cmdline.txt: at least half of its words are documented.
fn all_are_parameters(line: &str) -> bool {
    let words = split(line);
    let known = words.iter().filter(|word| is_known(name_of(word))).count();
    let is_valued = line.contains('=') && !line.contains(" = ");
    let is_certain = |word: &String| grammar::parameter(word).is_some() || word.contains('_');
    let all_bare = known == words.len() && words.iter().any(is_certain);
    !words.is_empty()
        && (is_valued && known * 2 >= words.len() && known > 0 || is_valued && is_meant(&words) || all_bare)
}

/// Variables of U-Boot beside bootargs, in files of its environment.
const U_BOOT: [&str; 9] =
    ["bootdelay", "bootcmd", "bootfile", "baudrate", "ethaddr", "ipaddr", "serverip", "loadaddr", "fdtfile"];

/// One word that is nearly a parameter with a value that such a parameter has.
fn is_meant(words: &[String]) -> bool {
    let is_lowercase = |word: &String| !name_of(word).chars().any(char::is_uppercase);
    words.len() <= 3
        && words
            .iter()
            .all(|word| is_lowercase(word) && (is_nearly_known(name_of(word)) || is_known(name_of(word))))
}

fn is_nearly_known(name: &str) -> bool {
    nearest(name).is_some() && !U_BOOT.contains(&name)
}

fn is_known(name: &str) -> bool {
    !parameters::versions_with(name).is_empty()
        || grammar::parameter(name).is_some()
        || KNOWN.word.iter().any(|word| parameters::same(&word.name, name))
        || parameters::reader_of(name).is_some()
        || parameters::is_undocumented(name)
        || name.starts_with(SETTING)
}

/// `KernelArgs: "words"` of TripleO, `boot.kernelParams = [ "word" ]` of NixOS.
fn listed(line: &str) -> Option<&str> {
    if let Some(list) = line.strip_prefix("boot.kernelParams").and_then(|rest| rest.split_once('[')) {
        return Some(list.1.split(']').next().unwrap_or_default().trim());
    }
    let value = line.trim_start_matches("- ").strip_prefix("KernelArgs:")?.trim();
    Some(value.trim_matches(['"', '\'']))
}

/// `Set GRUB_CMDLINE_LINUX_DEFAULT="words" and reboot`.
fn assigned_in_sentence(line: &str) -> Option<&str> {
    let at = line
        .find("GRUB_CMDLINE_LINUX")
        .filter(|at| *at > 0 && !line.starts_with(['#', '/']) && !line.contains(['|', '>']))?;
    let is_sentence =
        line[..at].chars().all(|c| c.is_alphanumeric() || " .,:()-".contains(c)) && prose::advises(line);
    let (_, value) = line[at..].split_once("=\"").filter(|_| is_sentence)?;
    value.split_once('"').map(|(value, _)| value)
}

/// At blanks outside quotes; quotes of any shape around a whole word or line are taken off.
fn split(text: &str) -> Vec<String> {
    let text = text.trim();
    // A list of quoted words, as NixOS has them, is not one quoted line.
    let text = if text.contains("\" \"") { text } else { text.trim_matches(is_quote) };
    let (mut words, mut word, mut quoted) = (Vec::new(), String::new(), false);
    for c in text.chars() {
        match c {
            '"' => quoted = !quoted,
            c if c.is_whitespace() && !quoted => words.push(std::mem::take(&mut word)),
            c => word.push(c),
        }
    }
    words.push(word);
    words.retain(|word| word == "--" || word.chars().any(|c| c.is_ascii_alphanumeric()));
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
    Word { line, name: name.to_owned(), value, on_command_line, for_init: false, is_advised: false }
}

/// `kernel.sched_rt_runtime_us = -1` of sysctl.d(5): a dash before it ignores errors.
fn sysctl_line(line: &str) -> Option<(String, String)> {
    let line = line.strip_prefix('-').unwrap_or(line);
    let (name, value) = line.split_once('=')?;
    let (name, value) = (name.trim(), value.trim().trim_matches(is_quote));
    let branch = name.split(['.', '/']).next()?;
    let is_setting =
        ["kernel", "vm", "net", "fs", "dev", "user"].contains(&branch) && name.len() > branch.len();
    let one_word = !name.contains(char::is_whitespace) && !value.is_empty();
    (is_setting && one_word).then(|| (name.to_owned(), value.to_owned()))
}

/// A line behind a prompt, or one that begins with a program that these recipes use.
fn command(number: usize, line: &str) -> Option<Statement> {
    commands::words(line).map(|words| Statement::Command { line: number, words })
}

/// What a page names between backticks outside its code blocks.
pub fn spans(text: &str) -> Vec<Statement> {
    let mut fenced = false;
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            let is_read =
                |span: &str| span.contains(' ') && (is_command(span) || span.starts_with("options "));
            let pieces: Vec<&str> = line.split('`').collect();
            for at in
                (1..pieces.len()).step_by(2).filter(|at| !pieces[*at].is_empty() && !is_read(pieces[*at]))
            {
                let after = pieces.get(at + 1).copied().unwrap_or_default();
                let is_advised = prose::advises_between(&pieces[..at].concat(), after);
                found.extend(in_sentence(index + 1, pieces[at], is_advised));
            }
            found.extend(bare_words(line).into_iter().flat_map(|span| command_words(index + 1, span)));
            found.extend(booted(line).into_iter().flat_map(|span| command_words(index + 1, span)));
        }
    }
    found
}

/// Words without a value that a sentence puts on the kernel command line.
fn bare_words(line: &str) -> Vec<&str> {
    let lower = line.to_lowercase();
    let is_of_line =
        ["cmdline", "kernel line", "command line", "boot with", "kernel parameter", "boot parameter"]
            .iter()
            .any(|sign| lower.contains(sign));
    let is_bare = |span: &str| {
        grammar::parameter(span).is_some()
            || !parameters::versions_with(span).is_empty() && span.starts_with("no")
    };
    let pieces: Vec<&str> = line.split('`').collect();
    let spans = (1..pieces.len()).step_by(2).filter(|at| is_of_line && is_bare(pieces[*at]));
    spans.filter(|at| prose::advises(&pieces[..*at].concat())).map(|at| pieces[at]).collect()
}

/// What a sentence says to boot with, where not all of it is known to be for the kernel.
fn booted(line: &str) -> Option<&str> {
    let (before, rest) = line.split_once("boot with `")?;
    let (words, _) = rest.split_once('`')?;
    let is_setting = |word: &str| word.contains('=') && !is_known(name_of(word));
    let is_plain = !words.contains(['<', '$', '{', '/', '\u{2026}']) && !words.contains("...");
    (is_plain && words.split_whitespace().any(is_setting) && prose::advises(before)).then_some(words)
}

/// Commands with arguments that sentences of a page advise, between backticks: the line, the sentence without them, the command.
pub fn commands_in_sentences(text: &str) -> Vec<(usize, String, &str)> {
    let mut fenced = false;
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        fenced ^= line.trim_start().starts_with("```");
        if fenced || line.contains("```") || line.matches('`').count() % 2 == 1 || !prose::advises(line) {
            continue;
        }
        let words: Vec<&str> = line.split('`').step_by(2).collect();
        let spans = line.split('`').skip(1).step_by(2);
        let is_entry = |span: &str| span.starts_with("options ");
        let commands = spans.filter(|span| span.trim().contains(' ') && (is_command(span) || is_entry(span)));
        found.extend(commands.map(|command| (index + 1, words.join(" "), command)));
    }
    found
}

/// Words for the kernel behind a sentence's colon, or between backticks in it.
fn words_of_sentence(line: &str) -> Option<&str> {
    let spans = line.split('`').skip(1).step_by(2).filter(|_| line.matches('`').count() % 2 == 0);
    let mut found = prose::behind_colon(line).into_iter().chain(spans);
    found.find(|words| is_line_of_words(words))
}

/// Words that are parameters, each of those with a value a known one, and nothing that the reader is to replace.
fn is_line_of_words(words: &str) -> bool {
    let is_valued = words.split_whitespace().all(|word| !word.contains('=') || is_known(name_of(word)));
    let is_sentence = ["boot with ", "add ", "append ", "pass ", "use ", "set "]
        .iter()
        .any(|begin| words.to_lowercase().trim_start().starts_with(begin));
    let is_whole =
        !is_sentence && !words.contains(['<', '$', '{', '/', '\u{2026}']) && !words.contains("...");
    words.contains('=') && is_valued && is_whole && all_are_parameters(words)
}

/// Whether a text begins as a command.
pub fn is_command(text: &str) -> bool {
    commands::words(text).is_some()
}

/// Whether a text is a command, or parameters of the kernel and nothing else.
pub fn is_code(text: &str) -> bool {
    let is_setting = sysctl_line(text).is_some_and(|(_, value)| !value.contains(char::is_whitespace));
    is_command(text) || is_only_parameters(text) || is_assignment(text) || is_setting
}

/// `NAME=VALUE` of a file that a shell sources.
fn is_assignment(text: &str) -> bool {
    let setting = text.split_once('=').filter(|_| !text.contains(char::is_whitespace));
    setting.is_some_and(|(name, value)| super::placed::assigned(name, value).is_some())
}

/// Parameters with values, flags that are no English words, and the rest of a list that a blank has torn off.
fn is_only_parameters(text: &str) -> bool {
    let is_rest = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit() || b",-".contains(&byte));
    let is_flag = |word: &str| {
        grammar::parameter(word).is_some()
            && (word.starts_with("no") || word.contains('_') || word.ends_with("irqs"))
    };
    let is_valued = |word: &str| {
        word.contains('=') && is_known(name_of(word)) && !word.starts_with(|c: char| c.is_ascii_uppercase())
    };
    let words: Vec<&str> = text.split_whitespace().collect();
    let first = words.first().is_some_and(|word| is_valued(word) || is_flag(word));
    first && words.iter().all(|word| is_valued(word) || is_flag(word) || is_rest(word))
}

/// Parameters with a value and symbols that are met in prose.
fn mentions(number: usize, line: &str) -> Vec<Statement> {
    in_sentence(number, words_of_sentence(line).unwrap_or(line), prose::advises(line))
}

fn in_sentence(number: usize, line: &str, is_advised: bool) -> Vec<Statement> {
    if is_advised && is_line_of_words(line) {
        return command_words(number, line);
    }
    let is_of_line = line.split_whitespace().any(|word| word.contains('=') && is_known(name_of(word)));
    let mentioned = |word: &str| -> Option<Statement> {
        let word = word.trim_matches(|c: char| is_quote(c) || "()[]{},.;:!?".contains(c));
        if let Some(rest) = word.strip_prefix("CONFIG_") {
            let name = symbol_name(rest);
            let value = rest[name.len()..].strip_prefix('=').map(str::to_owned);
            return (!name.is_empty())
                .then(|| Statement::Symbol(Symbol { line: number, name: name.to_owned(), value }));
        }
        let word = Word { is_advised, ..parameter(number, word, false) };
        // In capitals it is a variable of the reader's own.
        let is_plain =
            word.name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(c));
        let looks_like_one =
            word.value.is_some() && is_plain && (is_known(&word.name) || is_nearly_known(&word.name));
        // A slip beside a parameter: `rcu_nocbs=2-3 and rcu_nocbs_poll`.
        let is_slip = is_advised
            && is_of_line
            && word.value.is_none()
            && is_plain
            && word.name.contains('_')
            && is_nearly_known(&word.name);
        let is_whole = is_advised && line == word.name;
        let is_no_word = is_whole
            && KNOWN.word.iter().any(|known| known.name == word.name && known.kind.is_of_no_kernel());
        (looks_like_one || is_slip || is_no_word).then_some(Statement::Word(word))
    };
    line.split_whitespace().filter_map(mentioned).collect()
}
