//! The loop that sends and waits.

use record::Grid;
use sys::Errno;
use sys::net::Stamp;
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
    /// For each of them, its number and when it was sent.
    noted: Vec<(u64, Stamp)>,
    /// A response that is split when the next one has come: a card's note of a frame can come after the answer.
    unsplit: Option<Response>,
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
            noted: vec![(u64::MAX, Stamp::default()); WINDOW as usize],
            unsplit: None,
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
            let stamp = stamp.or(self.noted(number));
            self.noted[(number % WINDOW) as usize] = (number, stamp);
        }
    }

    fn noted(&self, number: u64) -> Stamp {
        let (noted, stamp) = self.noted[(number % WINDOW) as usize];
        if noted == number { stamp } else { Stamp::default() }
    }
}

impl Default for Flight {
    fn default() -> Self {
        Self::new()
    }
}

/// How far the clocks of stamps lie apart from that of the cycles, at one moment.
#[derive(Clone, Copy)]
struct Offsets {
    kernel: Offset,
    card: Option<Offset>,
}

impl Offsets {
    fn read(line: &mut impl Line, tally: &mut Tally<'_>) -> Self {
        let card = line.card();
        if let Some(card) = card {
            tally.read_card(card.width);
        }
        Self { kernel: line.offset(), card }
    }
}

/// How a cycle ended.
struct Ended {
    /// When it began, and when its last answer was there or was given up.
    begin: u64,
    end: u64,
    /// The clocks of the stamps before it began.
    before: Offsets,
    /// Its last answer. None where an answer is missing.
    last: Option<Last>,
}

/// The answer that ended a cycle.
#[derive(Clone, Copy)]
struct Last {
    number: u64,
    received: Stamp,
    /// How long the peer says that it had the frame.
    residence: Option<u64>,
}

/// A response before it is split.
#[derive(Clone, Copy)]
struct Response {
    cycle: u64,
    begin: u64,
    end: u64,
    /// The clocks of the stamps before it and after it.
    offsets: [Offsets; 2],
    last: Last,
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
        let after = Offsets::read(line, tally);
        if let Some(response) = account(task, begun, &ended, after, recorder, tally) {
            // What the card stamps is known later.
            let settled = match after.card {
                Some(_) => flight.unsplit.replace(response),
                None => Some(response),
            };
            settled.into_iter().for_each(|response| enter_parts(&response, flight, tally));
        }
        if ended.end.saturating_sub(ended.begin) >= task.stop_at {
            recorder.stopped_by_latency();
            board::stop(board, ended.end);
        }
        cycle = begun + 1;
    }
    if let Some(response) = flight.unsplit.take() {
        await_note(line, flight, response.last.number);
        enter_parts(&response, flight, tally);
    }
    Ok(())
}

