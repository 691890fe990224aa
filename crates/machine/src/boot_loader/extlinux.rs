//! extlinux.conf and syslinux.cfg (the Syslinux wiki, "Config"), which U-Boot reads too: labels, each with `APPEND`.

use record::Fact;

use super::{Piece, Request, first_of, numbered, piece, words_of};
use crate::SysRoot;

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
    /// Its name.
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
        let label = labels(&path, &text).into_iter().find(|label| label.is_default);
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

/// The labels of a file, in order. Syslinux and U-Boot read the same files; where they differ, what only Syslinux has
/// (a menu's module, help, words behind the default) is read as it reads it.
pub fn labels(path: &str, text: &str) -> Vec<Label> {
    let (mut labels, mut common, mut is_open) = (Vec::<Label>::new(), Common::default(), false);
    for (line, _) in numbered(text).zip(lines(text)).filter(|(_, (_, counts))| *counts) {
        let (key, value) = keyword(line.2);
        let piece = || piece(path, line, value);
        let first = first_word(value).to_ascii_lowercase();
        match key.as_str() {
            "default" => common.default = Some(piece()),
            "ontimeout" => common.on_timeout = Some(piece()),
            "prompt" => common.waits |= value != "0",
            "ui" => common.waits = true,
            "label" => {
                is_open = true;
                let append = common.append.clone();
                labels.push(Label { name: value.to_owned(), append, ..Label::default() });
                continue;
            }
            "append" if !is_open => common.append = Some(piece()),
            "menu" if ["separator", "begin", "end"].contains(&first.as_str()) => is_open = false,
            _ => {}
        }
        if let Some(label) = labels.last_mut().filter(|_| is_open) {
            if key == "append" {
                label.append = Some(piece()).filter(|_| value != "-");
            }
            label.settings.push((key, value.to_owned()));
        }
    }
    common.choose(&mut labels);
    labels
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
