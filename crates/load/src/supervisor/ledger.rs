//! The ledger: CPU time of each stressor, of its living processes and of those that have ended.

use std::collections::HashMap;
use std::fs;

use sys::process::{Pid, Reaped};
use units::Nanos;

use super::processes::{self, Process};

/// The environment variable by which descendants of an external program are known, however far they moved away.
pub(crate) const MARK: &str = "WORSTCASE_LOAD_STRESSOR";

/// What a stressor has.
#[derive(Debug, Default)]
pub(super) struct Account {
    /// CPU time of its processes, of those that have ended too.
    pub cpu_time: Nanos,
    /// Its living processes.
    pub processes: Vec<Process>,
}

fn by_pid(processes: &[Process]) -> HashMap<Pid, &Process> {
    processes.iter().map(|process| (process.pid, process)).collect()
}

/// Which stressor each child belongs to, and what was used.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// Children of the process that runs the workers: they, and orphans that came to it.
    owners: HashMap<Pid, usize>,
    /// CPU time of children that have ended, by stressor.
    ended: HashMap<usize, Nanos>,
    /// What was last found, by stressor: it never goes back.
    found: HashMap<usize, Nanos>,
    /// The load's only program, where there is just one: an orphan can be of nobody else.
    only_program: Option<usize>,
}

impl Ledger {
    /// For a load whose only program is the stressor given, if there is just one.
    pub fn new(only_program: Option<usize>) -> Self {
        Self { only_program, ..Self::default() }
    }

    /// A new worker of `stressor`.
    pub fn enter(&mut self, pid: Pid, stressor: usize) {
        self.owners.insert(pid, stressor);
    }

    /// A child that has ended.
    pub fn close(&mut self, reaped: &Reaped) {
        if let Some(stressor) = self.owners.remove(&reaped.pid) {
            let ended = self.ended.entry(stressor).or_default();
            *ended += reaped.cpu_time;
        }
    }

    /// Takes in `processes` and returns what each stressor has of them. Of the CPU time, a process whose parent does not
    /// wait for it takes its own with it.
    pub fn take(&mut self, processes: &[Process], parent: Pid) -> HashMap<usize, Account> {
        let only = self.only_program;
        self.adopt(processes, parent, |pid| marked(pid).or(only));
        let mut accounts: HashMap<usize, Account> = HashMap::new();
        for (stressor, cpu_time) in self.add_up(processes, parent) {
            accounts.entry(*stressor).or_default().cpu_time = *cpu_time;
        }
        let parents = by_pid(processes);
        for process in processes {
            if let Some(stressor) = self.owner(process, &parents, parent) {
                accounts.entry(stressor).or_default().processes.push(*process);
            }
        }
        accounts
    }

    /// Finds out whose the orphans are.
    fn adopt(&mut self, processes: &[Process], parent: Pid, owner: impl Fn(Pid) -> Option<usize>) {
        let children = processes.iter().filter(|process| process.parent == parent.as_raw_pid());
        let unknown: Vec<Pid> =
            children.map(|child| child.pid).filter(|pid| !self.owners.contains_key(pid)).collect();
        self.owners.extend(unknown.into_iter().filter_map(|pid| Some((pid, owner(pid)?))));
    }

    fn add_up(&mut self, processes: &[Process], parent: Pid) -> &HashMap<usize, Nanos> {
        let parents = by_pid(processes);
        let mut totals = self.ended.clone();
        for process in processes {
            if let Some(stressor) = self.owner(process, &parents, parent) {
                let total = totals.entry(stressor).or_default();
                *total += process.cpu_time;
            }
        }
        for (stressor, total) in totals {
            let found = self.found.entry(stressor).or_default();
            *found = total.max(*found);
        }
        &self.found
    }

    /// Goes up from `process` to a child of the process that runs the workers.
    fn owner(&self, process: &Process, parents: &HashMap<Pid, &Process>, parent: Pid) -> Option<usize> {
        let mut process = process;
        // No chain is longer than there are processes; one that is read while it changes may be a circle.
        for _ in 0..parents.len() {
            if process.parent == parent.as_raw_pid() {
                return self.owners.get(&process.pid).copied();
            }
            process = parents.get(&Pid::from_raw(process.parent)?)?;
        }
        None
    }

    /// Whether any living descendant of `parent` belongs to `stressor`.
    pub fn has_living(&mut self, stressor: usize, parent: Pid) -> bool {
        let processes = processes::all();
        let only = self.only_program;
        self.adopt(&processes, parent, |pid| marked(pid).or(only));
        let parents = by_pid(&processes);
        processes.iter().any(|process| self.owner(process, &parents, parent) == Some(stressor))
    }
}

/// The stressor that a process's environment names.
fn marked(pid: Pid) -> Option<usize> {
    let environment = fs::read(format!("/proc/{}/environ", pid.as_raw_pid())).ok()?;
    let prefix = format!("{MARK}=");
    let value =
        environment.split(|&byte| byte == 0).find_map(|entry| entry.strip_prefix(prefix.as_bytes()))?;
    std::str::from_utf8(value).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sys::process::Ended;

    const PARENT: i32 = 1;

    fn process((pid, parent, nanos): (i32, i32, u64)) -> Process {
        Process { pid: Pid::from_raw(pid).unwrap(), parent, state: b'R', cpu_time: Nanos(nanos) }
    }

    fn totals(ledger: &mut Ledger, table: &[(i32, i32, u64)]) -> Vec<(usize, u64)> {
        let processes: Vec<Process> = table.iter().copied().map(process).collect();
        let parent = Pid::from_raw(PARENT).unwrap();
        ledger.adopt(&processes, parent, |pid| (pid.as_raw_pid() == 30).then_some(1));
        let mut totals: Vec<_> =
            ledger.add_up(&processes, parent).iter().map(|(&key, nanos)| (key, nanos.0)).collect();
        totals.sort_unstable();
        totals
    }

    #[test]
    fn time_goes_to_the_stressor_whose_descendant_used_it() {
        let mut ledger = Ledger::default();
        ledger.enter(Pid::from_raw(10).unwrap(), 0);
        ledger.enter(Pid::from_raw(20).unwrap(), 1);
        let table =
            [(1, 0, 1000), (10, 1, 5), (11, 10, 6), (12, 11, 7), (20, 1, 1), (99, 0, 500), (50, 1, 100)];
        assert_eq!(totals(&mut ledger, &table), [(0, 18), (1, 1)]);
        // 20 ends, its orphan 30 comes to the process that runs the workers, and 10 drops a child that it does not wait for.
        let cpu_time = Nanos(3);
        ledger.close(&Reaped { pid: Pid::from_raw(20).unwrap(), ended: Ended::Exited(0), cpu_time });
        assert_eq!(totals(&mut ledger, &[(1, 0, 0), (10, 1, 6), (11, 10, 7), (30, 1, 4)]), [(0, 18), (1, 7)]);
    }
}
