//! The Kconfig files of a kernel's source: which symbols there are, what they depend on, who selects them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::expression::Expression;

/// A kernel's source, as far as its Kconfig files go, for one architecture.
#[derive(Debug)]
pub struct KernelSource {
    by_name: BTreeMap<String, Vec<Definition>>,
    selects: BTreeMap<String, Vec<Selection>>,
    elsewhere: BTreeMap<String, BTreeSet<String>>,
    architecture: String,
}

/// A `select` or `imply` line of a symbol.
#[derive(Clone, Debug)]
pub struct Selection {
    /// The symbol that has the line.
    pub by: String,
    /// When it counts.
    pub condition: Option<Expression>,
    /// Whether it is an `imply`, which gives way to dependencies.
    pub is_weak: bool,
}

/// What a symbol's value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// y or n.
    Bool,
    /// y, m or n.
    Tristate,
    /// A number or a text.
    Value,
}

/// One `config` entry. A symbol may have several.
#[derive(Clone, Debug)]
pub struct Definition {
    /// The symbol's name, without `CONFIG_`.
    pub symbol: String,
    /// What must hold: its own dependencies and those of the menus and ifs around it.
    pub depends: Vec<Expression>,
    /// What its value is, where this entry says it.
    pub kind: Option<Kind>,
    /// Whether a user is asked.
    pub has_prompt: bool,
    /// Its defaults with their conditions: the first that holds counts.
    pub defaults: Vec<Conditional>,
    /// The options of the choice that it is in.
    pub choice: Vec<String>,
    /// The options that this choice prefers.
    pub choice_defaults: Vec<(String, Option<Expression>)>,
}

/// A value, and when it counts.
pub type Conditional = (Expression, Option<Expression>);

impl Definition {
    fn new(symbol: &str, depends: Vec<Expression>) -> Self {
        Self {
            symbol: symbol.to_owned(),
            depends,
            kind: None,
            has_prompt: false,
            defaults: Vec::new(),
            choice: Vec::new(),
            choice_defaults: Vec::new(),
        }
    }
}

/// A source that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadSourceError {
    /// There is no Kconfig file in it.
    #[error("{0}: no Kconfig file in it: not a kernel's source")]
    NotASource(PathBuf),
    /// A directory or file that the system does not give.
    #[error("read {path}: {error}")]
    Unreadable {
        /// The directory or file.
        path: PathBuf,
        /// What the system answered.
        error: std::io::Error,
    },
}

/// No Kconfig file is longer.
const LONGEST_FILE: u64 = 4 << 20;

/// The architecture's directory below `arch/`.
fn directory_of(architecture: &str) -> &str {
    match architecture {
        "x86_64" | "i386" | "i686" => "x86",
        "aarch64" => "arm64",
        "armv7l" => "arm",
        "ppc" | "ppc64" | "ppc64le" => "powerpc",
        "riscv64" => "riscv",
        other => other,
    }
}

