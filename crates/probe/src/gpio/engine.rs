//! The loop that waits for edges and answers them.

use record::Grid;
use sys::Errno;
use sys::gpio::Event;
use sys::shared::Word;

use super::tally::Tally;
use crate::board::{self, Recorder};

/// The lines and the clock that stamps their edges: real ones in [`super`], tests script their own. Times are nanoseconds of
/// `CLOCK_MONOTONIC`.
pub trait Pins {
    /// The next edge: one that is there, or one that comes until the clock reads `until`. None before that where a signal came.
    fn edge(&mut self, until: u64) -> Result<Option<Event>, Errno>;

    /// What the clock reads.
    fn now(&mut self) -> u64;

    /// Drives the answer's line.
    fn drive(&mut self, high: bool) -> Result<(), Errno>;
}

/// What the thread's loop needs to know; times in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    /// Edges from then on are of this phase.
    pub origin: u64,
    /// What the clock reads when the phase ends; `u64::MAX`: when it is stopped.
    pub until: u64,
    /// How long answers are kept back.
    pub delay: u64,
    /// An answer that stops the run; `u64::MAX`: none.
    pub stop_at: u64,
}

/// How long one wait lasts: the run's end is looked for in between.
const LONGEST_WAIT: u64 = 1_000_000_000;

/// An edge that was answered.
struct Answered {
    /// When the thread had it, and when its answer's line was driven.
    woken: u64,
    done: u64,
}

/// Answers edges until `task.until` or until the run is stopped, and accounts for each that the kernel numbered.
///
/// System calls an edge: a wait, a read, and two that drive the line. No allocation, no lock, no formatting, no panic path.
/// A line that fails ends the run.
pub fn run<P: Pins>(
    pins: &mut P,
    task: &Task,
    board: &[Word],
    recorder: &mut Recorder<'_>,
    tally: &mut Tally<'_>,
) {
    let mut running = pins.now();
    if let Err(errno) = answer_all(pins, task, board, recorder, tally, &mut running) {
        tally.line_failed(errno);
        board::stop(board, running);
    }
    recorder.finish(running);
}

/// The warm-up: edges that are answered and only summed up.
pub fn warm_up<P: Pins>(pins: &mut P, task: &Task, board: &[Word], recorder: &mut Recorder<'_>) {
    while pins.now() < task.until && board::stopped_at(board).is_none() {
        // A line that fails here fails again at once in the run, which reports it.
        let event = match next(pins, task.until) {
            Ok(Some(event)) => event,
            Ok(None) => continue,
            Err(_) => return,
        };
        let Ok(answered) = answer(pins, task) else { return };
        recorder.warm_up(answered.done.saturating_sub(event.stamp), 0);
    }
}

/// Answers edges for `length` more, and counts none of them.
pub fn linger<P: Pins>(pins: &mut P, task: &Task, length: u64) {
    let until = pins.now().saturating_add(length);
    while pins.now() < until {
        match next(pins, until) {
            Ok(Some(_)) if answer(pins, task).is_ok() => {}
            Ok(None) => {}
            _ => return,
        }
    }
}

fn next<P: Pins>(pins: &mut P, until: u64) -> Result<Option<Event>, Errno> {
    let until = until.min(pins.now().saturating_add(LONGEST_WAIT));
    match pins.edge(until) {
        Err(Errno::INTR) => Ok(None),
        other => other,
    }
}

/// Low for the answer, high again at once.
fn answer<P: Pins>(pins: &mut P, task: &Task) -> Result<Answered, Errno> {
    let woken = pins.now();
    if task.delay > 0 {
        while pins.now() < woken.saturating_add(task.delay) {}
    }
    pins.drive(false)?;
    let done = pins.now();
    pins.drive(true)?;
    Ok(Answered { woken, done })
}

/// `running` is the last reading of the clock at which the run was not stopped.
fn answer_all<P: Pins>(
    pins: &mut P,
    task: &Task,
    board: &[Word],
    recorder: &mut Recorder<'_>,
    tally: &mut Tally<'_>,
    running: &mut u64,
) -> Result<(), Errno> {
    let mut last = Last { number: None, done: 0 };
    loop {
        let event = next(pins, task.until)?;
        let now = pins.now();
        let stopped = board::stopped_at(board);
        let end = stopped.unwrap_or(u64::MAX).min(task.until);
        if stopped.is_none() {
            *running = now;
        }
        recorder.look_out(board, now);
        // An edge from before the end is answered, however late the thread is.
        let Some(event) = event.filter(|event| event.stamp <= end) else {
            if now >= end {
                return Ok(());
            }
            continue;
        };
        let answered = answer(pins, task)?;
        if event.stamp < task.origin {
            last.number = event.number;
            continue;
        }
        account(task, &event, &answered, &mut last, recorder, tally);
        if answered.done.saturating_sub(event.stamp) >= task.stop_at && event.stamp <= answered.woken {
            recorder.stopped_by_latency();
            board::stop(board, answered.done);
        }
    }
}

/// The edge before.
struct Last {
    number: Option<u32>,
    done: u64,
}

fn account(
    task: &Task,
    event: &Event,
    answered: &Answered,
    last: &mut Last,
    recorder: &mut Recorder<'_>,
    tally: &mut Tally<'_>,
) {
    let lost = match (last.number, event.number) {
        (Some(last), Some(number)) => u64::from(number.wrapping_sub(last).saturating_sub(1)),
        _ => 0,
    };
    last.number = event.number.or(last.number);
    tally.edges(1 + lost);
    let at = event.stamp - task.origin;
    if lost > 0 {
        // They came before this one, which had waited already: at least so late, and never answered.
        let grid = Grid::fixed(event.stamp.saturating_sub(lost), 1);
        recorder.missed(&grid, 0..lost, answered.done.max(event.stamp));
    }
    if event.stamp < last.done {
        tally.backlog();
    }
    last.done = answered.done;
    if event.stamp > answered.woken {
        tally.unstamped();
        return;
    }
    recorder.observed(at, answered.done - event.stamp);
    recorder.placed(at);
    tally.parts(answered.woken - event.stamp, answered.done - answered.woken);
}

#[cfg(test)]
mod tests;
