//! Processes as the tests see them, from outside: who descends from whom, who is still there.

use std::collections::HashSet;
use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

/// An environment variable that marks what a test has started.
pub const MARK: &str = "WORSTCASE_TEST_MARK";

/// A process: id and start time together are unique.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Process {
    pub pid: i32,
    started: String,
    parent: i32,
    session: i32,
    pub policy: u32,
    pub nice: i32,
}

fn read(pid: i32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    // A zombie runs no more: whose it is to wait for is not ours to say.
    let alive = !matches!(fields[0], "Z" | "X");
    alive.then(|| Process {
        pid,
        started: fields[19].into(),
        parent: fields[1].parse().unwrap(),
        session: fields[3].parse().unwrap(),
        policy: fields[38].parse().unwrap(),
        nice: fields[16].parse().unwrap(),
    })
}

fn all() -> Vec<Process> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter_map(read).collect()
}

/// All that `ancestor` started and what those started.
pub fn descendants(ancestor: u32) -> Vec<Process> {
    let (all, mut found) = (all(), Vec::new());
    let mut next = vec![ancestor as i32];
    while let Some(pid) = next.pop() {
        for child in all.iter().filter(|process| process.parent == pid) {
            next.push(child.pid);
            found.push(child.clone());
        }
    }
    found
}

pub fn signal(pid: u32, signal: Signal) {
    rustix::process::kill_process(Pid::from_raw(pid as i32).unwrap(), signal).unwrap();
}

/// A supervisor and all that it has started so far.
pub struct Watch {
    listed: HashSet<Process>,
    sessions: HashSet<i32>,
}

impl Watch {
    pub fn of(supervisor: u32) -> Self {
        let until = Instant::now() + Duration::from_secs(10);
        let mut workers = descendants(supervisor);
        // Between two steps of a sequence there are none for a moment.
        while workers.is_empty() && Instant::now() < until {
            workers = descendants(supervisor);
        }
        assert!(!workers.is_empty(), "the load has no workers");
        let listed: HashSet<Process> = workers.into_iter().chain(read(supervisor as i32)).collect();
        let sessions = listed.iter().map(|process| process.session).collect();
        Self { listed, sessions }
    }

    /// What is still there: what was listed, what is in a session of those, and what carries the mark of these tests.
    fn survivors(&self) -> Vec<Process> {
        let ours = |process: &Process| {
            self.listed.contains(process)
                || self.sessions.contains(&process.session)
                || is_marked(process.pid)
        };
        all().into_iter().filter(ours).collect()
    }

    /// Waits for all of it to be gone; what is not is killed here, and the test fails.
    pub fn assert_gone(&self, what: &str) {
        let until = Instant::now() + Duration::from_secs(10);
        while !self.survivors().is_empty() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
        let survivors = self.survivors();
        for process in &survivors {
            let _ = rustix::process::kill_process(Pid::from_raw(process.pid).unwrap(), Signal::KILL);
        }
        assert!(survivors.is_empty(), "{what}: survived: {survivors:#?}");
    }
}

fn is_marked(pid: i32) -> bool {
    let mark = format!("{MARK}={}", std::process::id());
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|&byte| byte == 0).any(|entry| entry == mark.as_bytes())
}
