//! The worst wake-ups so far.

use std::cmp::Reverse;

use record::Hit;
use units::{InOrder, Nanos};

/// At most so many, the worst first: by what they would have been had nothing been recorded. Recording takes about as much of
/// each, but for the first ones on a CPU.
#[derive(Debug)]
pub struct Hits {
    kept: Vec<Hit>,
    wanted: usize,
    least: Nanos,
}

impl Hits {
    pub fn new(wanted: usize, least: Nanos) -> Self {
        Self { kept: Vec::new(), wanted: wanted.max(1), least }
    }

    /// From which latency a wake-up might be among them.
    pub fn threshold(&self) -> Nanos {
        let least = self.kept.iter().map(|kept| kept.latency).min();
        match least.filter(|_| self.kept.len() == self.wanted) {
            Some(least) => Nanos(least.0 + 1).max(self.least),
            None => self.least,
        }
    }

    pub fn add(&mut self, hit: Hit) {
        let place = self.kept.partition_point(|kept| without_own(kept) >= without_own(&hit));
        self.kept.insert(place, hit);
        self.kept.truncate(self.wanted);
    }

    /// The worst first, and how many of them are left out because recording made most of them.
    pub fn finish(mut self) -> (Vec<Hit>, u64) {
        let all = self.kept.len();
        self.kept.retain(|hit| !is_own(hit));
        self.kept.order_by_key(|hit| Reverse(hit.latency));
        let left_out = all - self.kept.len();
        (self.kept, left_out as u64)
    }
}

/// Whether recording the trace made more than half of a latency: the first stack on a CPU takes a third of a millisecond,
/// because the tables for unwinding are cold.
pub fn is_own(hit: &Hit) -> bool {
    hit.recording().0 > hit.latency.0 / 2
}

fn without_own(hit: &Hit) -> Nanos {
    Nanos(hit.latency.0.saturating_sub(hit.recording().0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::{Cause, Certainty, Class};

    fn hit(latency: u64) -> Hit {
        recorded(latency, 0)
    }

    /// One of which recording took so much.
    fn recorded(latency: u64, own: u64) -> Hit {
        let cause = Cause {
            class: Class::Tracing,
            culprit: String::new(),
            length: Nanos(own),
            certainty: Certainty::Sure,
            witness: String::new(),
        };
        Hit {
            cpu: units::CpuId(0),
            tid: 1,
            activation: 0,
            due: Nanos::ZERO,
            latency: Nanos(latency),
            pieces: Vec::new(),
            causes: vec![cause],
            waking_stack: Vec::new(),
            switch_stack: Vec::new(),
            events: Vec::new(),
            left_out: 0,
        }
    }

    #[test]
    fn the_worst_are_kept_and_the_threshold_rises_to_the_least_of_them() {
        let mut hits = Hits::new(2, Nanos(10));
        assert_eq!(hits.threshold(), Nanos(10));
        hits.add(hit(50));
        assert_eq!(hits.threshold(), Nanos(10), "one is wanted yet");
        hits.add(hit(20));
        assert_eq!(hits.threshold(), Nanos(21));
        hits.add(hit(70));
        assert_eq!(hits.threshold(), Nanos(51));
        assert_eq!(finished(hits), (vec![70, 50], 0));
    }

    fn finished(hits: Hits) -> (Vec<u64>, u64) {
        let (kept, left_out) = hits.finish();
        (kept.iter().map(|hit| hit.latency.0).collect(), left_out)
    }

    #[test]
    fn what_recording_made_does_not_make_a_wake_up_one_of_the_worst() {
        let mut hits = Hits::new(2, Nanos(10));
        [recorded(400, 390), recorded(60, 20), recorded(70, 20)].into_iter().for_each(|hit| hits.add(hit));
        assert_eq!(hits.threshold(), Nanos(61));
        assert_eq!(finished(hits), (vec![70, 60], 0));
    }

    #[test]
    fn wake_ups_that_recording_mostly_made_are_left_out_and_let_the_threshold_rise() {
        let mut hits = Hits::new(2, Nanos(10));
        [recorded(25, 20), recorded(24, 20)].into_iter().for_each(|hit| hits.add(hit));
        assert_eq!(hits.threshold(), Nanos(25), "each of them would stop the trace again");
        assert_eq!(finished(hits), (vec![], 2));
    }
}
