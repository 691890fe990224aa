//! What one probe process is to do.

use record::instrument::gpio::GpioSetup;
use record::instrument::noise::NoiseSetup;
use record::instrument::response::ResponseSetup;
use record::instrument::timer::TimerSetup;
use record::{ClockName, Grid, Wake};
use serde::{Deserialize, Serialize};
use sys::clock::Clock;
use sys::shared::Word;
use units::{CpuId, CpuList, Nanos, Policy, Priority};

use crate::{board, gpio, response::tally};

/// One measurement: which threads, what each does, for how long.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProbePlan {
    /// The CPU of each thread that it is pinned to; none: not pinned.
    pub threads: Vec<Option<CpuId>>,
    /// Scheduling policy; with [`Wake::Deadline`] it is not used.
    pub policy: Policy,
    /// Priority, for a policy that has one.
    pub priority: Option<Priority>,
    /// A value that stops all threads.
    pub stop_at: Option<Nanos>,
    /// Whether every sample is passed on to the parent.
    pub every_sample: bool,
    /// The threads end the run where the main thread, an ordinary one, had no CPU for so long.
    #[serde(default)]
    pub fail_safe: Option<Nanos>,
    /// Where the probe's main thread stays while its threads measure.
    pub housekeeping: CpuList,
    /// The file by which threads mark late wake-ups in a trace; none: nothing is marked.
    #[serde(default)]
    pub marker: Option<String>,
    /// What the threads do.
    pub job: Job,
}

/// What an instrument's threads do: one variant each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Job {
    /// See [`crate::timer`].
    Timer(TimerJob),
    /// See [`crate::noise`].
    Noise(NoiseJob),
    /// See [`crate::response`].
    Response(ResponseJob),
    /// See [`crate::gpio`].
    Gpio(GpioJob),
}

/// How late threads wake up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimerJob {
    /// Period and phases.
    pub setup: TimerSetup,
    /// What wakes the threads.
    pub wake: Wake,
    /// Run time per period, with [`Wake::Deadline`].
    pub runtime: Nanos,
    /// On which clock activations are due.
    pub clock: ClockName,
    /// The threads start together when the clock reads a multiple of this, so that phases that are drawn from a seed lie
    /// against the kernel's tick where that seed puts them; none: at once.
    pub start_at_multiple_of: Option<Nanos>,
    /// Activations of the warm-up, before those that are measured.
    pub warm_up: u64,
    /// Activations that every thread delivers; none: until it is stopped.
    pub activations: Option<u64>,
}

/// How long the CPU is taken from threads that spin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NoiseJob {
    /// Threshold and windows.
    pub setup: NoiseSetup,
    /// Windows of the warm-up, in which nothing is recorded.
    pub warm_up: u64,
    /// Windows to spin in; none: until it is stopped.
    pub windows: Option<u64>,
}

/// How long until frames are answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResponseJob {
    /// Peer, period, frames.
    pub setup: ResponseSetup,
    /// What tells this run's frames from those of others.
    pub run: u64,
    /// Cycles of the warm-up, before those that are measured.
    pub warm_up: u64,
    /// Cycles to run; none: until it is stopped.
    pub cycles: Option<u64>,
}

/// How long until edges are answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GpioJob {
    /// The lines.
    pub setup: GpioSetup,
    /// How long edges are answered before those that are measured.
    pub warm_up: Nanos,
    /// How long edges are measured; none: until it is stopped.
    pub length: Option<Nanos>,
}

impl ProbePlan {
    /// Words of the board.
    pub fn words(&self) -> usize {
        board::words(self.threads.len(), self.every_sample) + self.threads.len() * self.tally_words()
    }

    /// What each thread of some instruments counts with stands behind all blocks, in pages of its own.
    fn tally_words(&self) -> usize {
        let words = match self.job {
            Job::Response(_) => tally::WORDS,
            Job::Gpio(_) => gpio::tally::WORDS,
            Job::Timer(_) | Job::Noise(_) => 0,
        };
        words.next_multiple_of(512)
    }

    /// The words of thread `thread` for its tally; none for other instruments.
    pub fn tally<'a>(&self, board: &'a [Word], thread: usize) -> &'a [Word] {
        let size = self.tally_words();
        let first = board::words(self.threads.len(), self.every_sample) + thread * size;
        &board[first..first + size]
    }

    /// The clock that the threads read.
    pub fn clock(&self) -> ClockName {
        match &self.job {
            Job::Timer(timer) => timer.clock,
            Job::Noise(_) | Job::Response(_) | Job::Gpio(_) => ClockName::Monotonic,
        }
    }

    /// When the values of thread `thread` were due or came, if number 0 lies at `origin` on the clock.
    pub fn grid(&self, thread: usize, origin: u64) -> Grid {
        match &self.job {
            Job::Timer(timer) => timer.grid(thread, origin),
            Job::Noise(_) | Job::Gpio(_) => Grid::fixed(origin, 1),
            Job::Response(response) => Grid::fixed(origin, response.setup.interval.0.max(1)),
        }
    }

    /// What the timer does, if it is the instrument.
    pub fn timer(&self) -> Option<&TimerJob> {
        if let Job::Timer(timer) = &self.job { Some(timer) } else { None }
    }

    /// The policy that the threads have when nothing is denied.
    pub fn expected_policy(&self) -> Policy {
        let is_reservation = self.timer().is_some_and(|timer| timer.wake == Wake::Deadline);
        if is_reservation { Policy::Deadline } else { self.policy }
    }

    /// The numbers that values of a thread may have, from 0: activations, cycles or nanoseconds. None where the threads are stopped.
    pub fn numbers(&self) -> Option<u64> {
        match &self.job {
            Job::Timer(timer) => timer.activations,
            Job::Noise(noise) => Some(noise.windows?.saturating_mul(noise.setup.window.0)),
            Job::Response(response) => response.cycles,
            Job::Gpio(gpio) => gpio.length.map(|length| length.0),
        }
    }

    /// How long the threads are to measure, the warm-up included; none where they are stopped.
    pub fn length(&self) -> Option<Nanos> {
        match &self.job {
            Job::Timer(timer) => {
                let count = timer.activations?.saturating_add(timer.warm_up).saturating_add(2);
                Some(timer.setup.interval.saturating_mul(count))
            }
            Job::Noise(noise) => {
                let count = noise.windows?.saturating_add(noise.warm_up).saturating_add(2);
                Some(noise.setup.window.saturating_mul(count))
            }
            Job::Response(response) => {
                let count = response.cycles?.saturating_add(response.warm_up).saturating_add(3);
                Some(response.setup.interval.saturating_mul(count))
            }
            Job::Gpio(gpio) => Some(Nanos(gpio.length?.0.saturating_add(gpio.warm_up.0))),
        }
    }
}

impl TimerJob {
    /// When activations of thread `thread` are due, if its first one lies at `origin` on the clock.
    pub fn grid(&self, thread: usize, origin: u64) -> Grid {
        let sweep = self.setup.sweeps.get(thread).copied();
        Grid { origin, interval: self.setup.interval.0.max(1), sweep }
    }
}

/// The clock that a plan names.
pub fn clock_of(name: ClockName) -> Clock {
    match name {
        ClockName::Monotonic => Clock::Monotonic,
        ClockName::Realtime => Clock::Realtime,
        ClockName::Tai => Clock::Tai,
    }
}
