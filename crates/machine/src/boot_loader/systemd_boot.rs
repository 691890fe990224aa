//! systemd-boot (systemd-boot(7), loader.conf(5)): entries of the boot loader specification, of which `default` in
//! loader.conf or the order chooses; /etc/kernel/cmdline is what kernel-install puts into the entries of new kernels.

use record::Fact;

use super::bls::{self, Entry, natural_order};
use super::{Piece, Request, first_of, numbered, piece, text, words_of};
use crate::SysRoot;
use crate::root::without_machine_ids;

/// What the fact `bootloader` calls it.
pub(super) const NAME: &str = "systemd-boot";

const SETTINGS: [&str; 3] =
    ["/efi/loader/loader.conf", "/boot/loader/loader.conf", "/boot/efi/loader/loader.conf"];
const ENTRIES: [&str; 3] = ["/efi/loader/entries", "/boot/loader/entries", "/boot/efi/loader/entries"];

/// Where images stand that hold their line themselves.
const IMAGES: [&str; 3] = ["/efi/EFI/Linux", "/boot/EFI/Linux", "/boot/efi/EFI/Linux"];

/// Variables of the firmware that choose before loader.conf does. They are not read.
const CHOICES: [&str; 2] = [
    "/sys/firmware/efi/efivars/LoaderEntryDefault-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f",
    "/sys/firmware/efi/efivars/LoaderEntryOneShot-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f",
];

const SOURCE: &str = "/etc/kernel/cmdline";

pub(super) fn find(root: &SysRoot) -> Fact<Request> {
    let settings = match first_of(root, &SETTINGS) {
        Fact::Value((_, text)) => text,
        other => return other.map(|_| Request::new(NAME, "", Vec::new())),
    };
    let has_images =
        IMAGES.iter().any(|directory| root.list(directory).value().is_some_and(|names| !names.is_empty()));
    let is_chosen_elsewhere = CHOICES.iter().any(|path| root.exists(path).value().is_some());
    let default = default_of(&settings);
    if has_images || is_chosen_elsewhere || default.starts_with('@') {
        return Fact::Unsupported;
    }
    bls::entries(root, &ENTRIES).and_then(|mut entries| {
        entries.sort_by(order);
        let fits = |entry: &&Entry| fits(&default, &entry.id);
        let entry = entries.iter().find(fits).or_else(|| entries.first());
        let words = entry.map(|entry| (&entry.path, entry.plain_words()));
        let source = text(root, SOURCE).value().cloned().unwrap_or_default();
        words.map_or(Fact::Unsupported, |(path, words)| {
            Fact::Value(Request {
                sources: words_of(&lines(SOURCE, &source)),
                generator: "kernel-install",
                ..Request::new(NAME, path, words)
            })
        })
    })
}

fn lines(path: &str, text: &str) -> Vec<Piece> {
    numbered(text).map(|line| Piece { text: format!("{} ", line.2), ..piece(path, line, line.2) }).collect()
}

fn default_of(settings: &str) -> String {
    let mut values = settings.lines().filter_map(|line| line.trim().strip_prefix("default"));
    let value = values.rfind(|rest| rest.starts_with([' ', '\t'])).unwrap_or_default().trim();
    without_machine_ids(value.strip_suffix(".conf").unwrap_or(value))
}

/// A name, or the beginning of one before a star.
fn fits(default: &str, id: &str) -> bool {
    let id = without_machine_ids(id);
    match default.split_once('*') {
        Some((start, _)) => id.starts_with(start),
        None => id == default,
    }
}

/// What may still be tried first; then those with a sort key by it, the newest version first; then names, backwards.
fn order(a: &Entry, b: &Entry) -> std::cmp::Ordering {
    let is_used_up = |entry: &Entry| entry.tries_left == Some(0);
    let name = |entry: &Entry| without_machine_ids(&entry.id);
    is_used_up(a)
        .cmp(&is_used_up(b))
        .then_with(|| a.sort_key.is_empty().cmp(&b.sort_key.is_empty()))
        .then_with(|| a.sort_key.cmp(&b.sort_key))
        .then_with(|| natural_order(&b.version, &a.version))
        .then_with(|| natural_order(&name(b), &name(a)))
}
