//! Entries of the boot loader specification (uapi-group.org, type 1): a file an entry, `options` on one or more lines.

use std::cmp::Ordering;

use record::Fact;
use sysroot::SysRoot;

use super::shell::Lexer;
use super::{Piece, Requested, Variables, numbered, piece, text, words_of};

/// An entry's file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// Its path.
    pub path: String,
    /// Its name without `.conf` and the counter of tries.
    pub id: String,
    /// Boots that are left to it; none where they are not counted.
    pub tries_left: Option<u32>,
    /// What entries are sorted by first.
    pub sort_key: String,
    /// The kernel's version.
    pub version: String,
    /// What stands behind each `options`.
    pub options: Vec<Piece>,
    /// Whether it names anything to be loaded; loaders leave out one that does not.
    pub loads: bool,
}

/// Reads an entry.
pub fn entry(path: &str, text: &str) -> Entry {
    let name = path.rsplit('/').next().unwrap_or(path);
    let (id, tries_left) = counted(name.strip_suffix(".conf").unwrap_or(name));
    let mut entry = Entry { path: path.to_owned(), id, tries_left, ..Entry::default() };
    for line in numbered(text) {
        let (key, value) = line.2.trim_start().split_once([' ', '\t']).unwrap_or((line.2, ""));
        let value = value.trim();
        match key {
            "options" => entry.options.push(piece(path, line, value)),
            "sort-key" => value.clone_into(&mut entry.sort_key),
            "version" => value.clone_into(&mut entry.version),
            "linux" | "efi" => entry.loads |= !value.is_empty(),
            _ => {}
        }
    }
    entry
}

/// `debian+3-1` is `debian`, which may fail three more times.
fn counted(name: &str) -> (String, Option<u32>) {
    let parts = name.rsplit_once('+').and_then(|(id, counter)| {
        let left = counter.split('-').next()?.parse().ok()?;
        Some((id.to_owned(), Some(left)))
    });
    parts.unwrap_or_else(|| (name.to_owned(), None))
}

impl Entry {
    /// Its words as they stand there: systemd-boot hands them on so.
    pub fn plain_words(&self) -> Vec<Requested> {
        self.options.iter().flat_map(|option| words_of(std::slice::from_ref(option))).collect()
    }

    /// Its words; GRUB fills in variables, `$kernelopts`.
    pub fn words(&self, variables: &Variables) -> Option<Vec<Requested>> {
        let mut words = Vec::new();
        for option in &self.options {
            let place = &option.place;
            let mut lexer = Lexer::new(&self.path, &option.text);
            for word in lexer.statement(variables).unwrap_or_default() {
                let mut pieces = word.pieces()?.to_vec();
                for own in pieces.iter_mut().filter(|piece| piece.place.path == self.path) {
                    own.place.line = place.line;
                    own.place.span =
                        place.span.start + own.place.span.start..place.span.start + own.place.span.end;
                }
                words.extend(words_of(&pieces));
            }
        }
        Some(words)
    }
}

/// The entries in some directories; absent where there is none.
pub(super) fn entries(root: &SysRoot, directories: &[&str]) -> Fact<Vec<Entry>> {
    let mut found = Vec::new();
    for directory in directories {
        let names = match root.list(directory) {
            Fact::Value(names) => names,
            Fact::Absent => continue,
            other => return other.map(|_| Vec::new()),
        };
        for name in names.iter().filter(|name| name.ends_with(".conf")) {
            let path = format!("{directory}/{name}");
            match text(root, &path) {
                Fact::Value(text) => found.extend(Some(entry(&path, &text)).filter(|entry| entry.loads)),
                Fact::Absent => {}
                other => return other.map(|_| Vec::new()),
            }
        }
    }
    if found.is_empty() { Fact::Absent } else { Fact::Value(found) }
}

/// Numbers in names by their value, so that 6.10 comes after 6.9.
pub(super) fn natural_order(a: &str, b: &str) -> Ordering {
    let digits = |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (mut a, mut b) = (a, b);
    loop {
        let order = match (digits(a), digits(b)) {
            (0, _) | (_, 0) => {
                let (mut left, mut right) = (a.chars(), b.chars());
                let order = left.next().cmp(&right.next());
                (a, b) = (left.as_str(), right.as_str());
                order
            }
            (left, right) => {
                let number = |text: &str, end: usize| text[..end].trim_start_matches('0').to_owned();
                let (one, other) = (number(a, left), number(b, right));
                (a, b) = (&a[left..], &b[right..]);
                one.len().cmp(&other.len()).then(one.cmp(&other))
            }
        };
        if order != Ordering::Equal || (a.is_empty() && b.is_empty()) {
            return order;
        }
    }
}
