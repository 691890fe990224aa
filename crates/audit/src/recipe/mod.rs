//! What is wrong with a pasted recipe: a kernel command line, a GRUB file, U-Boot commands, a list of sysctls, a fragment of a
//! kernel configuration, shell commands, or a whole page with all of them.
//!
//! [`statements`] finds what a machine would read among what a person reads; [`words`], [`symbols`], [`shell`] and
//! [`typography`] judge it. What they know is data: `known.toml`, and the names that the kernel's own documents have
//! (`machine::parameters`).

mod ideas;
mod known;
mod nearest;
mod shell;
mod statements;
mod symbols;
mod typography;
mod words;

use serde::Serialize;
use units::KernelVersion;

use crate::Severity;
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

    fn instead(mut self, instead: impl Into<String>) -> Self {
        self.instead = Some(instead.into());
        self
    }

    fn perhaps_instead(mut self, instead: Option<&str>) -> Self {
        self.instead = instead.map(str::to_owned);
        self
    }
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
    /// What is wrong, by line.
    pub remarks: Vec<Remark>,
}

impl Examination {
    /// Whether anything was found that a machine would read.
    pub fn is_understood(&self) -> bool {
        self.parameters + self.symbols + self.sysctls + self.commands > 0
    }
}

/// Looks through `text`. Never fails: what is not understood is taken for prose.
pub fn examine(text: &str, target: Target) -> Examination {
    let statements = statements::find(text);
    let mut remarks = typography::remarks(text);
    remarks.extend(words::remarks(&statements, target));
    remarks.extend(symbols::remarks(text, &statements, target));
    remarks.extend(shell::remarks(text, &statements, target));
    remarks.extend(ideas::remarks(text));
    remarks.sort_by(|a, b| (a.line, a.id, &a.excerpt).cmp(&(b.line, b.id, &b.excerpt)));
    remarks.dedup_by(|a, b| (a.id, &a.excerpt, a.line) == (b.id, &b.excerpt, b.line));
    let count =
        |wanted: fn(&Statement) -> bool| statements.iter().filter(|statement| wanted(statement)).count();
    Examination {
        parameters: count(|statement| matches!(statement, Statement::Word(_))),
        symbols: count(|statement| matches!(statement, Statement::Symbol(_))),
        sysctls: count(|statement| matches!(statement, Statement::Sysctl { .. })),
        commands: count(|statement| matches!(statement, Statement::Command { .. })),
        remarks,
    }
}

#[cfg(test)]
mod tests;
