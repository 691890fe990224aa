//! What is wrong with a pasted recipe: a kernel command line, a GRUB file, U-Boot commands, a list of sysctls, a fragment of a
//! kernel configuration, shell commands, or a whole page with all of them.
//!
//! [`forms`] reads files of other programs as those read them, [`markdown`] takes pages apart, [`script`] takes shell scripts
//! apart, and [`statements`] finds the rest line by line. [`words`], [`writes`], [`symbols`], [`programs`], [`shell`] and
//! [`typography`] judge what was found. What they know is data: the tables of `machine::grammar` and `machine::parameters`,
//! `keys.txt` and `known.toml`. A text of which nothing was read is not understood, and never passes.

mod administration;
mod aims;
mod boot_rules;
mod claims;
mod code;
mod commands;
mod containers;
mod context;
mod ethtool;
mod forms;
mod ideas;
mod intent;
mod keys;
mod known;
mod loaders;
mod markdown;
mod measuring;
mod nearest;
mod placed;
mod places;
mod programs;
mod prose;
mod quantities;
mod reading;
mod said;
mod script;
mod sentence;
mod services;
mod shell;
mod statements;
mod symbols;
mod tools;
mod typography;
mod words;
mod writes;

use std::collections::BTreeSet;

use machine::grammar::files;
use serde::Serialize;
use units::{InOrder, KernelVersion};

use crate::Severity;
use reading::Reading;
use statements::Statement;

/// For which kernel a recipe is judged.
#[derive(Clone, Copy, Debug, Default)]
pub struct Target {
    /// Its version; the newest that the tables know if none is given.
    pub version: Option<KernelVersion>,
    /// Whether it is PREEMPT_RT, if that is known.
    pub preempt_rt: Option<bool>,
    /// The CPUs that the machine has, if it is known.
    pub processors: Option<u32>,
}

/// What is wrong, as a stable name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RemarkId {
    /// Quotes, dashes or other characters that a typesetter put in a machine's place.
    Typography,
    /// A name that is nearly one that exists.
    Misspelt,
    /// A name that the kernel does not have and never had.
    Unknown,
    /// A name that the kernel has no more.
    Gone,
    /// A name that only another kernel has.
    Elsewhere,
    /// A name or value without the effect that one hopes for.
    NoEffect,
    /// Two statements that cannot both be meant.
    Contradiction,
    /// The same name twice.
    Duplicate,
    /// A list, mask or value that is not well formed.
    Malformed,
    /// A CPU's number where a mask belongs, or the other way round.
    MaskNotNumber,
    /// What can take the machine or its safety away.
    Dangerous,
    /// Something that holds on some machines only.
    Assumption,
    /// An option that the program does not have.
    NoSuchOption,
    /// Too little for what is to be shown.
    TooShort,
    /// A line that a merge of configurations passes over.
    NotMerged,
    /// A mistaken idea of what something does.
    MistakenIdea,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Remark {
    /// The line, from 1.
    pub line: usize,
    /// What kind.
    pub id: RemarkId,
    /// How bad.
    pub severity: Severity,
    /// The words that it is about.
    pub excerpt: String,
    /// What is wrong with them.
    pub message: String,
    /// What to write in their place.
    pub instead: Option<String>,
}

impl Remark {
    fn new(
        line: usize,
        id: RemarkId,
        severity: Severity,
        excerpt: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self { line, id, severity, excerpt: excerpt.into(), message: message.into(), instead: None }
    }

    /// An error about the beginning of a line.
    fn error(line: usize, id: RemarkId, shown: &str, message: impl Into<String>) -> Self {
        Self::new(line, id, Severity::Error, shown.trim().chars().take(60).collect::<String>(), message)
    }

    fn instead(mut self, instead: impl Into<String>) -> Self {
        self.instead = Some(instead.into());
        self
    }

    fn perhaps_instead(mut self, instead: Option<&str>) -> Self {
        self.instead = instead.map(str::to_owned);
        self
    }
}