impl KernelSource {
    /// Reads every Kconfig file below `directory`. Those of other architectures than `architecture` (as `uname -m` says it,
    /// or a directory of `arch/`) are only remembered by their names.
    ///
    /// # Errors
    /// A directory that is no kernel's source or cannot be read.
    pub fn read(directory: &Path, architecture: &str) -> Result<Self, ReadSourceError> {
        if !directory.join("Kconfig").is_file() {
            return Err(ReadSourceError::NotASource(directory.to_owned()));
        }
        let architecture = directory_of(architecture);
        let mut source = Self::empty(architecture);
        let reached = source.follow(directory);
        let mut open = vec![directory.to_owned()];
        while let Some(path) = open.pop() {
            let unreadable = |error| ReadSourceError::Unreadable { path: path.clone(), error };
            for entry in fs::read_dir(&path).map_err(unreadable)?.filter_map(Result::ok) {
                let name = entry.file_name();
                let is_kconfig = name.to_string_lossy().starts_with("Kconfig");
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => open.push(entry.path()),
                    Ok(kind) if kind.is_file() && is_kconfig && !reached.contains(&entry.path()) => {
                        source.read_file(directory, &entry.path(), architecture)?
                    }
                    _ => {}
                }
            }
        }
        Ok(source)
    }

    fn empty(architecture: &str) -> Self {
        Self {
            by_name: BTreeMap::new(),
            selects: BTreeMap::new(),
            elsewhere: BTreeMap::new(),
            architecture: architecture.to_owned(),
        }
    }

    /// Reads what the top Kconfig file sources, as far as it goes, with what must hold around each `source` line; which files these
    /// were.
    fn follow(&mut self, root: &Path) -> BTreeSet<PathBuf> {
        let mut reached = BTreeSet::new();
        let mut open = vec![(root.join("Kconfig"), Vec::new())];
        while let Some((path, around)) = open.pop() {
            let Ok(bytes) = files::read(&path, LONGEST_FILE) else { continue };
            if !reached.insert(path.clone()) {
                continue;
            }
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let sources = self.add(&text, None, &around).into_iter().rev();
            let below = path.parent().unwrap_or(root).to_owned();
            open.extend(sources.filter_map(|source| {
                let name = source.path.replace("$(SRCARCH)", &self.architecture);
                let inside = !name.contains("$(") && !name.split('/').any(|part| part == "..");
                let from = if source.is_relative { &below } else { root };
                inside.then(|| (from.join(name.trim_start_matches('/')), source.depends))
            }));
        }
        reached
    }

    fn read_file(&mut self, root: &Path, path: &Path, architecture: &str) -> Result<(), ReadSourceError> {
        let unreadable = |error| ReadSourceError::Unreadable { path: path.to_owned(), error };
        let bytes = files::read(path, LONGEST_FILE).map_err(|error| unreadable(error.source))?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let below = path.strip_prefix(root).unwrap_or(path);
        let mut parts = below.iter().map(|part| part.to_string_lossy());
        let owner = (parts.next().as_deref() == Some("arch"))
            .then(|| parts.next())
            .flatten()
            .filter(|_| parts.next().is_some());
        let foreign = owner.filter(|owner| owner != architecture && !owner.starts_with("Kconfig"));
        self.add(&text, foreign.as_deref(), &[]);
        Ok(())
    }

    /// Adds the entries of one file, around which something must hold; only their names if it is a foreign architecture's. What it
    /// sources.
    fn add(&mut self, text: &str, foreign: Option<&str>, around: &[Expression]) -> Vec<Source> {
        let around = Block { depends: around.to_vec(), ..Block::default() };
        let reader = Reader { around: vec![around], ..Reader::default() }.read(text);
        for (definition, selects) in reader.found {
            if let Some(architecture) = foreign {
                self.elsewhere.entry(definition.symbol).or_default().insert(architecture.to_owned());
                continue;
            }
            for (selected, selection) in selects {
                self.selects.entry(selected).or_default().push(selection);
            }
            self.by_name.entry(definition.symbol.clone()).or_default().push(definition);
        }
        reader.sources
    }

    #[cfg(test)]
    pub(super) fn of(text: &str) -> Self {
        let mut source = Self::empty("x86");
        source.add(text, None, &[]);
        source
    }

    /// The entries of a symbol.
    pub fn definitions(&self, symbol: &str) -> &[Definition] {
        self.by_name.get(symbol).map_or(&[], Vec::as_slice)
    }

    /// The symbols that select `symbol`.
    pub fn selectors(&self, symbol: &str) -> Vec<&str> {
        let mut selectors: Vec<&str> = self
            .selections(symbol)
            .iter()
            .filter(|selection| !selection.is_weak)
            .map(|selection| selection.by.as_str())
            .collect();
        selectors.sort_unstable();
        selectors.dedup();
        selectors
    }

    /// The lines that select or imply `symbol`.
    pub fn selections(&self, symbol: &str) -> &[Selection] {
        self.selects.get(symbol).map_or(&[], Vec::as_slice)
    }

    /// The directory of `arch/` that it is read for.
    pub fn architecture(&self) -> &str {
        &self.architecture
    }

    /// Other architectures that have `symbol`.
    pub fn architectures_with(&self, symbol: &str) -> Vec<&str> {
        self.elsewhere.get(symbol).into_iter().flatten().map(String::as_str).collect()
    }

    /// A symbol that begins like `symbol`, or the other way round: renames often add or drop an end.
    pub fn nearest(&self, symbol: &str) -> Option<&str> {
        let ends_at = |length: usize| symbol.get(..length).filter(|_| length >= 5);
        let shorter =
            (0..symbol.len()).rev().filter_map(ends_at).find(|begin| self.by_name.contains_key(*begin));
        let ending = || {
            self.by_name.keys().find(|name| name.strip_suffix(symbol).is_some_and(|rest| rest.ends_with('_')))
        };
        shorter
            .and_then(|name| self.by_name.get_key_value(name))
            .map(|(name, _)| name.as_str())
            .or_else(|| ending().map(String::as_str))
    }
}

/// What is around and in the entry that is being read.
#[derive(Default)]
struct Reader {
    around: Vec<Block>,
    entry: Option<Entry>,
    found: Vec<Entry>,
    sources: Vec<Source>,
}

/// A symbol's entry, and what it selects.
type Entry = (Definition, Vec<(String, Selection)>);

/// A file that another one sources.
struct Source {
    path: String,
    /// Whether from that file's directory.
    is_relative: bool,
    /// What must hold around.
    depends: Vec<Expression>,
}

/// An if, a menu or a choice.
#[derive(Default)]
struct Block {
    depends: Vec<Expression>,
    /// Where in `found` the options of a choice begin; none for an if or a menu.
    choice_from: Option<usize>,
    /// The options that a choice prefers.
    defaults: Vec<(String, Option<Expression>)>,
}

