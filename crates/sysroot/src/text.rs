//! A tree as one text, to be read and written by people, and as files of an archive with a list of what no file can say.
//!
//! `=== PATH` begins a file, whose content goes up to the next such line. `\xHH` stands for a byte, `\0` for the byte 0,
//! a backslash at the very end of a content for no newline there. What is not a file that was read has a line of its own:
//!
//! ```text
//! === begin                                              there is an end, or a part is missing
//! === capture                                            what is not here was not asked for
//! === file absent /proc/config.gz
//! === file 13 /proc/1/environ                            the errno
//! === directory value /sys/class/net eth0 lo             with a / behind directories
//! === link value /sys/class/drm/card0/device/driver ../../../bus/pci/drivers/i915
//! === present absent /.dockerenv
//! === end 1c291ca3                                       CRC-32 of all bytes before this line; left out by who edits
//! ```
//!
//! Texts of former versions have neither begin nor end, and those that people write need none: nobody can say of such a text
//! that a part is missing.

use std::collections::BTreeMap;
use std::fmt::Write;

use record::Fact;

use super::{Name, Tree};

pub(super) const MARK: &str = "=== ";
const CAPTURE: &str = "capture";
const BEGIN: &str = "begin";
const END: &str = "end";

/// Why a text is not a tree.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the list is `{text}`: {why}")]
pub struct ListError {
    /// From 1 on.
    pub line: usize,
    /// The line, at most 120 characters of it.
    pub text: String,
    /// What is wrong.
    pub why: &'static str,
}

/// Whether a text has the mark of its end.
pub(super) fn has_end(text: &str) -> bool {
    text.lines().any(|line| line.strip_prefix(MARK).is_some_and(|entry| entry.split(' ').next() == Some(END)))
}

impl Tree {
    /// Reads the text form. Lines before the first mark are a comment.
    ///
    /// # Errors
    /// [`ListError`] for a marked line that is neither a path nor of the forms above, and for a text that has a begin and not
    /// its end.
    pub fn of_text(text: &str) -> Result<Self, ListError> {
        if text.lines().any(|line| line.strip_prefix(MARK) == Some(BEGIN)) && !has_end(text) {
            let line = text.lines().count();
            return Err(fault(line, text.lines().last().unwrap_or_default(), CUT));
        }
        let mut tree = Self::default();
        let mut content: Option<(String, String)> = None;
        let mut is_closed = false;
        let mut at = 0;
        for (number, line) in (1..).zip(text.split_inclusive('\n')) {
            let before = &text[..at];
            at += line.len();
            if is_closed && !line.trim().is_empty() {
                return Err(fault(number, line.trim_end(), BEHIND));
            }
            match (line.strip_prefix(MARK), &mut content) {
                (None, Some((_, content))) => content.push_str(line),
                (None, None) => {}
                (Some(entry), _) => {
                    tree.put_content(content.take());
                    let entry = entry.trim_end_matches(['\n', '\r']);
                    let first = entry.split(' ').next().unwrap_or_default();
                    if entry == BEGIN {
                        // Its end was looked for above.
                    } else if first == END {
                        is_closed = true;
                        is_of(before, &entry[END.len()..]).map_err(|why| fault(number, entry, why))?;
                    } else if entry.starts_with('/') {
                        content = Some((super::key(&unescaped_text(entry)), String::new()));
                    } else {
                        tree.put_entry(entry).map_err(|why| fault(number, entry, why))?;
                    }
                }
            }
        }
        tree.put_content(content);
        Ok(tree)
    }

    fn put_content(&mut self, content: Option<(String, String)>) {
        if let Some((path, text)) = content {
            self.files.insert(path, Fact::Value(unescaped(&text)));
        }
    }

    /// Writes the text form.
    pub fn text(&self) -> String {
        let mut text = format!("{MARK}{BEGIN}\n{}", self.list());
        for (path, bytes) in self.contents() {
            let _ = write!(text, "{MARK}{}\n{}", escaped_name(path), escaped(bytes));
        }
        let sum = checksum(&text);
        let _ = writeln!(text, "{MARK}{END} {sum:08x}");
        text
    }

    /// The files that were read, with what they held.
    pub fn contents(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.files.iter().filter_map(|(path, fact)| Some((path.as_str(), fact.value()?.as_slice())))
    }

    /// Everything that is not the content of a file.
    pub(super) fn list(&self) -> String {
        let mut list = if self.is_capture { format!("{MARK}{CAPTURE}\n") } else { String::new() };
        let unread = self.files.iter().filter(|(_, fact)| fact.value().is_none());
        unread.for_each(|(path, fact)| entry(&mut list, "file", path, fact, |_| String::new()));
        entries(&mut list, "directory", &self.directories, |names| {
            let name = |name: &Name| {
                format!(" {}{}", escaped_name(&name.text), if name.is_directory { "/" } else { "" })
            };
            names.iter().map(name).collect()
        });
        entries(&mut list, "link", &self.links, |target| format!(" {}", escaped_name(target)));
        entries(&mut list, "present", &self.present, |()| String::new());
        list
    }