/// Something that a machine would read, of which nothing is known here.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct NotJudged {
    /// The line, from 1.
    pub line: usize,
    /// Its beginning.
    pub excerpt: String,
}

/// What was looked at, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Examination {
    /// How many words of kernel command lines were found.
    pub parameters: usize,
    /// How many symbols of a kernel configuration.
    pub symbols: usize,
    /// How many settings of /proc/sys.
    pub sysctls: usize,
    /// How many commands.
    pub commands: usize,
    /// How many settings of other programs' files.
    pub settings: usize,
    /// How many settings of known files no table has.
    pub unknown: usize,
    /// What the machine would read and no table has: neither right nor wrong.
    pub not_judged: Vec<NotJudged>,
    /// What is wrong, by line.
    pub remarks: Vec<Remark>,
}

impl Examination {
    /// Whether anything was found that a machine would read, and nothing of it is unknown.
    pub fn is_understood(&self) -> bool {
        self.unknown == 0 && self.parameters + self.symbols + self.sysctls + self.commands + self.settings > 0
    }
}

/// Looks through `text`. Never fails: what is not understood is not judged.
pub fn examine(text: &str, target: Target) -> Examination {
    let target = Target { processors: target.processors.or_else(|| said::processors(text)), ..target };
    let Reading { statements, mut remarks, settings, unknown } = read(text, target);
    remarks.extend(claims::remarks(text));
    remarks.extend(context::of_whole(text));
    remarks.extend(ideas::remarks(text, target));
    remarks.extend(words::remarks(text, &statements, target));
    let is_known = |remarks: &[Remark], beyond: &Remark| {
        remarks.iter().any(|known| known.line == beyond.line && known.id == beyond.id)
    };
    for beyond in target.processors.map(|processors| quantities::beyond(text, processors)).unwrap_or_default()
    {
        if !is_known(&remarks, &beyond) {
            remarks.push(beyond);
        }
    }
    remarks.extend(symbols::remarks(&statements, target));
    remarks.extend(writes::together(&statements));
    let writes = statements.iter().filter_map(|statement| shell::remark(statement, target));
    let has_mask = |remarks: &[Remark], line| {
        remarks.iter().any(|known| {
            known.line == line && known.id == RemarkId::MaskNotNumber && known.severity == Severity::Error
        })
    };
    for remark in writes.collect::<Vec<_>>() {
        if remark.id != RemarkId::MaskNotNumber || !has_mask(&remarks, remark.line) {
            remarks.push(remark);
        }
    }
    // Of two remarks about the same words the graver one stays.
    remarks
        .order_by(|a, b| (a.line, a.id, &a.excerpt, b.severity).cmp(&(b.line, b.id, &b.excerpt, a.severity)));
    remarks.dedup_by(|a, b| (a.id, &a.excerpt, a.line) == (b.id, &b.excerpt, b.line));
    let (statements, not_judged) = known(text, statements, &remarks, target);
    let count =
        |wanted: fn(&Statement) -> bool| statements.iter().filter(|statement| wanted(statement)).count();
    let commands = commands_alone(&statements);
    Examination {
        parameters: count(|statement| matches!(statement, Statement::Word(_))),
        symbols: count(|statement| matches!(statement, Statement::Symbol(_))),
        sysctls: count(|statement| matches!(statement, Statement::Sysctl { .. })),
        commands,
        settings,
        unknown,
        not_judged,
        remarks,
    }
}

