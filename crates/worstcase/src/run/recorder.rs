//! Takes figures from the probe's board into journal, samples file and record, while the probe runs.

use std::time::{Duration, Instant};

use histogram::Histogram;
use probe::Probe;
use record::journal::{Growth, Line, SeriesGrowth, growth};
use record::{Block, ScenarioHead, Series, Timeline};
use units::Nanos;

use super::display::{Live, LiveThread};
use super::session::Session;

/// How many seconds a live display can look back.
const RECENT: usize = 64;

/// The recorder of one scenario.
pub struct Recorder {
    threads: Vec<Thread>,
    began: Instant,
    last_growth: Instant,
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
}

impl Recorder {
    /// For a probe of `threads` threads, in the scenario numbered `scenario` from 0.
    pub fn new(threads: usize, scenario: usize) -> Self {
        let now = Instant::now();
        let threads = (0..threads).map(|_| Thread::default()).collect();
        Self { threads, began: now, last_growth: now, scenario }
    }

    /// The warm-up is over.
    pub fn begin(&mut self) {
        self.began = Instant::now();
        self.last_growth = self.began;
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
            if probe.plan().every_sample {
                let samples = view.take_samples();
                session.outputs.save_samples(self.scenario, index, &samples);
            }
        }
        if !lines.is_empty() {
            session.outputs.append(&Line::Seconds(lines));
        }
        if self.last_growth.elapsed() >= self.growth_interval() {
            self.save_growth(probe, session);
        }
    }

    /// Every second at first, ever less often as the scenario grows long, at least once a minute.
    fn growth_interval(&self) -> Duration {
        (self.began.elapsed() / 30).clamp(Duration::from_secs(1), Duration::from_secs(60))
    }

    fn save_growth(&mut self, probe: &Probe, session: &mut Session) {
        self.last_growth = Instant::now();
        let interval = probe.plan().interval;
        let series = self.threads.iter_mut().zip(probe.views()).map(|(thread, view)| {
            let (observed, missed) = (view.observed(), view.missed());
            let grown = SeriesGrowth {
                observed: growth(&thread.observed, &observed),
                missed: growth(&thread.missed, &missed),
                missed_summary: *missed.summary(),
                late: view.late(),
                worst: view.worst(interval),
            };
            (thread.observed, thread.missed) = (observed, missed);
            grown
        });
        session.outputs.append(&Line::Growth(Growth { series: series.collect() }));
    }

    /// A look for a display; what is new is shown once.
    pub fn live<'a>(&'a self, probe: &'a Probe, head: &'a ScenarioHead) -> Live<'a> {
        let threads =
            self.threads.iter().zip(probe.views()).enumerate().map(|(index, (thread, view))| LiveThread {
                cpu: head.cpus.get(index).copied().flatten(),
                tid: probe.tids().get(index).copied().unwrap_or_default(),
                now: view.last(),
                summary: view.summary(),
                missed: view.missed_summary().count,
                recent: &thread.recent,
                new: &thread.new,
            });
        Live { head, probe, elapsed: self.elapsed(), threads: threads.collect() }
    }

    /// Whether seconds have ended that no display has seen.
    pub fn has_news(&self) -> bool {
        self.threads.iter().any(|thread| !thread.new.is_empty())
    }

    /// The display has seen what is new.
    pub fn seen(&mut self) {
        self.threads.iter_mut().for_each(|thread| thread.new.clear());
    }

    /// What the threads measured, their last second included. To be asked once they have ended.
    pub fn series(&self, probe: &Probe, head: &ScenarioHead) -> Vec<Series> {
        let interval = probe.plan().interval;
        self.threads
            .iter()
            .zip(probe.views())
            .zip(&head.cpus)
            .map(|((thread, view), &cpu)| {
                let (observed, missed) = (view.observed(), view.missed());
                Series {
                    cpu,
                    first_due: Nanos(view.started().unwrap_or_default()),
                    expected: observed.summary().count + missed.summary().count,
                    late: view.late(),
                    observed,
                    missed,
                    warm_up: view.warm_up(),
                    worst: view.worst(interval),
                    timeline: thread.timeline.clone(),
                }
            })
            .collect()
    }

    /// Per-second figures that were overwritten before they were read, of all threads.
    pub fn seconds_lost(&self) -> u64 {
        self.threads.iter().map(|thread| thread.seconds_lost).sum()
    }
}
