//! What explains late wake-ups of a run: a capture of the kernel's trace.

use capture::{Capture, Threads};
use record::{Hit, Overview, Tracing};
use runner::Tracer;
use units::Nanos;

use failure::Result;

/// What names of the probe's threads begin with.
const THREADS: &str = "probe";

struct OfRun(Capture);

/// For [`runner::Means`].
pub fn make(wanted: usize, threshold: Nanos) -> Result<Box<dyn Tracer>> {
    let capture = Capture::begin(&Threads::Named(THREADS.to_owned()), wanted, threshold)?;
    Ok(Box::new(OfRun(capture)))
}

impl Tracer for OfRun {
    fn marker(&self) -> String {
        self.0.marker()
    }

    fn begin(&mut self) -> Result<()> {
        self.0.go_on()
    }

    fn threshold(&self) -> Nanos {
        self.0.threshold()
    }

    fn streams(&self) -> bool {
        self.0.streams()
    }

    fn take(&mut self) -> Result<()> {
        self.0.take()
    }

    fn read(&mut self) -> Result<()> {
        self.0.read()
    }

    fn finish(self: Box<Self>, written: u64) -> (Tracing, Vec<Hit>, Overview) {
        self.0.finish(written)
    }
}
