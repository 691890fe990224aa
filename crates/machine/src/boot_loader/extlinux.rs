//! extlinux.conf and syslinux.cfg (the Syslinux wiki, "Config"), which U-Boot reads too: labels, each with `APPEND`.

use record::Fact;
use sysroot::SysRoot;

use super::{Piece, Request, first_of, numbered, piece, words_of};

/// What the fact `bootloader` calls it.
pub(super) const NAME: &str = "extlinux";

const FILES: [&str; 5] = [
    "/boot/extlinux/extlinux.conf",
    "/extlinux/extlinux.conf",
    "/boot/extlinux.conf",
    "/boot/syslinux/syslinux.cfg",
    "/boot/syslinux.cfg",
];

/// A label of the menu.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Label {
    /// The word behind `LABEL`.
    pub name: String,
    /// What stands behind its `APPEND`, or behind the one above all labels; `-` is nothing.
    pub append: Option<Piece>,
    /// What stands behind its name where it is made the default: more words for the kernel.
    pub more: Option<Piece>,
    /// Whether it is what is booted if nobody chooses.
    pub is_default: bool,
    /// Its lines: keywords in lower case, and what stands behind them.
    pub settings: Vec<(String, String)>,
}

impl Label {
    /// What the kernel is given with it.
    pub fn line(&self) -> String {
        let pieces = self.append.iter().chain(&self.more).map(|piece| piece.text.as_str());
        pieces.collect::<Vec<_>>().join(" ")
    }
}

pub(super) fn find(root: &SysRoot) -> Fact<Request> {
    first_of(root, &FILES).and_then(|(path, text)| {
        let label = labels_with_included(root, &path, &text).into_iter().find(|label| label.is_default);
        label.map_or(Fact::Unsupported, |label| {
            let pieces = label.append.iter().chain(&label.more);
            let words = pieces.flat_map(|piece| words_of(std::slice::from_ref(piece))).collect();
            Fact::Value(Request::new(NAME, &path, words))
        })
    })
}

/// The keyword of a line in lower case, and what stands behind it.
pub fn keyword(line: &str) -> (String, &str) {
    let line = line.trim();
    let (key, value) = line.split_once([' ', '\t']).unwrap_or((line, ""));
    (key.to_ascii_lowercase(), value.trim())
}

/// The lines of a text, and whether each counts: those of a label's help, `TEXT HELP` to `ENDTEXT`, may look like anything.
pub fn lines(text: &str) -> impl Iterator<Item = (&str, bool)> {
    let mut is_help = false;
    text.split_inclusive('\n').map(move |line| {
        let key = keyword(line).0;
        let was_help = is_help;
        is_help = if is_help { key != "endtext" } else { key == "text" };
        (line, !is_help && !was_help)
    })
}

/// A module that shows a menu, in the place of a label.
pub fn is_menu(value: &str) -> bool {
    first_word(value).ends_with(".c32")
}

fn first_word(value: &str) -> &str {
    value.split_whitespace().next().unwrap_or_default()
}

/// What is said above the labels, or anywhere: it holds for all of them.
#[derive(Default)]
struct Common {
    append: Option<Piece>,
    default: Option<Piece>,
    on_timeout: Option<Piece>,
    waits: bool,
}

/// Files that a file includes: from the name that stands there, path and text.
type Included<'a> = &'a dyn Fn(&str) -> Option<(String, String)>;

/// Files that are read of those that are included: such as include each other come to an end.
const MOST: usize = 16;

/// The labels of a file, in order, without what it includes. Syslinux and U-Boot read the same files; where they differ,
/// what only Syslinux has (a menu's module, help, words behind the default) is read as it reads it.
pub fn labels(path: &str, text: &str) -> Vec<Label> {
    Reader::default().all(path, text, &|_| None)
}

/// The same with what it includes, in the place of the line that says so.
pub fn labels_with_included(root: &SysRoot, path: &str, text: &str) -> Vec<Label> {
    let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
    let included = |name: &str| {
        let path = if name.starts_with('/') { name.to_owned() } else { format!("{directory}/{name}") };
        let text = super::text(root, &path).value()?.clone();
        Some((path, text))
    };
    Reader::default().all(path, text, &included)
}

