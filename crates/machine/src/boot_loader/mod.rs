//! What the boot loader will hand to the kernel at the next boot, as its files say: the words, and where they stand.
//!
//! A loader's file is read by the loader's own grammar (one file here a loader), so that the same parsers judge what
//! was found and what was written. Nothing is run: what only a program tells, as U-Boot's environment, stays unknown.

mod bls;
mod extlinux;
mod glob;
mod grub;
mod raspberry_pi;
mod shell;
mod systemd_boot;
mod u_boot;
mod version_order;

#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::Range;

use record::Fact;
use sysroot::SysRoot;

use crate::command_line::{self, CommandLine, Word, same_name};

pub use bls::{Entry, entry};
pub use extlinux::{Label, is_mark, is_menu, keyword, labels, labels_with_included, lines, name_of_included};
pub use grub::{Choice, MenuEntry, defaults, environment, menu, variables};
pub use raspberry_pi::{FirmwareSetting, FirmwareSettings, cmdline_txt, firmware_filter};
pub use shell::{Variables, source};
pub use u_boot::environment_text;

/// A stretch of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file's path.
    pub path: String,
    /// The line in which it begins, from 1.
    pub line: usize,
    /// Its bytes in the text that was parsed.
    pub span: Range<usize>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, line {}", self.path, self.line)
    }
}

/// Text that stands together in a file, without the file's quoting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The text.
    pub text: String,
    /// Where it stands.
    pub place: Place,
}

/// A word for the kernel, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requested {
    /// The word.
    pub word: Word,
    /// Where its first byte stands.
    pub place: Place,
}

/// What a loader will hand over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Which loader: a name of the fact `bootloader`.
    pub loader: &'static str,
    /// The file in which the entry stands that will be booted: grub.cfg, an entry's file, cmdline.txt.
    pub file: String,
    /// The words of the next boot, in order.
    pub words: Vec<Requested>,
    /// Words of a file that a program has yet to turn into what the loader reads.
    pub sources: Vec<Requested>,
    /// That program: `update-grub`.
    pub generator: &'static str,
    /// Whether the words are all, but for those that the loader adds by itself ([`Request::is_own`]).
    pub is_whole: bool,
}

impl Request {
    fn new(loader: &'static str, file: &str, words: Vec<Requested>) -> Self {
        Self { loader, file: file.to_owned(), words, sources: Vec::new(), generator: "", is_whole: true }
    }

    /// The words of the next boot as a command line.
    pub fn line(&self) -> CommandLine {
        let words = self.words.iter().map(|requested| requested.word.clone()).collect();
        CommandLine { words, for_init: Vec::new() }
    }

    /// The place of the word that counts, of those with a name.
    pub fn place_of(&self, name: &str) -> Option<&Place> {
        let found = self.words.iter().rev().find(|requested| same_name(&requested.word.name, name));
        found.map(|requested| &requested.place)
    }

    /// Whether the loader, or the program that writes its files, puts such a word on the line by itself. The Raspberry
    /// Pi's firmware puts its own in front of the first word of the file.
    pub fn is_own(&self, word: &Word, line: &CommandLine) -> bool {
        const OWN: [&str; 6] = ["BOOT_IMAGE", "initrd", "root", "ro", "rw", "rootflags"];
        let is_named =
            |word: &Word| self.words.iter().any(|requested| same_name(&requested.word.name, &word.name));
        let is_in_front = || line.words.iter().take_while(|word| !is_named(word)).any(|own| own == word);
        OWN.contains(&word.name.as_str()) || (self.loader == raspberry_pi::NAME && is_in_front())
    }

    /// Whether a word of the file and one of the line are the same: the Raspberry Pi's firmware names the serial line.
    pub fn is_same(&self, requested: &Word, given: &Word) -> bool {
        let after_device = |word: &Word| word.text().split_once(',').map(|(_, rest)| rest.to_owned());
        let is_alias = || {
            self.loader == raspberry_pi::NAME
                && requested.text().starts_with("serial")
                && after_device(requested) == after_device(given)
        };
        same_name(&requested.name, &given.name) && (requested.value == given.value || is_alias())
    }
}

/// A loader's reader: absent where the loader left no file.
type Finder = fn(&SysRoot) -> Fact<Request>;

