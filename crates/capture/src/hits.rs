//! The worst wake-ups so far.

use std::cmp::Reverse;

use record::Hit;
use units::{InOrder, Nanos};

use crate::rings::Explained;

/// So many wake-ups say whether recording stacks takes too long: the first one on a CPU is no sign.
const A_SIGN: u64 = 10;

/// At most so many, the worst first: by what they would have been had nothing been recorded. Those that recording mostly made are among
/// them until the end, so that the threshold rises above them.
#[derive(Debug)]
pub struct Hits {
    kept: Vec<Explained>,
    wanted: usize,
    least: Nanos,
    recordings: Recordings,
    own: u64,
}

impl Hits {
    pub fn new(wanted: usize, least: Nanos) -> Self {
        Self { kept: Vec::new(), wanted: wanted.max(1), least, recordings: Recordings::default(), own: 0 }
    }

    /// From which latency a wake-up might be among them.
    pub fn threshold(&self) -> Nanos {
        let least = self.kept.iter().map(|kept| kept.hit.latency).min();
        match least.filter(|_| self.kept.len() == self.wanted) {
            Some(least) => Nanos(least.0 + 1).max(self.least),
            None => self.least,
        }
    }

    /// Takes one in.
    pub fn add(&mut self, explained: Explained) {
        // The threshold is half of what the worst ones were untraced.
        self.recordings.add(&explained.hit, Nanos(self.least.0.saturating_mul(2)));
        let rest = without_own(&explained.hit);
        let place = self.kept.partition_point(|kept| without_own(&kept.hit) >= rest);
        self.kept.insert(place, explained);
        self.kept.truncate(self.wanted);
    }

    /// Whether recording takes longer than what the machine makes late, so that it hides that.
    pub fn are_hidden(&self) -> bool {
        self.recordings.hide_the_rest()
    }

    /// Goes on with less recorded: those that recording mostly made are no measure any more.
    pub fn go_on_with_less(&mut self) {
        self.recordings = Recordings::default();
        self.leave_out_own();
    }

    fn leave_out_own(&mut self) {
        let all = self.kept.len();
        self.kept.retain(|kept| !is_own(&kept.hit));
        self.own += (all - self.kept.len()) as u64;
    }

    /// The worst first, each as it is `judged` in the end, and how many are left out because recording made most of them.
    pub fn finish(mut self, judged: impl Fn(Explained) -> Hit) -> (Vec<Hit>, u64) {
        self.leave_out_own();
        let mut hits: Vec<Hit> = self.kept.into_iter().map(judged).collect();
        hits.order_by_key(|hit| Reverse(hit.latency));
        (hits, self.own)
    }
}

/// How often recording took long in the wake-ups that were explained.
#[derive(Debug, Default)]
pub struct Recordings {
    explained: u64,
    /// Those in which recording alone took longer than the machine's own late ones do.
    long: u64,
}

impl Recordings {
    /// Counts a wake-up. One of the machine's own is `late` without being recorded.
    pub fn add(&mut self, hit: &Hit, late: Nanos) {
        self.explained += 1;
        self.long += u64::from(hit.recording() > late);
    }

    /// Whether what the machine makes late is hidden among wake-ups that are late for being recorded.
    pub fn hide_the_rest(&self) -> bool {
        self.long >= A_SIGN && self.long * 2 > self.explained
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

    fn hit(latency: u64) -> Explained {
        recorded(latency, 0)
    }

    /// One of which recording took so much.
    fn recorded(latency: u64, own: u64) -> Explained {
        let cause = Cause {
            class: Class::Tracing,
            culprit: String::new(),
            length: Nanos(own),
            certainty: Certainty::Sure,
            witness: String::new(),
        };
        let hit = Hit {
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
        };
        hit.into()
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
        let (kept, left_out) = hits.finish(|one| one.hit);
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

    #[test]
    fn recording_hides_the_worst_where_it_takes_longer_than_they_do_and_not_where_it_did_at_first() {
        let mut hits = Hits::new(2, Nanos(10));
        for _ in 1..A_SIGN {
            hits.add(recorded(30, 22));
        }
        assert!(!hits.are_hidden(), "a CPU's first stack is a long one");
        hits.add(recorded(30, 22));
        assert!(hits.are_hidden());
        hits.go_on_with_less();
        assert_eq!(hits.threshold(), Nanos(10), "what recording made is no measure any more");
        (0..A_SIGN).for_each(|_| hits.add(recorded(40, 18)));
        assert!(!hits.are_hidden(), "those that take 20 without it are seen");
        assert_eq!(finished(hits), (vec![40, 40], 2));
    }
}
