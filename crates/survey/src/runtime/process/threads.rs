//! Its threads: policies, priorities, CPUs.

use machine::tasks::{self, Task};
use record::Fact;

use super::about::{about, real_time_threads};
use crate::runtime::priorities::{named, waiters_behind_ktimers};
use crate::survey::Survey;
use crate::value::{Reading, Value, item, unsupported};

const STAT: &str = "task/*/stat";

/// How many of its threads are real-time ones.
pub(super) fn count(survey: &Survey) -> Reading {
    about(survey, STAT, |pid| {
        let count = real_time_threads(survey, pid).len();
        Fact::Value(Value::Number(i64::try_from(count).unwrap_or(i64::MAX)))
    })
}

/// The highest priority of its threads; absent if none has one.
pub(super) fn top_priority(survey: &Survey) -> Reading {
    about(survey, STAT, |pid| {
        let highest = real_time_threads(survey, pid).iter().map(|task| task.priority).max();
        highest
            .filter(|priority| *priority > 0)
            .map_or(Fact::Absent, |priority| Fact::Value(Value::Number(priority.into())))
    })
}

/// Other threads with the priority of one of its own, on a CPU that both may use. Threads of the kernel are among them.
pub(super) fn equals(survey: &Survey) -> Reading {
    about(survey, STAT, |pid| {
        let own: Vec<Task> =
            real_time_threads(survey, pid).into_iter().filter(|task| task.priority > 0).collect();
        let wanted = |other: &Task| {
            other.policy.is_real_time() && own.iter().any(|task| task.priority == other.priority)
        };
        let others = tasks::all(&survey.root).into_iter().filter(wanted);
        let others = others.map(|other| tasks::with_affinity(&survey.root, other));
        let equal = others.filter_map(|other| {
            let meets = |task: &&Task| task.tid < other.tid || task.pid != other.pid;
            let equal = |task: &&Task| {
                task.tid != other.tid
                    && task.priority == other.priority
                    && !task.cpus.intersection(&other.cpus).is_empty()
            };
            let task = own.iter().filter(meets).find(equal)?;
            Some(item(named(&other), task.cpus.intersection(&other.cpus).named()))
        });
        Fact::Value(Value::List(equal.collect()))
    })
}

/// Its real-time threads that may run on CPUs that are not set apart.
pub(super) fn off_isolated(survey: &Survey) -> Reading {
    if survey.isolated.is_empty() {
        return unsupported("no CPU is isolated");
    }
    about(survey, "task/*/status", |pid| {
        let off = |task: &Task| !task.cpus.difference(&survey.isolated).is_empty();
        Fact::Value(Value::List(with_cpus(real_time_threads(survey, pid), off)))
    })
}

/// Its real-time threads that may run on several CPUs.
pub(super) fn wandering(survey: &Survey) -> Reading {
    about(survey, "task/*/status", |pid| {
        Fact::Value(Value::List(with_cpus(real_time_threads(survey, pid), |task| task.cpus.len() > 1)))
    })
}

fn with_cpus(threads: Vec<Task>, wanted: impl Fn(&Task) -> bool) -> Vec<crate::Item> {
    threads.iter().filter(|task| wanted(task)).map(|task| item(named(task), task.cpus.named())).collect()
}

/// Threads of programs that it started which are real-time ones: they inherited it, or were made so.
pub(super) fn children(survey: &Survey) -> Reading {
    about(survey, STAT, |pid| {
        let children = tasks::descendants(&survey.root, pid).into_iter();
        let threads = children.flat_map(|child| real_time_threads(survey, child.pid));
        Fact::Value(Value::List(
            threads.map(|task| item(named(&task), format!("process {}", task.pid))).collect(),
        ))
    })
}

/// Devices that it has open whose interrupts are handled by threads, none of which goes before its real-time threads:
/// where one of these never waits, the device's thread does. Absent where no interrupt has a thread, or it has no
/// real-time thread.
pub(super) fn before_interrupt_threads(survey: &Survey) -> Reading {
    about(survey, "fd", |pid| {
        let interrupts =
            tasks::all(&survey.root).into_iter().filter(|task| task.kernel && task.name.starts_with("irq/"));
        let highest = interrupts.map(|task| task.priority).max();
        let lowest = real_time_threads(survey, pid)
            .iter()
            .map(|task| task.priority)
            .filter(|priority| *priority > 0)
            .min();
        let (Some(highest), Some(lowest)) = (highest, lowest) else { return Fact::Absent };
        let devices = if highest > lowest { Vec::new() } else { devices(survey, pid) };
        Fact::Value(Value::List(
            devices
                .into_iter()
                .map(|device| {
                    item(device, format!("interrupt threads up to {highest}, the program from {lowest} on"))
                })
                .collect(),
        ))
    })
}

/// Devices that it has open and that wake it by their interrupts.
fn devices(survey: &Survey, pid: i32) -> Vec<String> {
    const DEVICES: [&str; 8] = [
        "/dev/uio",
        "/dev/gpiochip",
        "/dev/ttyS",
        "/dev/ttyAMA",
        "/dev/spidev",
        "/dev/i2c-",
        "/dev/comedi",
        "anon_inode:gpio",
    ];
    let files = survey.root.list(&format!("/proc/{pid}/fd"));
    let files = files.value().cloned().unwrap_or_default();
    let links =
        files.iter().filter_map(|file| survey.root.link(&format!("/proc/{pid}/fd/{file}")).value().cloned());
    let mut devices: Vec<String> =
        links.filter(|link| DEVICES.iter().any(|device| link.starts_with(device))).collect();
    devices.sort_unstable();
    devices.dedup();
    devices
}

/// Its threads among those that wait for timers behind other threads.
pub(super) fn behind_ktimers(survey: &Survey) -> Reading {
    match survey.process {
        Some(pid) => waiters_behind_ktimers(survey, |task| task.pid == pid),
        None => unsupported("no process was asked about"),
    }
}
