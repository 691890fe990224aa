//! What the kernel measures beside, in its own contexts: the interrupt of a timer, and a thread that this wakes.

use std::collections::BTreeMap;
use std::time::Duration;

use failure::Result;
use probe::Probe;
use record::instrument::timer::ContextFigures;
use record::{Series, Setup};
use sys::clock::Clock;
use sysroot::SysRoot;
use units::{CpuId, CpuList, Nanos};

use crate::beside::Beside;

/// How often samples are read at the latest: before the kernel overwrites them.
const READ: Duration = Duration::from_millis(200);

/// How late a timer of the kernel was noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextSample {
    /// Where.
    pub cpu: CpuId,
    /// When, on `CLOCK_MONOTONIC`.
    pub at: Nanos,
    /// In its interrupt; else in the thread that this wakes.
    pub in_interrupt: bool,
    /// How late.
    pub latency: Nanos,
}

/// Has the kernel measure. Dropped, it ends.
pub trait ContextTracer {
    /// Shows what was measured since.
    ///
    /// # Errors
    /// What the kernel answered.
    fn read(&mut self, see: &mut dyn FnMut(ContextSample)) -> Result<()>;

    /// What was lost, in words.
    fn lost(&self) -> Option<String>;

    /// Ends it. The machine has the settings that it had.
    ///
    /// # Errors
    /// One that could not be put back.
    fn stop(self: Box<Self>) -> Result<()>;
}

/// Starts one on these CPUs, with this period.
pub type MakeContextTracer = fn(&CpuList, Nanos) -> Result<Box<dyn ContextTracer>>;

/// Starts it for a set-up that wants it.
///
/// # Errors
/// The kernel cannot measure so.
pub(crate) fn begin(
    make: Option<MakeContextTracer>,
    cpus: &CpuList,
    setup: &Setup,
) -> Result<Option<Box<dyn Beside>>> {
    let (Some(make), Some(timer)) = (make, setup.timer().filter(|timer| timer.contexts)) else {
        return Ok(None);
    };
    let tracer = Some(make(cpus, timer.interval)?);
    Ok(Some(Box::new(Contexts { tracer, seen: Seen::default() })))
}

struct Contexts {
    tracer: Option<Box<dyn ContextTracer>>,
    seen: Seen,
}

/// What was seen since the measurement began.
#[derive(Debug, Default)]
struct Seen {
    since: Option<Nanos>,
    cpus: BTreeMap<CpuId, ContextFigures>,
    failure: Option<String>,
    /// What was lost up to now.
    lost: Option<String>,
}

impl Seen {
    fn take(&mut self, sample: ContextSample) {
        if self.since.is_none_or(|since| sample.at < since) {
            return;
        }
        let figures = self.cpus.entry(sample.cpu).or_default();
        let of = if sample.in_interrupt { &mut figures.interrupt } else { &mut figures.thread };
        of.record(sample.latency);
    }

    /// Keeps the first.
    fn fail(&mut self, failure: Option<String>) {
        self.failure = self.failure.take().or(failure);
    }

    /// Of a CPU; of all together for a thread that has none of its own.
    fn of(&self, cpu: Option<CpuId>) -> ContextFigures {
        let problem = self.failure.clone().or_else(|| self.lost.clone());
        let mut all = ContextFigures { problem, ..ContextFigures::default() };
        for (_, figures) in self.cpus.iter().filter(|(seen, _)| cpu.is_none_or(|cpu| cpu == **seen)) {
            all.interrupt.merge(&figures.interrupt);
            all.thread.merge(&figures.thread);
        }
        let is_silent = [&all.interrupt, &all.thread].iter().any(|of| of.summary().count == 0);
        all.problem = all.problem.or_else(|| is_silent.then(|| "no sample came".to_owned()));
        all
    }
}

impl Contexts {
    fn read(&mut self) {
        let Self { tracer: Some(tracer), seen } = self else { return };
        let read = tracer.read(&mut |sample| seen.take(sample));
        seen.lost = tracer.lost();
        seen.fail(read.err().map(|error| error.message));
    }
}

impl Beside for Contexts {
    fn patience(&self, _: &Probe) -> Option<Duration> {
        Some(READ)
    }

    fn look(&mut self, _: &SysRoot, probe: &Probe) {
        if self.seen.since.is_none() && probe.views().all(|view| view.started().is_some()) {
            self.seen.since = Some(Nanos(Clock::Monotonic.now()));
        }
        self.read();
    }

    fn stop(&mut self) {
        self.read();
    }

    /// Ends it, too: under some loads the kernel takes a second for that, in which the measurement should have ended.
    fn enter(&mut self, series: &mut [Series]) {
        let ended = self.tracer.take().map(ContextTracer::stop);
        self.seen.fail(ended.and_then(Result::err).map(|error| error.message));
        for series in series {
            let figures = self.seen.of(series.cpu);
            if let Some(timer) = series.timer_mut() {
                timer.contexts = Some(figures);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(cpu: u32, at: u64, in_interrupt: bool, latency: u64) -> ContextSample {
        ContextSample { cpu: CpuId(cpu), at: Nanos(at), in_interrupt, latency: Nanos(latency) }
    }

    #[test]
    fn samples_count_from_the_begin_on_each_for_its_cpu_and_context() {
        let mut seen = Seen::default();
        seen.take(sample(0, 50, true, 99));
        seen.since = Some(Nanos(100));
        for sample in [sample(0, 99, true, 98), sample(0, 100, true, 3), sample(0, 101, false, 7)] {
            seen.take(sample);
        }
        seen.take(sample(1, 200, true, 4));
        seen.take(sample(1, 201, false, 5));
        let most = |figures: &ContextFigures| {
            [&figures.interrupt, &figures.thread].map(|of| of.summary().maximum().map(|most| most.0))
        };
        assert_eq!(most(&seen.of(Some(CpuId(0)))), [Some(3), Some(7)]);
        assert_eq!(most(&seen.of(Some(CpuId(1)))), [Some(4), Some(5)]);
        assert_eq!(most(&seen.of(None)), [Some(4), Some(7)]);
        assert_eq!(seen.of(None).problem, None);
    }

    #[test]
    fn a_cpu_without_a_sample_and_what_was_lost_are_problems() {
        let mut seen = Seen { since: Some(Nanos(0)), ..Seen::default() };
        seen.take(sample(0, 1, true, 3));
        let problem = |seen: &Seen, cpu| seen.of(Some(CpuId(cpu))).problem;
        assert_eq!(problem(&seen, 1).as_deref(), Some("no sample came"));
        assert_eq!(problem(&seen, 0).as_deref(), Some("no sample came"), "of the thread");
        seen.take(sample(0, 2, false, 5));
        assert_eq!(problem(&seen, 0), None);
        seen.lost = Some("lost 3 events on CPU 0".into());
        assert_eq!(problem(&seen, 0), seen.lost);
        seen.fail(None);
        seen.fail(Some("read: refused".into()));
        seen.fail(Some("later".into()));
        assert_eq!(problem(&seen, 0).as_deref(), Some("read: refused"));
    }
}
