//! What counts as a setting of the kernel: whoever asks for a write may have its path from somebody else's file.

use std::ffi::OsStr;
use std::path::{Component, Path};

use rustix::fs::StatFs;
use rustix::io::Errno;

/// File systems by what statfs(2) calls them whose files are settings: proc, sysfs, cgroup of either version, debugfs,
/// tracefs. linux/magic.h.
pub(crate) const SETTINGS: [u32; 6] =
    [0x9fa0, 0x6265_6572, 0x0027_e0eb, 0x6367_7270, 0x6462_6720, 0x7472_6163];

/// Those in which directories are made: cgroup of either version, debugfs, tracefs.
const GROUPS: [u32; 4] = [0x0027_e0eb, 0x6367_7270, 0x6462_6720, 0x7472_6163];

/// Those of traces: debugfs, where tracefs was before Linux 4.1, and tracefs.
pub(crate) const TRACES: [u32; 2] = [0x6462_6720, 0x7472_6163];

/// Of a process only these are settings: others are its memory, or lead to any file.
const OF_PROCESSES: [&str; 2] = ["oom_score_adj", "timerslack_ns"];

/// What the kernel runs as root when something happens, and what acts at once: no settings of a machine's latency.
const NEVER: [&str; 6] = [
    "/proc/sysrq-trigger",
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/hotplug",
    "/proc/sys/kernel/modprobe",
    "/proc/sys/kernel/poweroff_cmd",
    "/sys/kernel/uevent_helper",
];

/// Where scripts of services are.
const SCRIPTS: [&str; 2] = ["/etc/init.d/", "/etc/rc.d/"];

/// Whether a path is one of a setting: below /proc or /sys, and no way out of there. Links are not looked at; the writer
/// asks the file system too.
pub fn is_setting(path: &str) -> bool {
    check_path(Path::new(path)).is_ok()
}

/// Which file systems a file at `path` may be on: elsewhere than below /proc and /sys, control groups and traces that were
/// mounted there, as cgroup v1's cpusets are by some.
pub(crate) fn systems_at(path: &Path) -> Result<&'static [u32], Errno> {
    let is_plain = path.components().skip(1).all(|part| matches!(part, Component::Normal(_)));
    if path.starts_with("/proc") || path.starts_with("/sys") {
        return check_path(path).map(|()| &SETTINGS[..]);
    }
    if is_plain && path.is_absolute() { Ok(&GROUPS[..]) } else { Err(Errno::XDEV) }
}

pub(crate) fn check_path(path: &Path) -> Result<(), Errno> {
    let mut parts = path.components().skip(1);
    let is_plain = path.components().skip(1).all(|part| matches!(part, Component::Normal(_)));
    let is_below = path.starts_with("/proc") || path.starts_with("/sys");
    let is_never = NEVER.iter().any(|never| Path::new(never) == path);
    let of_process =
        path.starts_with("/proc") && parts.nth(1).is_some_and(|part| is_process(part.as_os_str()));
    let is_setting = path.file_name().is_some_and(|name| OF_PROCESSES.iter().any(|known| name == *known));
    match is_plain && is_below && !is_never && (!of_process || is_setting && !leads_away(path)) {
        true => Ok(()),
        false => Err(Errno::XDEV),
    }
}

/// A pattern may stand for processes too.
fn is_process(name: &OsStr) -> bool {
    let is_number = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit() || b"*?[]-".contains(&byte));
    name.to_str().is_none_or(|name| matches!(name, "self" | "thread-self") || is_number(name))
}

fn leads_away(path: &Path) -> bool {
    path.components()
        .any(|part| ["root", "cwd", "fd", "map_files"].iter().any(|link| part.as_os_str() == *link))
}

pub(crate) fn check(system: &StatFs, known: &[u32]) -> Result<(), Errno> {
    if known.contains(&(system.f_type as u32)) { Ok(()) } else { Err(Errno::XDEV) }
}

/// Whether a directory may be made or removed at `path`.
pub(crate) fn check_parent(path: &Path) -> Result<(), Errno> {
    let parent = path.parent().ok_or(Errno::XDEV)?;
    check(&rustix::fs::statfs(parent)?, &GROUPS)
}

/// Whether it can be the name of a unit or a script, and no option or path.
fn is_plain(name: &str) -> bool {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || b"@._:-\\".contains(&byte);
    name.bytes().all(known) && name.bytes().next().is_some_and(|byte| !b"-.".contains(&byte))
}

/// Whether it is a slice of systemd.
pub(crate) fn is_slice(unit: &str) -> bool {
    is_plain(unit) && unit.ends_with(".slice")
}

/// Whether it is a unit of systemd, or a script that starts and stops a service.
pub(crate) fn is_service(manager: &str) -> bool {
    let script = SCRIPTS.iter().find_map(|place| manager.strip_prefix(place));
    match script {
        Some(name) => is_plain(name),
        None => {
            is_plain(manager) && [".service", ".socket", ".timer"].iter().any(|end| manager.ends_with(end))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elsewhere_than_below_proc_and_sys_only_groups_and_traces_are_written() {
        assert_eq!(systems_at(Path::new("/run/cpuset/a/cpuset.cpus")), Ok(&GROUPS[..]));
        assert_eq!(systems_at(Path::new("/proc/sys/vm/swappiness")), Ok(&SETTINGS[..]));
        for path in ["/run/../etc/passwd", "run/cpuset", "/proc/self/mem"] {
            assert!(systems_at(Path::new(path)).is_err(), "{path}");
        }
    }

    #[test]
    fn a_slice_has_a_plain_name() {
        assert!(is_slice("worstcase.slice"));
        for unit in ["-.slice", "--now.slice", "a/b.slice", "worstcase.service", ""] {
            assert!(!is_slice(unit), "{unit}");
        }
    }

    #[test]
    fn settings_are_known_by_their_paths() {
        for path in [
            "/proc/sys/vm/swappiness",
            "/proc/irq/24/smp_affinity_list",
            "/proc/self/oom_score_adj",
            "/sys/fs/cgroup/worstcase/cpuset.cpus",
            "/sys/devices/system/cpu/cpu*/cpuidle/state*/disable",
        ] {
            assert!(is_setting(path), "{path}");
        }
        for path in [
            "/etc/passwd",
            "proc/sys/vm/swappiness",
            "/proc/../etc/passwd",
            concat!("/proc/1/", "root/etc/passwd"),
            concat!("/proc/*/", "root/etc/passwd"),
            "/proc/[1]/cwd/x",
            concat!("/proc/1/task/1/", "root/oom_score_adj"),
            "/proc/self/fd/3",
            "/proc/self/mem",
            "/proc/1/attr/current",
            "/procfile",
            "/sys/kernel/uevent_helper",
        ] {
            assert!(!is_setting(path), "{path}");
        }
    }

    #[test]
    fn services_are_units_and_scripts_in_their_place() {
        for name in
            ["irqbalance.service", "cpufrequtils@1.service", "/etc/init.d/irqbalance", "/etc/rc.d/ntpd"]
        {
            assert!(is_service(name), "{name}");
        }
        for name in
            ["irqbalance", "/etc/init.d/", "/etc/init.d/a/b", "/usr/bin/true", "-H.service", "a;b.service"]
        {
            assert!(!is_service(name), "{name}");
        }
    }
}
