//! Programs that change the same things of their own accord.

use machine::tasks;
use serde::{Deserialize, Serialize};
use survey::running;
use sysroot::SysRoot;

use crate::setting::{Step, Target};

/// Another owner of something that would be changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Conflict {
    /// Its name and process id.
    pub who: String,
    /// What it does, and what to do about it.
    pub what: String,
}

/// A program by the names that the kernel keeps of it, 15 bytes long; what it changes; what it does.
struct Owner {
    names: &'static [&'static str],
    owns: fn(&Target) -> bool,
    what: &'static str,
}

const OWNERS: [Owner; 4] = [
    Owner {
        names: &["irqbalance"],
        owns: |target| matches!(target, Target::Interrupt { .. }),
        what: "moves interrupts again within 10 s; systemctl stop irqbalance before",
    },
    Owner {
        names: &["tuned"],
        owns: |_| true,
        what: "writes its profile's settings again when it starts or changes profile; tuned-adm off before",
    },
    Owner {
        names: &["power-profiles-", "thermald", "tlp", "auto-cpufreq", "cpufreqd", "system76-power"],
        owns: |target| matches!(target, Target::File(path) if path.contains("/cpufreq/") || path.contains("_pstate/")),
        what: "writes clocks when it likes; systemctl stop it before",
    },
    Owner {
        names: &["stalld"],
        owns: |target| matches!(target, Target::File(path) if path.ends_with("/sched_rt_runtime_us")),
        what: "writes the throttle's run time when it starts and ends",
    },
];

/// Who else changes what `steps` change.
pub fn conflicts(root: &SysRoot, steps: &[Step]) -> Vec<Conflict> {
    let is_stopped = |owner: &Owner| {
        steps.iter().any(|step| matches!(&step.target, Target::Service { program, .. } if owner.names.contains(&program.as_str())))
    };
    let concerned = OWNERS.iter().filter(|owner| steps.iter().any(|step| (owner.owns)(&step.target)));
    let concerned = concerned.filter(|owner| !is_stopped(owner));
    let found = concerned.flat_map(|owner| {
        let running = running(root, owner.names).into_iter();
        running.map(|item| Conflict {
            who: format!("{} ({})", item.name, item.value),
            what: owner.what.to_owned(),
        })
    });
    found.chain(priorities(root, steps)).collect()
}

/// Threads that would have to wait for one that is raised, and must not, or that would wait for each other.
fn priorities(root: &SysRoot, steps: &[Step]) -> Vec<Conflict> {
    let raised = steps.iter().filter_map(|step| match (&step.target, step.new.split_once(' ')?) {
        (Target::Scheduling(thread), ("fifo" | "rr", priority)) => {
            Some((thread.tid, priority.parse::<u32>().ok()?))
        }
        _ => None,
    });
    let raised: Vec<(i32, u32)> = raised.collect();
    let Some(highest) = raised.iter().map(|(_, priority)| *priority).max() else { return Vec::new() };
    let others = tasks::all(root).into_iter().filter(|task| raised.iter().all(|(tid, _)| *tid != task.tid));
    let clash = |task: tasks::Task| {
        let who = format!("{} ({}), {} {}", task.name, task.tid, task.policy, task.priority);
        let may_not_wait = task.kernel && MUST_NOT_WAIT.iter().any(|name| task.name.starts_with(name));
        let is_equal = !task.kernel && raised.iter().any(|(_, priority)| *priority == task.priority);
        let what = match task.policy.is_real_time() {
            true if may_not_wait && task.priority <= highest => "must not wait for others: 98 is high enough",
            true if is_equal => {
                "has the same priority: whichever runs first, the other waits until it sleeps"
            }
            _ => return None,
        };
        Some(Conflict { who, what: what.to_owned() })
    };
    let mut clashes: Vec<Conflict> = others.filter_map(clash).collect();
    clashes.dedup_by(|one, other| one.what == other.what && one.what.starts_with("must"));
    clashes
}

/// Threads of the kernel on which the others rely: they move threads, stop CPUs, and feed the watchdog.
const MUST_NOT_WAIT: [&str; 3] = ["migration/", "watchdog", "stopper/"];
