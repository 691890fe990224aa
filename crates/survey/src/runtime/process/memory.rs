//! Its memory: what may be missing when a real-time thread touches it (proc_pid_status(5)).

use record::Fact;
use sysroot::parsed;

use super::about::{about, real_time_threads, status_word};
use crate::survey::Survey;
use crate::value::{Item, Reading, Value, item};

/// A size in KiB of the status file; absent for a process without memory of its own.
fn size(survey: &Survey, pid: i32, name: &str) -> Fact<i64> {
    let status = survey.root.read(&format!("/proc/{pid}/status"));
    status.and_then(|status| match status_word(&status, name) {
        Some(word) => parsed(word.parse()),
        None => Fact::Absent,
    })
}

/// Memory that it uses and has not locked.
pub(super) fn unlocked(survey: &Survey) -> Reading {
    about(survey, "status", |pid| {
        let locked = size(survey, pid, "VmLck");
        size(survey, pid, "VmRSS").and_then(|used| locked.map(|locked| Value::Number((used - locked).max(0))))
    })
}

/// Memory that was written to swap.
pub(super) fn swapped(survey: &Survey) -> Reading {
    about(survey, "status", |pid| size(survey, pid, "VmSwap").map(Value::Number))
}

/// Its real-time threads for which a page had to be fetched from a disk since they began, each with how often. The
/// first thread loads the program and is left out.
pub(super) fn major_faults(survey: &Survey) -> Reading {
    about(survey, "task/*/stat", |pid| {
        let threads = real_time_threads(survey, pid).into_iter().filter(|task| task.tid != pid);
        let items = threads.filter_map(|task| {
            let stat = survey.root.read(&format!("/proc/{pid}/task/{}/stat", task.tid));
            let faults = faults(stat.value()?).filter(|faults| *faults > 0)?;
            Some(item(format!("{} ({})", task.name, task.tid), faults))
        });
        Fact::Value(Value::List(items.collect::<Vec<Item>>()))
    })
}

/// The major faults in a stat file: its twelfth field; the name before it may hold anything.
fn faults(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(") ")?;
    fields.split_whitespace().nth(12 - 3)?.parse().ok()
}
