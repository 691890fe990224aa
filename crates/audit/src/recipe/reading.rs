//! What was found in a text, before it is judged.

use super::Remark;
use super::programs;
use super::script::Simple;
use super::statements::Statement;

/// Lines that are neither empty nor a comment, from 1, without white space around them.
pub fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let numbered = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    numbered.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

/// Statements, what is wrong with the form that they have, and how much was understood besides.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    pub statements: Vec<Statement>,
    pub remarks: Vec<Remark>,
    /// Settings of other programs' files.
    pub settings: usize,
    /// Settings of files that are known, which no table has.
    pub unknown: usize,
}

impl Reading {
    /// What one command says.
    pub fn of_command(simple: &Simple) -> Self {
        let outcome = programs::outcome(simple);
        let mut reading =
            Self { statements: outcome.statements, remarks: outcome.remarks, ..Self::default() };
        let inner = outcome.script.into_iter().flat_map(|script| super::script::commands(&script));
        inner
            .map(|inner| Self::of_command(&inner).moved(simple.line - 1))
            .for_each(|inner| reading.add(inner));
        reading
    }

    /// With another's.
    pub fn add(&mut self, other: Self) {
        self.statements.extend(other.statements);
        self.remarks.extend(other.remarks);
        self.settings += other.settings;
        self.unknown += other.unknown;
    }

    /// The same, all of it on one line.
    pub fn at(mut self, line: usize) -> Self {
        self.statements.iter_mut().for_each(|statement| *statement.line_mut() = line);
        self.remarks.iter_mut().for_each(|remark| remark.line = line);
        self
    }

    /// The same so many lines further up, not above the first that it may have.
    pub fn raised(mut self, lines: usize, first: usize) -> Self {
        let up = |line: &mut usize| *line = line.saturating_sub(lines).max(first);
        self.statements.iter_mut().for_each(|statement| up(statement.line_mut()));
        self.remarks.iter_mut().for_each(|remark| up(&mut remark.line));
        self
    }

    /// The same so many lines further down.
    pub fn moved(mut self, lines: usize) -> Self {
        self.statements.iter_mut().for_each(|statement| *statement.line_mut() += lines);
        self.remarks.iter_mut().for_each(|remark| remark.line += lines);
        self
    }
}
