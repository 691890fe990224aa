//! What a command that was killed has left applied.

use tune::holder::{self, Kind};
use tune::journal::History;
use tune::{State, boot_id};

use crate::commands::Command;
use crate::commands::applied::STATE;
use crate::output;

/// Says so where settings are left that nobody will undo. Nothing is said to those who may not read the journal.
pub fn warn_of_leftovers(command: &Command) {
    if matches!(command, Command::Tune(_)) {
        return;
    }
    let state = State::of_machine(STATE);
    if let Some(why) = state.history().ok().flatten().and_then(|history| left_alone(&state, &history)) {
        output::warning(&format!("settings are left: {why}; worstcase tune undo takes them back"));
    }
}

/// Why what `history` tells is left without anybody who answers for it, a command that is at work included.
pub fn left_alone(state: &State, history: &History) -> Option<&'static str> {
    // A process that holds the lock and is stopped is not at work.
    let is_at_work = state.is_busy() && !holder::is_stopped(state.directory(), Kind::Deadline);
    if is_at_work { None } else { why_left(state, history) }
}

fn is_overdue(state: &State, history: &History) -> bool {
    let seconds = history.begin.as_ref().and_then(|begin| begin.seconds);
    seconds.is_some_and(|seconds| holder::is_overdue(state.directory(), seconds))
}

/// The same for the command that is at work itself.
pub fn why_left(state: &State, history: &History) -> Option<&'static str> {
    if history.is_of_another_boot(&boot_id()) {
        return None;
    }
    let holder = holder::is_alive(state.directory(), Kind::Deadline);
    let is_timed = history.begin.as_ref().is_some_and(|begin| begin.seconds.is_some()) && !history.kept;
    let had_limit =
        history.steps.iter().any(|taken| taken.target == tune::Target::LatencyLimit && taken.held());
    if !history.applied && holder != Some(true) {
        Some("the command that applied them was killed in the middle")
    } else if is_timed && holder != Some(true) {
        Some("the process that was to undo them was killed")
    } else if is_timed && holder::is_stopped(state.directory(), Kind::Deadline) {
        Some("the process that is to undo them is stopped, and will not")
    } else if is_timed && is_overdue(state, history) {
        Some("they should have been undone by themselves by now")
    } else if had_limit && holder::is_alive(state.directory(), Kind::Latency) != Some(true) {
        Some("the process that held the limit on exit latencies was killed")
    } else {
        None
    }
}