/// The statements of which something is known here, and what the others are. What there is a remark about is known.
fn known(
    text: &str,
    statements: Vec<Statement>,
    remarks: &[Remark],
    target: Target,
) -> (Vec<Statement>, Vec<NotJudged>) {
    let remarked: BTreeSet<usize> = remarks.iter().map(|remark| remark.line).collect();
    let is_known =
        |statement: &Statement| remarked.contains(&statement.line()) || has_table(statement, target);
    let (known, others): (Vec<_>, Vec<_>) = statements.into_iter().partition(is_known);
    let lines_of = |all: &[Statement]| -> BTreeSet<usize> { all.iter().map(Statement::line).collect() };
    let (commands, settings): (Vec<_>, Vec<_>) = others.into_iter().partition(Statement::is_command);
    let set: BTreeSet<usize> = known.iter().filter(|one| !one.is_command()).map(Statement::line).collect();
    // Where what a line sets is known, the command that sets it need not be.
    let unknown = lines_of(&commands).difference(&set).copied().collect::<BTreeSet<_>>();
    let lost: BTreeSet<usize> = lines_of(&settings).union(&unknown).copied().collect();
    let lines: Vec<&str> = text.lines().collect();
    let excerpt = |line: usize| lines.get(line.saturating_sub(1)).copied().unwrap_or_default();
    let shown = |line: usize| excerpt(line).trim().chars().take(60).collect();
    let not_judged = lost.iter().map(|&line| NotJudged { line, excerpt: shown(line) }).collect();
    // A command is known that only makes a write of which nothing is.
    let known = known.into_iter().filter(|one| !one.is_command() || !lost.contains(&one.line())).collect();
    (known, not_judged)
}

/// Whether a table has it. Of words and symbols all names are known: others are remarked on.
fn has_table(statement: &Statement, target: Target) -> bool {
    match statement {
        Statement::Word(_) | Statement::Symbol(_) => true,
        Statement::Write(write) => writes::is_known(&write.path, target),
        Statement::Sysctl { name, .. } => writes::is_known(&files::path_of(name), target),
        Statement::Command { words, .. } => commands::is_known(words),
    }
}

/// How many commands there are that are not counted by what they set already.
fn commands_alone(statements: &[Statement]) -> usize {
    let is_counted = |one: &&Statement| !matches!(one, Statement::Command { .. } | Statement::Write(_));
    let others: BTreeSet<usize> = statements.iter().filter(is_counted).map(Statement::line).collect();
    statements.iter().filter(|one| one.is_command() && !others.contains(&one.line())).count()
}

/// What a text says: a file of a known format, a page with code in it, or lines of any sort.
fn read(text: &str, target: Target) -> Reading {
    let form = forms::read(text, target);
    let inside = inline(text, target);
    if form.is_none() && !markdown::is_page(text) && inside.settings + inside.statements.len() > 0 {
        return inside;
    }
    if places::files(text).len() > 1 && !markdown::is_page(text) {
        return file(text, target);
    }
    if form.is_some() || !markdown::is_page(text) {
        return judged(text, form, target);
    }
    let mut reading = Reading { remarks: typography::remarks(text), ..Reading::default() };
    let blocks = markdown::code(text);
    reading.remarks.extend(intent::elsewhere(text, text, target));
    for block in &blocks {
        reading.add(in_context(text, block, target));
    }
    for paragraph in markdown::paragraphs(text) {
        if forms::read(&paragraph.text, target).is_some() {
            reading.add(in_context(text, &paragraph, target));
        }
    }
    reading.add(assigned_in_sentences(text));
    reading.add(inline(text, target));
    for (index, line) in text.lines().enumerate().filter(|(_, line)| prose::advises(line)) {
        for span in line.split('`').skip(1).step_by(2).filter(|span| span.contains(' ')) {
            if forms::read(span, target).is_some() {
                let sentence: String = line.split('`').step_by(2).collect();
                reading.add(file(&format!("# {sentence}\n{span}"), target).at(index + 1));
            }
        }
    }
    reading.statements.extend(statements::spans(text));
    for (line, sentence, command) in statements::commands_in_sentences(text) {
        reading.add(file(&format!("# {sentence}\n{command}"), target).at(line));
    }
    reading
}

/// A part of a page, below comments that say what the lines above it do.
fn in_context(page: &str, part: &markdown::Code, target: Target) -> Reading {
    let above = context_of(page, part.line);
    let whole = file(&format!("{above}{}", part.text), target);
    whole.moved(part.line.saturating_sub(1)).raised(above.lines().count(), part.line)
}

