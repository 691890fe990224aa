//! What `known.toml` says.

use std::sync::LazyLock;

use serde::Deserialize;

use crate::Severity;

/// The tables.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Known {
    pub word: Vec<Word>,
    pub value: Vec<Value>,
    pub symbol: Vec<Symbol>,
    pub alone: Vec<Alone>,
    pub idea: Vec<Idea>,
    pub option: Vec<ProgramOption>,
    pub sysctl: Vec<Sysctl>,
    pub newer: Vec<Newer>,
}

/// A parameter on the kernel command line that the kernel's documents do not have.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Word {
    pub name: String,
    pub kind: WordKind,
    /// The first version that is known to lack it; none: each version lacks it.
    pub until: Option<String>,
    pub text: String,
    pub instead: Option<String>,
}

/// What is the matter with such a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WordKind {
    /// It works.
    Known,
    /// Another kernel's.
    Elsewhere,
    /// No kernel's.
    Never,
    /// An older kernel's.
    Gone,
}

impl WordKind {
    /// Whether no kernel of today has it.
    pub fn is_of_no_kernel(self) -> bool {
        matches!(self, Self::Never | Self::Gone)
    }
}

/// A value that does something else than is hoped.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Value {
    pub name: String,
    pub value: String,
    pub severity: Severity,
    pub text: String,
    pub instead: Option<String>,
    /// A word of the same line beside which nothing is the matter.
    pub unless: Option<String>,
}

/// A symbol that some versions do not have.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Symbol {
    pub name: String,
    /// The first version that has it.
    pub since: Option<String>,
    /// The first that has it no more.
    pub until: Option<String>,
    /// Whether it was never the mainline kernel's.
    #[serde(default)]
    pub elsewhere: bool,
    pub text: Option<String>,
    pub instead: Option<String>,
}

/// A symbol that needs a word.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Alone {
    pub name: String,
    pub needs: Vec<String>,
    pub text: String,
    pub instead: String,
}

/// A mistaken idea.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Idea {
    pub texts: Vec<String>,
    /// One of these belongs to it, too, in small letters and where no word of its sentence denies it.
    #[serde(default)]
    pub claims: Vec<String>,
    /// What the recipe has where the idea is not mistaken.
    pub unless: Option<String>,
    /// The first version of the kernel for which it is one.
    pub since: Option<String>,
    /// How bad it is; a note if it is not said.
    pub severity: Option<Severity>,
    pub text: String,
    pub instead: Option<String>,
}

/// An option that a program does not have.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramOption {
    pub program: String,
    pub option: String,
    pub text: String,
    pub instead: String,
}

/// A sysctl that is gone, or a value that harms.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sysctl {
    pub name: String,
    pub value: Option<String>,
    pub until: Option<String>,
    pub severity: Option<Severity>,
    pub text: String,
    pub instead: Option<String>,
}

/// A word of a command that its program has only since a version of the kernel whose tree it comes from.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Newer {
    pub program: String,
    pub words: Vec<String>,
    pub since: String,
}

/// The tables; empty if the file that stands in the program were wrong, which a test excludes.
pub static KNOWN: LazyLock<Known> = LazyLock::new(|| read().unwrap_or_else(|_| Known::empty()));

fn read() -> serde_json::Result<Known> {
    let json = machine::packed::text(include_bytes!(concat!(env!("OUT_DIR"), "/known.json.gz")));
    record::json::read(json.as_bytes())
}

impl Known {
    fn empty() -> Self {
        Self {
            word: Vec::new(),
            value: Vec::new(),
            symbol: Vec::new(),
            alone: Vec::new(),
            idea: Vec::new(),
            option: Vec::new(),
            sysctl: Vec::new(),
            newer: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::KernelVersion;

    #[test]
    fn the_table_is_well_formed() {
        let known = read().unwrap();
        for version in known
            .symbol
            .iter()
            .flat_map(|symbol| symbol.since.iter().chain(&symbol.until))
            .chain(known.sysctl.iter().filter_map(|sysctl| sysctl.until.as_ref()))
            .chain(known.word.iter().filter_map(|word| word.until.as_ref()))
            .chain(known.newer.iter().map(|newer| &newer.since))
            .chain(known.idea.iter().filter_map(|idea| idea.since.as_ref()))
        {
            assert!(version.parse::<KernelVersion>().is_ok(), "{version}");
        }
    }
}
