//! Who must not lose its last CPU, and who would starve.

use machine::tasks::{self, Task};
use record::{Fact, Throttling};
use sysroot::SysRoot;
use units::{CpuList, Nanos};

use crate::output;

/// Who of the caller, its ancestors and the remote shells' server may run on `cpus` alone.
pub fn locked_out(root: &SysRoot, own: i32, cpus: &CpuList) -> Option<String> {
    let all: Vec<Task> = tasks::all(root).into_iter().filter(|task| task.pid == task.tid).collect();
    let servers = all.iter().filter(|task| task.name.starts_with("sshd")).map(|task| task.pid);
    let mut guarded: Vec<i32> = servers.collect();
    let mut next = Some(own);
    while let Some(pid) = next.filter(|pid| !guarded.contains(pid)) {
        guarded.push(pid);
        next = all.iter().find(|task| task.pid == pid).map(|task| task.parent);
    }
    let guarded = all.into_iter().filter(|task| guarded.contains(&task.pid));
    let mut placed = guarded.map(|task| tasks::with_affinity(root, task));
    let task = placed.find(|task| !task.cpus.is_empty() && task.cpus.difference(cpus).is_empty())?;
    Some(format!("{} ({})", task.name, task.pid))
}

/// Says so where nothing takes the CPU from a thread of FIFO that never sleeps.
pub fn warn_of_starvation(throttling: &Throttling) {
    if starves(throttling) {
        output::warning(
            "a FIFO thread that never sleeps starves the kernel's threads of its CPU here, and the machine hangs \
             where others wait for them: let it sleep",
        );
    }
}

/// Whether neither a fair server nor throttling leaves time to others. Where there is a server, throttling is off.
fn starves(throttling: &Throttling) -> bool {
    match &throttling.fair_server_runtime {
        Fact::Value(time) => *time == Nanos::ZERO,
        Fact::Unreadable(_) => false,
        Fact::Absent | Fact::Unsupported => throttling.runtime_us == Fact::Value(-1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sysroot::Tree;

    fn root(threads: &[(i32, &str, i32, &str)]) -> SysRoot {
        let mut text = String::new();
        for (pid, name, parent, cpus) in threads {
            text += &format!(
                "=== /proc/{pid}/task/{pid}/stat\n{pid} ({name}) S {parent} 1 1 0 -1 0 0 0 0 0 5 6 0 0 20 0 1 0 4711 0 0 1 0 \
                 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0\n=== /proc/{pid}/task/{pid}/status\nCpus_allowed_list:\t{cpus}\n"
            );
        }
        SysRoot::of(Tree::of_text(&text).unwrap())
    }

    fn who(threads: &[(i32, &str, i32, &str)]) -> Option<String> {
        locked_out(&root(threads), 9, &"1".parse().unwrap())
    }

    #[test]
    fn others_starve_without_a_fair_server_and_without_throttling() {
        let starves = |fair_server_runtime, runtime_us| {
            let runtime_us = Fact::Value(runtime_us);
            super::starves(&Throttling { fair_server_runtime, runtime_us, ..Throttling::default() })
        };
        assert!(starves(Fact::Absent, -1) && starves(Fact::Value(Nanos::ZERO), 950_000));
        assert!(!starves(Fact::Absent, 950_000) && !starves(Fact::Value(Nanos::from_millis(50)), -1));
    }

    #[test]
    fn the_caller_its_ancestors_and_sshd_keep_a_cpu() {
        let free =
            [(1, "init", 0, "0-1"), (5, "sshd", 1, "0-1"), (8, "sh", 5, "0-1"), (9, "worstcase", 8, "0-1")];
        assert_eq!(who(&free), None);
        let with = |place: usize| {
            let mut bound = free;
            bound[place].3 = "1";
            who(&bound)
        };
        assert_eq!(with(3).as_deref(), Some("worstcase (9)"));
        assert_eq!(with(2).as_deref(), Some("sh (8)"));
        assert_eq!(with(1).as_deref(), Some("sshd (5)"));
        assert_eq!(who(&[(9, "worstcase", 1, "0"), (30, "robot", 1, "1")]), None);
    }
}
