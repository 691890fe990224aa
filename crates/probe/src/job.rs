//! What is asked of an instrument: what its threads do, and what the parent makes of what they leave on the board.

use failure::Error;
use record::instrument::OwnSetup;
use record::{ClockName, Grid, Header, Own, Sample, Series, Setup};
use serde::{Deserialize, Serialize};
use sys::schedule::Scheduling;
use sys::shared::Word;
use units::{CpuId, Nanos};

use crate::board::{Recorder, View};
use crate::keeper::Keeper;
use crate::used::Used;

/// What the threads of one instrument do, and what the parent makes of what they leave on the board.
pub(crate) trait OwnJob {
    /// What it does it with.
    fn setup(&self) -> &dyn OwnSetup;

    /// The clock that the threads read.
    fn clock(&self) -> ClockName {
        ClockName::Monotonic
    }

    /// The numbers that values of a thread may have, from 0; none where the threads are stopped.
    fn numbers(&self) -> Option<u64>;

    /// How long the threads are to measure, the warm-up included; none where they are stopped.
    fn length(&self) -> Option<Nanos>;

    /// Words that a thread has for itself, beside its block of the board.
    fn words(&self) -> usize {
        0
    }

    /// The threads start together when the clock reads a multiple of this; none: at once.
    fn start_at_multiple_of(&self) -> Option<Nanos> {
        None
    }

    /// The reservation that a thread asks for, instead of the plan's policy.
    fn reservation(&self) -> Option<Scheduling> {
        None
    }

    /// The call by which the threads sleep, as errors name it.
    fn sleeping_call(&self) -> &'static str {
        "clock_nanosleep"
    }

    /// Refuses what would keep the machine from everything else: see [`crate::limits`].
    fn check(&self, threads: usize, for_all: bool) -> Result<(), Error>;

    /// Changes what the machine has to be for as long as the process measures. Called before it has a second thread.
    fn hold(&self) -> Result<Option<Keeper>, Error> {
        Ok(None)
    }

    /// Prepares the calling thread. What the kernel refuses now still has its errno.
    fn prepare(&self, place: Place) -> Result<Box<dyn Ready + '_>, Error>;

    /// Whether values can be missed.
    fn has_missed(&self) -> bool {
        true
    }

    /// What the instrument has added to a series so far, where that is more than a journal's lines have.
    fn so_far(&self, seen: &Seen<'_>) -> Option<Own>;

    /// What it adds to the series of a thread that has ended or was given up.
    fn series(&self, seen: &Seen<'_>) -> Own;

    /// The number of the value that a thread which has not come back would have delivered next; none where it owes nothing.
    fn pending(&self, seen: &Seen<'_>, series: &Series) -> Option<u64>;

    /// The number of the value that a thread waits for, and after how many nanoseconds it should have come; none where nobody
    /// knows when it will.
    fn awaited(&self, seen: &Seen<'_>) -> Option<(u64, u64)>;
}

/// For how long threads measure whose values have the number of the nanosecond that they were met in, as nobody knows before how
/// many there will be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Span {
    /// How long before what is measured.
    pub warm_up: Nanos,
    /// How long they measure; none: until they are stopped.
    pub length: Option<Nanos>,
}

impl Span {
    /// Of `setup` in a run that begins with `header`.
    pub(crate) fn new(setup: &Setup, header: &Header) -> Self {
        Self { warm_up: header.plan.warm_up, length: header.plan.scenario_length(setup) }
    }

    /// The numbers that values may have, from 0.
    pub(crate) fn numbers(&self) -> Option<u64> {
        self.length.map(|length| length.0)
    }

    /// Both together.
    pub(crate) fn whole(&self) -> Option<Nanos> {
        Some(Nanos(self.length?.0.saturating_add(self.warm_up.0)))
    }

    /// What the clock reads when the warm-up ends that began at `start`.
    pub(crate) fn warm_until(&self, start: u64) -> u64 {
        start.saturating_add(self.warm_up.0)
    }

    /// What the clock reads at the end of a measurement that began at `origin`.
    pub(crate) fn until(&self, origin: u64) -> u64 {
        self.length.map_or(u64::MAX, |length| origin.saturating_add(length.0))
    }
}

/// A measuring thread's place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// Its place in the plan, from 0.
    pub index: usize,
    /// Of how many.
    pub threads: usize,
    /// The CPU that it is pinned to.
    pub cpu: Option<CpuId>,
    /// A value in nanoseconds that stops all threads.
    pub stop_at: u64,
}

/// A measuring thread, prepared.
pub(crate) trait Ready {
    /// Warms up and measures; the threads start together at `start`. `own` are the words that [`OwnJob::words`] asks for.
    fn measure(
        self: Box<Self>,
        start: u64,
        board: &[Word],
        recorder: &mut Recorder<'_>,
        own: &[Word],
    ) -> Used;
}

/// What the parent sees of one thread: exact once it has ended, a moment old before.
pub(crate) struct Seen<'a> {
    /// Its block of the board.
    pub view: View<'a>,
    /// Its own words.
    pub words: &'a [Word],
    /// When its values are due; none while it warms up.
    pub grid: Option<Grid>,
    /// How many were due.
    pub expected: u64,
    /// The worst of them, worst first.
    pub worst: &'a [Sample],
}

impl Seen<'_> {
    /// What the clock read when the measurement began; 0 while it warms up.
    pub fn began(&self) -> Nanos {
        Nanos(self.view.started().unwrap_or_default())
    }

    /// The number of the next value, where values come one after the other and all are accounted for.
    pub fn next(&self, series: &Series) -> Option<u64> {
        Some(series.accounted()).filter(|&accounted| accounted < series.expected())
    }
}
