//! Numbers and paragraphs as people read them.

use record::Unit;
use units::{InOrder, Nanos};

/// A latency for a column: microseconds without a decimal are padded, so that units stand below units.
pub(crate) fn aligned(unit: Unit, latency: Nanos) -> String {
    let text = unit.figure(latency);
    if unit == Unit::Instructions || text.contains('.') { text } else { text + "  " }
}

/// Values in a list: `1ms, 10ms`.
pub(crate) fn joined<T: ToString>(values: &[T]) -> String {
    values.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
}

/// `part` of `whole` in per cent, without the sign: 0 is `0`, and nothing else is rounded to it.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    if part == 0 || whole == 0 {
        return "0".into();
    }
    match part as f64 / whole as f64 * 100.0 {
        share if share < 0.001 => "<0.001".into(),
        share if share < 1.0 => format!("{share:.3}"),
        share => format!("{share:.1}"),
    }
}

/// `1 page fault`, `2 page faults`.
pub fn count_of(count: u64, singular: &str) -> String {
    format!("{count} {singular}{}", if count == 1 { "" } else { "s" })
}

/// With a capital and a full stop: what is a line on a terminal is a sentence on a page.
pub(crate) fn sentence(text: &str) -> String {
    let mut letters = text.trim().chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    let end = if text.ends_with(['.', ':']) { "" } else { "." };
    first + letters.as_str() + end
}

/// The places of the `most` longest parts: where not all are shown, these are, in their own order.
pub(crate) fn longest(lengths: impl Iterator<Item = Nanos>, most: usize) -> Vec<usize> {
    let mut parts: Vec<(usize, Nanos)> = lengths.enumerate().collect();
    parts.order_by_key(|(_, length)| std::cmp::Reverse(*length));
    parts.into_iter().take(most).map(|(place, _)| place).collect()
}

/// Without control characters: a host name or a program's message must not command the terminal.
pub fn harmless(text: &str) -> String {
    printable::line(text).into_owned()
}

/// Words as a shell reads them.
pub fn shell(words: &[String]) -> String {
    words.iter().map(|word| printable::shell(word)).collect::<Vec<_>>().join(" ")
}

/// At most `width` characters; what is cut is marked.
pub fn clip(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut clipped: String = text.chars().take(width.saturating_sub(1)).collect();
    if width > 0 {
        clipped.push('~');
    }
    clipped
}

/// As [`clip`], from the middle: names that differ at an end still do.
pub fn clip_inside(text: &str, width: usize) -> String {
    let characters: Vec<char> = text.chars().collect();
    if characters.len() <= width || width < 3 {
        return clip(text, width);
    }
    let end = (width - 1) / 2;
    let begin = characters[..width - 1 - end].iter();
    begin.chain(&['~']).chain(&characters[characters.len() - end..]).collect()
}

/// Blanks by which a line that goes on differs from one that begins.
const LEAST_HANG: usize = 2;

/// Lines of at most `width` characters: the first begins with `head`, the others with as many blanks as `hang`, or fewer where a
/// word, such as a path that is to be copied, has no room otherwise.
pub(crate) fn wrap(head: &str, text: &str, hang: usize, width: usize) -> Vec<String> {
    let text = harmless(text);
    let longest = text.split_whitespace().map(|word| word.chars().count()).max().unwrap_or(0);
    let hang = match width.saturating_sub(longest) {
        ..LEAST_HANG => hang.min(width / 2),
        room => hang.min(width / 2).min(room),
    };
    let blank = " ".repeat(hang);
    let head = if head.len() > hang && head.trim().is_empty() { &blank } else { head };
    let mut lines = vec![harmless(head)];
    let mut line_is_bare = true;
    for word in text.split_whitespace().flat_map(|word| pieces(word, width - hang)) {
        let line = lines.last_mut().map_or(0, |line| line.chars().count());
        let gap = usize::from(!line_is_bare);
        if line + gap + word.chars().count() > width && !(line_is_bare && line <= hang) {
            lines.push(" ".repeat(hang));
            line_is_bare = true;
        }
        if let Some(line) = lines.last_mut() {
            if !line_is_bare {
                line.push(' ');
            }
            line.push_str(&word);
        }
        line_is_bare = false;
    }
    lines.into_iter().map(|line| clip(line.trim_end(), width)).collect()
}

/// A line of a table with a `name` that may be wider than its column of `room`: `tail` stands behind its first line, and the
/// rest of the name below. Names are what is looked for in the output: none is cut.
pub(crate) fn named_row(head: &str, name: &str, room: usize, tail: &str) -> String {
    let below = format!("\n{}", " ".repeat(head.chars().count()));
    let mut lines = wrap("", name, 2, room).into_iter();
    let first = lines.next().unwrap_or_default();
    let first = format!("{head}{first:room$}{tail}").trim_end().to_owned();
    lines.fold(first, |text, line| text + &below + &line)
}

/// A word that fits into `width`, or the parts of one that does not.
fn pieces(word: &str, width: usize) -> Vec<String> {
    let letters: Vec<char> = word.chars().collect();
    letters.chunks(width.max(1)).map(|piece| piece.iter().collect()).collect()
}

/// A paragraph of at most `width` columns, every line indented by `indent`; ends with a line break.
pub fn paragraph(text: &str, indent: usize, width: usize) -> String {
    let head = " ".repeat(indent);
    wrap(&head, text, indent, width).into_iter().map(|line| line + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_stand_below_units() {
        assert_eq!(aligned(Unit::Microseconds, Nanos(1_249)), "1.2");
        assert_eq!(aligned(Unit::Microseconds, Nanos(10_000_000)), "10000  ");
        assert_eq!(aligned(Unit::Instructions, Nanos(10_000_000)), "10,000,000");
    }

    #[test]
    fn a_share_is_zero_only_where_nothing_was() {
        assert_eq!(percent(0, 10), "0");
        assert_eq!(percent(1, 1_000_000_000), "<0.001");
        assert_eq!(percent(1, 1_000), "0.100");
        assert_eq!(percent(1, 3), "33.3");
    }

    #[test]
    fn long_names_go_on_below_their_figures() {
        assert_eq!(named_row("  ", "short", 10, "  7"), "  short       7");
        let name = "clear_huge_page in stress: no preemption point";
        let text = named_row("> ", name, 20, "  7");
        assert_eq!(text, "> clear_huge_page in    7\n    stress: no\n    preemption point");
        let long = "a_function_whose_name_is_wider_than_its_column";
        let whole: String = named_row("", long, 20, "").split_whitespace().collect();
        assert_eq!(whole, long);
    }

    #[test]
    fn paragraphs_hang_and_split_what_cannot_fit() {
        assert_eq!(wrap("validity: ", "one two three", 10, 20), ["validity: one two", "          three"]);
        let hung = wrap(&" ".repeat(8), "echo 1 > /sys/a/long/path", 8, 20);
        assert_eq!(hung, ["    echo 1 >", "    /sys/a/long/path"], "a path that fits somewhere stays whole");
        assert_eq!(wrap("", "abcdefghij", 0, 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrap("", "", 2, 10), [""]);
        assert_eq!(wrap("", "a\x1b[31mb", 0, 20), ["a [31mb"]);
    }
}
