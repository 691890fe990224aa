//! The loop that sends and waits.

use record::Grid;
use sys::Errno;
use sys::shared::Word;
use wire::Answer;

use super::line::{Line, Offset};
use super::tally::{Split, Tally, Why};
use crate::board::{self, Recorder};
use crate::early::{self, Early};

/// What one thread's loop needs to know; times in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    /// When cycles are due, the first of this phase as number 0.
    pub grid: Grid,
    /// Cycles of this phase; `u64::MAX`: until stopped.
    pub cycles: u64,
    /// Frames of a cycle.
    pub frames: u32,
    /// How long answers are waited for, from the begin of a cycle.
    pub patience: u64,
    /// A response that stops all threads; `u64::MAX`: none.
    pub stop_at: u64,
}

/// How many of the latest frames are known one by one.
const WINDOW: u64 = 4_096;

/// The most frames of a cycle.
pub const MOST_FRAMES: u32 = 64;

/// How far clocks and stamps may contradict each other, in nanoseconds, beside the width of a reading.
const TOLERANCE: u64 = 20_000;

/// What is known of the frames under way.
pub struct Flight {
    /// The number of the frame that is sent next.
    next: u64,
    /// The number of the cycle's first frame, and of the phase's.
    of_cycle: u64,
    of_phase: u64,
    /// One more than the highest number that was answered.
    highest: u64,
    /// For each of the latest frames, whether it was answered.
    answered: Vec<bool>,
    /// For each of them, its number and when the driver was given it.
    noted: Vec<(u64, u64)>,
}

/// What an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taken {
    InTime,
    Late,
    Duplicate,
    Foreign,
    /// To a frame of the warm-up.
    OfOld,
}

impl Flight {
    /// None has been sent.
    pub fn new() -> Self {
        Self {
            next: 0,
            of_cycle: 0,
            of_phase: 0,
            highest: 0,
            answered: vec![false; WINDOW as usize],
            noted: vec![(u64::MAX, 0); WINDOW as usize],
        }
    }

    fn sent(&mut self, number: u64) {
        self.answered[(number % WINDOW) as usize] = false;
        self.next = number + 1;
    }

    /// Whether the answer came after one to a later frame, and what it is.
    fn take(&mut self, number: u64) -> (bool, Taken) {
        if number >= self.next || self.next - number > WINDOW {
            return (false, Taken::Foreign);
        }
        if number < self.of_phase {
            return (false, Taken::OfOld);
        }
        if std::mem::replace(&mut self.answered[(number % WINDOW) as usize], true) {
            return (false, Taken::Duplicate);
        }
        let is_behind = number < self.highest;
        self.highest = self.highest.max(number + 1);
        (is_behind, if number >= self.of_cycle { Taken::InTime } else { Taken::Late })
    }

    /// Takes the notes that are there.
    fn take_notes(&mut self, line: &mut impl Line) {
        for _ in 0..WINDOW {
            let Some((number, stamp)) = line.noted() else { return };
            self.noted[(number % WINDOW) as usize] = (number, stamp);
        }
    }

    fn noted(&self, number: u64) -> Option<u64> {
        let (noted, stamp) = self.noted[(number % WINDOW) as usize];
        (noted == number).then_some(stamp)
    }
}

impl Default for Flight {
    fn default() -> Self {
        Self::new()
    }
}

/// How a cycle ended.
struct Ended {
    /// When it began, and when its last answer was there or was given up.
    begin: u64,
    end: u64,
    /// The clock of the stamps before it began.
    offset: Offset,
    /// Its last answer: number, stamp, residence. None where an answer is missing.
    last: Option<(u64, Option<u64>, Option<u64>)>,
}

