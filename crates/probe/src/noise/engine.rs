//! The loop that spins.

use sys::Errno;
use sys::shared::Word;

use crate::board::{self, Recorder, Window};
use crate::early::{self, Early};
use crate::timer::source::Source;

/// What one thread's loop needs to know; times in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    /// What the clock reads when window 0 begins.
    pub origin: u64,
    /// From the begin of one window to that of the next, at least 1.
    pub window: u64,
    /// How long of each window the thread spins.
    pub spin: u64,
    /// The shortest gap that is recorded, at least 1.
    pub threshold: u64,
    /// Windows of this phase; `u64::MAX`: until stopped.
    pub windows: u64,
    /// A gap that stops all threads; `u64::MAX`: none.
    pub stop_at: u64,
}

/// Spins in `task.windows` windows and records every gap between two readings of the clock that is as long as the
/// threshold, with the time at which it began. A gap that outlasts its window counts whole; the windows that it covers are
/// not missed. A window that is over when the thread gets its CPU after the pause is.
///
/// System calls: one sleep and one getrusage a window, in its pause, and the clock's where it has no vDSO path. No
/// allocation, no lock, no formatting, no panic path. A sleep that fails ends the run of all threads.
pub fn run<S: Source>(source: &mut S, task: &Task, board: &[Word], recorder: &mut Recorder<'_>) {
    let mut running = source.now();
    let result = watch(source, task, board, recorder, &mut running);
    early::finish(result, running, board, recorder);
}

/// The warm-up: spins as [`run`] does and records nothing. Returns when the first window of the measurement begins.
pub fn warm_up<S: Source>(source: &mut S, task: &Task, board: &[Word], recorder: &mut Recorder<'_>) -> u64 {
    for number in 0..task.windows {
        let start = task.origin.saturating_add(number.saturating_mul(task.window));
        if let Err(errno) = source.sleep_until(start) {
            recorder.sleep_failed(errno);
            board::stop(board, source.now());
        }
        while source.now() < start.saturating_add(task.spin) && board::stopped_at(board).is_none() {}
        if board::stopped_at(board).is_some() {
            break;
        }
    }
    let past = source.now().saturating_sub(task.origin).div_ceil(task.window);
    task.origin.saturating_add(past.max(task.windows).saturating_mul(task.window))
}

/// `running` is the last reading of the clock at which the run was not stopped.
fn watch<S: Source>(
    source: &mut S,
    task: &Task,
    board: &[Word],
    recorder: &mut Recorder<'_>,
    running: &mut u64,
) -> Result<(), Errno> {
    let (mut number, mut early) = (0, Early::default());
    while number < task.windows {
        let start = task.origin.saturating_add(number.saturating_mul(task.window));
        source.sleep_until(start)?;
        let now = source.now();
        if board::stopped_at(board).is_some() {
            break;
        }
        *running = now;
        recorder.look_out(board, now);
        if now < start {
            early.again(recorder)?;
            continue;
        }
        early.reset();
        let late = (now - start) / task.window;
        let (current, start) = (number + late, start + late * task.window);
        recorder.windows_missed(late.min(task.windows - number));
        if current >= task.windows {
            break;
        }
        if now >= start + task.spin {
            recorder.windows_missed(1);
            number = current + 1;
            continue;
        }
        let last = spin(source, task, board, recorder, now, start + task.spin);
        let stopped = board::stopped_at(board).is_some();
        recorder.window_ended();
        if stopped {
            break;
        }
        *running = last;
        number = (last - task.origin).div_ceil(task.window).max(current + 1);
    }
    Ok(())
}

/// Reads the clock until it reads `end`; returns the last reading.
fn spin<S: Source>(
    source: &mut S,
    task: &Task,
    board: &[Word],
    recorder: &mut Recorder<'_>,
    entered: u64,
    end: u64,
) -> u64 {
    let mut last = entered;
    let mut window = Window { watched: 0, readings: 0, shortest: u64::MAX, bookkeeping: 0 };
    loop {
        let now = source.now();
        let gap = now.saturating_sub(last);
        window.readings += 1;
        window.shortest = window.shortest.min(gap);
        if gap >= task.threshold {
            last = record(source, task, board, recorder, last, now, &mut window);
        } else {
            last = now;
        }
        recorder.read_at(last);
        if last >= end || board::stopped_at(board).is_some() {
            window.watched = last.saturating_sub(entered).saturating_sub(window.bookkeeping);
            recorder.window(&window);
            return last;
        }
    }
}

/// Recording a gap takes less than this, in nanoseconds. If it took longer, something else had the CPU meanwhile.
const RECORDING: u64 = 10_000;

/// Records the gap from `last` to `now`. What that takes is neither watched nor a gap, unless it takes too long. Returns
/// the latest reading.
fn record<S: Source>(
    source: &mut S,
    task: &Task,
    board: &[Word],
    recorder: &mut Recorder<'_>,
    mut last: u64,
    mut now: u64,
    window: &mut Window,
) -> u64 {
    loop {
        let gap = now.saturating_sub(last);
        recorder.gap(last.saturating_sub(task.origin), gap);
        if gap >= task.stop_at {
            recorder.stopped_by_latency();
            board::stop(board, now);
        }
        (last, now) = (now, source.now());
        if now.saturating_sub(last) < RECORDING.max(task.threshold) {
            window.bookkeeping += now.saturating_sub(last);
            return now;
        }
    }
}

#[cfg(test)]
mod tests;
