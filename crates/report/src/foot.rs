//! What stands below the table: the worst value and its pattern, the conditions in one line, the doubts with their cures, and the
//! verdict.

use record::verdict::{Judgement, Verdict};
use record::{Effect, Record, WarningId};
use units::InOrder;

use crate::patterns;
use crate::style::{Style, Tone};
use crate::text::{clip, wrap};
use crate::validity;
use crate::warnings::{Doubt, Finding, doubts, effect_word, load_count};

/// Findings shown of one doubt; the page shows all.
const MOST_FINDINGS: usize = 4;
/// Where all notes are asked for.
const MOST_OF_NOTE: usize = 16;
/// Notes shown where not all are asked for.
const FEW_NOTES: usize = 3;

/// How many notes a reader wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notes<'a> {
    /// The first three, and what shows the others: the record's directory.
    Few(&'a str),
    /// All.
    All,
}

/// The worst value, conditions, warnings and judgement.
pub fn foot(record: &Record, notes: Notes<'_>, style: &Style) -> String {
    let mut lines = if record.is_measured() { conditions(record, style) } else { Vec::new() };
    let doubts = doubts(record);
    if !doubts.is_empty() {
        lines.push(String::new());
    }
    let loads = load_count(record);
    let (noted, harmful): (Vec<_>, Vec<_>) = doubts.iter().partition(|doubt| doubt.effect == Effect::Note);
    let most = if notes == Notes::All { MOST_OF_NOTE } else { MOST_FINDINGS };
    lines.extend(harmful.iter().flat_map(|doubt| doubt_lines(doubt, loads, most, style)));
    lines.extend(all_note_lines(noted, notes, loads, style));
    lines.push(String::new());
    lines.extend(verdict_lines(record, style));
    lines.into_iter().map(|line| line + "\n").collect()
}

/// Patterns of what was late, and what was read back meanwhile.
fn conditions(record: &Record, style: &Style) -> Vec<String> {
    let mut lines = wrap("", &patterns::sentences(record).join(" "), 2, style.width);
    lines.retain(|line| !line.is_empty());
    lines.extend(wrap("Checked: ", &(validity::brief(record) + "."), 2, style.width));
    lines
}

/// What happened before what only could.
fn all_note_lines(mut noted: Vec<&Doubt>, notes: Notes<'_>, loads: usize, style: &Style) -> Vec<String> {
    noted.order_by_key(|note| !happened(note.id));
    let (shown, findings, directory) = match notes {
        Notes::All => (noted.len(), MOST_OF_NOTE, ""),
        Notes::Few(directory) => (FEW_NOTES, 1, directory),
    };
    let directory = printable::shell(directory);
    let width = noted.iter().take(shown).map(|note| note.id.as_str().len()).max().unwrap_or(0);
    let of = |note: &&Doubt| note_lines(note, loads, findings, width, style);
    let mut lines: Vec<_> = noted.iter().take(shown).flat_map(of).collect();
    match noted.len().saturating_sub(shown) {
        0 => (),
        1 => lines.push(format!("      1 more note: worstcase report --notes {directory}")),
        more => lines.push(format!("      {more} more notes: worstcase report --notes {directory}")),
    }
    let about = noted.first().map(|note| format!("about one: worstcase why {}", note.id));
    lines.extend(about.iter().flat_map(|about| wrap("      ", about, 6, style.width)));
    lines
}

/// Whether a doubt is about something that took place in the run, and not about a state that could do harm.
fn happened(id: WarningId) -> bool {
    !matches!(
        id,
        WarningId::ThrottlingOn
            | WarningId::Guest
            | WarningId::Container
            | WarningId::NotIsolated
            | WarningId::RecorderShares
            | WarningId::Rival
            | WarningId::SerialConsole
            | WarningId::Governor
            | WarningId::BusyBefore
    )
}

