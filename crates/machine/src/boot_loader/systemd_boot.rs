//! systemd-boot (systemd-boot(7), loader.conf(5)): entries of the boot loader specification, of which `default` in
//! loader.conf or the order chooses; /etc/kernel/cmdline is what kernel-install puts into the entries of new kernels.

use std::cmp::Ordering;

use record::Fact;
use sysroot::without_machine_ids;
use sysroot::{SysRoot, efi_variable};
use units::InOrder;

use super::bls::{self, Entry};
use super::glob;
use super::version_order::version_order;
use super::{Piece, Request, first_of, numbered, piece, text, words_of};

/// What the fact `bootloader` calls it.
pub(super) const NAME: &str = "systemd-boot";

const SETTINGS: [&str; 3] =
    ["/efi/loader/loader.conf", "/boot/loader/loader.conf", "/boot/efi/loader/loader.conf"];
const ENTRIES: [&str; 3] = ["/efi/loader/entries", "/boot/loader/entries", "/boot/efi/loader/entries"];

/// Where images stand that hold their line themselves.
const IMAGES: [&str; 3] = ["/efi/EFI/Linux", "/boot/EFI/Linux", "/boot/efi/EFI/Linux"];

/// Variables of the firmware that choose before loader.conf does: for one boot, which is not read, and for all.
const ONE_SHOT: &str = "/sys/firmware/efi/efivars/LoaderEntryOneShot-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f";
const DEFAULT: &str = "/sys/firmware/efi/efivars/LoaderEntryDefault-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f";

const SOURCE: &str = "/etc/kernel/cmdline";

pub(super) fn find(root: &SysRoot) -> Fact<Request> {
    let settings = match first_of(root, &SETTINGS) {
        Fact::Value((_, text)) => text,
        other => return other.map(|_| Request::new(NAME, "", Vec::new())),
    };
    let has_images =
        IMAGES.iter().any(|directory| root.list(directory).value().is_some_and(|names| !names.is_empty()));
    let of_firmware = match root.bytes(DEFAULT) {
        Fact::Value(bytes) => Some(efi_variable::text(&bytes)),
        Fact::Absent => None,
        other => return other.map(|_| Request::new(NAME, "", Vec::new())),
    };
    let defaults = [of_firmware, default_of(&settings)];
    let is_saved = |default: &String| default.starts_with('@');
    if has_images || root.exists(ONE_SHOT).value().is_some() || defaults.iter().flatten().any(is_saved) {
        return Fact::Unsupported;
    }
    bls::entries(root, &ENTRIES).and_then(|mut entries| {
        entries.order_by(order);
        let chosen = match chosen(&entries, defaults.iter().flatten()) {
            Ok(entry) => entry,
            Err(Unclear) => return Fact::Unsupported,
        };
        let entry = chosen.or_else(|| entries.first());
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

fn default_of(settings: &str) -> Option<String> {
    let mut values = settings.lines().filter_map(|line| line.trim().strip_prefix("default"));
    let value = values.rfind(|rest| rest.starts_with([' ', '\t'])).unwrap_or_default().trim();
    (!value.is_empty()).then(|| value.to_owned())
}

/// A name without `.conf` stands for no entry in version 252, and did in old ones.
struct Unclear;

/// The entry that the first pattern which fits any chooses.
fn chosen<'a>(
    entries: &'a [Entry],
    mut patterns: impl Iterator<Item = &'a String>,
) -> Result<Option<&'a Entry>, Unclear> {
    let find = |pattern: &String| entries.iter().find(|entry| fits(pattern, &format!("{}.conf", entry.id)));
    let without = |pattern: &String| entries.iter().any(|entry| fits(pattern, &entry.id));
    let choice = patterns.find_map(|pattern| match find(pattern) {
        Some(entry) => Some(Ok(entry)),
        None => without(pattern).then_some(Err(Unclear)),
    });
    choice.transpose()
}

/// Whether a pattern fits an entry's name, in a system or in its snapshot, which has no machine ids.
fn fits(pattern: &str, name: &str) -> bool {
    let fits = |pattern: &str, name: &str| glob::fits(&pattern.to_lowercase(), &name.to_lowercase());
    fits(pattern, name) || fits(&without_machine_ids(pattern), &without_machine_ids(name))
}

/// What may still be tried first; then those with a sort key, by it, the newest version first; then names, backwards.
/// (systemd-boot(7) of version 252.)
fn order(a: &Entry, b: &Entry) -> Ordering {
    let is_used_up = |entry: &Entry| entry.tries_left == Some(0);
    let name = |entry: &Entry| format!("{}.conf", without_machine_ids(&entry.id)).to_lowercase();
    let by_key = || {
        if a.sort_key.is_empty() || b.sort_key.is_empty() {
            a.sort_key.is_empty().cmp(&b.sort_key.is_empty())
        } else {
            a.sort_key.cmp(&b.sort_key).then_with(|| version_order(&b.version, &a.version))
        }
    };
    is_used_up(a)
        .cmp(&is_used_up(b))
        .then_with(by_key)
        .then_with(|| version_order(&name(b), &name(a)))
        .then_with(|| b.tries_left.cmp(&a.tries_left))
}
