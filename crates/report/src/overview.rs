//! What all traced activations took part by part, and what ran beside threads.

use explain::cures;
use record::{Handler, Overview, PathLengths, Unit};
use units::Nanos;

use crate::style::{Style, Tone};
use crate::text::{count_of, harmless, named_row, paragraph};

/// Handlers that are listed in a text.
const LISTED: usize = 12;

/// Both tables, of `all` activations that were traced; empty where nothing was.
pub(crate) fn text(overview: &Overview, all: u64, unit: Unit, style: &Style) -> String {
    let mut text = String::new();
    if !overview.parts.is_empty() {
        let head = paragraph(&heading(overview, all), 0, style.width);
        text += &style.paint(Tone::Strong, &head);
        let head = format!("part, {}", unit.name());
        let mut lines = vec![format!("{head:24}  {:>9}  {:>9}  {:>9}", "median", "p99", "worst")];
        lines.extend(overview.parts.iter().map(|part| part_line(part, unit)));
        text.extend(lines.into_iter().map(|line| line + "\n"));
    }
    text.extend(end_to_end(overview, unit).iter().map(|line| paragraph(line, 2, style.width)));
    text + &handlers_text(overview, unit, style)
}

/// What the parts are of. Buffers that wrapped, and the reading of them, have lost activations.
pub(crate) fn heading(overview: &Overview, all: u64) -> String {
    let (whole, others) = (overview.activations, overview.others);
    let lost = all.saturating_sub(whole.saturating_add(others));
    let left_out = [
        (others, "cut off, or not begun by their own timer"),
        (lost, "no longer in the trace when it was read"),
    ];
    let mut left_out: Vec<String> = left_out
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, why)| format!("{count} {why}"))
        .collect();
    let first = overview.parts.first().map_or(0, |part| part.lengths.summary().count);
    let before_switch = first.saturating_sub(whole).min(others);
    if let Some(cut) = left_out.first_mut().filter(|_| before_switch > 0) {
        *cut += &format!(" (of {before_switch} the trace lacks the switch: their parts before it are here)");
    }
    match left_out.is_empty() {
        true => format!("{} in parts", count_of(whole, "traced activation")),
        false => {
            let all = count_of(all.max(whole.saturating_add(others)), "traced activation");
            format!("{whole} of {all} in parts; without {}", left_out.join(", and "))
        }
    }
}

/// The worst parts laid end to end, which is no bound.
pub(crate) fn end_to_end(overview: &Overview, unit: Unit) -> Option<String> {
    let sum = unit.with_name(overview.end_to_end()?);
    Some(format!("worst parts seen, laid end to end: {sum}. This is not a bound: worse ones may come"))
}

/// Median, 99th percentile and worst of a part.
pub(crate) fn figures(part: &PathLengths, unit: Unit) -> [String; 3] {
    let shown = |length: Option<Nanos>| length.map_or("-".to_owned(), |length| unit.figure(length));
    let lengths = &part.lengths;
    [lengths.quantile(0.5), lengths.quantile(0.99), lengths.summary().maximum()].map(shown)
}

fn part_line(part: &PathLengths, unit: Unit) -> String {
    let [median, high, worst] = figures(part, unit);
    format!("{:24}  {median:>9}  {high:>9}  {worst:>9}", part.name.words())
}

/// `interrupt 24 virtio0-input.0`
pub(crate) fn name(handler: &Handler) -> String {
    let number = handler.interrupt.map_or(String::new(), |number| format!(" {number}"));
    format!("{}{number} {}", handler.kind.words(), harmless(&handler.name))
}

fn handlers_text(overview: &Overview, unit: Unit, style: &Style) -> String {
    if overview.handlers.is_empty() {
        return String::new();
    }
    let room = style.width.saturating_sub(48).clamp(20, 50);
    let seconds = overview.watched.0 as f64 / 1e9;
    let head = match unit {
        Unit::Microseconds => {
            format!("What ran beside threads in {seconds:.1} s of traced CPU time")
        }
        Unit::Instructions => "What ran beside threads".to_owned(),
    };
    let gap = if overview.parts.is_empty() { "" } else { "\n" };
    let mut text = gap.to_owned() + &style.paint(Tone::Strong, &(head + ", the longest first\n"));
    text += &format!("{:room$}  {:>8}  {:>11}  {:>9}  on CPU\n", "handler", "number", "time", "longest");
    for handler in overview.handlers.iter().take(LISTED) {
        let (time, longest) = (unit.figure(handler.time), unit.figure(handler.longest));
        let figures = format!(
            "  {:>8}  {time:>11}  {longest:>9}  {:>6}",
            handler.count,
            handler.longest_on.to_string()
        );
        text += &(named_row("", &name(handler), room, &figures) + "\n");
    }
    let hidden = overview.handlers.len().saturating_sub(LISTED) as u64 + overview.left_out;
    if hidden > 0 {
        text += &format!("and {}\n", count_of(hidden, "shorter one"));
    }
    text.extend(moved(overview).iter().map(|line| paragraph(line, 2, style.width)));
    text
}

/// What can be done about the three longest.
fn moved(overview: &Overview) -> Vec<String> {
    let longest = overview.handlers.iter().take(3);
    longest.map(|handler| format!("{}: {}", name(handler), what_can_be_done(handler))).collect()
}

/// Whether it can be threaded or moved, and the rules that do it.
pub(crate) fn what_can_be_done(handler: &Handler) -> String {
    let sort = cures::of_handler(handler.kind, &handler.name);
    format!("{} ({})", sort.words, sort.rules.join(", "))
}
