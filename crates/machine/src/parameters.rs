//! The names of the kernel command line's words that the kernel's own documents have, by version; and who reads the others.
//!
//! The kernel hands a word that it does not know to init without a sound (or, since 5.14, with one line in its log that
//! also names words which work, `nokaslr` among them): so the documents judge, not the log.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use units::KernelVersion;

use crate::packed;

/// `name version...`, sorted by name; written by `cargo xtask parameters`.
static TABLE: LazyLock<String> =
    LazyLock::new(|| packed::text(include_bytes!(concat!(env!("OUT_DIR"), "/parameters.gz"))));

/// The versions whose documents were read, ascending.
pub const VERSIONS: [KernelVersion; 2] = [KernelVersion::new(6, 1), KernelVersion::new(6, 12)];

/// The kernel takes `-` for `_` in a name.
pub fn same(a: &str, b: &str) -> bool {
    a.len() == b.len()
        && a.bytes().zip(b.bytes()).all(|(a, b)| a == b || matches!((a, b), (b'-', b'_') | (b'_', b'-')))
}

/// Who reads a word that is not the kernel's own. An entry that ends in a dot stands for all names that begin so.
const READERS: [(&str, &[&str]); 4] = [
    (
        "systemd",
        &[
            "systemd.",
            "rd.",
            "udev.",
            "luks.",
            "vconsole.",
            "locale.",
            "fsck.",
            "quotacheck.",
            "net.ifnames",
            "net.naming-scheme",
            "plymouth.",
        ],
    ),
    (
        "the initramfs",
        &[
            "splash",
            "nosplash",
            "persistent",
            "components",
            "username",
            "cryptdevice",
            "cryptkey",
            "cryptopts",
            "zfs",
            "bootdegraded",
            "overlayroot",
            "maybe-ubiquity",
            "autoinstall",
            "preseed",
            "priority",
            "locale",
            "lang",
            "keymap",
            "inst.",
            "coreos.",
            "ignition.",
            "fips",
            "resume_offset",
            "cloud-config-url",
            "archisobasedir",
            "archisolabel",
            "fastboot",
            "forcefsck",
            "noeject",
            "noprompt",
            "biosdevname",
            "boot",
            "break",
            "toram",
            "live-media",
            "cloud-init",
            "ds",
            "vt.handoff",
            "rhgb",
            "ostree",
        ],
    ),
    ("the boot loader", &["BOOT_IMAGE", "initrd"]),
    ("init", &["single", "emergency", "s", "1", "2", "3", "4", "5", "auto"]),
];

/// Who reads a word that is not the kernel's own: `systemd`, `the boot loader`.
pub fn reader_of(name: &str) -> Option<&'static str> {
    let reads = |entry: &&str| if entry.ends_with('.') { name.starts_with(*entry) } else { name == *entry };
    READERS.iter().find(|(_, names)| names.iter().any(reads)).map(|(reader, _)| *reader)
}

/// Words that kernels read although no document of theirs has them: older names that are still taken.
const UNDOCUMENTED: &str = include_str!("undocumented.txt");

/// Whether a kernel reads a word that its documents lack.
pub fn is_undocumented(name: &str) -> bool {
    let lines = UNDOCUMENTED.lines().filter(|line| !line.starts_with('#'));
    lines.flat_map(|line| line.split(' ')).any(|taken| same(taken, name))
}

/// Whether the kernel of that version takes `name`, as far as documents tell: that of the newest of [`VERSIONS`] up to
/// it, else the oldest. A kernel between two of them may have a name that only the later one documents, and a name with a
/// dot that no document has may be a module's parameter: none can tell. Any document speaks for an unknown version.
pub fn is_taken(name: &str, version: Option<KernelVersion>) -> Option<bool> {
    let known = versions_with(name);
    if is_undocumented(name) {
        return Some(true);
    }
    if known.is_empty() {
        return if name.contains('.') { None } else { Some(false) };
    }
    let Some(version) = version else { return Some(true) };
    let judge = VERSIONS.iter().rev().find(|document| **document <= version).unwrap_or(&VERSIONS[0]);
    let is_of_judge = (version.major, version.minor) == (judge.major, judge.minor);
    if known.contains(judge) {
        Some(true)
    } else if is_of_judge || known.iter().all(|document| document < judge) {
        // What only older kernels document may be there no more; what only newer ones do may have been there before.
        Some(false)
    } else {
        None
    }
}

/// All names.
pub fn names() -> impl Iterator<Item = &'static str> {
    TABLE.lines().filter_map(|line| line.split(' ').next())
}

/// The versions whose documents have `name`; none if none has.
pub fn versions_with(name: &str) -> &'static [KernelVersion] {
    BY_NAME.get(&name.replace('-', "_")).map_or(&[], Vec::as_slice)
}

/// The table by name, with `_` for `-`.
static BY_NAME: LazyLock<BTreeMap<String, Vec<KernelVersion>>> = LazyLock::new(|| {
    let entry = |line: &str| {
        let mut words = line.split(' ');
        let name = words.next()?.replace('-', "_");
        Some((name, words.filter_map(|version| version.parse().ok()).collect()))
    };
    TABLE.lines().filter_map(entry).collect()
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_with_either_sign() {
        assert_eq!(versions_with("isolcpus"), VERSIONS);
        assert_eq!(versions_with("kvm_intel.nested"), versions_with("kvm-intel.nested"));
        assert_eq!(versions_with("workqueue.unbound_cpus"), [KernelVersion::new(6, 12)]);
        assert!(versions_with("evl.oobcpus").is_empty());
        assert!(names().count() > 900);
    }

    #[test]
    fn each_version_is_judged_by_its_document() {
        let v6_1 = Some(KernelVersion::new(6, 1));
        let v6_18 = Some(KernelVersion::new(6, 18));
        assert_eq!(is_taken("nohz_full", v6_1), Some(true));
        assert_eq!(is_taken("nokaslr", v6_1), Some(true));
        assert_eq!(is_taken("workqueue.unbound_cpus", v6_1), Some(false));
        assert_eq!(is_taken("workqueue.unbound_cpus", v6_18), Some(true));
        assert_eq!(is_taken("noht", v6_1), Some(false));
        assert_eq!(is_taken("slub_debug", v6_18), Some(true));
        assert_eq!(is_taken("igb.blacklist", v6_1), None);
        assert_eq!(is_taken("workqueue.unbound_cpus", Some(KernelVersion::new(6, 6))), None);
        assert_eq!(is_taken("workqueue.unbound_cpus", None), Some(true));
        assert_eq!(is_taken("noht", None), Some(false));
    }

    #[test]
    fn words_for_others_name_their_reader() {
        assert_eq!(reader_of("systemd.unit"), Some("systemd"));
        assert_eq!(reader_of("initrd"), Some("the boot loader"));
        assert_eq!(reader_of("isolcpus"), None);
    }
}
