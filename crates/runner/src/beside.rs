//! What an instrument needs beside its probe, in this process: each has a module here, and a line in the list below. Most
//! need nothing.

mod noise;
mod respond;

use std::time::Duration;

use failure::Result;
use probe::Probe;
use record::{Series, Setup};
use sysroot::SysRoot;
use units::Nanos;

/// What goes with a probe while it measures.
pub trait Beside {
    /// How long until it is to look at the latest; none where that does not matter.
    fn patience(&self, _: &Probe) -> Option<Duration> {
        None
    }

    /// Called all the time, after [`Beside::patience`] at the latest.
    fn look(&mut self, _: &SysRoot, _: &Probe) {}

    /// The end has come, and the probe's threads have not been asked to end yet.
    fn stop(&mut self) {}

    /// Enters what it saw, when all is over: into the series of all threads, their worst values too.
    fn enter(&mut self, series: &mut [Series]);
}

/// Starts it, when the probe is prepared and does not measure yet; it will for so long (none: until it is stopped). Nothing
/// for an instrument that needs nothing of the kind.
type Begin = fn(&SysRoot, &Setup, Option<Nanos>) -> Result<Option<Box<dyn Beside>>>;

const ALL: &[Begin] = &[noise::begin, respond::begin];

/// What this set-up needs; `length` as for [`Begin`].
///
/// # Errors
/// It could not be started.
pub fn begin(root: &SysRoot, setup: &Setup, length: Option<Nanos>) -> Result<Vec<Box<dyn Beside>>> {
    let begun: Result<Vec<_>> = ALL.iter().map(|begin| begin(root, setup, length)).collect();
    Ok(begun?.into_iter().flatten().collect())
}
