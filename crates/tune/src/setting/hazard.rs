//! What must not be changed because it cannot be put back, and what else a change does.

use rustix::io::Errno;

use super::Target;
use crate::error::in_words;

/// A file, what it says, and why that cannot be written back.
const ONE_WAY: [(&str, &str, &str); 5] = [
    (
        "/tracing/events/enable",
        "X",
        "some events are on, and this file does not say which: it could not be undone",
    ),
    ("/smt/control", "forceoff", "the kernel lets nobody switch sibling threads on again"),
    ("/smt/control", "notsupported", "the processor has no sibling threads"),
    ("/smt/control", "notimplemented", "the kernel does not switch sibling threads here"),
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
    fn a_closed_debugfs_is_named() {
        assert!(unreadable("/sys/kernel/debug/sched/preempt", 1).contains("lockdown"));
        assert!(!unreadable("/proc/sys/vm/x", 1).contains("lockdown"));
    }
}
