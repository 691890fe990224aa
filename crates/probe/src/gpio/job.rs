//! What the responder on GPIO lines is to do.

use failure::Error;
use record::instrument::OwnSetup;
use record::instrument::gpio::{GpioSeries, GpioSetup};
use record::{Header, Own, Series, Setup};
use serde::{Deserialize, Serialize};
use units::Nanos;

use super::{Thread, tally};
use crate::job::{OwnJob, Place, Ready, Seen, Span};
use crate::limits;

/// How long until edges are answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GpioJob {
    /// The lines.
    pub setup: GpioSetup,
    /// For how long.
    pub span: Span,
}

impl GpioJob {
    /// In a run that begins with `header`.
    pub fn new(setup: &GpioSetup, header: &Header) -> Self {
        Self { setup: setup.clone(), span: Span::new(&Setup::Gpio(setup.clone()), header) }
    }
}

impl OwnJob for GpioJob {
    fn setup(&self) -> &dyn OwnSetup {
        &self.setup
    }

    fn numbers(&self) -> Option<u64> {
        self.span.numbers()
    }

    fn length(&self) -> Option<Nanos> {
        self.span.whole()
    }

    fn words(&self) -> usize {
        tally::WORDS
    }

    fn check(&self, threads: usize, for_all: bool) -> Result<(), Error> {
        if for_all && self.setup.delay > Nanos::ZERO {
            return Err(limits::refused("keep answers back", "nothing spins", for_all));
        }
        if threads != 1 {
            let what = format!("answer edges with {threads} threads");
            return Err(Error::new(what, "the responder is one thread"));
        }
        Ok(())
    }

    fn prepare(&self, place: Place) -> Result<Box<dyn Ready + '_>, Error> {
        Ok(Box::new(Thread::prepare(self, place.stop_at)?))
    }

    fn so_far(&self, seen: &Seen<'_>) -> Option<Own> {
        Some(self.series(seen))
    }

    fn series(&self, seen: &Seen<'_>) -> Own {
        Own::Gpio(GpioSeries {
            began: seen.began(),
            missed: seen.view.missed(),
            warm_up: seen.view.warm_up(),
            ..tally::read(seen.words)
        })
    }

    /// Who waits for an edge owes nothing.
    fn pending(&self, _: &Seen<'_>, _: &Series) -> Option<u64> {
        None
    }

    fn awaited(&self, _: &Seen<'_>) -> Option<(u64, u64)> {
        None
    }
}
