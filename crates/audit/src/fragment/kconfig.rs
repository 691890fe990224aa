//! The Kconfig files of a kernel's source: which symbols there are, what they depend on, who selects them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::expression::Expression;

/// A kernel's source, as far as its Kconfig files go, for one architecture.
#[derive(Debug)]
pub struct KernelSource {
    by_name: BTreeMap<String, Vec<Definition>>,
    selects: BTreeMap<String, BTreeSet<String>>,
    elsewhere: BTreeMap<String, BTreeSet<String>>,
}

/// One `config` entry. A symbol may have several.
#[derive(Clone, Debug)]
pub struct Definition {
    /// The symbol's name, without `CONFIG_`.
    pub symbol: String,
    /// What must hold: its own dependencies and those of the menus and ifs around it.
    pub depends: Vec<Expression>,
    /// Whether a user is asked.
    pub has_prompt: bool,
    /// The options of the choice that it is in.
    pub choice: Vec<String>,
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

impl KernelSource {
    /// Reads every Kconfig file below `directory`. Those of other architectures than `architecture` (a directory of
    /// `arch/`) are only remembered by their names.
    ///
    /// # Errors
    /// A directory that is no kernel's source or cannot be read.
    pub fn read(directory: &Path, architecture: &str) -> Result<Self, ReadSourceError> {
        if !directory.join("Kconfig").is_file() {
            return Err(ReadSourceError::NotASource(directory.to_owned()));
        }
        let mut source =
            Self { by_name: BTreeMap::new(), selects: BTreeMap::new(), elsewhere: BTreeMap::new() };
        let mut open = vec![directory.to_owned()];
        while let Some(path) = open.pop() {
            let unreadable = |error| ReadSourceError::Unreadable { path: path.clone(), error };
            for entry in fs::read_dir(&path).map_err(unreadable)?.filter_map(Result::ok) {
                let name = entry.file_name();
                let is_kconfig = name.to_string_lossy().starts_with("Kconfig");
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => open.push(entry.path()),
                    Ok(kind) if kind.is_file() && is_kconfig => {
                        source.read_file(directory, &entry.path(), architecture)?
                    }
                    _ => {}
                }
            }
        }
        Ok(source)
    }

    fn read_file(&mut self, root: &Path, path: &Path, architecture: &str) -> Result<(), ReadSourceError> {
        let unreadable = |error| ReadSourceError::Unreadable { path: path.to_owned(), error };
        if fs::metadata(path).map_err(unreadable)?.len() > LONGEST_FILE {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&fs::read(path).map_err(unreadable)?).into_owned();
        let below = path.strip_prefix(root).unwrap_or(path);
        let mut parts = below.iter().map(|part| part.to_string_lossy());
        let owner = (parts.next().as_deref() == Some("arch"))
            .then(|| parts.next())
            .flatten()
            .filter(|_| parts.next().is_some());
        let foreign = owner.filter(|owner| owner != architecture && !owner.starts_with("Kconfig"));
        self.add(&text, foreign.as_deref());
        Ok(())
    }

    /// Adds the entries of one file; only their names if it is a foreign architecture's.
    pub(super) fn add(&mut self, text: &str, foreign: Option<&str>) {
        for (definition, selects) in Reader::default().read(text) {
            if let Some(architecture) = foreign {
                self.elsewhere.entry(definition.symbol).or_default().insert(architecture.to_owned());
                continue;
            }
            for selected in selects {
                self.selects.entry(selected).or_default().insert(definition.symbol.clone());
            }
            self.by_name.entry(definition.symbol.clone()).or_default().push(definition);
        }
    }

    #[cfg(test)]
    pub(super) fn of(text: &str) -> Self {
        let mut source =
            Self { by_name: BTreeMap::new(), selects: BTreeMap::new(), elsewhere: BTreeMap::new() };
        source.add(text, None);
        source
    }

    /// The entries of a symbol.
    pub fn definitions(&self, symbol: &str) -> &[Definition] {
        self.by_name.get(symbol).map_or(&[], Vec::as_slice)
    }

    /// The symbols that select `symbol`.
    pub fn selectors(&self, symbol: &str) -> Vec<&str> {
        self.selects.get(symbol).into_iter().flatten().map(String::as_str).collect()
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
    entry: Option<(Definition, Vec<String>)>,
    found: Vec<(Definition, Vec<String>)>,
}

/// An if, a menu or a choice.
#[derive(Default)]
struct Block {
    depends: Vec<Expression>,
    /// Where in `found` the options of a choice begin; none for an if or a menu.
    choice_from: Option<usize>,
}

impl Reader {
    fn read(mut self, text: &str) -> Vec<(Definition, Vec<String>)> {
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
        self.found
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
            "comment" | "source" | "mainmenu" => self.close(),
            "depends" => self.depends(rest.trim_start_matches("on").trim()),
            "bool" | "tristate" | "string" | "int" | "hex" | "def_bool" | "def_tristate" => {
                self.prompt(word, rest)
            }
            "prompt" => self.prompt("bool", rest),
            "select" => {
                if let (Some((_, selects)), Some(symbol)) = (&mut self.entry, rest.split_whitespace().next())
                {
                    selects.push(symbol.to_owned());
                }
            }
            "help" | "---help---" => return true,
            _ => {}
        }
        false
    }

    fn begin(&mut self, symbol: &str) {
        self.close();
        let depends = self.around.iter().flat_map(|block| block.depends.clone()).collect();
        let definition =
            Definition { symbol: symbol.to_owned(), depends, has_prompt: false, choice: Vec::new() };
        self.entry = Some((definition, Vec::new()));
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
        if let Some(Block { choice_from: Some(from), .. }) = self.around.pop() {
            let options: Vec<String> =
                self.found[from..].iter().map(|(definition, _)| definition.symbol.clone()).collect();
            for (definition, _) in &mut self.found[from..] {
                definition.choice.clone_from(&options);
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
    }
}
