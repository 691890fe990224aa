//! What threads of the timer are to do.

use failure::Error;
use record::instrument::OwnSetup;
use record::instrument::timer::{TimerPlan, TimerSeries, TimerSetup};
use record::{ClockName, Grid, Header, Own, Phase, Series, Wake};
use serde::{Deserialize, Serialize};
use sys::schedule::Scheduling;
use units::Nanos;

use super::engine::Task;
#[cfg(target_arch = "x86_64")]
use super::guest;
use super::{Thread, source};
use crate::job::{OwnJob, Place, Ready, Seen};
use crate::limits;

/// How late threads wake up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimerJob {
    /// Period and phases.
    pub setup: TimerSetup,
    /// What wakes the threads.
    pub wake: Wake,
    /// Run time per period, with [`Wake::Deadline`].
    pub runtime: Nanos,
    /// On which clock activations are due.
    pub clock: ClockName,
    /// By how much EVL wakes threads before their time, with [`Wake::Evl`]; none where it is not known.
    pub gravity: Option<Nanos>,
    /// The threads start together when the clock reads a multiple of this, so that phases that are drawn from a seed lie
    /// against the kernel's tick where that seed puts them; none: at once.
    pub start_at_multiple_of: Option<Nanos>,
    /// Activations of the warm-up, before those that are measured.
    pub warm_up: u64,
    /// Activations that every thread delivers; none: until it is stopped.
    pub activations: Option<u64>,
}

impl TimerJob {
    /// In a run that begins with `header`.
    pub fn new(setup: &TimerSetup, header: &Header) -> Self {
        let plan = &header.plan;
        let timer = plan.timer().cloned().unwrap_or_default();
        Self {
            setup: setup.clone(),
            wake: timer.wake,
            runtime: timer.runtime.unwrap_or(Nanos(setup.interval.0 / 5)),
            clock: timer.clock,
            gravity: header.machine.timers.evl_gravity.value().copied(),
            start_at_multiple_of: start_at_multiple_of(header, &timer),
            warm_up: plan.warm_up.0.div_ceil(setup.interval.0.max(1)),
            activations: plan.activations(setup.interval),
        }
    }

    /// The warm-up of thread `thread` where all begin at `start` on the clock.
    pub(super) fn warm_up(&self, thread: usize, start: u64, stop_at: u64) -> Task {
        let phase = self.setup.phases.get(thread).copied().unwrap_or_default();
        let first = start + phase.0 + self.setup.interval.0;
        Task { grid: Grid::fixed(first, self.setup.interval.0), activations: self.warm_up, stop_at }
    }

    /// What thread `thread` measures if its first activation is due at `origin` on the clock.
    pub(super) fn task(&self, thread: usize, origin: u64, stop_at: u64) -> Task {
        let activations = self.activations.unwrap_or(u64::MAX);
        Task { grid: self.setup.grid(thread, origin), activations, stop_at }
    }
}

/// The tick's period, where phases are drawn from the seed: so the same seed means the same phases of the tick under each
/// load, and in each run. The tick is one of `CLOCK_MONOTONIC`.
fn start_at_multiple_of(header: &Header, timer: &TimerPlan) -> Option<Nanos> {
    let drawn = matches!(timer.phase, Phase::Random | Phase::Sweep) && !timer.is_reservation();
    let tick = header.machine.timers.tick.value().copied();
    tick.filter(|_| drawn && timer.clock == ClockName::Monotonic)
}

impl OwnJob for TimerJob {
    fn setup(&self) -> &dyn OwnSetup {
        &self.setup
    }

    fn clock(&self) -> ClockName {
        self.clock
    }

    fn numbers(&self) -> Option<u64> {
        self.activations
    }

    fn words(&self) -> usize {
        match self.wake {
            Wake::Evl => source::SWITCHES,
            #[cfg(target_arch = "x86_64")]
            Wake::Kvm => guest::WORDS,
            _ => 0,
        }
    }

    fn length(&self) -> Option<Nanos> {
        let count = self.activations?.saturating_add(self.warm_up).saturating_add(2);
        Some(self.setup.interval.saturating_mul(count))
    }

    fn start_at_multiple_of(&self) -> Option<Nanos> {
        self.start_at_multiple_of
    }

    fn reservation(&self) -> Option<Scheduling> {
        let (runtime, period) = (self.runtime, self.setup.interval);
        (self.wake == Wake::Deadline).then_some(Scheduling::Deadline { runtime, period })
    }

    fn sleeping_call(&self) -> &'static str {
        match self.wake {
            Wake::Nanosleep => "clock_nanosleep",
            Wake::Timerfd => "timerfd",
            Wake::PosixTimer => "sigwaitinfo",
            Wake::Deadline => "sched_yield",
            Wake::Evl => "the sleep of EVL's clock",
            Wake::RuntimeSpin | Wake::RuntimePause => "a core of the runtime, which keeps its CPU",
            Wake::RuntimeBlock => "futex",
            Wake::Kvm => "clock_nanosleep or KVM_RUN",
        }
    }

    fn check(&self, _: usize, for_all: bool) -> Result<(), Error> {
        if self.wake.keeps_the_cpu() {
            limits::spin(self.setup.interval, self.setup.interval, for_all)?;
        }
        limits::interval("measure", self.setup.interval, for_all)
    }

    fn prepare(&self, place: Place) -> Result<Box<dyn Ready + '_>, Error> {
        Ok(Box::new(Thread::prepare(self, place)?))
    }

    fn so_far(&self, _: &Seen<'_>) -> Option<Own> {
        None
    }

    fn series(&self, seen: &Seen<'_>) -> Own {
        Own::Timer(TimerSeries {
            first_due: seen.began(),
            expected: seen.expected,
            late: seen.view.late(),
            missed: seen.view.missed(),
            warm_up: seen.view.warm_up(),
            in_band_switches: (self.wake == Wake::Evl)
                .then(|| source::in_band_switches(seen.words))
                .flatten(),
            #[cfg(target_arch = "x86_64")]
            guest: (self.wake == Wake::Kvm)
                .then(|| guest::figures(seen.words, seen.began().0, seen.worst))
                .flatten(),
            ..TimerSeries::default()
        })
    }

    fn pending(&self, seen: &Seen<'_>, series: &Series) -> Option<u64> {
        seen.next(series)
    }

    fn awaited(&self, seen: &Seen<'_>) -> Option<(u64, u64)> {
        Some((seen.view.accounted(), self.setup.interval.0))
    }
}