/// Contents of files that sentences give behind their paths.
fn inline(text: &str, target: Target) -> Reading {
    let mut reading = Reading::default();
    for (index, line) in text.lines().enumerate() {
        let Some((path, content)) = places::inline(line) else { continue };
        let whole = format!("# {path}\n{content}\n");
        if forms::read(&whole, target).is_some() {
            reading.add(file(&whole, target).at(index + 1));
        }
    }
    reading
}

/// Assignments of files that shells source, between the backticks of sentences that advise them.
fn assigned_in_sentences(text: &str) -> Reading {
    let mut reading = Reading::default();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| prose::advises(line)) {
        for span in line.split('`').skip(1).step_by(2).filter(|span| !span.contains(char::is_whitespace)) {
            let Some((name, value)) = span.split_once('=') else { continue };
            let value = value.trim_matches(['"', '\'']);
            if name.starts_with(|c: char| c.is_ascii_uppercase()) && keys::is_known("systemd", name) {
                reading.settings += 1;
                reading.remarks.extend(keys::value_remark(index + 1, "systemd", name, value));
            }
            let Some(fault) = placed::assigned(name, value) else { continue };
            reading.settings += 1;
            let error = |message| Remark::error(index + 1, RemarkId::Malformed, span, message);
            reading.remarks.extend(fault.map(error));
        }
    }
    reading
}

/// Comments that say of a page's block what the lines above it do: the sentence that introduces it, else the heading, and the path
/// of the file that it is.
fn context_of(text: &str, first: usize) -> String {
    let above: Vec<&str> = text.lines().take(first.saturating_sub(1)).collect();
    let near = || {
        above.iter().rev().map(|line| line.trim()).filter(|line| !line.is_empty() && !line.starts_with("```"))
    };
    let mut context = String::new();
    let last = near().next().unwrap_or_default();
    let mut path = last.split([' ', '`', '"']).map(|word| word.trim_end_matches([':', ',', '.']));
    let path = path.rfind(|word| word.starts_with("/etc/") || word.starts_with("/boot/"));
    if prose::introduces(last) && last.split_whitespace().count() > 2 {
        context += &format!("# {last}\n");
    } else if let Some(heading) =
        near().take(3).find(|line| line.starts_with("# ") || line.starts_with("## "))
    {
        context += &format!("# {}\n", heading.trim_start_matches(['#', ' ']));
    }
    if let Some(path) = path.filter(|path| path.matches('/').count() > 1) {
        context += &format!("# {path}\n");
    }
    context
}

/// A text that is one file, or lines to type.
fn file(text: &str, target: Target) -> Reading {
    let files = places::files(text);
    if files.len() < 2 {
        return judged(text, forms::read(text, target), target);
    }
    let mut reading = Reading::default();
    for (first, text) in files {
        reading.add(judged(&text, forms::read(&text, target), target).moved(first - 1));
    }
    reading
}

/// A text as its form was read, if it has one that is known, with what its places and its comments say.
fn judged(text: &str, form: Option<Reading>, target: Target) -> Reading {
    let mut reading = form.or_else(|| introduced(text, target)).unwrap_or_else(|| lines(text, target));
    // A file that is named, and of which no reader knows a line; where packages come from is nobody's latency.
    let is_unread = reading.statements.is_empty() && reading.settings == 0 && reading.remarks.is_empty();
    let is_file = places::heading(text).is_some_and(|path| !path.starts_with("/etc/apt/"));
    reading.unknown += usize::from(is_unread && is_file && reading::lines(text).next().is_some());
    reading.remarks.extend(places::remarks(text));
    reading.remarks.extend(intent::remarks(text, target));
    reading.remarks.extend(aims::remarks(text));
    reading.remarks.extend(quantities::remarks(text));
    reading
}

