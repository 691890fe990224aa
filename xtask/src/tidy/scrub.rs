//! Rust source with comments and the contents of literals blanked out, so that rules look at code alone.

use std::str::Chars;

/// What is left of a source, and what was in its literals.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Scrubbed {
    /// The source, line for line, with blanks for comments and for what stands between quotes.
    pub code: String,
    /// String literals, each with the line (from 1) that it begins on; escapes as written.
    pub literals: Vec<(usize, String)>,
}

/// Blanks out `source`.
pub fn scrub(source: &str) -> Scrubbed {
    let mut scrubber = Scrubber { rest: source.chars(), out: Scrubbed::default(), line: 1 };
    while scrubber.step() {}
    scrubber.out
}

struct Scrubber<'a> {
    rest: Chars<'a>,
    out: Scrubbed,
    line: usize,
}

impl Scrubber<'_> {
    /// One token of what matters here; false at the end.
    fn step(&mut self) -> bool {
        let text = self.rest.as_str();
        if text.is_empty() {
            return false;
        }
        if text.starts_with("//") {
            self.blank(text.find('\n').unwrap_or(text.len()));
        } else if text.starts_with("/*") {
            self.blank(comment(text));
        } else if let Some((open, hashes)) = raw(text).filter(|_| !self.in_word()) {
            self.literal(open, &format!("\"{}", "#".repeat(hashes)), false);
        } else if text.starts_with('"') {
            self.literal(1, "\"", true);
        } else if text.starts_with('\'') {
            self.quote(text);
        } else {
            self.keep(1);
        }
        true
    }

    /// Whether the character before is part of a name, so that an `r` does not begin a raw string.
    fn in_word(&self) -> bool {
        self.out.code.ends_with(|last: char| last.is_alphanumeric() || last == '_')
    }

    /// Keeps `count` characters.
    fn keep(&mut self, count: usize) {
        for character in self.rest.by_ref().take(count) {
            self.line += usize::from(character == '\n');
            self.out.code.push(character);
        }
    }

    /// Replaces `bytes` bytes by blanks; lines stay lines.
    fn blank(&mut self, bytes: usize) {
        let (gone, rest) = self.rest.as_str().split_at(bytes);
        for character in gone.chars() {
            self.line += usize::from(character == '\n');
            self.out.code.push(if character == '\n' { '\n' } else { ' ' });
        }
        self.rest = rest.chars();
    }

    /// A string literal whose opening takes `open` bytes and that ends with `close`.
    fn literal(&mut self, open: usize, close: &str, escapes: bool) {
        let line = self.line;
        self.keep(open);
        let text = self.rest.as_str();
        let length = end_of_literal(text, close, escapes);
        self.out.literals.push((line, text[..length].to_owned()));
        self.blank(length);
        self.keep(close.len());
    }

    /// A character literal is blanked, a lifetime kept.
    fn quote(&mut self, text: &str) {
        match character(text) {
            Some(length) => {
                self.keep(1);
                self.blank(length - 2);
                self.keep(1);
            }
            None => self.keep(1),
        }
    }
}

/// Length in bytes of the comment that `text` begins with; such comments nest.
fn comment(text: &str) -> usize {
    let (mut depth, mut place) = (0_usize, 0);
    while place < text.len() {
        let rest = &text[place..];
        if rest.starts_with("/*") {
            depth += 1;
            place += 2;
        } else if rest.starts_with("*/") {
            depth -= 1;
            place += 2;
        } else {
            place += rest.chars().next().map_or(1, char::len_utf8);
        }
        if depth == 0 {
            break;
        }
    }
    place.min(text.len())
}

/// Length of the opening of a raw string and the number of its hashes, where `text` begins with one.
fn raw(text: &str) -> Option<(usize, usize)> {
    let prefix = ["r", "br", "cr"].into_iter().find(|prefix| {
        let rest = text.strip_prefix(prefix);
        rest.is_some_and(|rest| rest.starts_with('"') || rest.starts_with("#\"") || rest.starts_with("##"))
    })?;
    let rest = &text[prefix.len()..];
    let hashes = rest.len() - rest.trim_start_matches('#').len();
    rest[hashes..].starts_with('"').then_some((prefix.len() + hashes + 1, hashes))
}

/// Where the literal that `text` is inside of ends, in bytes.
fn end_of_literal(text: &str, close: &str, escapes: bool) -> usize {
    let mut characters = text.char_indices();
    while let Some((place, character)) = characters.next() {
        if escapes && character == '\\' {
            characters.next();
        } else if text[place..].starts_with(close) {
            return place;
        }
    }
    text.len()
}

/// Length in bytes of the character literal that `text` begins with; none for a lifetime.
fn character(text: &str) -> Option<usize> {
    let mut characters = text.char_indices().skip(1);
    let (_, first) = characters.next()?;
    if first == '\\' {
        characters.next(); // what is escaped may be a quote
        return characters.find(|(_, character)| *character == '\'').map(|(place, _)| place + 1);
    }
    let (place, second) = characters.next()?;
    (second == '\'').then_some(place + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_go_and_lines_stay() {
        let scrubbed = scrub("a // unsafe\nb /* x /* y */\n z */ c\n");
        assert_eq!(scrubbed.code.split_whitespace().collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!(scrubbed.code.lines().count(), 3);
    }

    #[test]
    fn literals_are_collected_and_blanked() {
        let source = "f(\"/proc/x\\\"y\");\nlet a = br##\"/sys\"#\"##; let b = \"//no comment\"; c\n";
        let scrubbed = scrub(source);
        let literals: Vec<_> = scrubbed.literals.iter().map(|(line, text)| (*line, text.as_str())).collect();
        assert_eq!(literals, [(1, "/proc/x\\\"y"), (2, "/sys\"#"), (2, "//no comment")]);
        assert!(scrubbed.code.ends_with("; c\n"));
        assert!(!scrubbed.code.contains("proc"));
    }

    #[test]
    fn characters_are_not_lifetimes() {
        let scrubbed = scrub("fn f<'a>(x: &'a str) { x == '\"' || '{' == '\\'' || '\\u{7d}' == 'µ' }");
        assert_eq!(scrubbed.code.matches('{').count(), 1);
        assert_eq!(scrubbed.code.matches('}').count(), 1);
        assert!(scrubbed.code.starts_with("fn f<'a>(x: &'a str)"));
        assert!(scrubbed.literals.is_empty());
    }

    #[test]
    fn a_name_that_ends_in_r_does_not_open_a_raw_string() {
        assert_eq!(scrub("for r in r#type \"x\"").literals, [(1, "x".to_owned())]);
    }
}
