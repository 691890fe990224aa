//! What catches late wake-ups while a scenario is measured: a [`Tracer`], and which of its marks were seen.

use std::time::{Duration, Instant};

use failure::{Error, Result};
use probe::Probe;
use record::{Hit, Overview, Tracing};
use units::Nanos;

/// Catches late wake-ups in a trace and explains them.
pub trait Tracer {
    /// The file by which threads mark late wake-ups.
    fn marker(&self) -> String;

    /// The measurement begins: from now on the kernel records.
    ///
    /// # Errors
    /// What the kernel answered.
    fn begin(&mut self) -> Result<()>;

    /// From which latency wake-ups are to be marked now.
    fn threshold(&self) -> Nanos;

    /// Whether every late wake-up is to be marked; else a mark stops the trace until [`Tracer::take`].
    fn streams(&self) -> bool;

    /// Explains what was marked, and lets the kernel record again.
    ///
    /// # Errors
    /// What the kernel answered.
    fn take(&mut self) -> Result<()>;

    /// Reads what was recorded since: a few times a second, so that nothing is overwritten.
    ///
    /// # Errors
    /// What the kernel answered.
    fn read(&mut self) -> Result<()>;

    /// What was traced, the worst wake-ups, and what all activations and handlers took. Of the marks that threads have
    /// `written` some may be in no trace.
    fn finish(self: Box<Self>, written: u64) -> (Tracing, Vec<Hit>, Overview);
}

/// Makes a tracer of the so many worst wake-ups from a latency on.
pub type MakeTracer = fn(usize, Nanos) -> Result<Box<dyn Tracer>>;

/// How often it is looked whether a thread has marked a wake-up: until then no frozen trace has those that come.
pub(crate) const MARKED: Duration = Duration::from_millis(20);

/// How often the trace is read where no wake-up is late.
const READ: Duration = Duration::from_millis(200);

/// A tracer, and which marks it has seen.
pub(crate) struct Traced {
    tracer: Box<dyn Tracer>,
    /// Marks that threads wrote.
    written: u64,
    /// Late wake-ups that were not marked.
    unmarked: u64,
    read: Instant,
    failure: Option<Error>,
}

impl Traced {
    pub fn new(tracer: Box<dyn Tracer>) -> Self {
        Self { tracer, written: 0, unmarked: 0, read: Instant::now(), failure: None }
    }

    pub fn marker(&self) -> String {
        self.tracer.marker()
    }

    /// The measurement begins.
    pub fn begin(&mut self, probe: &Probe) {
        let begun = self.tracer.begin();
        self.go_on(probe, begun);
    }

    /// Looks whether a thread has marked a wake-up, and has it explained.
    pub fn look(&mut self, probe: &Probe) {
        let before = self.written;
        self.count(probe);
        let is_frozen = self.written > before && !self.tracer.streams();
        if self.failure.is_some() || !(is_frozen || self.read.elapsed() >= self.patience()) {
            return;
        }
        self.read = Instant::now();
        let done = if is_frozen { self.tracer.take() } else { self.tracer.read() };
        self.go_on(probe, done);
    }

    /// The threads have ended.
    pub fn end(&mut self, probe: &Probe) {
        self.count(probe);
    }

    fn count(&mut self, probe: &Probe) {
        self.written = probe.views().map(|view| view.marked()).sum();
        self.unmarked = probe.views().map(|view| view.unmarked()).sum();
    }

    /// How long nothing is read. Of a stream a little at a time: what takes long delays the next reading.
    fn patience(&self) -> Duration {
        if self.tracer.streams() { MARKED } else { READ }
    }

    fn go_on(&mut self, probe: &Probe, done: Result<()>) {
        match done {
            Ok(()) if self.tracer.streams() => probe.mark_all_from(self.tracer.threshold()),
            Ok(()) => probe.mark_next_from(self.tracer.threshold()),
            Err(error) => self.failure = Some(error),
        }
    }

    /// What was traced, the worst wake-ups, and what all activations and handlers took.
    pub fn finish(self) -> (Tracing, Vec<Hit>, Overview) {
        let Self { tracer, written, unmarked, failure, .. } = self;
        let (mut tracing, hits, overview) = tracer.finish(written);
        tracing.blind += unmarked;
        tracing.failure = failure.map(|error| error.message);
        (tracing, hits, overview)
    }
}
