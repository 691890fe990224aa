//! Names of settings below /proc/sys, all that 6.1 and 6.12 have in a directory.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use units::KernelVersion;

use super::only_of;
use crate::packed;

/// See its head.
static TABLE: LazyLock<String> =
    LazyLock::new(|| packed::text(include_bytes!(concat!(env!("OUT_DIR"), "/settings.gz"))));

/// Whether the kernel of that version has the setting at a path below /proc/sys; unknown for directories that are not in the
/// table and versions that were not looked at.
pub fn is_there(path: &str, version: Option<KernelVersion>) -> Option<bool> {
    let (directory, name) = path.strip_prefix("/proc/sys/")?.rsplit_once('/')?;
    match DIRECTORIES.get(directory)?.get(name) {
        Some(only) => only_of(*only, version),
        None if is_looked_at(version) => Some(false),
        None => None,
    }
}

/// The names in the directory of a path.
pub fn siblings(path: &str) -> Vec<&'static str> {
    let directory = path.strip_prefix("/proc/sys/").and_then(|rest| Some(rest.rsplit_once('/')?.0));
    directory
        .and_then(|directory| DIRECTORIES.get(directory))
        .map_or(Vec::new(), |names| names.keys().copied().collect())
}

/// Whether a version lies within those whose sources were read: what neither end has, none between them has.
pub fn is_looked_at(version: Option<KernelVersion>) -> bool {
    version.is_none_or(|version| {
        let short = KernelVersion::new(version.major, version.minor);
        (super::FIRST..=super::LAST).contains(&short)
    })
}

type Names = BTreeMap<&'static str, Option<KernelVersion>>;

static DIRECTORIES: LazyLock<BTreeMap<&'static str, Names>> = LazyLock::new(|| {
    let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
    let name = |word: &'static str| match word.split_once('@') {
        Some((name, only)) => (name, only.parse().ok()),
        None => (word, None),
    };
    let entry = |line: &'static str| {
        let mut words = line.split(' ');
        Some((words.next()?, words.map(name).collect()))
    };
    lines.filter_map(entry).collect()
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_there_gone_or_unknown() {
        let of = |path: &str, version: &str| is_there(path, version.parse().ok());
        assert_eq!(of("/proc/sys/kernel/sched_rt_runtime_us", "6.12"), Some(true));
        assert_eq!(of("/proc/sys/kernel/sched_rt_runtime", "6.12"), Some(false));
        assert_eq!(of("/proc/sys/kernel/io_uring_disabled", "6.1"), Some(false));
        assert_eq!(of("/proc/sys/kernel/sched_rt_runtime", "6.18"), None);
        assert_eq!(of("/proc/sys/net/ipv4/anything", "6.12"), None);
    }
}