impl Reader {
    fn read(mut self, text: &str) -> Self {
        let text = text.replace("\\\n", " ");
        let mut help_indent: Option<Option<usize>> = None;
        for line in text.lines() {
            let indent = line.len() - line.trim_start().len();
            let line = line.trim();
            if line.is_empty() {
                continue;
            }
            match help_indent {
                Some(None) if indent > 0 => help_indent = Some(Some(indent)),
                Some(Some(least)) if indent >= least => {}
                _ => help_indent = self.line(line).then_some(None),
            }
        }
        self.close();
        self
    }

    /// One line outside help; says whether help begins.
    fn line(&mut self, line: &str) -> bool {
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        match word {
            "config" | "menuconfig" => self.begin(rest),
            "if" => self.open(Block { depends: vec![Expression::parse(rest)], ..Block::default() }),
            "menu" => self.open(Block::default()),
            "choice" => {
                self.close();
                let choice_from = Some(self.found.len());
                self.around.push(Block { choice_from, ..Block::default() });
            }
            "endif" | "endmenu" | "endchoice" => self.end(),
            "source" | "osource" | "rsource" | "orsource" => self.source(word, rest),
            "comment" | "mainmenu" => self.close(),
            "depends" => self.depends(rest.trim_start_matches("on").trim()),
            "bool" | "tristate" | "string" | "int" | "hex" | "def_bool" | "def_tristate" => {
                self.prompt(word, rest)
            }
            "prompt" => self.prompt(word, rest),
            "default" => self.add_default(rest),
            "select" | "imply" => self.select(rest, word == "imply"),
            "help" | "---help---" => return true,
            _ => {}
        }
        false
    }

    fn begin(&mut self, symbol: &str) {
        self.close();
        let depends = self.around.iter().flat_map(|block| block.depends.clone()).collect();
        self.entry = Some((Definition::new(symbol, depends), Vec::new()));
    }

    fn close(&mut self) {
        self.found.extend(self.entry.take());
    }

    fn open(&mut self, block: Block) {
        self.close();
        self.around.push(block);
    }

    fn end(&mut self) {
        self.close();
        // What is around the file itself stays.
        if self.around.len() == 1 {
            return;
        }
        if let Some(Block { choice_from: Some(from), defaults, .. }) = self.around.pop() {
            let options: Vec<String> =
                self.found[from..].iter().map(|(definition, _)| definition.symbol.clone()).collect();
            for (definition, _) in &mut self.found[from..] {
                definition.choice.clone_from(&options);
                definition.choice_defaults.clone_from(&defaults);
            }
        }
    }

    fn depends(&mut self, text: &str) {
        let expression = Expression::parse(text);
        match (&mut self.entry, self.around.last_mut()) {
            (Some((definition, _)), _) => definition.depends.push(expression),
            (None, Some(block)) => block.depends.push(expression),
            (None, None) => {}
        }
    }

    /// `bool "Text" if A`: a prompt, shown where A holds.
    fn prompt(&mut self, word: &str, rest: &str) {
        let Some((definition, _)) = &mut self.entry else { return };
        let is_prompt = !word.starts_with("def_") && rest.starts_with(['"', '\'']);
        definition.has_prompt |= is_prompt;
        definition.kind = match word {
            "bool" | "def_bool" => Some(Kind::Bool),
            "tristate" | "def_tristate" => Some(Kind::Tristate),
            "prompt" => definition.kind,
            _ => Some(Kind::Value),
        };
        if word.starts_with("def_") {
            self.add_default(rest);
        }
    }

    /// `default VALUE if CONDITION`, of a symbol or of a choice.
    fn add_default(&mut self, rest: &str) {
        let (value, condition) = conditional(rest);
        match (&mut self.entry, self.around.last_mut()) {
            (Some((definition, _)), _) => definition.defaults.push((Expression::parse(value), condition)),
            (None, Some(block)) if block.choice_from.is_some() => {
                block.defaults.push((value.to_owned(), condition));
            }
            _ => {}
        }
    }

    /// `select SYMBOL if CONDITION`.
    fn select(&mut self, rest: &str, is_weak: bool) {
        let (symbol, condition) = conditional(rest);
        if let Some((definition, selects)) = &mut self.entry {
            let by = definition.symbol.clone();
            selects.push((symbol.to_owned(), Selection { by, condition, is_weak }));
        }
    }

    fn source(&mut self, word: &str, rest: &str) {
        self.close();
        let depends = self.around.iter().flat_map(|block| block.depends.clone()).collect();
        let path = rest.trim_matches(['"', '\'']).to_owned();
        self.sources.push(Source { path, is_relative: word.ends_with("rsource"), depends });
    }
}

/// What stands before ` if ` outside quotes, and the condition behind it. A comment at the end is none of it.
fn conditional(text: &str) -> (&str, Option<Expression>) {
    let text = if text.contains(['"', '\'']) { text } else { text.split('#').next().unwrap_or(text).trim() };
    match text.rsplit_once(" if ").filter(|(value, _)| value.matches('"').count() % 2 == 0) {
        Some((value, condition)) => (value.trim(), Some(Expression::parse(condition))),
        None => (text, None),
    }
}
