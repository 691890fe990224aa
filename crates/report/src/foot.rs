//! What stands below the table: the conditions in one line, the doubts with their cures, and the verdict.

use record::verdict::{Judgement, Verdict};
use record::{Effect, Record};

use crate::style::{Style, Tone};
use crate::text::{clip, wrap};
use crate::validity;
use crate::warnings::{Doubt, Finding, doubts, effect_word, load_count};

/// Findings shown of one doubt; the page shows all.
const MOST_FINDINGS: usize = 4;

/// Validity, warnings and judgement.
pub fn foot(record: &Record, style: &Style) -> String {
    let doubts = doubts(record);
    let mut lines = wrap("validity: ", &validity::parts(record).join(", "), 2, style.width);
    if !doubts.is_empty() {
        lines.push(String::new());
    }
    let loads = load_count(record);
    let (notes, harmful): (Vec<_>, Vec<_>) = doubts.iter().partition(|doubt| doubt.effect == Effect::Note);
    lines.extend(harmful.iter().flat_map(|doubt| doubt_lines(doubt, loads, style)));
    lines.extend(notes.iter().flat_map(|note| note_lines(note, loads, style)));
    if !notes.is_empty() {
        lines.extend(wrap(
            "",
            "(the page of a record, report.html, has a cure for each note)",
            2,
            style.width,
        ));
    }
    lines.push(String::new());
    lines.extend(verdict_lines(record, style));
    lines.into_iter().map(|line| line + "\n").collect()
}

/// A note in a line or two: it leaves the verdict alone, and must not stand before it like a wall.
fn note_lines(note: &Doubt, loads: usize, style: &Style) -> Vec<String> {
    let place =
        |finding: &Finding| finding.place(loads).map_or_else(String::new, |loads| format!(" [{loads}]"));
    let first = note
        .findings
        .first()
        .map_or_else(String::new, |first| format!(": {}{}", first.evidence, place(first)));
    let more = match note.findings.len() {
        0 | 1 => String::new(),
        count => format!("; and {} more", count - 1),
    };
    wrap("note: ", &format!("{}{first}{more} ({})", note.id.title(), note.id), 2, style.width)
}

fn doubt_lines(doubt: &Doubt, loads: usize, style: &Style) -> Vec<String> {
    let title = format!("{}: {} ({})", doubt.id, doubt.id.title(), effect_word(doubt.effect));
    let mut lines: Vec<_> =
        wrap("", &title, 2, style.width).into_iter().map(|line| style.paint(Tone::Doubtful, &line)).collect();
    for finding in doubt.findings.iter().take(MOST_FINDINGS) {
        let place = finding.place(loads).map_or_else(String::new, |loads| format!(" [{loads}]"));
        lines.extend(wrap("  ", &format!("{}{place}", finding.evidence), 2, style.width));
    }
    if doubt.findings.len() > MOST_FINDINGS {
        lines.push(clip(&format!("  and {} more", doubt.findings.len() - MOST_FINDINGS), style.width));
    }
    lines.extend(doubt.cures.iter().flat_map(|cure| wrap("  cure: ", cure, 8, style.width)));
    lines
}

/// The verdict with its reasons, and in one sentence what the figures are worth: the rest of that stands on the page and
/// in docs/claims.md.
pub fn verdict_lines(record: &Record, style: &Style) -> Vec<String> {
    let mut lines = judgement_lines(&record.judgement, style);
    let sentence = record::claims::kept(record).sentence();
    if !sentence.is_empty() {
        lines.extend(wrap("", &sentence, 0, style.width));
    }
    lines
}

fn judgement_lines(judgement: &Judgement, style: &Style) -> Vec<String> {
    let word = format!("verdict: {}", judgement.verdict);
    let mut lines = vec![style.paint(verdict_tone(judgement.verdict), &clip(&word, style.width))];
    lines.extend(judgement.reasons.iter().flat_map(|reason| wrap("  ", reason, 4, style.width)));
    lines
}

pub(crate) fn verdict_tone(verdict: Verdict) -> Tone {
    match verdict {
        Verdict::Measured => Tone::Plain,
        Verdict::Pass => Tone::Good,
        Verdict::Inconclusive => Tone::Doubtful,
        Verdict::Error | Verdict::Fail => Tone::Bad,
    }
}
