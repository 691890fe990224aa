//! Processes as /proc shows them: who descends from whom, what threads cost.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// The real-time policy `SCHED_FIFO` as /proc/PID/stat numbers it (`sched.h`).
pub const FIFO: u32 = 1;

/// Fields of a `stat` file after the command's name, which may hold blanks and brackets (proc(5)).
fn fields(stat: &Path) -> Option<Vec<String>> {
    let text = fs::read_to_string(stat).ok()?;
    let (_, after) = text.rsplit_once(')')?;
    Some(after.split_whitespace().map(str::to_owned).collect())
}

/// Field `number` as proc(5) counts them, from 1; the first two stand before what `fields` returns.
fn field<T: std::str::FromStr>(fields: &[String], number: usize) -> Option<T> {
    fields.get(number - 3)?.parse().ok()
}

/// `root` and all that descend from it. A process that leaves while we look is left out.
pub fn tree(root: u32) -> Vec<u32> {
    let parents: BTreeMap<u32, u32> = numbered("/proc".as_ref())
        .into_iter()
        .filter_map(|pid| Some((pid, field(&fields(format!("/proc/{pid}/stat").as_ref())?, 4)?)))
        .collect();
    let mut found = vec![root];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        found.extend(parents.iter().filter(|(_, of)| **of == parent).map(|(pid, _)| *pid));
        next += 1;
    }
    found
}

/// Kills `root` and all that descend from it, by their numbers.
pub fn kill_tree(root: u32) {
    let pids = tree(root).into_iter().map(|pid| pid.to_string());
    // A process that is gone already is what was wanted.
    let _ = Command::new("kill").arg("-KILL").args(pids).stderr(Stdio::null()).status();
}

/// Entries of a directory that are numbers.
fn numbered(directory: &Path) -> Vec<u32> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// One thread at one moment.
#[derive(Clone, Debug)]
pub struct Thread {
    /// Its process.
    pub process: u32,
    /// Its scheduling policy's number.
    pub policy: u32,
    /// Its real-time priority; 0 for others.
    pub priority: u32,
    /// CPUs it may run on, as the kernel lists them.
    pub cpus: String,
    /// CPU time so far, in ns; from the scheduler's own count, not from ticks.
    pub cpu_nanos: u64,
    /// Times that it gave up the CPU of its own accord: one a sleep.
    pub sleeps: u64,
}

/// The threads of a process.
pub fn threads(process: u32) -> Vec<Thread> {
    let tasks = format!("/proc/{process}/task");
    numbered(tasks.as_ref())
        .into_iter()
        .filter_map(|tid| thread(process, &format!("{tasks}/{tid}")))
        .collect()
}

fn thread(process: u32, directory: &str) -> Option<Thread> {
    let stat = fields(format!("{directory}/stat").as_ref())?;
    let schedstat = fs::read_to_string(format!("{directory}/schedstat")).ok()?;
    let status = fs::read_to_string(format!("{directory}/status")).ok()?;
    Some(Thread {
        process,
        policy: field(&stat, 41)?,
        priority: field(&stat, 40)?,
        cpus: labelled(&status, "Cpus_allowed_list:")?.to_owned(),
        cpu_nanos: schedstat.split_whitespace().next()?.parse().ok()?,
        sleeps: labelled(&status, "voluntary_ctxt_switches:")?.parse().ok()?,
    })
}

/// The value on the line that begins with `label`.
fn labelled<'a>(text: &'a str, label: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(label)).map(str::trim)
}

fn kibibytes(path: &str, label: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    labelled(&text, label)?.strip_suffix(" kB")?.trim().parse().ok()
}

/// Memory of a process that is resident, in KiB: its `VmRSS`.
pub fn resident_kib(process: u32) -> Option<u64> {
    kibibytes(&format!("/proc/{process}/status"), "VmRSS:")
}

/// Memory of a process that is resident, in KiB, shared pages divided among those who share them: may be summed.
pub fn proportional_kib(process: u32) -> Option<u64> {
    kibibytes(&format!("/proc/{process}/smaps_rollup"), "Pss:")
}

/// The CPUs that this process may run on, as the kernel lists them.
pub fn allowed_cpus() -> Option<String> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    labelled(&status, "Cpus_allowed_list:").map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_seen_with_its_child_and_its_threads() {
        let mut child = Command::new("sleep").arg("30").spawn().unwrap();
        let me = std::process::id();
        assert!(tree(me).contains(&child.id()));
        let mine = threads(me);
        assert!(mine.iter().any(|thread| thread.cpu_nanos > 0));
        assert!(resident_kib(me).unwrap() > 0);
        kill_tree(child.id());
        assert!(!child.wait().unwrap().success());
        assert!(!tree(me).contains(&child.id()));
    }

    #[test]
    fn a_label_is_found_at_the_beginning_of_its_line_only() {
        assert_eq!(labelled("nonvoluntary: 1\nvoluntary: 2\n", "voluntary:"), Some("2"));
    }
}
