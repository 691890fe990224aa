//! What is asked of the process, and of its threads.

use machine::tasks::{self, Task};
use record::Fact;

use crate::survey::Survey;
use crate::value::{Reading, Value, reading, unsupported};

/// What `answer` says of the process asked about, read from `/proc/PID/FILE`.
pub fn about(survey: &Survey, file: &str, answer: impl FnOnce(i32) -> Fact<Value>) -> Reading {
    match survey.process {
        Some(pid) => reading(answer(pid), &format!("/proc/{pid}/{file}")),
        None => unsupported("no process was asked about"),
    }
}

/// The threads of a process that are real-time ones.
pub fn real_time_threads(survey: &Survey, pid: i32) -> Vec<Task> {
    tasks::threads(&survey.root, pid).into_iter().filter(|task| task.policy.is_real_time()).collect()
}

/// A value of a status file, `VmLck:      1024 kB`: its first word.
pub fn status_word(status: &str, name: &str) -> Option<String> {
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.split_whitespace().next().map(str::to_owned)
}
