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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Its name.
    pub name: String,
    /// What stands behind its `APPEND`, or behind the one above all labels; `-` is nothing.
    pub append: Option<Piece>,
    /// Whether it is what is booted if nobody chooses.
    pub is_default: bool,
}

pub(super) fn find(root: &SysRoot) -> Fact<Request> {
    first_of(root, &FILES).and_then(|(path, text)| {
        let labels = labels(&path, &text);
        let label = labels.iter().find(|label| label.is_default).or_else(|| labels.first());
        label.map_or(Fact::Unsupported, |label| {
            Fact::Value(Request::new(
                NAME,
                &path,
                label.append.iter().flat_map(|append| words_of(std::slice::from_ref(append))).collect(),
            ))
        })
    })
}

/// The labels of a file, in order.
pub fn labels(path: &str, text: &str) -> Vec<Label> {
    let (mut labels, mut common, mut default) = (Vec::<Label>::new(), None, String::new());
    for line in numbered(text) {
        let (key, value) = line.2.trim().split_once([' ', '\t']).unwrap_or((line.2.trim(), ""));
        let value = value.trim();
        match (key.to_ascii_lowercase().as_str(), labels.last_mut()) {
            ("default", None) => value.clone_into(&mut default),
            ("label", _) => {
                labels.push(Label { name: value.to_owned(), append: common.clone(), is_default: false });
            }
            ("append", Some(label)) => label.append = Some(piece(path, line, value)).filter(|_| value != "-"),
            ("append", None) => common = Some(piece(path, line, value)),
            ("menu", Some(label)) if value.eq_ignore_ascii_case("default") => label.is_default = true,
            _ => {}
        }
    }
    let is_chosen = labels.iter().any(|label| label.is_default);
    for label in labels.iter_mut().filter(|label| !is_chosen && label.name == default) {
        label.is_default = true;
    }
    labels
}
