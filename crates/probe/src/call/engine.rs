//! The loop that makes a call again and again and records how long each took.

use sys::Errno;
use sys::clock::Clock;
use sys::shared::Word;

use crate::board::{self, Recorder};

/// A call that can be made again and again.
pub trait Call {
    /// Makes it once: nanoseconds that it took, or that it was late by.
    ///
    /// # Errors
    /// What the kernel answered.
    fn once(&mut self) -> Result<u64, Errno>;
}

/// What the thread's loop needs to know; times in nanoseconds of `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    /// Calls are numbered by the nanoseconds since then.
    pub origin: u64,
    /// What the clock reads when the phase ends; `u64::MAX`: when it is stopped.
    pub until: u64,
    /// From one call to the next, at least.
    pub interval: u64,
    /// A value that stops the run; `u64::MAX`: none.
    pub stop_at: u64,
}

/// Makes calls until `task.until`, or until the run is stopped. The loop allocates nothing, locks nothing but what a call
/// locks, and formats nothing. A call that fails ends the run.
pub fn run(call: &mut dyn Call, task: &Task, board: &[Word], recorder: &mut Recorder<'_>) {
    let mut running = task.origin;
    each(call, task, board, recorder, &mut running, &mut |recorder, at, took, done| {
        recorder.observed(at, took);
        recorder.placed(at);
        if took >= task.stop_at {
            recorder.stopped_by_latency();
            board::stop(board, done);
        }
    });
    recorder.finish(running);
}

/// The warm-up: calls that are only summed up.
pub fn warm_up(call: &mut dyn Call, task: &Task, board: &[Word], recorder: &mut Recorder<'_>) {
    let mut running = task.origin;
    each(call, task, board, recorder, &mut running, &mut |recorder, _, took, _| recorder.warm_up(took, 0));
}

/// What is done with a call: its number, how long it took, and when it was over.
type Account<'a> = &'a mut dyn FnMut(&mut Recorder<'_>, u64, u64, u64);

/// `running` becomes the last reading of the clock at which the run was not stopped.
fn each(
    call: &mut dyn Call,
    task: &Task,
    board: &[Word],
    recorder: &mut Recorder<'_>,
    running: &mut u64,
    account: Account<'_>,
) {
    let clock = Clock::Monotonic;
    let mut due = task.origin.saturating_add(task.interval);
    loop {
        let now = clock.now();
        recorder.sleeps(due.saturating_sub(now));
        // A signal says that the run may have been stopped.
        let slept = clock.sleep_until(due.min(task.until));
        let now = clock.now();
        recorder.look_out(board, now);
        if board::stopped_at(board).is_some() || now >= task.until {
            return;
        }
        *running = now;
        if slept.is_err() || now < due {
            continue;
        }
        match call.once() {
            Ok(took) => account(recorder, now - task.origin, took, clock.now()),
            Err(Errno::INTR) => {}
            Err(errno) => {
                recorder.sleep_failed(errno);
                board::stop(board, now);
                return;
            }
        }
        // A call that took longer than the interval is followed by a pause: what ran beside it ends.
        due = due.saturating_add(task.interval).max(clock.now().saturating_add(task.interval / 2));
    }
}
