//! Takes figures from the probe's board into journal, samples file and record, while the probe runs.

use std::time::{Duration, Instant};

use histogram::Histogram;
use probe::board::View;
use probe::{Job, Probe};
use record::instrument::gpio::GpioSeries;
use record::instrument::response::ResponseSeries;
use record::instrument::timer::TimerSeries;
use record::journal::{ClockReading, Growth, Line, Overdue, SeriesGrowth, growth};
use record::{Block, Grid, Own, Sample, ScenarioHead, Series, Timeline};
use sys::schedule;
use units::Nanos;

use crate::noise::Counters;
use crate::observer::{Live, LiveThread};
use crate::session::Session;

/// How many seconds a live display can look back.
const RECENT: usize = 64;

/// The recorder of one scenario.
pub struct Recorder {
    threads: Vec<Thread>,
    began: Instant,
    last_growth: Instant,
    last_clock: Instant,
    /// Where activation 0 of each thread lies on the clock, as the journal has it.
    origins: Vec<u64>,
    /// Which scenario of the samples file this is.
    scenario: usize,
}

#[derive(Default)]
struct Thread {
    seconds_read: u64,
    seconds_lost: u64,
    timeline: Timeline,
    recent: Vec<Block>,
    new: Vec<(u64, Block)>,
    observed: Histogram,
    missed: Histogram,
    samples_lost: u64,
}

impl Recorder {
    /// For a probe of `threads` threads, in the scenario numbered `scenario` from 0.
    pub fn new(threads: usize, scenario: usize) -> Self {
        let now = Instant::now();
        let threads = (0..threads).map(|_| Thread::default()).collect();
        Self { threads, began: now, last_growth: now, last_clock: now, origins: vec![], scenario }
    }

    /// The warm-up is over.
    pub fn begin(&mut self, probe: &Probe, session: &mut Session) {
        self.began = Instant::now();
        self.last_growth = self.began;
        self.save_clock(probe, session);
    }

    /// Time since the warm-up's end.
    pub fn elapsed(&self) -> Nanos {
        self.began.elapsed().into()
    }

    /// Takes what is new.
    pub fn tick(&mut self, probe: &Probe, session: &mut Session) {
        let mut lines = Vec::new();
        for (index, (thread, view)) in self.threads.iter_mut().zip(probe.views()).enumerate() {
            let (read, blocks, lost) = view.seconds(thread.seconds_read);
            (thread.seconds_read, thread.seconds_lost) = (read, thread.seconds_lost + lost);
            for &(second, block) in &blocks {
                let Block { observed, missed } = block;
                lines.push([
                    index as u64,
                    second,
                    observed.count,
                    observed.sum,
                    observed.min,
                    observed.max,
                    missed,
                ]);
                thread.timeline.push(second, block);
                thread.recent.push(block);
            }
            let surplus = thread.recent.len().saturating_sub(RECENT);
            thread.recent.drain(..surplus);
            thread.new.extend(blocks);
        }
        self.save_samples(probe, session);
        if !lines.is_empty() {
            session.outputs.append(&Line::Seconds(lines));
        }
        if self.last_growth.elapsed() >= self.growth_interval() {
            self.save_growth(probe, session);
        }
        if self.last_clock.elapsed() >= Duration::from_secs(1) {
            self.save_clock(probe, session);
        }
    }

    /// Every second at first, ever less often as the scenario grows long, at least once in two minutes.
    fn growth_interval(&self) -> Duration {
        (self.began.elapsed() / 30).clamp(Duration::from_secs(1), Duration::from_secs(120))
    }

    /// What the clock reads, and which threads keep an activation waiting: what a run that is killed now leaves of them.
    fn save_clock(&mut self, probe: &Probe, session: &mut Session) {
        self.last_clock = Instant::now();
        let now = probe.now();
        let series = probe.views().enumerate();
        let overdue: Vec<Overdue> =
            series.filter_map(|(index, view)| overdue(probe, index, &view, now)).collect();
        if !overdue.is_empty() {
            // Their last second is not written yet.
            self.save_growth(probe, session);
        }
        let mut origins: Vec<u64> = probe.views().map(|view| view.origin().unwrap_or_default()).collect();
        if origins == self.origins {
            origins.clear();
        } else {
            self.origins.clone_from(&origins);
        }
        session.outputs.append(&Line::Clock(ClockReading { now, origins, overdue }));
    }

