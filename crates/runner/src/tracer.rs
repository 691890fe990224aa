//! What catches late wake-ups while a scenario is measured: a [`Tracer`], and which of its marks were seen.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use failure::{Error, Result};
use probe::Probe;
use record::{Hit, LateWakeUp, Overview, ScenarioHead, Tracing};
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

    /// Explains what was marked.
    ///
    /// # Errors
    /// What the kernel answered.
    fn take(&mut self, marked: &[LateWakeUp]) -> Result<()>;

    /// Reads what was recorded since: a few times a second, so that nothing is overwritten.
    ///
    /// # Errors
    /// What the kernel answered.
    fn read(&mut self) -> Result<()>;

    /// What was traced, the worst wake-ups, and what all activations and handlers took.
    fn finish(self: Box<Self>) -> (Tracing, Vec<Hit>, Overview);
}

/// Makes a tracer of the so many worst wake-ups from a latency on.
pub type MakeTracer = fn(usize, Nanos) -> Result<Box<dyn Tracer>>;

/// How often it is looked whether a thread has marked a wake-up: until then no trace has those that come.
pub(crate) const MARKED: Duration = Duration::from_millis(20);

/// How often the trace is read where no wake-up is late.
const READ: Duration = Duration::from_millis(200);

/// A tracer, and which marks it has seen.
pub(crate) struct Traced {
    tracer: Box<dyn Tracer>,
    seen: BTreeMap<usize, u64>,
    /// Late wake-ups that no trace has.
    blind: u64,
    read: Instant,
    failure: Option<Error>,
}

impl Traced {
    pub fn new(tracer: Box<dyn Tracer>) -> Self {
        Self { tracer, seen: BTreeMap::new(), blind: 0, read: Instant::now(), failure: None }
    }

    pub fn marker(&self) -> String {
        self.tracer.marker()
    }

    /// The measurement begins.
    pub fn begin(&mut self, probe: &Probe) {
        match self.tracer.begin() {
            Ok(()) => probe.mark_next_from(self.tracer.threshold()),
            Err(error) => self.failure = Some(error),
        }
    }

    /// Looks whether a thread has marked a wake-up, and has it explained.
    pub fn look(&mut self, probe: &Probe, head: &ScenarioHead) {
        self.blind = probe.views().map(|view| view.unmarked()).sum();
        let marked: Vec<LateWakeUp> =
            (0..head.cpus.len()).filter_map(|thread| self.marked(probe, head, thread)).collect();
        if self.failure.is_some() || (marked.is_empty() && self.read.elapsed() < READ) {
            return;
        }
        self.read = Instant::now();
        let done = if marked.is_empty() { self.tracer.read() } else { self.tracer.take(&marked) };
        match done {
            Ok(()) => probe.mark_next_from(self.tracer.threshold()),
            Err(error) => self.failure = Some(error),
        }
    }

    fn marked(&mut self, probe: &Probe, head: &ScenarioHead, thread: usize) -> Option<LateWakeUp> {
        let (count, activation, due, woke) = probe.view(thread).marked();
        if self.seen.insert(thread, count).unwrap_or_default() == count {
            return None;
        }
        let (cpu, tid) = (head.cpus.get(thread).copied().flatten()?, *probe.tids().get(thread)?);
        let interval = Nanos(probe.grid(thread).map_or(0, |grid| grid.interval));
        Some(LateWakeUp { tid, cpu, activation, due, woke, interval })
    }

    /// What was traced, the worst wake-ups, and what all activations and handlers took.
    pub fn finish(self) -> (Tracing, Vec<Hit>, Overview) {
        let (mut tracing, hits, overview) = self.tracer.finish();
        tracing.blind += self.blind;
        tracing.failure = self.failure.map(|error| error.message);
        (tracing, hits, overview)
    }
}
