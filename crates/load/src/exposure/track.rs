//! A counter that was read now and then, as a line through its readings.

use std::collections::VecDeque;

use units::Nanos;

/// Readings of a counter that only grows, oldest first.
#[derive(Debug, Default)]
pub(super) struct Track(VecDeque<(Nanos, u64)>);

impl Track {
    /// Takes in a reading; one that is no later than the last is left out, and a counter that went back stands still.
    pub fn push(&mut self, at: Nanos, value: u64) {
        match self.0.back() {
            Some(&(last, _)) if last >= at => {}
            Some(&(_, before)) => self.0.push_back((at, value.max(before))),
            None => self.0.push_back((at, value)),
        }
    }

    /// When it was last read.
    pub fn latest(&self) -> Option<Nanos> {
        self.0.back().map(|&(at, _)| at)
    }

    /// What was last read.
    pub fn value(&self) -> u64 {
        self.0.back().map_or(0, |&(_, value)| value)
    }

    /// What the counter grew by from `from` to `to`. What it grew by between two readings is spread evenly over the time
    /// between them; beyond the last it is not known to have grown.
    pub fn growth(&self, from: Nanos, to: Nanos) -> u64 {
        self.at(to).saturating_sub(self.at(from))
    }

    fn at(&self, time: Nanos) -> u64 {
        let after = self.0.partition_point(|&(at, _)| at <= time);
        let before = after.checked_sub(1).and_then(|index| self.0.get(index));
        match (before, self.0.get(after)) {
            (Some(&(since, low)), Some(&(until, high))) => {
                let (part, whole) = (u128::from((time - since).0), u128::from((until - since).0));
                low + (u128::from(high - low) * part / whole.max(1)) as u64
            }
            (Some(&(_, value)), None) | (None, Some(&(_, value))) => value,
            (None, None) => 0,
        }
    }

    /// Drops readings that nothing after `time` needs.
    pub fn forget(&mut self, time: Nanos) {
        while self.0.get(1).is_some_and(|&(at, _)| at <= time) {
            self.0.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_between_two_readings_is_spread_over_the_time_between_them() {
        let mut track = Track::default();
        [(100, 10), (200, 10), (600, 50)].iter().for_each(|&(at, value)| track.push(Nanos(at), value));
        let growth = |from, to| track.growth(Nanos(from), Nanos(to));
        assert_eq!([growth(100, 200), growth(200, 300), growth(300, 600)], [0, 10, 30]);
        assert_eq!([growth(0, 100), growth(600, 900)], [0, 0], "what was not read did not happen");
    }

    #[test]
    fn what_is_forgotten_changes_no_later_growth() {
        let (mut track, mut short) = (Track::default(), Track::default());
        for time in 0..50 {
            track.push(Nanos(time * 7), time * time);
            short.push(Nanos(time * 7), time * time);
            short.forget(Nanos((time * 7).saturating_sub(10)));
        }
        assert!(short.0.len() < 5);
        assert_eq!(track.growth(Nanos(334), Nanos(341)), short.growth(Nanos(334), Nanos(341)));
    }
}
