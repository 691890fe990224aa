//! What a root that remembers never sees, so that nothing secret can come into a snapshot: a survey judges by what is
//! left, which is why it says the same of a snapshot as of the machine.

mod boot_files;

use std::io::Read;

use flate2::read::GzDecoder;

use crate::efi_variable;

pub use boot_files::without_machine_ids;

/// What may be remembered of a file.
pub(super) fn kept(path: &str, bytes: Vec<u8>) -> Vec<u8> {
    match path {
        "/proc/cmdline" | "/proc/device-tree/chosen/bootargs" => on_text(bytes, masked_words),
        "/proc/self/mountinfo" => on_text(bytes, mounts),
        _ if is_configuration(path) => match uncompressed(bytes) {
            damaged if damaged.starts_with(&super::GZIP) => damaged,
            plain => on_text(plain, configuration),
        },
        _ if path.contains("/efivars/Loader") => efi_variable::with_text(&bytes, without_machine_ids),
        _ if boot_files::are_at(path) => on_text(bytes, |text| boot_files::kept(path, text)),
        "/proc/self/status" => on_text(bytes, |text| lines(text, |line| line.starts_with("CapEff"))),
        "/proc/1/status" => on_text(bytes, |text| lines(text, |line| line.starts_with("Cpus_allowed"))),
        "/etc/audit/audit.rules" => on_text(bytes, audit_rules),
        _ => bytes,
    }
}

/// Rules of auditd without what they compare: users, files, keys.
fn audit_rules(text: &str) -> String {
    const TELLING: [&str; 5] = ["-F", "-C", "-k", "-w", "-p"];
    let kept = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_value = |at: usize| at > 0 && TELLING.contains(&words[at - 1]);
        let kept = words
            .iter()
            .enumerate()
            .filter(|(at, word)| !is_value(*at) && (**word == "-w" || !TELLING.contains(word)));
        kept.map(|(_, word)| *word).collect::<Vec<_>>().join(" ") + "\n"
    };
    let rules = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    rules.map(kept).collect()
}

/// Where kernels and distributions put a configuration.
fn is_configuration(path: &str) -> bool {
    path == "/proc/config.gz"
        || path.starts_with("/boot/config-")
        || path.contains("/modules/") && (path.ends_with("/config") || path.ends_with("/.config"))
}

/// What gzip holds, if it is whole and no longer than a configuration can be; else the bytes themselves.
fn uncompressed(bytes: Vec<u8>) -> Vec<u8> {
    let mut plain = Vec::new();
    let read = GzDecoder::new(bytes.as_slice()).take(LONGEST_CONFIGURATION + 1).read_to_end(&mut plain);
    let is_whole = read.is_ok() && plain.len() as u64 <= LONGEST_CONFIGURATION;
    if bytes.starts_with(&super::GZIP) && is_whole { plain } else { bytes }
}

/// Those of distributions have some 300 KiB.
const LONGEST_CONFIGURATION: u64 = 4 << 20;

/// Symbols that name hosts, keys and files of who built the kernel.
const BUILDERS: [&str; 5] =
    ["DEFAULT_HOSTNAME", "INITRAMFS_SOURCE", "SYSTEM_TRUSTED_KEYS", "MODULE_SIG_KEY", "EXTRA_FIRMWARE_DIR"];

fn configuration(text: &str) -> String {
    let kept = |line: &str| match line.strip_prefix("CONFIG_").and_then(|line| line.split_once('=')) {
        Some((symbol, _)) if BUILDERS.contains(&symbol) => format!("CONFIG_{symbol}=\"\"\n"),
        Some(("CMDLINE", value)) => match value.trim_end().strip_suffix('"') {
            Some(words) => format!("CONFIG_CMDLINE={}\"\n", masked_words(words)),
            None => "CONFIG_CMDLINE=\"\"\n".to_owned(),
        },
        _ => line.to_owned(),
    };
    text.split_inclusive('\n').map(kept).collect()
}

fn on_text(bytes: Vec<u8>, keep: impl FnOnce(&str) -> String) -> Vec<u8> {
    keep(&String::from_utf8_lossy(&bytes)).into_bytes()
}

fn lines(text: &str, keep: impl Fn(&str) -> bool) -> String {
    text.split_inclusive('\n').filter(|line| keep(line)).collect()
}

/// A command line with `x` for each byte of what names disks, addresses and people, and of all that is for init: its
/// length is a fact.
pub fn masked_words(line: &str) -> String {
    let mut masked = String::with_capacity(line.len());
    let mut is_for_init = false;
    for word in line.split_inclusive(|c: char| c.is_ascii_whitespace()) {
        let bare = word.trim_end();
        masked.push_str(&if is_for_init { crosses(word) } else { masked_word(word) });
        is_for_init |= bare == "--";
    }
    without_machine_ids(&masked)
}

fn masked_word(word: &str) -> String {
    match word.split_once('=') {
        Some((name, value)) if is_private(name, value) => format!("{name}={}", crosses(value)),
        _ => word.to_owned(),
    }
}

/// An `x` for each byte that is no blank.
fn crosses(text: &str) -> String {
    text.bytes().map(|byte| if byte.is_ascii_whitespace() { byte as char } else { 'x' }).collect()
}

/// Words whose values are nobody else's business.
const PRIVATE: [&str; 12] = [
    "root",
    "resume",
    "ip",
    "nfsroot",
    "nfsaddrs",
    "netconsole",
    "cryptdevice",
    "cryptkey",
    "BOOTIF",
    "ds",
    "rd.",
    "hostname",
];

