//! Files that must not be changed because they cannot be put back, and what else a change of a file does.

use rustix::io::Errno;
use units::errno_in_words;

/// A file, what it says, and why that cannot be written back.
const ONE_WAY: [(&str, &str, &str); 7] = [
    (
        "/tracing/events/enable",
        "X",
        "some events are on, and this file does not say which: it could not be undone",
    ),
    ("/smt/control", "forceoff", "the kernel lets nobody switch sibling threads on again"),
    ("/smt/control", "notsupported", "the processor has no sibling threads"),
    ("/smt/control", "notimplemented", "the kernel does not switch sibling threads here"),
    ("/vm/dirty_ratio", "0", "vm.dirty_bytes is in use, and writing this one would lose it"),
    (
        "/vm/dirty_background_ratio",
        "0",
        "vm.dirty_background_bytes is in use, and writing this one would lose it",
    ),
    ("/scaling_governor", "userspace", "the speed that a program has set would be lost"),
];

/// Why the file at `path`, which says `old`, could not be put back.
pub(super) fn one_way(path: &str, old: &str) -> Option<&'static str> {
    let is_it = |(end, value, _): &&(&str, &str, &str)| path.ends_with(end) && old == *value;
    ONE_WAY.iter().find(is_it).map(|(_, _, why)| *why)
}

/// The part of a path by which the fair server's files are known.
pub(super) const FAIR_SERVER: &str = "/sched/fair_server/";

/// Why the kernel refuses to have the file at `path` written, where its answer alone does not say.
pub(super) fn why_refused(path: &str, errno: i32) -> Option<&'static str> {
    let is_busy = path.contains(FAIR_SERVER) && errno == Errno::BUSY.raw_os_error();
    is_busy.then_some(
        "the kernel has lost count of what its fair servers take, as 6.12 does until the next boot",
    )
}

/// What a change does beside what it is for, by a part of the path.
const EFFECTS: [(&str, &str); 5] = [
    ("/mm/ksm/run", "pages that were merged are copied again: more memory is used at once"),
    (
        "/smt/control",
        "CPUs go offline: masks, cpusets of cgroup v1 and bound threads lose them, for good where nobody puts them back",
    ),
    ("/scaling_governor", "the CPU is clocked high while it idles too"),
    ("/scaling_min_freq", "the CPU is clocked high while it idles too"),
    ("/kfence/", "kernels before 5.18 do not switch it on again"),
];

/// What else happens.
pub(super) fn effect(path: &str) -> Option<&'static str> {
    EFFECTS.iter().find(|(part, _)| path.contains(part)).map(|(_, text)| *text)
}

/// Why something cannot be read, and so not be put back.
pub(crate) fn unreadable(what: &str, errno: i32) -> String {
    let locked =
        what.contains("/debug/") && [Errno::PERM, Errno::ACCESS].map(Errno::raw_os_error).contains(&errno);
    let why = if locked { ": debugfs is closed, by lockdown or for want of privileges" } else { "" };
    format!("cannot be read ({}){why}", errno_in_words(errno))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_written_back_is_refused() {
        assert!(one_way("/sys/kernel/tracing/events/enable", "X").is_some());
        assert!(one_way("/sys/kernel/tracing/events/enable", "1").is_none());
        assert!(one_way("/sys/devices/system/cpu/smt/control", "on").is_none());
        assert!(effect("/sys/kernel/mm/ksm/run").is_some());
    }

    #[test]
    fn a_fair_server_that_is_busy_is_explained() {
        let server = "/sys/kernel/debug/sched/fair_server/cpu1/runtime";
        assert!(why_refused(server, Errno::BUSY.raw_os_error()).is_some());
        assert!(why_refused(server, Errno::INVAL.raw_os_error()).is_none());
    }

    #[test]
    fn a_closed_debugfs_is_named() {
        assert!(unreadable("/sys/kernel/debug/sched/preempt", 1).contains("lockdown"));
        assert!(!unreadable("/proc/sys/vm/x", 1).contains("lockdown"));
    }
}
