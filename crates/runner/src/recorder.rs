//! Takes figures from the probe's board into journal, samples file and record, while the probe runs.

use std::time::{Duration, Instant};

use histogram::Histogram;
use probe::Probe;
use probe::board::View;
use record::journal::{ClockReading, Growth, Line, Overdue, SeriesGrowth, growth};
use record::{Block, ScenarioHead, Series, Timeline, Words};
use sys::schedule;
use units::Nanos;

use crate::observer::{Live, LiveThread};
use crate::session::Session;

/// How many seconds a live display can look back.
const RECENT: usize = 64;

/// The real-time priority of a thread, or what was read `before`: one that has measured its last second is gone.
fn priority(tid: i32, before: u32) -> u32 {
    schedule::of_thread(tid).map_or(before, |(_, priority)| priority)
}

/// The recorder of one scenario.
pub struct Recorder {
    /// What the values are called.
    words: &'static Words,
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
    /// Its real-time priority, as it was read when the warm-up was over.
    priority: u32,
}

impl Recorder {
    /// For a probe of `threads` threads, in the scenario numbered `scenario` from 0.
    pub fn new(threads: usize, scenario: usize, words: &'static Words) -> Self {
        let now = Instant::now();
        let threads = (0..threads).map(|_| Thread::default()).collect();
        Self { words, threads, began: now, last_growth: now, last_clock: now, origins: vec![], scenario }
    }

    /// The warm-up is over.
    pub fn begin(&mut self, probe: &Probe, session: &mut Session) {
        self.began = Instant::now();
        self.last_growth = self.began;
        for (thread, &tid) in self.threads.iter_mut().zip(probe.tids()) {
            thread.priority = priority(tid, 0);
        }
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
        let threads = 0..self.threads.len();
        let overdue: Vec<Overdue> = threads.filter_map(|index| overdue(probe, index, now)).collect();
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
                own: probe.own_so_far(index),
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
                priority: tid.map_or(0, |tid| priority(tid, thread.priority)),
                now: view.last(),
                summary: view.summary(),
                missed: probe.plan().has_missed().then(|| view.missed_summary().count),
                recent: &thread.recent,
                new: &thread.new,
            }
        });
        Live { head, probe, words: self.words, elapsed: self.elapsed(), threads: threads.collect() }
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
    pub fn series(&self, probe: &Probe, head: &ScenarioHead, alive: bool) -> Vec<Series> {
        let now = probe.now();
        let threads = self.threads.iter().zip(probe.views()).zip(&head.cpus).enumerate();
        let of = |(index, ((thread, view), &cpu)): (usize, ((&Thread, View<'_>), _))| {
            let grid = probe.grid(index);
            let worst = grid.map(|grid| view.worst(&grid)).unwrap_or_default();
            let mut series = Series {
                cpu,
                observed: view.observed(),
                own: probe.own(index, &worst),
                worst,
                timeline: thread.timeline.clone(),
                maxima: view.maxima(),
                ..Series::default()
            };
            let pending = probe.pending(index, &series).filter(|_| alive);
            if let Some((grid, pending)) = grid.zip(pending) {
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

/// The activation that thread `index` keeps waiting, or the gap that it is in, where that is so long that it shows in a
/// journal of seconds.
fn overdue(probe: &Probe, index: usize, now: u64) -> Option<Overdue> {
    const LONG: Nanos = Nanos::from_millis(100);
    let (activation, late) = probe.overdue(index, now)?;
    (late >= LONG).then_some(Overdue { series: index as u64, activation })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_has_ended_keeps_the_priority_that_was_read() {
        let ended = std::thread::spawn(schedule::thread_id).join().unwrap();
        assert_eq!(priority(ended, 98), 98);
        assert_eq!(priority(schedule::thread_id(), 98), 0, "an ordinary thread has none");
    }
}
