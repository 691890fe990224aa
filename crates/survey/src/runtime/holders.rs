//! Programs that hold something open which changes how the machine behaves.

use machine::{latency_request, tasks};
use record::Fact;
use sysroot::SysRoot;

use crate::survey::{NamedFact, Survey, fact};
use crate::value::{Item, Reading, Value, item, reading};

pub(super) const FACTS: &[NamedFact] = &[
    fact("idle.request-holders", "programs that hold /dev/cpu_dma_latency open", latency_holders),
    fact("idle.request-by-tests", "test tools that hold /dev/cpu_dma_latency open", latency_tests),
    fact("perf.holders", "programs that hold performance events open", perf_holders),
];

/// Programs that ask for shallow idle states by an open file (Documentation/power/pm_qos_interface.rst).
fn latency_holders(survey: &Survey) -> Reading {
    holders(&survey.root, latency_request::PATH)
}

/// Those that hold it for the sake of a measurement.
fn latency_tests(survey: &Survey) -> Reading {
    const TOOLS: [&str; 7] =
        ["cyclictest", "oslat", "osnoise", "timerlat", "rtla", "jitterdebugger", "deadline_test"];
    let holders = latency_holders(survey);
    let tests = |value: Value| match value {
        Value::List(items) => {
            let tool = |item: &Item| TOOLS.iter().any(|tool| item.name.starts_with(tool));
            Value::List(items.into_iter().filter(tool).collect())
        }
        other => other,
    };
    Reading { value: holders.value.map(tests), from: holders.from }
}

/// Programs that count or sample with the performance counters (perf_event_open(2)).
fn perf_holders(survey: &Survey) -> Reading {
    holders(&survey.root, "anon_inode:[perf_event]")
}

/// Processes that have `target` open. Where others' files cannot be seen, what is seen, if anything.
fn holders(root: &SysRoot, target: &str) -> Reading {
    let (mut items, mut hidden): (Vec<Item>, Vec<(String, i32)>) = (Vec::new(), Vec::new());
    for task in tasks::all(root).into_iter().filter(|task| !task.kernel && task.tid == task.pid) {
        match holds(root, task.pid, target) {
            Fact::Value(true) => items.push(item(&task.name, task.pid)),
            Fact::Unreadable(errno) => hidden.push((format!("{} ({})", task.pid, task.name), errno)),
            Fact::Value(false) | Fact::Absent | Fact::Unsupported => {}
        }
    }
    match hidden.split_first() {
        Some(((first, errno), others)) if items.is_empty() => {
            let more = if others.is_empty() { String::new() } else { format!(" and {} more", others.len()) };
            reading(Fact::Unreadable(*errno), &format!("/proc/PID/fd of process {first}{more}"))
        }
        _ => reading(Fact::Value(Value::List(items)), "/proc/PID/fd"),
    }
}

/// Whether a process has `target` open. A file that is closed meanwhile is none.
fn holds(root: &SysRoot, pid: i32, target: &str) -> Fact<bool> {
    root.list(&format!("/proc/{pid}/fd")).and_then(|files| {
        let mut hidden = Fact::Value(false);
        for file in files {
            match root.link(&format!("/proc/{pid}/fd/{file}")) {
                Fact::Value(link) if link == target => return Fact::Value(true),
                Fact::Unreadable(errno) => hidden = Fact::Unreadable(errno),
                _ => {}
            }
        }
        hidden
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Isolated, link, shown, thread};
    use sysroot::FakeTree;

    #[test]
    fn holders_are_found_by_what_they_have_open() {
        let tree = FakeTree::empty();
        for (pid, name) in [(10, "tuned"), (11, "cyclictest"), (12, "perf"), (13, "shell")] {
            thread(&tree, (pid, pid), name, 0, (0, 0), "0-3");
            link(&tree, &format!("/proc/{pid}/fd/0"), "/dev/null");
        }
        link(&tree, "/proc/10/fd/5", "/dev/cpu_dma_latency");
        link(&tree, "/proc/11/fd/5", "/dev/cpu_dma_latency");
        link(&tree, "/proc/12/fd/7", "anon_inode:[perf_event]");
        let reading = |name: &str| shown(&tree, Isolated::None, name);
        assert_eq!(reading("idle.request-holders"), "tuned: 10, cyclictest: 11");
        assert_eq!(reading("idle.request-by-tests"), "cyclictest: 11");
        assert_eq!(reading("perf.holders"), "perf: 12");
    }

    #[test]
    fn the_process_whose_files_may_not_be_seen_is_named() {
        let tree = FakeTree::empty();
        for (pid, name) in [(10, "sshd"), (11, "cron")] {
            thread(&tree, (pid, pid), name, 0, (0, 0), "0-3");
            // A link that leads to itself cannot be read by root either.
            link(&tree, &format!("/proc/{pid}/fd"), &format!("/proc/{pid}/fd"));
        }
        let shown = super::holders(&tree.root, "/dev/cpu_dma_latency");
        assert!(matches!(shown.value, record::Fact::Unreadable(_)), "{:?}", shown.value);
        assert_eq!(shown.from, ["/proc/PID/fd of process 10 (sshd) and 1 more"]);
    }
}
