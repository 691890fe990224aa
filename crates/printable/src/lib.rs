//! The one way out for text of others: of guests, programs, the kernel, records and files that somebody else wrote. A
//! terminal obeys what stands between the letters, so that a process name could clear the screen, set the window's
//! title or show a line that was never printed.
//!
//! ```
//! assert_eq!(printable::lines("disk\x1b[2Jfull\r\n"), "disk[2Jfull\n");
//! assert_eq!(printable::line("two\nlines"), "two lines");
//! ```

use std::borrow::Cow;

/// `text` without what a terminal would obey; newlines and tabs stay.
pub fn lines(text: &str) -> Cow<'_, str> {
    let is_kept = |c: char| matches!(c, '\n' | '\t') || !is_obeyed(c);
    if text.chars().all(is_kept) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().filter(|&c| is_kept(c)).collect())
}

/// The colours that stay: parameters of the ANSI sequence "select graphic rendition" (ECMA-48, 8.3.117). Others could hide what
/// follows, or write it in the colour of what is behind it.
pub const COLOURS: [&str; 6] = ["0", "1", "2", "1;31", "1;32", "1;33"];

/// As [`lines`], of text in which colours are our own: [`COLOURS`]. Nothing else that begins so stays.
pub fn coloured(text: &str) -> Cow<'_, str> {
    if !text.contains('\x1b') {
        return lines(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut pieces = text.split('\x1b');
    shown.push_str(&lines(pieces.next().unwrap_or_default()));
    for piece in pieces {
        let is_ours = |colour: &&str| {
            piece
                .strip_prefix('[')
                .and_then(|rest| rest.strip_prefix(*colour))
                .is_some_and(|rest| rest.starts_with('m'))
        };
        if COLOURS.iter().any(is_ours) {
            shown.push('\x1b');
        }
        shown.push_str(&lines(piece));
    }
    Cow::Owned(shown)
}

/// `text` in one line: each character that a terminal would obey is a blank, newlines and tabs too.
pub fn line(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_obeyed) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(|c| if is_obeyed(c) { ' ' } else { c }).collect())
}

/// `word` as a shell reads it: in quotes where the shell would take it apart.
pub fn shell(word: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+%@".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => Cow::Borrowed(word),
        false => Cow::Owned(format!("'{}'", word.replace('\'', "'\\''"))),
    }
}

/// `text` for an element or attribute of XML: without the characters that it takes for its own, and blanks for those that
/// it does not know at all and those that a viewer would obey.
pub fn xml(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&apos;"),
            c if is_obeyed(c) || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}

/// JSON with an escape for each character beyond ASCII that a terminal or a viewer of logs would obey; the value is the same. Those of
/// ASCII are escaped in JSON anyway.
pub fn json(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if !c.is_ascii() && is_obeyed(c) {
            escaped.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// `text` for a line of the Test Anything Protocol: in one line, `\` and `#` escaped (version 14).
pub fn tap(text: &str) -> String {
    line(text).replace('\\', "\\\\").replace('#', "\\#")
}

/// Control characters, C1 among them, and those that change the direction of what follows (UAX #9): with these a
/// terminal shows other words than stand there.
fn is_obeyed(c: char) -> bool {
    let turns =
        matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || turns
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_harmless_stays_as_it_is() {
        for text in ["", "CPU 1:\t5 µs\nßχ 漢 \\x1b", "\u{fffd}"] {
            assert!(matches!(lines(text), Cow::Borrowed(same) if same == text));
        }
        assert!(matches!(line("5 µs"), Cow::Borrowed("5 µs")));
    }

    #[test]
    fn sequences_lose_what_begins_them() {
        let hostile = "\x1b]0;title\x07a\u{9b}2Jb\x08\x08c\x7fd\u{202e}e\0";
        assert_eq!(lines(hostile), "]0;titlea2Jbcde");
        assert_eq!(line(hostile), " ]0;title a 2Jb  c d e ");
    }

    #[test]
    fn colours_stay_and_nothing_else_that_begins_like_them() {
        let ours = "\x1b[1;31mred\x1b[0m\n";
        assert_eq!(coloured(ours), ours);
        let hostile = "\x1b[1;31mred\x1b[2J\x1b]0;title\x07\x1b\x1b[0mx\x1b[1\u{9b}m\x1b[3";
        assert_eq!(coloured(hostile), "\x1b[1;31mred[2J]0;title\x1b[0mx[1m[3");
        // Concealed, turned round, black on black, and at great length.
        for hidden in ["[8m", "[7m", "[30;40m", "[1;8m", "[00000001m", "[m"] {
            assert_eq!(coloured(&format!("a\x1b{hidden}b")), format!("a{hidden}b"));
        }
        assert!(matches!(coloured("plain"), Cow::Borrowed(_)));
    }

    #[test]
    fn a_word_that_the_shell_would_take_apart_is_quoted() {
        for plain in ["performance", "0-3", "kernel.sched_rt_runtime_us=-1", "/sys/x@%+"] {
            assert!(matches!(shell(plain), Cow::Borrowed(same) if same == plain));
        }
        assert_eq!(shell(""), "''");
        assert_eq!(shell("it's $HOME"), "'it'\\''s $HOME'");
    }

    #[test]
    fn json_keeps_its_value_and_none_of_what_would_be_obeyed() {
        let text = "a\u{9b}2Jb\u{202e}c\u{2066}d\u{e9}";
        assert_eq!(json(&format!("\"{text}\"")), "\"a\\u009b2Jb\\u202ec\\u2066d\u{e9}\"");
        assert_eq!(xml(text), "a 2Jb c d\u{e9}");
    }

    proptest! {
        #[test]
        fn no_text_gets_a_command_through(text in any::<String>(), controls in "[\0-\u{a0}\u{2000}-\u{2070}]{0,40}") {
            let text = text + &controls;
            let (lines, line) = (lines(&text), line(&text));
            prop_assert!(lines.chars().all(|c| c == '\n' || c == '\t' || !is_obeyed(c)));
            prop_assert!(!line.chars().any(|c| c.is_control()));
            prop_assert_eq!(line.chars().count(), text.chars().count());
            let letters = |text: &str| text.chars().filter(|&c| !is_obeyed(c)).collect::<String>();
            prop_assert_eq!(letters(&lines), letters(&text), "nothing else is lost");
        }
    }
}