/// Parts of names of words whose values may be secrets or name somebody.
const TELLING: [&str; 8] = ["pass", "key", "token", "secret", "auth", "serial", "mac", "host"];

fn is_private(name: &str, value: &str) -> bool {
    let plain = name.trim_start_matches('"').to_ascii_lowercase();
    let listed =
        |word: &&str| plain == word.to_ascii_lowercase() || (word.ends_with('.') && plain.starts_with(*word));
    PRIVATE.iter().any(listed)
        || TELLING.iter().any(|part| plain.contains(part))
        || value.split(|c: char| !(c.is_ascii_hexdigit() || "-:.".contains(c))).any(is_identity)
}

/// A UUID, a MAC or an IPv4 address.
fn is_identity(text: &str) -> bool {
    let lengths = |separator: char| text.split(separator).map(str::len).collect::<Vec<_>>();
    let is_address = || {
        let address = text.split(':').next().unwrap_or_default();
        address.parse::<std::net::Ipv4Addr>().is_ok()
    };
    lengths('-') == [8, 4, 4, 4, 12] || lengths(':') == [2; 6] || lengths('-') == [2; 6] || is_address()
}

/// File systems of the kernel itself: what is mounted from disks and from the network is nobody's business, but for
/// the root, whose type tells a container.
const KERNEL_MOUNTS: [&str; 11] = [
    "cgroup",
    "cgroup2",
    "cpuset",
    "proc",
    "sysfs",
    "debugfs",
    "tracefs",
    "securityfs",
    "resctrl",
    "efivarfs",
    "bpf",
];

fn mounts(text: &str) -> String {
    let of_kernel = |line: &str| {
        let kind = line.split_once(" - ").and_then(|(_, rest)| rest.split(' ').next());
        kind.is_some_and(|kind| KERNEL_MOUNTS.contains(&kind))
    };
    let keep = |line: &str| match line.split(' ').nth(4) {
        Some("/") => without_source(line),
        _ if of_kernel(line) => line.to_owned(),
        _ => String::new(),
    };
    text.split_inclusive('\n').map(keep).collect()
}

/// Without the device, which may name a server.
fn without_source(line: &str) -> String {
    let Some((place, rest)) = line.split_once(" - ") else { return String::new() };
    let mut parts = rest.splitn(3, ' ');
    let (kind, _, options) = (parts.next().unwrap_or_default(), parts.next(), parts.next().unwrap_or("\n"));
    format!("{place} - {kind} none {options}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_boot_line_keeps_its_length_and_loses_its_names() {
        let line = "BOOT_IMAGE=/vmlinuz root=UUID=6a ro ip=10.0.0.2::10.0.0.1 isolcpus=2-3 androidboot.serialno=A1 \
                    a.b=12:34:56:78:9a:bc c=1.2.3.4:80 d=6.1.2 quiet -- --secret=1 2\n";
        let expected = "BOOT_IMAGE=/vmlinuz root=xxxxxxx ro ip=xxxxxxxxxxxxxxxxxx isolcpus=2-3 androidboot.serialno=xx \
                    a.b=xxxxxxxxxxxxxxxxx c=xxxxxxxxxx d=6.1.2 quiet -- xxxxxxxxxx x\n";
        assert_eq!(masked_words(line), expected);
        assert_eq!(masked_words(expected), expected);
    }

    #[test]
    fn only_mounts_of_the_kernel_and_the_root_are_kept() {
        let text = "1 0 0:1 / / rw - nfs 10.0.0.1:/srv rw,vers=3\n\
                    2 1 0:2 / /home/me rw - ext4 /dev/sda2 rw\n\
                    3 1 0:3 / /proc rw - proc proc rw\nbroken\n";
        let expected = "1 0 0:1 / / rw - nfs none rw,vers=3\n3 1 0:3 / /proc rw - proc proc rw\n";
        assert_eq!(mounts(text), expected);
        assert_eq!(mounts(expected), expected);
    }

    #[test]
    fn a_configuration_names_neither_hosts_nor_keys() {
        let text = "# Linux/x86 6.1.0 Kernel Configuration\nCONFIG_DEFAULT_HOSTNAME=\"me\"\nCONFIG_HZ=250\n\
                    CONFIG_CMDLINE=\"quiet ip=10.0.0.1\"\n";
        let expected = "# Linux/x86 6.1.0 Kernel Configuration\nCONFIG_DEFAULT_HOSTNAME=\"\"\nCONFIG_HZ=250\n\
                    CONFIG_CMDLINE=\"quiet ip=xxxxxxxx\"\n";
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut gzip, text.as_bytes()).unwrap();
        let compressed = gzip.finish().unwrap();
        assert_eq!(kept("/proc/config.gz", compressed.clone()), expected.as_bytes());
        assert_eq!(kept("/boot/config-6.1", text.into()), expected.as_bytes());
        let cut = compressed[..20].to_vec();
        assert_eq!(kept("/proc/config.gz", cut.clone()), cut);
    }

    proptest! {
        #[test]
        fn any_text_is_answered_without_a_panic(text in "([a-z=./ -]{0,9} ?){0,9}|.{0,60}") {
            prop_assert_eq!(masked_words(&text).len(), text.len());
            let _ = mounts(&text);
        }
    }
}
