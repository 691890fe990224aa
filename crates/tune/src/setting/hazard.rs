//! What must not be changed because it cannot be put back, and what else a change does.

use rustix::io::Errno;

use super::Target;
use control::in_words;

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

/// Why `target`, which says `old`, could not be put back.
pub(crate) fn one_way(target: &Target, old: &str) -> Option<String> {
    match target {
        Target::File(path) => {
            let is_it = |(end, value, _): &&(&str, &str, &str)| path.ends_with(end) && old == *value;
            ONE_WAY.iter().find(is_it).map(|(_, _, why)| (*why).to_owned())
        }
        Target::Scheduling(_) if old.starts_with("deadline") || old.starts_with("unknown") => {
            Some("its policy could not be given back".to_owned())
        }
        _ => None,
    }
}

/// The part of a path by which the fair server's files are known.
pub(super) const FAIR_SERVER: &str = "/sched/fair_server/";

/// Why the kernel refuses something, where its answer alone does not say.
pub fn why_refused(target: &Target, errno: i32) -> Option<&'static str> {
    match target {
        Target::File(path) if path.contains(FAIR_SERVER) && errno == Errno::BUSY.raw_os_error() => {
            Some("the kernel has lost count of what its fair servers take, as 6.12 does until the next boot")
        }
        _ => None,
    }
}

/// Why something is done only where somebody asks for just that.
pub(crate) fn heavy(target: &Target) -> Option<&'static str> {
    match target {
        Target::File(path) if path.ends_with("/smt/control") => Some("CPUs would go offline"),
        _ => None,
    }
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
pub(crate) fn effect(target: &Target) -> Option<&'static str> {
    match target {
        Target::File(path) => EFFECTS.iter().find(|(part, _)| path.contains(part)).map(|(_, text)| *text),
        Target::LatencyLimit => Some("keeps all CPUs out of deeper idle states: power and heat"),
        _ => None,
    }
}

/// Why something cannot be read, and so not be put back.
pub(crate) fn unreadable(what: &str, errno: i32) -> String {
    let locked =
        what.contains("/debug/") && [Errno::PERM, Errno::ACCESS].map(Errno::raw_os_error).contains(&errno);
    let why = if locked { ": debugfs is closed, by lockdown or for want of privileges" } else { "" };
    format!("cannot be read ({}){why}", in_words(errno))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_written_back_is_refused() {
        let file = |path: &str| Target::File(path.to_owned());
        assert!(one_way(&file("/sys/kernel/tracing/events/enable"), "X").is_some());
        assert!(one_way(&file("/sys/kernel/tracing/events/enable"), "1").is_none());
        assert!(one_way(&file("/sys/devices/system/cpu/smt/control"), "on").is_none());
        assert!(effect(&file("/sys/kernel/mm/ksm/run")).is_some());
    }

    #[test]
    fn a_fair_server_that_is_busy_is_explained() {
        let server = Target::File("/sys/kernel/debug/sched/fair_server/cpu1/runtime".into());
        assert!(why_refused(&server, Errno::BUSY.raw_os_error()).is_some());
        assert!(why_refused(&server, Errno::INVAL.raw_os_error()).is_none());
    }

    #[test]
    fn a_closed_debugfs_is_named() {
        assert!(unreadable("/sys/kernel/debug/sched/preempt", 1).contains("lockdown"));
        assert!(!unreadable("/proc/sys/vm/x", 1).contains("lockdown"));
    }
}
