//! The side that is the process.

use std::path::Path;
use std::time::Duration;

use control::LatencyRequest;
use sys::clock::Clock;

use super::start::{Kind, Role, announce, live};
use crate::journal::{History, Lock, State};
use crate::undo;

/// What the process does that was started with [`super::ARGUMENT`]; `words` stand behind it. The exit code.
pub fn main(words: &[String]) -> u8 {
    let Some((state, role)) =
        words.split_first().and_then(|(state, words)| Some((state, Role::parse(words)?)))
    else {
        return 2;
    };
    let _ = sys::process::set_name("worstcase-hold");
    let state = Path::new(state);
    match role {
        Role::Deadline(seconds, id) => wait_and_undo(state, seconds, &id),
        Role::Latency(limit) => hold(state, limit),
    }
}

/// Until it is killed.
fn hold(state: &Path, limit: u32) -> u8 {
    let request = LatencyRequest::hold(limit);
    let errno = request.as_ref().err().map(|error| error.errno.raw_os_error());
    if !announce(state, Kind::Latency, errno) || request.is_err() {
        return 2;
    }
    loop {
        std::thread::sleep(Duration::from_secs(86_400));
    }
}

/// The lock is free when the command that applies has ended: by itself, with all applied, or killed.
fn wait_and_undo(state: &Path, seconds: u64, id: &str) -> u8 {
    // A machine that was closed for the night comes back as it was: the time runs on in suspend.
    let until = Clock::Boottime.now().saturating_add(seconds.saturating_mul(1_000_000_000));
    if !announce(state, Kind::Deadline, None) {
        return 2;
    }
    let state = State::of_machine(state);
    // Where its first line is damaged a journal is still the one that this process was started for: another one would have
    // ended this process.
    let is_ours = |history: &History| match &history.begin {
        Some(begin) => begin.id == id,
        None => history.damaged.contains(&1),
    };
    let is_applied = {
        let Ok(_lock) = state.wait_for_lock() else { return 2 };
        match state.history() {
            Ok(Some(history)) if is_ours(&history) => history.applied,
            _ => return 0,
        }
    };
    if is_applied {
        while Clock::Boottime.now() < until {
            let _ = Clock::Boottime.sleep_until(until);
        }
    }
    let Ok(lock) = state.wait_for_lock() else { return 2 };
    match state.history() {
        Ok(Some(history)) if is_ours(&history) && !history.kept => undo(&state, &lock, &history),
        _ => 0,
    }
}

/// Undoes, and leaves word of it. What could not be put back keeps the journal open.
fn undo(state: &State, lock: &Lock, history: &History) -> u8 {
    let undone = undo::undo(state, lock, history, &mut live(state.directory()));
    let is_timed = history.begin.as_ref().is_some_and(|begin| begin.seconds != Some(0));
    let why = match history.applied && is_timed {
        true => "their time had run out",
        false => "the command that applied them was killed",
    };
    let left: Vec<String> = undone
        .iter()
        .filter(|undone| !undone.back.is_as_before())
        .map(|undone| format!("{} was {}", undone.target, undone.old))
        .collect();
    let end = match left.is_empty() {
        true => "everything read as before".to_owned(),
        false => format!("these read otherwise than before: {}", left.join(", ")),
    };
    state.leave_words(&format!("the last settings were undone by themselves, because {why}: {end}"));
    if undone.iter().any(|undone| undone.back.is_open()) {
        return 1;
    }
    u8::from(state.close(lock).is_err())
}
