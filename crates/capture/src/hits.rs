//! The worst wake-ups so far.

use record::Hit;
use units::Nanos;

/// At most so many, the worst first.
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

    /// From which latency a wake-up would be among them.
    pub fn threshold(&self) -> Nanos {
        match self.kept.last() {
            Some(last) if self.kept.len() == self.wanted => Nanos(last.latency.0 + 1).max(self.least),
            _ => self.least,
        }
    }

    pub fn add(&mut self, hit: Hit) {
        let place = self.kept.partition_point(|kept| kept.latency >= hit.latency);
        self.kept.insert(place, hit);
        self.kept.truncate(self.wanted);
    }

    pub fn finish(self) -> Vec<Hit> {
        self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(latency: u64) -> Hit {
        Hit {
            cpu: units::CpuId(0),
            tid: 1,
            activation: 0,
            due: Nanos::ZERO,
            latency: Nanos(latency),
            pieces: Vec::new(),
            causes: Vec::new(),
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
        let kept: Vec<u64> = hits.finish().iter().map(|hit| hit.latency.0).collect();
        assert_eq!(kept, [70, 50]);
    }
}
