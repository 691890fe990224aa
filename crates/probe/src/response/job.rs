//! What threads of the response probe are to do.

use failure::Error;
use record::instrument::OwnSetup;
use record::instrument::response::{Receive, ResponseSeries, ResponseSetup};
use record::{Header, Own, Sample, Series};
use serde::{Deserialize, Serialize};
use units::{Nanos, Seed};

use super::{Thread, card, tally};
use crate::job::{OwnJob, Place, Ready, Seen};
use crate::keeper::Keeper;
use crate::limits;

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

impl ResponseJob {
    /// In a run that begins with `header`.
    pub fn new(setup: &ResponseSetup, header: &Header) -> Self {
        Self {
            setup: setup.clone(),
            run: frames_of_run(header.plan.seed),
            warm_up: header.plan.warm_up.0.div_ceil(setup.interval.0.max(1)),
            cycles: header.plan.activations(setup.interval),
        }
    }

    /// What a thread has counted, its account of cycles apart.
    fn counted(&self, seen: &Seen<'_>, worst: &[Sample]) -> ResponseSeries {
        let counted = tally::read(seen.words, worst, self.setup.parts());
        ResponseSeries { first_due: seen.began(), warm_up: seen.view.warm_up(), ..counted }
    }
}

/// What tells this run's frames from those of others, and of others that have the same seed.
fn frames_of_run(seed: Option<Seed>) -> u64 {
    let now = sys::clock::Clock::Realtime.now() ^ u64::from(std::process::id()).rotate_left(40);
    Seed(seed.unwrap_or(Seed(0)).0 ^ now).stream("frames").below(u64::MAX)
}

impl OwnJob for ResponseJob {
    fn setup(&self) -> &dyn OwnSetup {
        &self.setup
    }

    fn numbers(&self) -> Option<u64> {
        self.cycles
    }

    fn length(&self) -> Option<Nanos> {
        let count = self.cycles?.saturating_add(self.warm_up).saturating_add(3);
        Some(self.setup.interval.saturating_mul(count))
    }

    fn words(&self) -> usize {
        tally::WORDS
    }

    fn check(&self, _: usize, for_all: bool) -> Result<(), Error> {
        let ResponseSetup { interval, patience, receive, .. } = &self.setup;
        limits::interval("send", *interval, for_all)?;
        if *receive == Receive::Spin { limits::spin(*patience, *interval, for_all) } else { Ok(()) }
    }

    fn hold(&self) -> Result<Option<Keeper>, Error> {
        card::hold(&self.setup)
    }

    fn prepare(&self, place: Place) -> Result<Box<dyn Ready + '_>, Error> {
        Ok(Box::new(Thread::prepare(self, place)?))
    }

    /// Cycles are for the journal's reader to account for.
    fn so_far(&self, seen: &Seen<'_>) -> Option<Own> {
        Some(Own::Response(self.counted(seen, &[])))
    }

    fn series(&self, seen: &Seen<'_>) -> Own {
        Own::Response(ResponseSeries {
            expected: seen.expected,
            missed: seen.view.missed(),
            ..self.counted(seen, seen.worst)
        })
    }

    fn pending(&self, seen: &Seen<'_>, series: &Series) -> Option<u64> {
        seen.next(series)
    }

    fn awaited(&self, seen: &Seen<'_>) -> Option<(u64, u64)> {
        Some((seen.view.accounted(), self.setup.interval.0))
    }
}