/// Waits a little for the card's note of the last frame.
fn await_note(line: &mut impl Line, flight: &mut Flight, number: u64) {
    const STEP: u64 = 1_000_000;
    const STEPS: u32 = 50;
    for _ in 0..STEPS {
        flight.take_notes(line);
        let wake = line.now() + STEP;
        if flight.noted(number).hardware.is_some() || line.sleep_until(wake).is_err() {
            return;
        }
    }
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
    let before = Offsets::read(line, tally);
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
                    return Ended { begin, end, before, last: Some(Last { number, received, residence }) };
                }
            }
            Ok(Some(Answer::Foreign)) => tally.foreign(),
            Err(Errno::INTR) => {}
            Err(_) => tally.refused(),
            Ok(None) => return Ended { begin, end, before, last: None },
        }
        // What comes without pause, and what is wrong each time, ends with the cycle.
        if end >= until.saturating_add(task.grid.interval) {
            return Ended { begin, end, before, last: None };
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

/// Enters how long a cycle took; its response, where it has one.
fn account(
    task: &Task,
    cycle: u64,
    ended: &Ended,
    after: Offsets,
    recorder: &mut Recorder<'_>,
    tally: &mut Tally<'_>,
) -> Option<Response> {
    let Ended { begin, end, before, last } = *ended;
    let length = end.saturating_sub(begin);
    let Some(last) = last else {
        // It is late by what it was waited for, however late the thread was.
        let due = task.grid.due(cycle);
        recorder.missed(&task.grid, cycle..cycle + 1, due.saturating_add(length));
        tally.unanswered();
        return None;
    };
    recorder.observed(cycle, length);
    recorder.placed(cycle);
    tally.answered_cycle();
    Some(Response { cycle, begin, end, offsets: [before, after], last })
}

fn enter_parts(response: &Response, flight: &Flight, tally: &mut Tally<'_>) {
    let length = response.end.saturating_sub(response.begin);
    match split(response, flight.noted(response.last.number)) {
        Ok(split) => tally.split(response.cycle, length, &split),
        Err(why) => tally.unsplit(why),
    }
}

/// Lays a response into parts. Stamps within the tolerance are moved into it, so that the parts' sum is the whole.
fn split(response: &Response, sent: Stamp) -> Result<Split, Why> {
    let Response { begin, end, offsets: [before, after], last, .. } = *response;
    let slack = TOLERANCE.saturating_add(before.kernel.width).saturating_add(after.kernel.width);
    if before.kernel.nanos.abs_diff(after.kernel.nanos) > slack {
        return Err(Why::ClockSet);
    }
    let on_clock = |stamp: u64| stamp.wrapping_add_signed(after.kernel.nanos.wrapping_neg());
    let sent_at = on_clock(sent.software.ok_or(Why::NotStampedSent)?);
    let received_at = on_clock(last.received.software.ok_or(Why::NotStampedReceived)?);
    let is_within = |stamp: u64| stamp.saturating_add(slack) >= begin && stamp <= end.saturating_add(slack);
    if !is_within(sent_at) || !is_within(received_at) || received_at.saturating_add(slack) < sent_at {
        return Err(Why::Contradictory);
    }
    let sent_at = sent_at.clamp(begin, end);
    let received_at = received_at.clamp(sent_at, end);
    let [left, came] = by_card(response, sent, [sent_at, received_at]);
    let away = came.unwrap_or(received_at) - left.unwrap_or(sent_at);
    // A peer that claims to have had a frame for longer than it was away does not know.
    let peer = last.residence.filter(|&residence| residence <= away.saturating_add(slack));
    let at_peer = peer.unwrap_or_default().min(away);
    Ok(Split {
        send: sent_at - begin,
        transmit: left.map(|left| left - sent_at),
        wire: away - at_peer,
        peer: peer.map(|_| at_peer),
        deliver: came.map(|came| received_at - came),
        receive: end - received_at,
    })
}

/// When the frame left the card and when its answer came there, between the two stamps of the kernel. None where the card did
/// not stamp, or by a clock that was set meanwhile, or at a time that cannot be.
fn by_card(response: &Response, sent: Stamp, [from, to]: [u64; 2]) -> [Option<u64>; 2] {
    /// A card's clock may go so much faster or slower: parts in a million (`ptp_clock_info.max_adj` is less on most).
    const DRIFT: u64 = 1_000;
    let [Some(before), Some(after)] = response.offsets.map(|offsets| offsets.card) else { return [None; 2] };
    let widths = before.width.saturating_add(after.width);
    let slack = TOLERANCE.saturating_add(widths);
    let drift = response.end.saturating_sub(response.begin) / 1_000_000 * DRIFT;
    if before.nanos.abs_diff(after.nanos) > slack.saturating_add(drift) {
        return [None; 2];
    }
    // The frame left soon after the first reading, the answer came shortly before the second.
    let at = |stamp: Option<u64>, offset: Offset, from: u64| {
        let at = stamp?.wrapping_add_signed(offset.nanos.wrapping_neg());
        let is_within = at.saturating_add(slack) >= from && at <= to.saturating_add(slack);
        is_within.then(|| at.clamp(from, to))
    };
    let left = at(sent.hardware, before, from);
    [left, at(response.last.received.hardware, after, left.unwrap_or(from))]
}

#[cfg(test)]
mod tests;
