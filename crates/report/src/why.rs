//! What `worstcase why` says of an id: its words, then paragraphs, each behind its name.

use crate::style::{Style, Tone};
use crate::text::{harmless, wrap};

/// Columns of the name in front of a paragraph.
const HEAD: usize = 13;

/// A paragraph: its name, its text.
pub type Part = (&'static str, String);

/// What stands behind `id`.
pub fn entry(id: &str, words: &str, parts: &[Part], style: &Style) -> String {
    let title = wrap(&format!("{id}: "), words, 2, style.width);
    let title = title.into_iter().map(|line| style.paint(Tone::Strong, &line));
    let paragraphs =
        parts.iter().flat_map(|(head, text)| wrap(&format!("{head:<HEAD$}"), text, HEAD, style.width));
    title.chain(paragraphs).map(|line| line + "\n").collect()
}

/// Ids of one family, each with its words.
pub fn family(name: &str, entries: &[(String, String)], style: &Style) -> String {
    let column = entries.iter().map(|(id, _)| id.chars().count()).max().unwrap_or(0).min(style.width / 2);
    let mut text = style.paint(Tone::Strong, name) + "\n";
    for (id, words) in entries {
        let lines = wrap(&format!("  {:<column$}  ", harmless(id)), words, column + 4, style.width);
        text.extend(lines.into_iter().map(|line| line + "\n"));
    }
    text
}
