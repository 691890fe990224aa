//! For how much of its time a load ran.
//!
//! The parent looks at the workers' counters about ten times a second, the supervisor at their CPU time and at whether
//! they are ready or stopped. Neither comes on time where real-time threads keep it from the CPU, so every reading carries
//! its time, and what is between two readings is spread over the time that really passed. Behind both, seconds are judged
//! as soon as everything is known of them, and their slots of 100 ms with them.
//!
//! A slot counts as loaded if its worker did a fair part of what it usually does ([`slots`]), or did less and was ready all
//! the same: waiting for a CPU, or for a device where that is its work. In either case the stressor must have had a fair
//! share of the CPU time that it could have had in that second. A busy machine makes a load slower and does not stop it;
//! a quota that is smaller than what other programs leave cannot be distinguished from them here, and stands in the evidence of the
//! run.

mod slots;
mod track;

use record::{Exposure, LoadBlock, LoadProof};
use units::Nanos;

use slots::{Slot, Slots};
use track::Track;

const SLOT: Nanos = Nanos::from_millis(100);
const SECOND: Nanos = Nanos::from_secs(1);
/// In ns.
const MICROSECOND: u64 = 1000;
/// A shorter rest of a second is too short for clock ticks (10 ms) to say who had the CPUs.
const SHORTEST_SHARE: Nanos = Nanos::from_millis(500);
/// Where other programs leave nothing idle, a load may have this part of the floor of a fair share: what a fair share is,
/// groups and priorities change, and who is runnable is only known once a second.
const PART_OF_FAIR: u128 = 2;
/// The longest tick, of HZ=100: for so long a thread keeps the CPU that it has. Among hundreds of runnable threads a fair share
/// of a second is less, and a turn may take longer than a second to come.
const TURN: u128 = 10_000_000;
/// Readings that have not come by then do not come: a supervisor that is frozen or gone. What they would have said is not
/// known, and counts as nothing done.
const PATIENCE: Nanos = Nanos::from_secs(30);

/// How one stressor is judged.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    /// By what.
    pub proof: LoadProof,
    /// How many workers are judged, each by itself.
    pub channels: usize,
    /// The least share of the CPU time that it could have had, in per mille.
    pub floor_permille: u32,
    /// How many CPUs it can keep busy.
    pub cpus: usize,
    /// How many of them it keeps busy whatever else runs: one for each worker.
    pub workers: usize,
    /// Whether waiting for a device is its work.
    pub waits: bool,
    /// Whether it may use the measured CPUs too.
    pub everywhere: bool,
}

/// One stressor's meter.
#[derive(Debug)]
struct Stressor {
    rule: Rule,
    /// What is judged, one a worker.
    done: Vec<Track>,
    ready: Vec<Track>,
    slots: Vec<Slots>,
    cpu_time: Track,
    /// Work in the stressor's unit, for the timeline.
    work: Track,
}

/// The meter of a load.
#[derive(Debug)]
pub(crate) struct Meter {
    begin: Nanos,
    /// How much is judged.
    judged: Nanos,
    stressors: Vec<Stressor>,
    /// Idle time of the load's CPUs, and of those and the measured ones.
    idle: [Track; 2],
    /// Time not idle of the load's CPUs.
    busy: Track,
    /// Runnable threads for each CPU of the machine, in thousandths, times the microseconds that they were.
    runnable: Track,
    cpus: usize,
    last_look: Nanos,
    coarsest: Nanos,
}

/// What the parent read of one stressor.
#[derive(Clone, Debug, Default)]
pub(crate) struct Done {
    /// Work so far, in its unit, where its workers count it.
    pub work: Option<u64>,
    /// What it is judged by, one a worker, where that is its work.
    pub channels: Vec<u64>,
}

/// What the supervisor read of one stressor.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watched {
    pub cpu_time: Nanos,
    /// What it is judged by, where the supervisor counts that.
    pub channels: Option<Vec<u64>>,
    /// Time in which it was seen ready, one a worker.
    pub ready: Vec<Nanos>,
    /// Work in its unit, where the supervisor counts that.
    pub work: Option<u64>,
}

impl Meter {
    /// For a load on `cpus` CPUs, from `begin` on.
    pub fn new(rules: impl Iterator<Item = Rule>, cpus: usize, begin: Nanos) -> Self {
        let tracks = |count: usize| (0..count).map(|_| Track::default()).collect::<Vec<_>>();
        let stressors = rules.map(|rule| Stressor {
            done: tracks(rule.channels),
            ready: tracks(rule.channels),
            slots: (0..rule.channels).map(|_| Slots::default()).collect(),
            cpu_time: Track::default(),
            work: Track::default(),
            rule,
        });
        Self {
            begin,
            judged: Nanos::ZERO,
            stressors: stressors.collect(),
            idle: [Track::default(), Track::default()],
            busy: Track::default(),
            runnable: Track::default(),
            cpus,
            last_look: begin,
            coarsest: Nanos::ZERO,
        }
    }