    /// Takes one entry of the list, without its mark.
    fn put_entry(&mut self, entry: &str) -> Result<(), &'static str> {
        let mut words = entry.split(' ');
        let (kind, state, path) = (words.next(), words.next(), words.next());
        if kind == Some(CAPTURE) && state.is_none() {
            self.is_capture = true;
            return Ok(());
        }
        let (Some(kind), Some(state), Some(path)) = (kind, state, path) else {
            return Err("it has no kind, state and path");
        };
        let path = super::key(&unescaped_text(path));
        let rest: Vec<String> = words.map(unescaped_text).collect();
        match kind {
            "file" if state != "value" => put(&mut self.files, path, state, Vec::new),
            "directory" => {
                put(&mut self.directories, path, state, || rest.iter().map(|text| name(text)).collect())
            }
            "link" => put(&mut self.links, path, state, || rest.join(" ")),
            "present" => put(&mut self.present, path, state, || ()),
            _ => Err("its kind is none of file, directory, link, present"),
        }
    }
}

const CUT: &str = "it is the last line, and no `=== end` follows: the file was cut off";

const BEHIND: &str = "it stands behind `=== end`, where nothing of a snapshot is";

/// Whether `text` has the checksum that its end says; an end without one is that of a text which somebody edited.
fn is_of(text: &str, sum: &str) -> Result<(), &'static str> {
    let sum = sum.trim();
    let is_right = sum.is_empty() || u32::from_str_radix(sum, 16) == Ok(checksum(text));
    is_right.then_some(()).ok_or(
        "what stands before it has another checksum: a part is missing, or was edited (then leave the number out)",
    )
}

/// CRC-32, as gzip has it.
fn checksum(text: &str) -> u32 {
    let mut sum = flate2::Crc::new();
    sum.update(text.as_bytes());
    sum.sum()
}

fn fault(line: usize, text: &str, why: &'static str) -> ListError {
    ListError { line, text: text.chars().take(120).collect(), why }
}

fn entries<T>(list: &mut String, kind: &str, map: &BTreeMap<String, Fact<T>>, value: impl Fn(&T) -> String) {
    map.iter().for_each(|(path, fact)| entry(list, kind, path, fact, &value));
}

fn entry<T>(list: &mut String, kind: &str, path: &str, fact: &Fact<T>, value: impl Fn(&T) -> String) {
    let (state, rest) = match fact {
        Fact::Value(thing) => ("value".to_owned(), value(thing)),
        Fact::Absent => ("absent".to_owned(), String::new()),
        Fact::Unreadable(errno) => (errno.to_string(), String::new()),
        Fact::Unsupported => return,
    };
    let _ = writeln!(list, "{MARK}{kind} {state} {}{rest}", escaped_name(path));
}

fn put<T>(
    map: &mut BTreeMap<String, Fact<T>>,
    path: String,
    state: &str,
    value: impl FnOnce() -> T,
) -> Result<(), &'static str> {
    let fact = match state {
        "value" => Fact::Value(value()),
        "absent" => Fact::Absent,
        errno => match errno.parse() {
            Ok(errno @ 1..=4095) => Fact::Unreadable(errno),
            _ => return Err("its state is none of value, absent and an errno"),
        },
    };
    map.insert(path, fact);
    Ok(())
}

fn name(text: &str) -> Name {
    match text.strip_suffix('/') {
        Some(directory) => Name { text: directory.to_owned(), is_directory: true },
        None => Name { text: text.to_owned(), is_directory: false },
    }
}

/// A content with what is not printed, and what would be taken for a mark, as escapes.
fn escaped(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            let is_at_start = text.is_empty() || text.ends_with('\n');
            match character {
                '\n' | '\t' => text.push(character),
                '=' if is_at_start => text.push_str("\\x3d"),
                '\\' => text.push_str("\\x5c"),
                '\0'..='\u{1f}' | '\u{7f}' => {
                    let _ = write!(text, "\\x{:02x}", character as u32);
                }
                _ => text.push(character),
            }
        }
        chunk.invalid().iter().for_each(|byte| {
            let _ = write!(text, "\\x{byte:02x}");
        });
    }
    if !text.ends_with('\n') {
        text.push_str("\\\n");
    }
    text
}

/// A name or path, which must stay one word.
fn escaped_name(name: &str) -> String {
    escaped(name.as_bytes())
        .trim_end_matches("\\\n")
        .replace(' ', "\\x20")
        .replace('\n', "\\x0a")
        .replace('\t', "\\x09")
}

/// The bytes of a content.
fn unescaped(text: &str) -> Vec<u8> {
    let text = text.strip_suffix("\\\n").unwrap_or(text).as_bytes();
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, after)) = rest.split_first() {
        let (byte, length) = match (first, after) {
            (b'\\', [b'x', high, low, ..]) => match (nibble(*high), nibble(*low)) {
                (Some(high), Some(low)) => (high << 4 | low, 4),
                _ => (first, 1),
            },
            (b'\\', [b'0', next, ..]) if !next.is_ascii_digit() => (0, 2),
            (b'\\', [b'0']) => (0, 2),
            _ => (first, 1),
        };
        bytes.push(byte);
        rest = &rest[length..];
    }
    bytes
}

fn unescaped_text(text: &str) -> String {
    String::from_utf8_lossy(&unescaped(text)).into_owned()
}

fn nibble(digit: u8) -> Option<u8> {
    (digit as char).to_digit(16).map(|value| value as u8)
}
