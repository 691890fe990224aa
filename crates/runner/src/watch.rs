//! Watches the measuring threads while they measure: policy, priority, affinity and memory lock, four times a second,
//! and who holds them up, after each late wake-up.
//!
//! What lasts shorter than the gap between two readings can hide, but for a visit to another CPU, which the threads see
//! themselves at each wake-up.

use std::time::Instant;

use machine::RealTime;
use probe::Probe;
use record::{Attribute, Fact, NeverAsleep, SetUpChange, TaskEvidence};
use sys::schedule;
use sysroot::SysRoot;
use units::{CpuList, Nanos, Policy};

/// A wake-up later than this makes the watch look for whoever held it up.
const LATE: u64 = 1_000_000;
/// Changes and reasons kept; more are counted.
const MOST: usize = 100;

/// What is watched of a thread, or of the probe as a whole.
type Subject = (Option<u32>, Attribute);

/// The watch over one scenario.
pub struct Watch {
    root: SysRoot,
    measured: CpuList,
    process: i32,
    tids: Vec<i32>,
    policy: Policy,
    priority: u32,
    tracker: Tracker,
    /// A reading that failed: only a thread that ended with all others may.
    pending: Option<String>,
    latency_request_us: Fact<i64>,
    crowd: Option<(Instant, RealTime)>,
    never_asleep: Vec<NeverAsleep>,
    rivals: Vec<TaskEvidence>,
    held_back: Fact<CpuList>,
    throttling: Option<record::Throttling>,
    locked_memory: Fact<u64>,
}

impl Watch {
    /// Reads what every thread of `probe` is like before it begins.
    pub fn begin(root: &SysRoot, measured: &CpuList, probe: &Probe) -> Self {
        let mut watch = Self {
            root: root.clone(),
            measured: measured.clone(),
            process: i32::try_from(probe.pid()).unwrap_or(i32::MAX),
            tids: probe.tids().to_vec(),
            policy: probe.plan().expected_policy(),
            priority: probe.plan().priority.map_or(0, |priority| u32::from(priority.get())),
            tracker: Tracker::default(),
            pending: None,
            latency_request_us: machine::latency_request::in_effect(root),
            crowd: None,
            never_asleep: Vec::new(),
            rivals: Vec::new(),
            held_back: Fact::Unsupported,
            throttling: None,
            locked_memory: Fact::default(),
        };
        watch.look(Nanos::ZERO);
        watch.look_for_spinners(Nanos::ZERO);
        watch
    }

    /// Reads the threads anew, `at` after the warm-up's end.
    pub fn look(&mut self, at: Nanos) {
        // The threads were still there after the reading that failed: it was none of an end.
        self.tracker.failures.extend(self.pending.take());
        let mut readings = Vec::new();
        for (index, &tid) in self.tids.iter().enumerate() {
            let thread = Some(index as u32);
            match schedule::of_thread(tid).and_then(|scheduling| Ok((scheduling, schedule::affinity(tid)?))) {
                Ok(((policy, priority), affinity)) => readings.extend([
                    ((thread, Attribute::Policy), policy.to_string()),
                    ((thread, Attribute::Priority), priority.to_string()),
                    ((thread, Attribute::Affinity), affinity.to_string()),
                ]),
                Err(error) => self.pending = Some(error.to_string()),
            }
        }
        match machine::locked_memory(&self.root, self.process) {
            // It grows with the stacks of threads; that it is there at all is what matters.
            Fact::Value(kilobytes) => {
                let most = self.locked_memory.value().copied().unwrap_or(0);
                self.locked_memory = Fact::Value(most.max(kilobytes.saturating_mul(1024)));
                let state = if kilobytes > 0 { "locked" } else { "not locked" };
                readings.push(((None, Attribute::LockedMemory), state.to_owned()));
            }
            missing => self.pending = Some(format!("VmLck of the probe: {}", missing)),
        }
        self.tracker.take(at, readings);
    }

    /// Reads the machine anew, once a second; `worst` is the latest wake-up since the last time.
    pub fn second(&mut self, worst: Nanos) {
        let request = machine::latency_request::in_effect(&self.root);
        if let (Some(now), Some(before)) = (request.value(), self.latency_request_us.value()) {
            self.latency_request_us = Fact::Value(*now.min(before));
        } else if self.latency_request_us.value().is_some() {
            self.latency_request_us = request;
        }
        if worst.0 >= LATE {
            self.look_for_spinners(worst);
        }
    }

    fn look_for_spinners(&mut self, worst: Nanos) {
        if !self.policy.is_real_time() {
            return;
        }
        let own = i32::try_from(std::process::id()).unwrap_or(i32::MAX);
        let now = RealTime::look(&self.root, &self.measured, &[self.process, own]);
        let new = now.rivals(self.policy, self.priority).into_iter();
        let known: Vec<i32> = self.rivals.iter().map(|rival| rival.tid).collect();
        self.rivals.extend(new.filter(|rival| !known.contains(&rival.tid)).take(MOST));
        if let Some((then, before)) = &self.crowd {
            let found = now.never_asleep(before, then.elapsed().into(), worst);
            found.into_iter().for_each(|one| add(&mut self.never_asleep, one));
            self.throttling = Some(machine::throttling_now(&self.root));
        }
        if worst.0 >= LATE {
            let held_back = machine::held_back(&self.root);
            self.held_back = match (&self.held_back, held_back) {
                (Fact::Value(before), Fact::Value(now)) => Fact::Value(before.union(&now)),
                (Fact::Value(before), _) => Fact::Value(before.clone()),
                (_, now) => now,
            };
        }
        self.crowd = Some((Instant::now(), now));
    }