/// A note with at most so many of its `findings`: where one is shown, it takes a line or two, because it leaves the verdict alone
/// and must not stand before it like a wall.
fn note_lines(note: &Doubt, loads: usize, findings: usize, width: usize, style: &Style) -> Vec<String> {
    let one = |finding: &Finding| {
        let place = finding.place(loads).map_or_else(String::new, |loads| format!(" [{loads}]"));
        format!("{}{place}", finding.evidence)
    };
    let mut found: Vec<String> = note.findings.iter().take(findings).map(one).collect();
    let more = note.findings.len().saturating_sub(findings);
    found.extend((more > 0).then(|| format!("and {more} more")));
    let found = if found.is_empty() { String::new() } else { format!(": {}", found.join("; ")) };
    let head = format!("note  {:<width$}  ", note.id.as_str());
    wrap(&head, &format!("{}{found}", note.id.title()), 6, style.width)
}

fn doubt_lines(doubt: &Doubt, loads: usize, most: usize, style: &Style) -> Vec<String> {
    let title = format!("{}: {} ({})", doubt.id, doubt.id.title(), effect_word(doubt.effect));
    let mut lines: Vec<_> =
        wrap("", &title, 2, style.width).into_iter().map(|line| style.paint(Tone::Doubtful, &line)).collect();
    for finding in doubt.findings.iter().take(most) {
        let place = finding.place(loads).map_or_else(String::new, |loads| format!(" [{loads}]"));
        lines.extend(wrap("  ", &format!("{}{place}", finding.evidence), 2, style.width));
    }
    if doubt.findings.len() > most {
        lines.push(clip(&format!("  and {} more", doubt.findings.len() - most), style.width));
    }
    lines.extend(doubt.cures.iter().flat_map(|cure| wrap("  cure: ", cure, 8, style.width)));
    lines
}

/// The verdict with its reasons, and in one sentence what the figures are worth: the rest of that stands on the page and
/// in docs/claims.md.
pub fn verdict_lines(record: &Record, style: &Style) -> Vec<String> {
    let judgement = &record.judgement;
    let sentence = record::claims::kept(record).sentence();
    if judgement.verdict == Verdict::Measured {
        let text = format!("Measured, {}. {sentence}", judgement.reasons.join("; "));
        return wrap("", &text, 0, style.width);
    }
    let mut lines = judgement_lines(judgement, style);
    if !sentence.is_empty() {
        lines.extend(wrap("", &sentence, 0, style.width));
    }
    lines
}

/// `FAIL  the weightiest reason`, then the others below it.
fn judgement_lines(judgement: &Judgement, style: &Style) -> Vec<String> {
    let word = judgement.verdict.to_string().to_uppercase();
    let blank = " ".repeat(word.len() + 2);
    let mut lines = Vec::new();
    for (place, reason) in judgement.reasons.iter().enumerate() {
        let head = if place == 0 { format!("{word}  ") } else { blank.clone() };
        lines.extend(wrap(&head, reason, blank.len(), style.width));
    }
    if lines.is_empty() {
        lines.push(word.clone());
    }
    lines[0] = lines[0].replacen(&word, &style.paint(verdict_tone(judgement.verdict), &word), 1);
    lines
}

/// `FAIL  before: the weightiest reason; and 2 more`: the verdict on one of several records, which lies in `directory`.
pub fn verdict_of_one(directory: &str, judgement: &Judgement, style: &Style) -> Vec<String> {
    let first = judgement.reasons.first().map_or_else(String::new, |reason| format!(": {reason}"));
    let more = match judgement.reasons.len().saturating_sub(1) {
        0 => String::new(),
        others => format!("; and {others} more"),
    };
    let reason = format!("{directory}{first}{more}");
    judgement_lines(&Judgement { reasons: vec![reason], ..judgement.clone() }, style)
}

pub(crate) fn verdict_tone(verdict: Verdict) -> Tone {
    match verdict {
        Verdict::Measured => Tone::Plain,
        Verdict::Pass => Tone::Good,
        Verdict::Inconclusive => Tone::Doubtful,
        Verdict::Error | Verdict::Fail => Tone::Bad,
    }
}
