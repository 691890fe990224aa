//! An experiment on a terminal.

use super::conclusion::{conclusion, method, noise};
use super::figures::Reckoned;
use super::table::{self, Table};
use super::{Experiment, costs, published};
use crate::foot::verdict_tone;
use crate::style::{Style, Tone};
use crate::text::{harmless, shell, wrap};

/// What was asked, the verdict, the arms with their figures, what was compared, and what to do next.
pub fn text(experiment: &Experiment, style: &Style) -> String {
    let reckoned = Reckoned::of(experiment);
    let conclusion = conclusion(&reckoned);
    let mut out = Out { text: String::new(), style };
    out.wrapped("", &experiment.question, 2, Tone::Plain);
    out.gap();
    out.wrapped("", &conclusion.headline, 2, headline_tone(conclusion.verdict));
    conclusion.lines.iter().for_each(|line| out.wrapped("  ", line, 4, Tone::Plain));
    out.gap();
    out.arms(experiment);
    out.table(Some(&table::arms(&reckoned)));
    out.table(table::comparisons(&reckoned).as_ref());
    out.table(table::published(&reckoned).as_ref());
    for trade in reckoned.trades() {
        out.text += &trade.text(style);
        out.gap();
    }
    out.text += &costs::text(&reckoned, style);
    let notes = experiment
        .changes
        .iter()
        .flat_map(|change| change.notes.iter().map(|note| format!("note: {}: {note}", change.name)));
    let notes: Vec<String> = notes.collect();
    notes.iter().for_each(|note| out.wrapped("", note, 2, Tone::Plain));
    missing(&experiment.missing).iter().for_each(|one| out.wrapped("missing: ", one, 2, Tone::Bad));
    if experiment.answer.is_some() {
        out.wrapped("", &noise(&reckoned), 2, Tone::Plain);
    }
    if let Some((source, differs)) = &experiment.source {
        out.wrapped("", &format!("Source: {source}"), 2, Tone::Plain);
        differs.iter().for_each(|line| out.wrapped("- ", line, 2, Tone::Plain));
    }
    let sentences = method(&reckoned).into_iter().chain(published::agreement(&reckoned));
    let sentences: Vec<String> = sentences.chain(experiment.caution().map(str::to_owned)).collect();
    sentences.iter().for_each(|sentence| out.wrapped("", sentence, 2, Tone::Plain));
    out.gap();
    out.commands("Next", &conclusion.next);
    out.commands("Again", &[(shell(&experiment.command), String::new())]);
    out.text
}

struct Out<'a> {
    text: String,
    style: &'a Style,
}

impl Out<'_> {
    fn gap(&mut self) {
        self.text.push('\n');
    }

    fn wrapped(&mut self, head: &str, text: &str, hang: usize, tone: Tone) {
        for line in wrap(head, text, hang, self.style.width) {
            self.text += &(self.style.paint(tone, &line) + "\n");
        }
    }

    fn arms(&mut self, experiment: &Experiment) {
        let names = experiment.arms.iter().map(|arm| arm.name.chars().count());
        let width = names.max().unwrap_or(0).min(self.style.width / 3);
        for arm in &experiment.arms {
            self.wrapped(&format!("{:width$}  ", arm.name), &arm.what, width + 2, Tone::Plain);
            arm.notes
                .iter()
                .for_each(|note| self.wrapped(&" ".repeat(width + 2), note, width + 2, Tone::Doubtful));
        }
        self.gap();
    }

    fn table(&mut self, table: Option<&Table>) {
        let Some(table) = table else { return };
        self.text += &table.grid().render(self.style);
        self.gap();
    }

    /// Commands, and what each is for below it.
    fn commands(&mut self, head: &str, commands: &[(String, String)]) {
        for (place, (command, why)) in commands.iter().enumerate() {
            let head = if place == 0 { head } else { "" };
            self.text += &format!("{head:<5}  {}\n", broken(&harmless(command), self.style.width));
            if !why.is_empty() {
                self.wrapped("       ", why, 7, Tone::Faint);
            }
        }
    }
}

/// A command in lines that a shell takes for one: only where no quote is open is it broken.
fn broken(command: &str, width: usize) -> String {
    const INDENT: usize = 11;
    let (mut text, mut column, mut quotes) = (String::new(), 7, 0);
    for (place, word) in command.split(' ').enumerate() {
        let length = word.chars().count();
        if place > 0 && quotes % 2 == 0 && column + 1 + length + 2 > width {
            text += &format!(" \\\n{}", " ".repeat(INDENT));
            column = INDENT;
        } else if place > 0 {
            text.push(' ');
            column += 1;
        }
        text += word;
        column += length;
        quotes += word.matches('\'').count();
    }
    text
}

/// An answer stands out also where it is no good news.
fn headline_tone(verdict: record::verdict::Verdict) -> Tone {
    match verdict_tone(verdict) {
        Tone::Plain => Tone::Strong,
        tone => tone,
    }
}
/// What has no record, a line each; what was never begun in one line, where it is much.
fn missing(all: &[String]) -> Vec<String> {
    const NEVER_BEGUN: &str = " was not measured";
    const NAMED: usize = 3;
    let (never, others): (Vec<_>, Vec<_>) = all.iter().partition(|one| one.ends_with(NEVER_BEGUN));
    let mut lines: Vec<String> = others.iter().map(|one| one.replace('\n', "; ")).collect();
    match never.len() > NAMED {
        false => lines.extend(never.into_iter().cloned()),
        true => {
            let named = never.iter().take(NAMED).map(|one| one.trim_end_matches(NEVER_BEGUN));
            let named: Vec<&str> = named.collect();
            lines.push(format!("{} were not measured: {}, ..", never.len(), named.join(", ")));
        }
    }
    lines
}