    /// The last look, while probe and load still run, or have only just ended: rivals, spinners, and the workers of the
    /// load under `supervisor` that are outside SCHED_OTHER.
    pub fn last_look(&mut self, worst: Nanos, supervisor: Option<u32>) -> Vec<String> {
        self.look_for_spinners(worst);
        let id = |process| i32::try_from(process).unwrap_or(i32::MAX);
        supervisor.map(|process| machine::outside_other(&self.root, id(process))).unwrap_or_default()
    }

    /// What was seen, and the threads that went before the probe's.
    pub fn finish(self) -> (record::Watch, Vec<TaskEvidence>) {
        let tracker = self.tracker;
        let watch = record::Watch {
            readings: tracker.readings,
            failures: tracker.distinct_failures(),
            changes: tracker.changes,
            changes_left_out: tracker.left_out,
            latency_request_us: self.latency_request_us,
            never_asleep: self.never_asleep,
            held_back: self.held_back,
            throttling: self.throttling,
            locked_memory: self.locked_memory,
        };
        (watch, self.rivals)
    }
}

/// One more look at a thread that did not sleep.
fn add(known: &mut Vec<NeverAsleep>, new: NeverAsleep) {
    let is_full = known.len() >= MOST;
    match known.iter_mut().find(|one| one.tid == new.tid) {
        Some(one) => {
            one.ran += new.ran;
            one.over += new.over;
            one.worst = one.worst.max(new.worst);
        }
        None if is_full => {}
        None => known.push(new),
    }
}

/// Finds out from readings what changed, and when it was as before again.
#[derive(Default)]
struct Tracker {
    readings: u64,
    failures: Vec<String>,
    first: Vec<(Subject, String)>,
    changes: Vec<SetUpChange>,
    left_out: u64,
}

impl Tracker {
    fn take(&mut self, at: Nanos, readings: Vec<(Subject, String)>) {
        self.readings += 1;
        for (subject, value) in readings {
            match self.first.iter().find(|(known, _)| *known == subject).map(|(_, first)| first.clone()) {
                None => self.first.push((subject, value)),
                Some(first) => self.compare(at, subject, first, value),
            }
        }
    }

    fn compare(&mut self, at: Nanos, (thread, what): Subject, first: String, value: String) {
        let of_subject = |change: &&mut SetUpChange| (change.thread, change.what) == (thread, what);
        let open = self.changes.iter_mut().filter(of_subject).find(|change| change.until.is_none());
        match open {
            Some(change) if change.became == value => return,
            Some(change) => change.until = Some(at),
            None => {}
        }
        if value == first {
            return;
        }
        if self.changes.len() >= MOST {
            self.left_out += 1;
            return;
        }
        self.changes.push(SetUpChange { thread, what, was: first, became: value, from: at, until: None });
    }

    fn distinct_failures(&self) -> Vec<String> {
        let mut failures = self.failures.clone();
        failures.sort_unstable();
        failures.dedup();
        failures.truncate(MOST);
        failures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRIORITY: Subject = (Some(0), Attribute::Priority);

    fn tracked(values: &[&str]) -> Tracker {
        let mut tracker = Tracker::default();
        for (quarter, value) in values.iter().enumerate() {
            tracker.take(Nanos::from_millis(250 * quarter as u64), vec![(PRIORITY, (*value).to_owned())]);
        }
        tracker
    }

    #[test]
    fn a_change_that_was_taken_back_has_its_times() {
        let tracker = tracked(&["98", "98", "3", "3", "98", "98", "7", "5"]);
        let found: Vec<_> = tracker
            .changes
            .iter()
            .map(|change| {
                let millis = |time: Nanos| time.0 / 1_000_000;
                (change.was.as_str(), change.became.as_str(), millis(change.from), change.until.map(millis))
            })
            .collect();
        let expected =
            [("98", "3", 500, Some(1_000)), ("98", "7", 1_500, Some(1_750)), ("98", "5", 1_750, None)];
        assert_eq!(found, expected);
        assert_eq!(tracker.readings, 8);
        assert!(tracked(&["98"; 5]).changes.is_empty());
    }

    #[test]
    fn changes_without_end_fill_no_memory() {
        let values: Vec<_> = (0..1_000).map(|at| if at % 2 == 0 { "98" } else { "3" }).collect();
        let tracker = tracked(&values);
        assert_eq!((tracker.changes.len() as u64 + tracker.left_out, tracker.changes.len()), (500, MOST));
    }
}