    /// Takes in the workers' own counters.
    pub fn done(&mut self, at: Nanos, done: &[Done]) {
        self.coarsest = self.coarsest.max(at.saturating_sub(self.last_look));
        self.last_look = at;
        for (stressor, done) in self.stressors.iter_mut().zip(done) {
            stressor.done.iter_mut().zip(&done.channels).for_each(|(track, &value)| track.push(at, value));
            done.work.iter().for_each(|&work| stressor.work.push(at, work));
        }
    }

    /// Takes in what the supervisor saw.
    pub fn watched(&mut self, at: Nanos, watched: &[Watched]) {
        for (stressor, watched) in self.stressors.iter_mut().zip(watched) {
            stressor.cpu_time.push(at, watched.cpu_time.0);
            stressor.ready.iter_mut().zip(&watched.ready).for_each(|(track, &time)| track.push(at, time.0));
            let channels = watched.channels.iter().flatten();
            stressor.done.iter_mut().zip(channels).for_each(|(track, &value)| track.push(at, value));
            watched.work.iter().for_each(|&work| stressor.work.push(at, work));
        }
    }

    /// Takes in how long the load's CPUs were busy, how long they and the measured ones were idle, and how many threads
    /// are runnable now for each CPU of the machine, in thousandths.
    pub fn machine(&mut self, at: Nanos, busy: Nanos, idle: [Nanos; 2], runnable_permille: Option<u64>) {
        let since = at.saturating_sub(self.busy.latest().unwrap_or(at)).0 / MICROSECOND;
        let sum =
            self.runnable.value().saturating_add(since.saturating_mul(runnable_permille.unwrap_or_default()));
        self.runnable.push(at, sum);
        self.busy.push(at, busy.0);
        self.idle.iter_mut().zip(idle).for_each(|(track, time)| track.push(at, time.0));
    }

    /// When the machine was last read.
    pub fn machine_read(&self) -> Option<Nanos> {
        self.busy.latest()
    }

    /// Judges the seconds of which everything is known at `now`, and returns what was done in each.
    pub fn judge(&mut self, now: Nanos) -> Vec<(u64, LoadBlock)> {
        let tracks = self.stressors.iter().flat_map(Stressor::tracks).chain([&self.busy]);
        let known = tracks.map(|track| track.latest().unwrap_or(self.begin)).min().unwrap_or(now);
        let known = known.max(now.saturating_sub(PATIENCE)).min(now);
        let mut seconds = Vec::new();
        while self.begin + self.judged + SECOND <= known {
            seconds.push(self.judge_window(SECOND));
        }
        seconds
    }

    /// Judges what is left until `end`.
    pub fn finish(&mut self, end: Nanos) -> Vec<(u64, LoadBlock)> {
        let mut seconds = Vec::new();
        while self.begin + self.judged < end {
            let left = end - (self.begin + self.judged);
            seconds.push(self.judge_window(left.min(SECOND)));
        }
        seconds
    }

    /// Judges the next window, a second or the rest of one.
    fn judge_window(&mut self, length: Nanos) -> (u64, LoadBlock) {
        let from = self.begin + self.judged;
        let to = from + length;
        let is_first = self.judged == Nanos::ZERO;
        let idle = [0, 1].map(|cpus| self.idle[cpus].growth(from, to));
        // Threads that ran or waited for each CPU, on average: with less than one, each could have had one for itself.
        let runnable = (self.runnable.growth(from, to) / (length.0 / MICROSECOND).max(1)).max(1000);
        let fair_permille = 1_000_000 / runnable;
        for stressor in &mut self.stressors {
            let idle = idle[usize::from(stressor.rule.everywhere)];
            let judgeable = is_first || length >= SHORTEST_SHARE;
            let fair = u128::from(length.0) * u128::from(fair_permille) / 1000;
            let fair = Some(fair).filter(|fair| *fair >= TURN);
            let held_back = judgeable && stressor.is_held_back((from, to), idle, fair);
            stressor.judge(from, to, held_back, fair.is_some(), is_first);
        }
        let span = u128::from(length.0) * self.cpus.max(1) as u128;
        let busy = u128::from(self.busy.growth(from, to)) * 1000 / span.max(1);
        let block = LoadBlock {
            seconds: 1,
            busy_permille: u64::try_from(busy).unwrap_or(u64::MAX).min(1000),
            work: self.stressors.iter().map(|stressor| stressor.work.growth(from, to)).collect(),
        };
        let second = self.judged.0 / SECOND.0;
        self.judged += length;
        let tracks = self.stressors.iter_mut().flat_map(Stressor::tracks_mut);
        tracks
            .chain(&mut self.idle)
            .chain([&mut self.busy, &mut self.runnable])
            .for_each(|track| track.forget(to));
        (second, block)
    }