/// What is known so far of a file that is read.
#[derive(Default)]
struct Reader {
    labels: Vec<Label>,
    common: Common,
    /// Whether lines belong to the last label.
    is_open: bool,
    /// How many files were included.
    files: usize,
}

impl Reader {
    fn all(mut self, path: &str, text: &str, included: Included<'_>) -> Vec<Label> {
        self.read(path, text, included);
        self.common.choose(&mut self.labels);
        self.labels
    }

    fn read(&mut self, path: &str, text: &str, included: Included<'_>) {
        for (line, _) in numbered(text).zip(lines(text)).filter(|(_, (_, counts))| *counts) {
            let (key, value) = keyword(line.2);
            let name = name_of_included(&key, value).filter(|_| self.files < MOST);
            match name.and_then(included) {
                Some((path, text)) => {
                    self.files += 1;
                    self.read(&path, &text, included);
                }
                None => self.take(key, piece(path, line, value)),
            }
        }
    }

    /// A keyword and what stands behind it.
    fn take(&mut self, key: String, value: Piece) {
        match key.as_str() {
            "default" => self.common.default = Some(value.clone()),
            "ontimeout" => self.common.on_timeout = Some(value.clone()),
            "prompt" => self.common.waits |= value.text != "0",
            "ui" => self.common.waits = true,
            "label" => {
                self.is_open = true;
                let append = self.common.append.clone();
                self.labels.push(Label { name: value.text, append, ..Label::default() });
                return;
            }
            "append" if !self.is_open => self.common.append = Some(value.clone()),
            "menu" if ends_label(&value.text) => self.is_open = false,
            _ => {}
        }
        if let Some(label) = self.labels.last_mut().filter(|_| self.is_open) {
            label.settings.push((key.clone(), value.text.clone()));
            if key == "append" {
                label.append = Some(value).filter(|value| value.text != "-");
            }
        }
    }
}

/// The file that a line includes.
pub fn name_of_included<'a>(key: &str, value: &'a str) -> Option<&'a str> {
    let name = match (key, keyword(value)) {
        ("include", _) => value,
        ("menu", (second, name)) if second == "include" => name,
        _ => return None,
    };
    Some(first_word(name))
}

/// What a menu draws there ends the label before it.
fn ends_label(of_menu: &str) -> bool {
    ["separator", "begin", "end"].contains(&keyword(of_menu).0.as_str())
}

impl Common {
    /// Marks the label that is booted if nobody chooses. A default that is named goes before one that the menu marks.
    fn choose(self, labels: &mut [Label]) {
        let waits = self.waits || self.default.as_ref().is_some_and(|default| is_menu(&default.text));
        let named = self.on_timeout.filter(|_| waits).or(self.default);
        let value = named.as_ref().map_or("", |named| named.text.as_str());
        let is_it = |label: &Label| label.name == value;
        let is_first_word = |label: &Label| first_word(&label.name) == first_word(value);
        let is_marked = |label: &Label| label.settings.iter().any(|(key, value)| is_mark(key, value));
        let position = |is_it: &dyn Fn(&Label) -> bool| labels.iter().position(is_it);
        if let Some(number) = position(&is_it) {
            labels[number].is_default = true;
        } else if let Some(number) = position(&is_first_word).filter(|_| !value.is_empty()) {
            labels[number].is_default = true;
            labels[number].more = named.map(|named| named.behind_first_word());
        } else if let Some(number) = position(&is_marked).or_else(|| (!labels.is_empty()).then_some(0)) {
            labels[number].is_default = true;
        }
    }
}

/// Whether a line of a label makes it the menu's default.
pub fn is_mark(key: &str, value: &str) -> bool {
    key == "menu" && value.eq_ignore_ascii_case("default")
}

impl Piece {
    fn behind_first_word(mut self) -> Self {
        let rest = self.text.trim_start_matches(|c: char| !c.is_whitespace()).trim_start().to_owned();
        self.place.span.start += self.text.len() - rest.len();
        self.text = rest;
        self
    }
}
