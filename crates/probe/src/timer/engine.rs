//! The measuring loop.

use record::Grid;
use sys::Errno;
use sys::shared::Word;

use crate::board::{self, Recorder};
use crate::early::{self, Early};
use crate::source::Source;

/// What one thread's loop needs to know.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    /// When activations are due, the first of this phase as number 0.
    pub grid: Grid,
    /// Activations to deliver in this phase; `u64::MAX`: until stopped.
    pub activations: u64,
    /// A latency in nanoseconds that stops all threads; `u64::MAX`: none.
    pub stop_at: u64,
}

/// Delivers `task.activations` activations and accounts for each: it woke the thread and its latency is recorded, or
/// the thread was still late when it was due and it is recorded as missed. When the run is stopped, what was due until
/// then is accounted for too, however late its wake-up comes.
///
/// System calls: the one sleep of [`Source::sleep_until`], one more a block of a sweep to move a timer that keeps its own
/// grid, and the clock's where it has no vDSO path. No allocation, no lock, no formatting, no panic path. A wake-up before
/// its time is slept on; a step of the clock moves the ideal times and is not a latency. A sleep that fails ends the
/// run of all threads.
pub fn run<S: Source>(source: &mut S, task: &Task, board: &[Word], recorder: &mut Recorder<'_>) {
    // Before the first activation nothing is owed, however long the thread was kept from getting here.
    let mut running = source.now().min(task.grid.due(0).saturating_sub(1));
    let result = deliver(source, task, board, recorder, &mut running);
    early::finish(result, running, board, recorder);
}

/// Where a thread is in its plan.
struct Position {
    grid: Grid,
    /// The activation that is waited for.
    activation: u64,
    /// When it is due.
    due: u64,
    /// The last activation that lies on one even grid with it.
    block_end: u64,
}

impl Position {
    fn new(grid: Grid) -> Self {
        Self { grid, activation: 0, due: grid.due(0), block_end: grid.block_end(0) }
    }

    /// The activation that is waited for is due at another time than the grid said, and all later ones with it.
    fn shift(&mut self, due: u64, recorder: &mut Recorder<'_>) {
        self.due = due;
        self.grid = self.grid.moved(self.activation, due);
        recorder.moved(&self.grid);
    }

    /// Records the wake-up at `now`, and what it missed that was due until `stopped`, if the run is. Returns the next
    /// activation.
    fn account(&self, task: &Task, now: u64, stopped: Option<u64>, recorder: &mut Recorder<'_>) -> u64 {
        let latency = now - self.due;
        recorder.observed(self.activation, latency);
        recorder.placed(self.activation);
        let next = self.activation + 1;
        if latency < self.grid.interval {
            return next;
        }
        let passed = self.grid.due_by(now);
        if passed > next {
            recorder.late();
        }
        let until = stopped.map_or(passed, |stopped| self.grid.due_by(stopped.min(now)));
        let until = until.min(task.activations).max(next);
        recorder.missed(&self.grid, next..until, now);
        until
    }

    /// Goes on to activation `next`; a timer that keeps its own grid is moved where ours is.
    fn advance<S: Source>(&mut self, next: u64, source: &mut S) -> Result<(), Errno> {
        if next > self.block_end {
            (self.due, self.block_end) = (self.grid.due(next), self.grid.block_end(next));
            source.rearm(self.due, self.grid.interval)?;
        } else {
            self.due += (next - self.activation) * self.grid.interval;
        }
        self.activation = next;
        Ok(())
    }
}

/// `running` is the last reading of the clock at which the run was not stopped.
fn deliver<S: Source>(
    source: &mut S,
    task: &Task,
    board: &[Word],
    recorder: &mut Recorder<'_>,
    running: &mut u64,
) -> Result<(), Errno> {
    let interval = task.grid.interval;
    let mut at = Position::new(task.grid);
    let mut early = Early::default();
    source.rearm(at.due, interval)?;
    while at.activation < task.activations {
        recorder.sleeps(at.due.saturating_sub(*running));
        source.sleep_until(at.due)?;
        let now = source.now();
        let stopped = board::stopped_at(board);
        if stopped.is_none() {
            *running = now;
        }
        let step = source.stepped(now);
        if step != 0 {
            recorder.clock_stepped();
            at.shift(next_after(at.due.wrapping_add_signed(step), now, interval), recorder);
            source.rearm(at.due, interval)?;
            if stopped.is_some() {
                break;
            }
            continue;
        }
        recorder.look_out(board, now);
        if stopped.is_some_and(|stopped| now < at.due || at.due > stopped) {
            break;
        }
        if now < at.due {
            if !S::RESERVATION {
                early.again(recorder)?;
                continue;
            }
            recorder.rephased();
            at.shift(now, recorder);
        }
        early.reset();
        let latency = now - at.due;
        // First: each event after the wake-up takes the place of one before it.
        if latency >= board::mark_from(board) {
            recorder.mark(board, at.activation, at.due, now);
        }
        let next = at.account(task, now, stopped, recorder);
        if latency >= task.stop_at {
            recorder.stopped_by_latency();
            board::stop(board, now);
            break;
        }
        if stopped.is_some() {
            break;
        }
        at.advance(next, source)?;
        if S::RESERVATION && latency >= interval {
            // The kernel begins a reservation anew that is a whole period behind.
            recorder.rephased();
            at.shift(now + interval, recorder);
        }
    }
    Ok(())
}

/// The warm-up: as [`run`], but its wake-ups are only summed up, and the grid of a reservation's periods is found: the
/// earliest wake-up in it is the closest to when the kernel replenishes. Returns when the next activation is due: after
/// the end, where the run is stopped before the warm-up is over.
pub fn warm_up<S: Source>(source: &mut S, task: &Task, board: &[Word], recorder: &mut Recorder<'_>) -> u64 {
    let mut due = task.grid.origin;
    if let Err(errno) = get_warm(source, task, board, recorder, &mut due) {
        recorder.sleep_failed(errno);
        board::stop(board, source.now());
    }
    due
}

fn get_warm<S: Source>(
    source: &mut S,
    task: &Task,
    board: &[Word],
    recorder: &mut Recorder<'_>,
    due: &mut u64,
) -> Result<(), Errno> {
    let interval = task.grid.interval;
    let (mut activation, mut early) = (0, Early::default());
    source.rearm(*due, interval)?;
    while activation < task.activations {
        if let Some(stopped) = board::stopped_at(board) {
            *due = next_after(*due, stopped, interval);
            break;
        }
        source.sleep_until(*due)?;
        let now = source.now();
        let step = source.stepped(now);
        if step != 0 {
            *due = next_after(due.wrapping_add_signed(step), now, interval);
            source.rearm(*due, interval)?;
            continue;
        }
        recorder.look_out(board, now);
        if S::RESERVATION && (activation == 0 || now < *due || now - *due >= interval) {
            *due = now;
        }
        if now < *due {
            early.again(recorder)?;
            continue;
        }
        early.reset();
        let (latency, missed) = (now - *due, (now - *due) / interval);
        recorder.warm_up(latency, missed);
        activation += 1 + missed;
        *due += (1 + missed) * interval;
    }
    Ok(())
}

/// The first of `due`, `due + interval`, ... that lies after `now`.
fn next_after(due: u64, now: u64, interval: u64) -> u64 {
    if due > now { due } else { due + ((now - due) / interval + 1) * interval }
}

#[cfg(test)]
mod tests;