    /// For how much of its time each stressor ran.
    pub fn exposures(&self) -> Vec<Exposure> {
        self.stressors.iter().map(|stressor| stressor.exposure(self.judged, self.coarsest)).collect()
    }
}

impl Stressor {
    fn tracks(&self) -> impl Iterator<Item = &Track> {
        self.done.iter().chain(&self.ready).chain([&self.cpu_time, &self.work])
    }

    fn tracks_mut(&mut self) -> impl Iterator<Item = &mut Track> {
        self.done.iter_mut().chain(&mut self.ready).chain([&mut self.cpu_time, &mut self.work])
    }

    /// Whether it had less of the CPUs than its floor: of the time that it could have had, its own and what was left idle
    /// on CPUs that it could have kept busy; and, where nothing was left idle, of each worker's fair share, unless that is less
    /// than a turn. Readiness counts like computing where waiting for a device is its work.
    fn is_held_back(&self, (from, to): (Nanos, Nanos), idle: u64, fair: Option<u128>) -> bool {
        let ready: u64 = match self.rule.waits {
            true => self.ready.iter().map(|track| track.growth(from, to)).sum(),
            false => 0,
        };
        let active = u128::from(self.cpu_time.growth(from, to).max(ready));
        let most = u128::from((to - from).saturating_mul(self.rule.cpus as u64).0);
        let unused = u128::from(idle).min(most.saturating_sub(active));
        let floor = u128::from(self.rule.floor_permille);
        let fair = fair.unwrap_or_default() * self.rule.workers as u128;
        active * 1000 < (active + unused) * floor || active * 1000 * PART_OF_FAIR < fair * floor
    }

    /// Judges the slots of a window. What is left of one at the end counts as a slot if it is half of one, or all there is.
    fn judge(&mut self, from: Nanos, to: Nanos, held_back: bool, turn_is_due: bool, is_first: bool) {
        // Who is ready for a whole second and never has its turn loads nothing; a wait for a device may take longer.
        let needs_turn = turn_is_due && !self.rule.waits && self.rule.proof != LoadProof::Alive;
        let has_turn: Vec<bool> =
            self.done.iter().map(|done| !needs_turn || done.growth(from, to) > 0).collect();
        let mut start = from;
        while start < to {
            let end = to.min(start + SLOT);
            let length = end - start;
            let only = is_first && start == from;
            if length.0 * 2 >= SLOT.0 || only {
                self.judge_slot((start, end), held_back, &has_turn);
            }
            start = end;
        }
    }

    fn judge_slot(&mut self, (start, end): (Nanos, Nanos), held_back: bool, has_turn: &[bool]) {
        let length = (end - start).0;
        let channels = self.done.iter().zip(&self.ready).zip(has_turn);
        for (((done, ready), has_turn), slots) in channels.zip(&mut self.slots) {
            let work = u128::from(done.growth(start, end)) * u128::from(SLOT.0) / u128::from(length.max(1));
            let is_ready = *has_turn && ready.growth(start, end).saturating_mul(2) >= length;
            let slot = match (held_back, is_ready) {
                (true, _) => Slot::HeldBack,
                (false, true) => Slot::Ready,
                (false, false) => Slot::Open,
            };
            slots.push(u64::try_from(work).unwrap_or(u64::MAX), slot);
        }
    }

    fn exposure(&self, planned: Nanos, coarsest: Nanos) -> Exposure {
        let all: u64 = self.slots.iter().map(|slots| slots.count).sum();
        let part = |count: fn(&Slots) -> u64| {
            let count: u64 = self.slots.iter().map(count).sum();
            let part = u128::from(planned.0) * u128::from(count) / u128::from(all.max(1));
            Nanos(u64::try_from(part).unwrap_or(u64::MAX))
        };
        Exposure {
            proof: self.rule.proof,
            planned,
            loaded: part(Slots::loaded),
            held_back: part(|slots| slots.held_back),
            ready: part(|slots| slots.ready),
            usual: self.slots.iter().map(Slots::usual).max().unwrap_or_default(),
            coarsest,
        }
    }
}

#[cfg(test)]
mod tests;
