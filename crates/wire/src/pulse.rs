//! A monitor: drives a line, and waits until the line of the answer has its edge. The answer's time is the kernel's stamp of
//! that edge, so that the monitor's own wake-up is not in it.

use sys::Errno;
use sys::gpio::{Event, Input, Output};
use units::{Nanos, Random};

/// The two wires and the clock that stamps them: real ones are [`Lines`], tests have their own. Times are nanoseconds of
/// `CLOCK_MONOTONIC`.
pub trait Wires {
    /// Begins or ends the pulse.
    fn drive(&mut self, active: bool) -> Result<(), Errno>;

    /// The next edge of the answer's line: one that is there, or one that comes until the clock reads `until`.
    fn edge(&mut self, until: u64) -> Result<Option<Event>, Errno>;

    /// Sleeps until the clock reads `due`.
    fn sleep_until(&mut self, due: u64) -> Result<(), Errno>;

    /// What the clock reads.
    fn now(&mut self) -> u64;
}

/// When pulses are due, and how long they are waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// From one to the next.
    pub period: Nanos,
    /// Each comes later by a random part of this, so that no phase of another clock is met each time.
    pub jitter: Nanos,
    /// How long an answer is waited for; with the jitter not longer than the period.
    pub patience: Nanos,
    /// Whether the answer is a rising edge.
    pub rises: bool,
}

/// What one pulse met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pulse {
    /// When it was due, and when the line was about to be driven.
    pub due: u64,
    /// See `due`.
    pub begin: u64,
    /// From then until the answer's edge; none where it did not come in time.
    pub answer: Option<u64>,
    /// How long driving the line took: so much of a short answer is the monitor's own.
    pub write: u64,
    /// Pulses before it that were over before this thread had its CPU.
    pub skipped: u64,
    /// Of the pulse before: answers after the one that counted.
    pub again: u64,
    /// Of the pulse before, which was missed: an answer that came after all.
    pub late: u64,
    /// Answers that were there before the pulse began.
    pub astray: u64,
    /// Edges that the kernel could not keep.
    pub lost: u64,
}

/// Makes one pulse after the other.
#[derive(Debug)]
pub struct Monitor<W> {
    wires: W,
    pace: Pace,
    random: Random,
    origin: u64,
    next: u64,
    was_answered: Option<bool>,
    /// The number of the last edge.
    number: Option<u32>,
}

impl<W: Wires> Monitor<W> {
    /// The first pulse is due a period from now.
    pub fn new(mut wires: W, pace: Pace, random: Random) -> Self {
        let origin = wires.now();
        Self { wires, pace, random, origin, next: 1, was_answered: None, number: None }
    }

    /// Other pulses from now on: the first is due a period from now.
    pub fn pace(&mut self, pace: Pace) {
        (self.pace, self.origin, self.next) = (pace, self.wires.now(), 1);
    }

    /// The line is as before the first pulse.
    ///
    /// # Errors
    /// The chip is gone.
    pub fn rest(&mut self) -> Result<(), Errno> {
        self.wires.drive(false)
    }

    /// Waits until the next pulse is due, makes it and waits for its answer.
    ///
    /// # Errors
    /// A line is gone, or nothing sleeps.
    pub fn pulse(&mut self) -> Result<Pulse, Errno> {
        let due = self.due();
        self.sleep_until(due)?;
        let mut pulse = Pulse { due, ..Pulse::default() };
        pulse.skipped = self.skip();
        self.take_old(&mut pulse)?;
        pulse.begin = self.wires.now();
        self.wires.drive(true)?;
        pulse.write = self.wires.now().saturating_sub(pulse.begin);
        let until = pulse.begin.saturating_add(self.pace.patience.0);
        let answer = self.await_answer(until, &mut pulse);
        // Whatever came of it, the line is as before.
        let rested = self.wires.drive(false);
        pulse.answer = answer?;
        rested?;
        self.was_answered = Some(pulse.answer.is_some());
        Ok(pulse)
    }

    fn due(&mut self) -> u64 {
        let jitter = self.pace.jitter.0;
        let later = if jitter == 0 { 0 } else { self.random.below(jitter) };
        let due = self.origin.saturating_add(self.pace.period.0.saturating_mul(self.next));
        self.next += 1;
        due.saturating_add(later)
    }

    fn sleep_until(&mut self, due: u64) -> Result<(), Errno> {
        const MOST_EARLY: u32 = 1_000;
        for _ in 0..MOST_EARLY {
            match self.wires.sleep_until(due) {
                Ok(()) if self.wires.now() >= due => return Ok(()),
                Ok(()) | Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        Err(Errno::TIME)
    }

    /// Leaves out the pulses whose time is over.
    fn skip(&mut self) -> u64 {
        let passed = self.wires.now().saturating_sub(self.origin) / self.pace.period.0.max(1);
        let skipped = (passed + 1).saturating_sub(self.next);
        self.next += skipped;
        skipped
    }

    /// What has come since the last pulse was given up or answered. A line that has edges without end does not keep the
    /// monitor for ever.
    fn take_old(&mut self, pulse: &mut Pulse) -> Result<(), Errno> {
        const MOST: u32 = 1_000;
        for _ in 0..MOST {
            let Some(event) = self.wires.edge(0)? else { return Ok(()) };
            self.follow(&event, pulse);
            if event.rose != self.pace.rises {
                continue;
            }
            match self.was_answered {
                Some(true) => pulse.again += 1,
                Some(false) if pulse.late == 0 => pulse.late = 1,
                _ => pulse.astray += 1,
            }
        }
        Ok(())
    }

    fn await_answer(&mut self, until: u64, pulse: &mut Pulse) -> Result<Option<u64>, Errno> {
        loop {
            let event = match self.wires.edge(until) {
                Ok(event) => event,
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(errno),
            };
            let Some(event) = event else { return Ok(None) };
            self.follow(&event, pulse);
            if event.rose != self.pace.rises {
                continue;
            }
            if event.stamp < pulse.begin {
                pulse.astray += 1;
            } else if event.stamp <= until {
                return Ok(Some(event.stamp - pulse.begin));
            } else {
                pulse.late = 1;
                return Ok(None);
            }
            if self.wires.now() > until {
                return Ok(None);
            }
        }
    }

    /// Counts the edges between this one and the last that was read.
    fn follow(&mut self, event: &Event, pulse: &mut Pulse) {
        if let (Some(last), Some(number)) = (self.number, event.number) {
            pulse.lost += u64::from(number.wrapping_sub(last).saturating_sub(1));
        }
        self.number = event.number.or(self.number);
    }
}

/// Two lines of GPIO chips.
#[derive(Debug)]
pub struct Lines {
    /// The line of the pulse.
    pub pulse: Output,
    /// Whether it is high while a pulse is under way.
    pub is_high: bool,
    /// The line of the answer, of which the edge that is measured is read.
    pub answer: Input,
}

impl Wires for Lines {
    fn drive(&mut self, active: bool) -> Result<(), Errno> {
        self.pulse.set(active == self.is_high)
    }

    fn edge(&mut self, until: u64) -> Result<Option<Event>, Errno> {
        loop {
            if let Some(event) = self.answer.read()? {
                return Ok(Some(event));
            }
            let left = until.saturating_sub(self.now());
            if left == 0 {
                return Ok(None);
            }
            self.answer.wait(left)?;
        }
    }

    fn sleep_until(&mut self, due: u64) -> Result<(), Errno> {
        sys::clock::Clock::Monotonic.sleep_until(due)
    }

    fn now(&mut self) -> u64 {
        sys::clock::Clock::Monotonic.now()
    }
}

#[cfg(test)]
mod tests;
