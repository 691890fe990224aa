//! What threads that make calls are to do.

use failure::Error;
use record::instrument::OwnSetup;
use record::instrument::call::{CallSeries, CallSetup};
use record::{Header, Own, Series, Setup};
use serde::{Deserialize, Serialize};
use units::Nanos;

use super::Thread;
use crate::job::{OwnJob, Place, Ready, Seen, Span};
use crate::limits;

/// How long a call takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallJob {
    /// Which call, how often, beside what.
    pub setup: CallSetup,
    /// For how long.
    pub span: Span,
}

impl CallJob {
    /// In a run that begins with `header`.
    pub fn new(setup: &CallSetup, header: &Header) -> Self {
        Self { setup: setup.clone(), span: Span::new(&Setup::Call(setup.clone()), header) }
    }
}

impl OwnJob for CallJob {
    fn setup(&self) -> &dyn OwnSetup {
        &self.setup
    }

    fn numbers(&self) -> Option<u64> {
        self.span.numbers()
    }

    fn length(&self) -> Option<Nanos> {
        self.span.whole()
    }

    fn check(&self, _: usize, for_all: bool) -> Result<(), Error> {
        limits::interval("make a call", self.setup.interval, for_all)?;
        limits::spin(self.setup.burst, self.setup.interval, for_all)
    }

    fn prepare(&self, place: Place) -> Result<Box<dyn Ready + '_>, Error> {
        Ok(Box::new(Thread::prepare(self, place)?))
    }

    fn has_missed(&self) -> bool {
        false
    }

    fn so_far(&self, seen: &Seen<'_>) -> Option<Own> {
        Some(self.series(seen))
    }

    fn series(&self, seen: &Seen<'_>) -> Own {
        Own::Call(CallSeries { began: seen.began(), warm_up: seen.view.warm_up() })
    }

    /// Who makes no call owes nothing.
    fn pending(&self, _: &Seen<'_>, _: &Series) -> Option<u64> {
        None
    }

    fn awaited(&self, _: &Seen<'_>) -> Option<(u64, u64)> {
        None
    }
}