/// A file of a known format below the sentence that introduces it.
fn introduced(text: &str, target: Target) -> Option<Reading> {
    let introduced = prose::introduced(text).and_then(|text| forms::read(&text, target));
    introduced.or_else(|| forms::read(&prose::object(text)?, target))
}

/// Kernel command lines, settings, symbols and commands, line by line.
fn lines(text: &str, target: Target) -> Reading {
    let text = sentence::without_sentences(text, statements::is_code);
    let text = text.as_str();
    let mut reading = Reading { statements: statements::find(text), ..Reading::default() };
    if let Some((first, sections)) = prose::sections(text) {
        let inner = forms::read(&sections, target).unwrap_or_default();
        reading.add(inner.moved(first - 1));
    }
    reading.remarks.extend(typography::remarks(text));
    reading.remarks.extend(loaders::remarks(text));
    reading.remarks.extend(symbols::forms(text));
    reading.remarks.extend(shell::remarks(text));
    reading.remarks.extend(context::remarks(text));
    reading.settings += assignments(text, &mut reading.remarks);
    if let Some(limits) = prose::rows_of_limits(text) {
        reading.add(forms::read(&limits, target).unwrap_or_default());
    }
    // A program or a shell that holds the request open.
    let opens = |line: &&str| ["open(", "exec "].iter().any(|sign| line.contains(sign));
    reading.settings +=
        text.lines().filter(|line| line.contains("/dev/cpu_dma_latency")).filter(opens).count();
    reading.add(code::read(text));
    for simple in script::commands(text) {
        reading.add(Reading::of_command(&simple));
        if let Some(content) = programs::configured(&simple) {
            let bare = || Reading { statements: statements::find(&content), ..Reading::default() };
            reading.add(forms::read(&content, target).unwrap_or_else(bare).moved(simple.line - 1));
        }
        if let Some((line, document)) = simple.document.as_ref().filter(|(_, document)| !document.is_empty())
        {
            let inner = forms::read(document, target);
            reading.add(inner.unwrap_or_default().moved(line - 1));
        }
    }
    reading
}

/// Assignments in files that daemons source; how many there were.
fn assignments(text: &str, remarks: &mut Vec<Remark>) -> usize {
    let mut count = 0;
    for (index, line) in text.lines().enumerate() {
        if is_of_a_build(line.trim()) {
            count += 1;
            continue;
        }
        let Some((name, value)) = line.trim().split_once('=') else { continue };
        let bare = value.trim_matches(['"', '\'']);
        if let Some(fault) = placed::assigned(name, bare) {
            count += 1;
            let error = |message| Remark::error(index + 1, RemarkId::Malformed, line, message);
            remarks.extend(fault.map(error));
        } else if keys::is_known("assignment", name) {
            count += 1;
            remarks.extend(keys::remark(index + 1, "assignment", "", name, bare));
        }
    }
    count
}

/// `BR2_NAME=value` of Buildroot, variables of BitBake that say which files and features a kernel is built with.
fn is_of_a_build(line: &str) -> bool {
    const BITBAKE: [&str; 12] = [
        "FILESEXTRAPATHS",
        "SRC_URI",
        "KERNEL_FEATURES",
        "KERNEL_EXTRA_FEATURES",
        "KBUILD_DEFCONFIG",
        "KCONFIG_MODE",
        "PREFERRED_PROVIDER_virtual/kernel",
        "LINUX_KERNEL_TYPE",
        "COMPATIBLE_MACHINE",
        "IMAGE_INSTALL",
        "CORE_IMAGE_EXTRA_INSTALL",
        "PREFERRED_VERSION_linux-yocto-rt",
    ];
    let end = line.find(['=', ':', '+', '?', ' ']).unwrap_or(line.len());
    let name = &line[..end];
    let is_assigned = line[end..].contains('=');
    is_assigned && (name.starts_with("BR2_") && name.len() > 4 || BITBAKE.contains(&name))
}

#[cfg(test)]
mod tests;