    /// Takes every sample that is new. Called before the journal gets figures: a sample that the journal counts is in
    /// the samples file, wherever the run is killed.
    fn save_samples(&mut self, probe: &Probe, session: &mut Session) {
        if !probe.plan().every_sample {
            return;
        }
        for (index, (thread, view)) in self.threads.iter_mut().zip(probe.views()).enumerate() {
            session.outputs.save_samples(self.scenario, index, &view.take_samples());
            let lost = view.samples_lost();
            if std::mem::replace(&mut thread.samples_lost, lost) != lost {
                session.outputs.save_lost_samples(self.scenario, index, lost);
            }
        }
    }

    fn save_growth(&mut self, probe: &Probe, session: &mut Session) {
        self.last_growth = Instant::now();
        let series = self.threads.iter_mut().zip(probe.views()).enumerate().map(|(index, (thread, view))| {
            let (observed, missed) = (view.observed(), view.missed());
            let grown = SeriesGrowth {
                observed: growth(&thread.observed, &observed),
                observed_summary: *observed.summary(),
                missed: growth(&thread.missed, &missed),
                missed_summary: *missed.summary(),
                late: view.late(),
                worst: probe.grid(index).map(|grid| view.worst(&grid)).unwrap_or_default(),
                own: own_so_far(probe, index, &view),
            };
            (thread.observed, thread.missed) = (observed, missed);
            grown
        });
        let series = series.collect();
        self.save_samples(probe, session);
        session.outputs.append(&Line::Growth(Growth { series }));
    }

