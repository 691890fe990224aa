//! Scenarios measured once more while the kernel is traced, so that their worst wake-ups can be explained.
//!
//! Figures come first, untraced; what tracing costs is in none of them. How wake-ups are caught is the [`Tracer`]'s business.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use failure::{Error, Result};
use probe::Probe;
use record::journal::Line;
use record::{
    ClockName, Explanation, Hit, LateWakeUp, Overview, Scenario, ScenarioEnd, ScenarioHead, Setup, Tracing,
};
use units::{InOrder, Nanos};

use crate::observer::Observer;
use crate::scenario;
use crate::session::Session;

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

/// How often the trace is read where no wake-up is late.
pub(crate) const READ: Duration = Duration::from_millis(200);

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
    fn new(tracer: Box<dyn Tracer>) -> Self {
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

    fn finish(self) -> (Tracing, Vec<Hit>, Overview) {
        let (mut tracing, hits, overview) = self.tracer.finish();
        tracing.blind += self.blind;
        tracing.failure = self.failure.map(|error| error.message);
        (tracing, hits, overview)
    }
}

/// Measures each scenario that came to its end once more, traced, and explains its worst wake-ups.
pub(crate) fn explain(
    session: &mut Session,
    scenarios: &[Scenario],
    wanted: usize,
    make: MakeTracer,
    observer: &mut dyn Observer,
) -> Vec<Explanation> {
    let mut explanations = Vec::new();
    for (index, scenario) in scenarios.iter().enumerate() {
        if scenario.end != ScenarioEnd::Complete {
            continue;
        }
        if session.was_asked_to_end() {
            break;
        }
        let measured = measure(session, scenario, (index, scenarios.len()), wanted, make, observer);
        let (scenario, (tracing, hits, overview), go_on) = match measured {
            Ok(measured) => measured,
            Err(error) => {
                session.outputs.speak();
                let message = format!("{} was not explained: {}", scenario.head.planned.load, error.message);
                session.explanation_failure = Some(Error::new(message, error.hint));
                break;
            }
        };
        let of = u32::try_from(index).unwrap_or(u32::MAX);
        let explanation = Explanation { of, scenario, tracing, hits, overview };
        session.outputs.append(&Line::Explained(Box::new(explanation.clone())));
        explanations.push(explanation);
        if !go_on {
            break;
        }
    }
    explanations
}

type Repetition = (Scenario, (Tracing, Vec<Hit>, Overview), bool);

fn measure(
    session: &mut Session,
    scenario: &Scenario,
    (index, count): (usize, usize),
    wanted: usize,
    make: MakeTracer,
    observer: &mut dyn Observer,
) -> Result<Repetition> {
    can_be_traced(session, scenario)?;
    let mut traced = Traced::new(make(wanted, threshold(scenario, wanted))?);
    // The journal and the samples file have the untraced scenarios alone.
    session.outputs.be_silent();
    let planned = &scenario.head.planned;
    let measured = scenario::measure(session, planned, index, count, Some(&mut traced), observer);
    session.outputs.speak();
    let measured = measured?;
    Ok((measured.scenario, traced.finish(), measured.go_on))
}

fn can_be_traced(session: &Session, scenario: &Scenario) -> Result<()> {
    let clock = session.header.plan.timer().map(|timer| timer.clock);
    match (&scenario.head.planned.setup, clock) {
        (Setup::Timer(_), Some(ClockName::Monotonic)) => Ok(()),
        (Setup::Timer(_), _) => {
            Err(Error::new("only wake-ups on CLOCK_MONOTONIC can be explained", "leave out --clock"))
        }
        _ => Err(Error::new("only wake-ups by a timer can be explained", "leave out --probe")),
    }
}

/// Half of the least of the `wanted` worst latencies of the untraced scenario, and more than most wake-ups take: what is
/// met first is looked at, and the threshold rises from there.
fn threshold(scenario: &Scenario, wanted: usize) -> Nanos {
    let mut worst: Vec<Nanos> =
        scenario.series.iter().flat_map(|series| &series.worst).map(|sample| sample.latency).collect();
    worst.order_by_key(|latency| std::cmp::Reverse(*latency));
    let least = worst.get(wanted.saturating_sub(1)).or(worst.last()).copied().unwrap_or_default();
    let usual = scenario.series.iter().filter_map(|series| series.observed.quantile(0.9)).max();
    Nanos((least.0 / 2).max(usual.unwrap_or_default().0)).max(Nanos(1))
}