/// Runs `task.cycles` cycles and accounts for each: it was answered and its response is recorded, an answer had not come
/// when it was given up, or the thread was still late when it was over; the last two are missed. A cycle that is under way
/// when the run is stopped is waited for.
///
/// System calls a cycle: a sleep, a send and a note a frame, a wait and a read an answer. No allocation, no lock, no
/// formatting, no panic path. A sleep that fails ends the run of all threads.
pub fn run<L: Line>(
    line: &mut L,
    task: &Task,
    flight: &mut Flight,
    board: &[Word],
    recorder: &mut Recorder<'_>,
    tally: &mut Tally<'_>,
) {
    flight.of_phase = flight.next;
    // Before the first cycle nothing is owed, however long the thread was kept from getting here.
    let mut running = line.now().min(task.grid.due(0).saturating_sub(1));
    let result = go_round(line, task, flight, board, recorder, tally, &mut running);
    early::finish(result, running, board, recorder);
}

/// The warm-up: cycles that are only summed up. Returns when the first cycle of the measurement is due.
pub fn warm_up<L: Line>(
    line: &mut L,
    task: &Task,
    flight: &mut Flight,
    board: &[Word],
    recorder: &mut Recorder<'_>,
) -> u64 {
    let mut nowhere = Tally::nowhere();
    for cycle in 0..task.cycles {
        if let Err(errno) = line.sleep_until(task.grid.due(cycle)) {
            recorder.sleep_failed(errno);
            board::stop(board, line.now());
        }
        if board::stopped_at(board).is_some() {
            break;
        }
        let ended = send_and_wait(line, task, flight, &mut nowhere);
        flight.take_notes(line);
        let is_missed = ended.last.is_none();
        recorder.warm_up(ended.end.saturating_sub(ended.begin), is_missed.into());
    }
    let past = task.grid.due_by(line.now()).max(task.cycles);
    task.grid.due(past)
}

/// `running` is the last reading of the clock at which the run was not stopped.
fn go_round<L: Line>(
    line: &mut L,
    task: &Task,
    flight: &mut Flight,
    board: &[Word],
    recorder: &mut Recorder<'_>,
    tally: &mut Tally<'_>,
    running: &mut u64,
) -> Result<(), Errno> {
    let (mut cycle, mut early) = (0, Early::default());
    while cycle < task.cycles {
        let due = task.grid.due(cycle);
        recorder.sleeps(due.saturating_sub(*running));
        line.sleep_until(due)?;
        let now = line.now();
        let stopped = board::stopped_at(board);
        if stopped.is_none() {
            *running = now;
        }
        recorder.look_out(board, now);
        if stopped.is_some_and(|stopped| now < due || due > stopped) {
            break;
        }
        if now < due {
            early.again(recorder)?;
            continue;
        }
        early.reset();
        let begun = skip(task, cycle, now, stopped, recorder, tally);
        let ended = send_and_wait(line, task, flight, tally);
        flight.take_notes(line);
        let offset = line.offset();
        account(task, begun, &ended, offset, flight, recorder, tally);
        if ended.end.saturating_sub(ended.begin) >= task.stop_at {
            recorder.stopped_by_latency();
            board::stop(board, ended.end);
        }
        cycle = begun + 1;
    }
    Ok(())
}

/// Misses the cycles from `cycle` on that are over, of those that were due until the run was `stopped`; returns the one
/// that is begun.
fn skip(
    task: &Task,
    cycle: u64,
    now: u64,
    stopped: Option<u64>,
    recorder: &mut Recorder<'_>,
    tally: &mut Tally<'_>,
) -> u64 {
    let until = task.grid.due_by(stopped.map_or(now, |stopped| stopped.min(now)));
    let begun = until.min(task.cycles).max(cycle + 1) - 1;
    if begun > cycle {
        recorder.missed(&task.grid, cycle..begun, now);
        tally.skipped(begun - cycle);
    }
    begun
}