/// In the order of trust: an installed loader of the firmware's before one that a board may have started.
const LOADERS: [(&str, Finder); 5] = [
    (systemd_boot::NAME, systemd_boot::find),
    (grub::NAME, grub::find),
    (extlinux::NAME, extlinux::find),
    (raspberry_pi::NAME, raspberry_pi::find),
    (u_boot::NAME, u_boot::find),
];

/// The loaders whose files are read.
pub fn names() -> impl Iterator<Item = &'static str> {
    LOADERS.iter().map(|(name, _)| *name)
}

/// What the machine's boot loader will hand over; absent where none left a file.
///
/// # Errors
/// Unreadable with the errno of the first file that may not be read, if no loader answered; unsupported where what the
/// loader chooses is not in files.
pub fn find(root: &SysRoot) -> Fact<Request> {
    if !grub::has_booted(root) {
        return find_among(root, |name| name != grub::NAME);
    }
    find_among(root, |_| true)
}

/// What the loader of that name will hand over, whatever else lies on the disk.
///
/// # Errors
/// As for [`find`].
pub fn find_of(root: &SysRoot, loader: &str) -> Fact<Request> {
    find_among(root, |name| name == loader)
}

fn find_among(root: &SysRoot, is_wanted: impl Fn(&str) -> bool) -> Fact<Request> {
    let mut lost = Fact::Absent;
    for (_, find) in LOADERS.iter().filter(|(name, _)| is_wanted(name)) {
        match find(root) {
            Fact::Absent => {}
            found @ Fact::Value(_) => return found,
            other if lost == Fact::Absent => lost = other,
            _ => {}
        }
    }
    lost
}

/// The first of some files that is there, with its path.
fn first_of(root: &SysRoot, paths: &[&str]) -> Fact<(String, String)> {
    let mut lost = Fact::Absent;
    for path in paths {
        match text(root, path) {
            Fact::Absent => {}
            Fact::Value(text) => return Fact::Value(((*path).to_owned(), text)),
            other => lost = other.map(|text| (String::new(), text)),
        }
    }
    lost
}

/// A whole file, its line ends included, so that places in it are true.
fn text(root: &SysRoot, path: &str) -> Fact<String> {
    root.bytes(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// The lines of a text, each with its number and the byte at which it begins.
fn numbered(text: &str) -> impl Iterator<Item = (usize, usize, &str)> {
    let mut start = 0;
    text.split_inclusive('\n').zip(1..).map(move |(whole, number)| {
        let at = start;
        start += whole.len();
        (number, at, whole.trim_end_matches(['\n', '\r']))
    })
}

/// `part` of a line that begins at byte `start`, as a piece.
fn piece(path: &str, (number, start, line): (usize, usize, &str), part: &str) -> Piece {
    let begin = start + (part.as_ptr() as usize).saturating_sub(line.as_ptr() as usize);
    let place = Place { path: path.to_owned(), line: number, span: begin..begin + part.len() };
    Piece { text: part.to_owned(), place }
}

/// The words of pieces that stand one behind the other with nothing between them, up to those for init.
fn words_of(pieces: &[Piece]) -> Vec<Requested> {
    let text = joined(pieces);
    let words = command_line::split(&text).map(|(at, word)| (at, Word::parse(word)));
    let words = words.take_while(|(_, word)| word.name != "--" || word.value.is_some());
    words.filter_map(|(at, word)| Some(Requested { word, place: place_at(pieces, at)? })).collect()
}

fn joined(pieces: &[Piece]) -> String {
    pieces.iter().map(|piece| piece.text.as_str()).collect()
}

/// Where the byte `at` of pieces that stand one behind the other comes from.
fn place_at(pieces: &[Piece], at: usize) -> Option<Place> {
    let mut start = 0;
    for piece in pieces {
        let end = start + piece.text.len();
        if at < end {
            return Some(piece.place_from(at - start));
        }
        start = end;
    }
    None
}

impl Piece {
    /// From a byte of its text on; the whole where quoting has moved them.
    fn place_from(&self, offset: usize) -> Place {
        let mut place = self.place.clone();
        if place.span.len() == self.text.len() {
            place.span.start += offset;
        }
        place
    }
}
