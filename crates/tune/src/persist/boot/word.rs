//! What is to become of a kernel command line: words that are set, words that are taken away, and how both meet what is there.

use machine::boot_loader::Requested;
use machine::command_line::{Word, each_counts, same_name};
use machine::{CommandLine, grammar};

use crate::error::{Error, Result};

/// What is to become of the kernel command line, key by key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParameterEdit {
    /// Words to be there.
    pub set: Vec<Word>,
    /// Names of words that are to go.
    pub remove: Vec<String>,
    /// Whether a word that somebody else has set to another value gives way.
    pub replace: bool,
}

/// A line that a edit makes of another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// All of it.
    pub line: Vec<Word>,
    /// What is new in it.
    pub added: Vec<Word>,
    /// What is no longer in it.
    pub dropped: Vec<Requested>,
}

fn refused(word: &str, reason: &str, hint: &'static str) -> Error {
    Error::new("take", word.as_ref(), reason, hint)
}

/// Words that undo each other are not set.
fn go_together(words: &[Word]) -> Result<()> {
    let line = CommandLine { words: words.to_vec(), for_init: Vec::new() };
    let misfit = grammar::together(&line, None).into_iter().next();
    let found = misfit.and_then(|misfit| Some((line.words.get(misfit.place)?, misfit.fault.message)));
    match found {
        Some((word, message)) => Err(refused(&word.name, message.as_str(), "leave one of the two out")),
        None => Ok(()),
    }
}

impl ParameterEdit {
    /// Words as they stand on a kernel command line, `isolcpus=2-3 dyndbg="file a.c +p"`.
    ///
    /// # Errors
    /// [`Error`] for what is not plain ASCII, a quote that does not end or stands within a word, words for init, values that no
    /// kernel takes, and a name twice.
    pub fn of(text: &str) -> Result<Self> {
        if !text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
            let hint =
                "the kernel would not know them: curly quotes and dashes come from web pages; type them anew";
            return Err(refused(text, "there are characters that are not plain ASCII", hint));
        }
        let line = CommandLine::parse(text);
        if text.split_whitespace().any(|word| word == "--") {
            return Err(refused(
                text,
                "what stands behind -- is for init, not for the kernel",
                "leave it out",
            ));
        }
        let edit = Self { set: line.words, ..Self::default() };
        if text.matches('"').count() % 2 == 1 {
            return Err(refused(
                text,
                "a quote does not end",
                "quote a value with blanks whole: name=\"a b\"",
            ));
        }
        edit.set.iter().try_for_each(is_sound)?;
        go_together(&edit.set)?;
        let twice = |(number, word): &(usize, &Word)| {
            !each_counts(&word.name)
                && edit.set[..*number].iter().any(|before| same_name(&before.name, &word.name))
        };
        match edit.set.iter().enumerate().find(twice) {
            Some((_, word)) => {
                Err(refused(&word.name, "it is given twice", "the kernel takes one of them: say which"))
            }
            None => Ok(edit),
        }
    }

    /// Whether a word of that name is touched by it.
    pub fn is_about(&self, word: &Word) -> bool {
        self.removes(&word.name) || self.set.iter().any(|set| same_name(&set.name, &word.name))
    }

    fn removes(&self, name: &str) -> bool {
        self.remove.iter().any(|removed| same_name(removed, name))
    }

    /// What it makes of a line.
    ///
    /// # Errors
    /// [`Error`] for a word that is set to another value already, unless it may be replaced.
    pub fn merged(&self, words: &[Requested]) -> Result<Merged> {
        let is_dropped = |of: &&Requested| self.drops(&of.word);
        let dropped: Vec<Requested> = words.iter().filter(is_dropped).cloned().collect();
        if let Some(other) = dropped.iter().find(|of| !self.replace && !self.removes(&of.word.name)) {
            let reason = format!("{} says {}", other.place, written(&other.word));
            let word = self.set.iter().find(|set| same_name(&set.name, &other.word.name)).map(written);
            let hint = "--replace puts the new word in its place; or leave the word out";
            return Err(Error::new("set", word.unwrap_or_default().as_ref(), reason, hint));
        }
        let mut line: Vec<Word> =
            words.iter().filter(|of| !self.drops(&of.word)).map(|of| of.word.clone()).collect();
        let added: Vec<Word> = self.set.iter().filter(|set| !line.contains(set)).cloned().collect();
        line.extend(added.iter().cloned());
        Ok(Merged { line, added, dropped })
    }

    /// Whether a word gives way: it is to go, or it has another value than one that is to be there.
    fn drops(&self, word: &Word) -> bool {
        let is_other = |set: &&Word| {
            same_name(&set.name, &word.name) && set.value != word.value && !each_counts(&set.name)
        };
        self.removes(&word.name) || self.set.iter().any(|set| is_other(&set))
    }
}

/// Whether the kernel reads a word as it was meant.
fn is_sound(word: &Word) -> Result<()> {
    if let Some(fault) = machine::grammar::judge(&word.name, word.value.as_deref(), None) {
        let hint = "no kernel takes it: leave it out, or correct it";
        return Err(refused(&written(word), &fault.message, hint));
    }
    let is_name = !word.name.is_empty() && !word.name.contains(['"', ' ', '\'']);
    match is_name && !word.text().contains('"') {
        true => Ok(()),
        false => {
            Err(refused(&written(word), "a quote stands within it", "the kernel knows no way to protect it"))
        }
    }
}

/// As it stands on a kernel command line.
pub fn written(word: &Word) -> String {
    match &word.value {
        None => word.name.clone(),
        Some(value) if value.contains(' ') => format!("{}=\"{value}\"", word.name),
        Some(value) => format!("{}={value}", word.name),
    }
}

/// As they stand on a kernel command line.
pub fn line(words: &[Word]) -> String {
    words.iter().map(written).collect::<Vec<_>>().join(" ")
}

/// Refuses words with characters that a loader would not hand on as they are.
pub(super) fn refuse_characters(loader: &str, words: &[Word], eaten: &str) -> Result<()> {
    let found = |word: &&Word| written(word).contains(|c: char| eaten.contains(c));
    match words.iter().find(found) {
        None => Ok(()),
        Some(word) => {
            let reason = format!("{loader} does not hand on one of the characters {eaten} as it is");
            Err(refused(
                &written(word),
                &reason,
                "leave the word out, or set it in the loader's file by hand",
            ))
        }
    }
}