fn send_and_wait<L: Line>(line: &mut L, task: &Task, flight: &mut Flight, tally: &mut Tally<'_>) -> Ended {
    let offset = line.offset();
    let begin = line.now();
    flight.of_cycle = flight.next;
    for _ in 0..task.frames {
        match line.send() {
            Ok(number) => {
                flight.sent(number);
                tally.sent();
            }
            Err(_) => tally.not_sent(),
        }
    }
    let until = begin.saturating_add(task.patience);
    let mut open = u64::from(task.frames);
    loop {
        let answer = line.receive(until);
        let end = line.now();
        match answer {
            Ok(Some(Answer::To { number, received, residence })) => {
                let (is_behind, taken) = flight.take(number);
                tally.answer(is_behind, of(taken));
                open -= u64::from(taken == Taken::InTime);
                if open == 0 {
                    return Ended { begin, end, offset, last: Some((number, received, residence)) };
                }
            }
            Ok(Some(Answer::Foreign)) => tally.foreign(),
            Err(Errno::INTR) => {}
            Err(_) => tally.refused(),
            Ok(None) => return Ended { begin, end, offset, last: None },
        }
        // What comes without pause, and what is wrong each time, ends with the cycle.
        if end >= until.saturating_add(task.grid.interval) {
            return Ended { begin, end, offset, last: None };
        }
    }
}

/// What a tally calls it.
fn of(taken: Taken) -> super::tally::Answered {
    use super::tally::Answered;
    match taken {
        Taken::InTime => Answered::InTime,
        Taken::Late => Answered::Late,
        Taken::Duplicate => Answered::Again,
        Taken::Foreign => Answered::Never,
        Taken::OfOld => Answered::Before,
    }
}

fn account(
    task: &Task,
    cycle: u64,
    ended: &Ended,
    offset: Offset,
    flight: &Flight,
    recorder: &mut Recorder<'_>,
    tally: &mut Tally<'_>,
) {
    let length = ended.end.saturating_sub(ended.begin);
    let Some((number, received, residence)) = ended.last else {
        // It is late by what it was waited for, however late the thread was.
        let due = task.grid.due(cycle);
        recorder.missed(&task.grid, cycle..cycle + 1, due.saturating_add(length));
        tally.unanswered();
        return;
    };
    recorder.observed(cycle, length);
    recorder.placed(cycle);
    tally.answered_cycle();
    match split(ended, offset, flight.noted(number), received, residence) {
        Ok(split) => tally.split(cycle, length, &split),
        Err(why) => tally.unsplit(why),
    }
}

/// Lays a response into parts. Stamps within the tolerance are moved into it, so that the parts' sum is the whole.
fn split(
    ended: &Ended,
    offset: Offset,
    sent: Option<u64>,
    received: Option<u64>,
    residence: Option<u64>,
) -> Result<Split, Why> {
    let slack = TOLERANCE.saturating_add(ended.offset.width).saturating_add(offset.width);
    if offset.nanos.abs_diff(ended.offset.nanos) > slack {
        return Err(Why::ClockSet);
    }
    let on_clock = |stamp: u64| stamp.wrapping_add_signed(offset.nanos.wrapping_neg());
    let sent = on_clock(sent.ok_or(Why::NotStampedSent)?);
    let received = on_clock(received.ok_or(Why::NotStampedReceived)?);
    let is_within =
        |stamp: u64| stamp.saturating_add(slack) >= ended.begin && stamp <= ended.end.saturating_add(slack);
    if !is_within(sent) || !is_within(received) || received.saturating_add(slack) < sent {
        return Err(Why::Contradictory);
    }
    let sent = sent.clamp(ended.begin, ended.end);
    let received = received.clamp(sent, ended.end);
    let away = received - sent;
    // A peer that claims to have had a frame for longer than it was away does not know.
    let peer = residence.filter(|&residence| residence <= away.saturating_add(slack));
    let at_peer = peer.unwrap_or_default().min(away);
    Ok(Split {
        send: sent - ended.begin,
        wire: away - at_peer,
        peer: peer.map(|_| at_peer),
        receive: ended.end - received,
    })
}

#[cfg(test)]
mod tests;