    /// A look for a display; what is new is shown once.
    pub fn live<'a>(&'a self, probe: &'a Probe, head: &'a ScenarioHead) -> Live<'a> {
        let threads = self.threads.iter().zip(probe.views()).enumerate().map(|(index, (thread, view))| {
            let tid = probe.tids().get(index).copied();
            LiveThread {
                cpu: head.cpus.get(index).copied().flatten(),
                tid: tid.unwrap_or_default(),
                priority: tid
                    .and_then(|tid| schedule::of_thread(tid).ok())
                    .map_or(0, |(_, priority)| priority),
                now: view.last(),
                summary: view.summary(),
                missed: (!matches!(probe.plan().job, Job::Noise(_))).then(|| view.missed_summary().count),
                recent: &thread.recent,
                new: &thread.new,
            }
        });
        Live { head, probe, elapsed: self.elapsed(), threads: threads.collect() }
    }

    /// Whether seconds have ended that no display has seen.
    pub fn has_news(&self) -> bool {
        self.threads.iter().any(|thread| !thread.new.is_empty())
    }

    /// The latest wake-up of the seconds that no display has seen.
    pub fn worst_since_shown(&self) -> Nanos {
        let new = self.threads.iter().flat_map(|thread| &thread.new);
        new.filter_map(|(_, block)| block.observed.maximum()).max().unwrap_or_default()
    }

    /// The display has seen what is new.
    pub fn seen(&mut self) {
        self.threads.iter_mut().for_each(|thread| thread.new.clear());
    }

    /// What the threads measured, their last second included. To be asked once they have ended or were given up. A
    /// thread of a living probe (`alive`) that still has not come back is entered as late as it is by now; what a probe
    /// that died kept waiting nobody knows.
    pub fn series(
        &self,
        probe: &Probe,
        head: &ScenarioHead,
        alive: bool,
        counters: &Counters,
    ) -> Vec<Series> {
        let now = probe.now();
        let threads = self.threads.iter().zip(probe.views()).zip(&head.cpus).enumerate();
        let of = |(index, ((thread, view), &cpu)): (usize, ((&Thread, View<'_>), _))| {
            let grid = probe.grid(index);
            let worst = grid.map(|grid| view.worst(&grid)).unwrap_or_default();
            let mut series = Series {
                cpu,
                observed: view.observed(),
                own: own(probe, index, &view, counters, &worst),
                worst,
                timeline: thread.timeline.clone(),
                maxima: view.maxima(),
                ..Series::default()
            };
            let pending = pending(&series, &view, grid.as_ref());
            let is_gone = view.finished().is_none() && alive;
            if let Some((grid, pending)) = grid.zip(pending).filter(|_| is_gone) {
                series.censor(&grid, pending, now);
            }
            series
        };
        threads.map(of).collect()
    }

    /// Per-second figures that were overwritten before they were read, of all threads.
    pub fn seconds_lost(&self) -> u64 {
        self.threads.iter().map(|thread| thread.seconds_lost).sum()
    }
}

/// What the instrument has added so far, where that is more than a journal's lines have.
fn own_so_far(probe: &Probe, index: usize, view: &View<'_>) -> Option<Own> {
    match &probe.plan().job {
        Job::Timer(_) => None,
        Job::Noise(_) => Some(Own::Noise(view.noise())),
        Job::Response(_) => response(probe, index, view, &[]).map(Own::Response),
        Job::Gpio(_) => gpio(probe, index, view).map(Own::Gpio),
    }
}

/// What the response probe adds to a series; its accounts of cycles are for the journal's reader, or for [`own`].
fn response(probe: &Probe, index: usize, view: &View<'_>, worst: &[Sample]) -> Option<ResponseSeries> {
    let series = probe.response(index, worst)?;
    Some(ResponseSeries {
        first_due: Nanos(view.started().unwrap_or_default()),
        warm_up: view.warm_up(),
        ..series
    })
}

/// What the responder on GPIO lines adds to a series.
fn gpio(probe: &Probe, index: usize, view: &View<'_>) -> Option<GpioSeries> {
    Some(GpioSeries {
        began: Nanos(view.started().unwrap_or_default()),
        missed: view.missed(),
        warm_up: view.warm_up(),
        ..probe.gpio(index)?
    })
}

/// What the instrument adds to the series of thread `index`.
fn own(probe: &Probe, index: usize, view: &View<'_>, counters: &Counters, worst: &[Sample]) -> Own {
    match &probe.plan().job {
        Job::Timer(_) => Own::Timer(TimerSeries {
            first_due: Nanos(view.started().unwrap_or_default()),
            expected: expected(probe, index, view),
            late: view.late(),
            missed: view.missed(),
            warm_up: view.warm_up(),
            ..TimerSeries::default()
        }),
        Job::Noise(_) => {
            let mut noise = view.noise();
            counters.enter(index, &mut noise, worst);
            Own::Noise(noise)
        }
        Job::Gpio(_) => Own::Gpio(gpio(probe, index, view).unwrap_or_default()),
        Job::Response(_) => Own::Response(ResponseSeries {
            expected: expected(probe, index, view),
            missed: view.missed(),
            ..response(probe, index, view, worst).unwrap_or_default()
        }),
    }
}

/// The number of the value that a thread which has not come back would have delivered next; none where it owes nothing.
fn pending(series: &Series, view: &View<'_>, grid: Option<&Grid>) -> Option<u64> {
    match &series.own {
        Own::Timer(_) | Own::Response(_) => {
            Some(series.accounted()).filter(|&accounted| accounted < series.expected())
        }
        // Who waits for an edge owes nothing.
        Own::Gpio(_) => None,
        Own::Noise(_) => view.read_at()?.checked_sub(grid?.origin),
    }
}

/// Activations of thread `index` that were due: as planned, or until the run was stopped; longer, where the thread itself
/// went on for a moment before it saw that.
fn expected(probe: &Probe, index: usize, view: &View<'_>) -> u64 {
    let planned = probe.plan().numbers().unwrap_or(u64::MAX);
    let Some(grid) = probe.grid(index) else { return 0 };
    probe.stopped_at().map_or(planned, |stop| {
        let until = view.finished().map_or(stop, |running| running.max(stop));
        grid.due_by(until).min(planned)
    })
}

/// The activation that thread `index` keeps waiting, or the gap that it is in, where that is so long that it shows in a
/// journal of seconds.
fn overdue(probe: &Probe, index: usize, view: &View<'_>, now: u64) -> Option<Overdue> {
    const LONG: u64 = 100_000_000;
    let grid = probe.grid(index).filter(|_| view.finished().is_none())?;
    let (activation, pause) = match &probe.plan().job {
        Job::Timer(_) | Job::Response(_) => (view.accounted(), grid.interval),
        Job::Gpio(_) => return None,
        Job::Noise(noise) => (view.read_at()?.checked_sub(grid.origin)?, 2 * noise.setup.window.0),
    };
    let late = now.checked_sub(grid.due(activation))?;
    (late >= LONG.max(pause)).then_some(Overdue { series: index as u64, activation })
}
