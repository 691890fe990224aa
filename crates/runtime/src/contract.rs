//! The worst-case contract: what may arrive at a queue, how long it may run, by when it must be done; the bound that follows,
//! and what is watched while it runs.

pub mod analysis;
pub mod watch;

use std::sync::atomic::{AtomicU64, Ordering};

/// A queue's contract. All times in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contract {
    /// The least distance between arrivals in the long run.
    pub distance: u64,
    /// Events that may arrive at once, 1 or more.
    pub burst: u32,
    /// How long one event runs at most, its local queues with it.
    pub budget: u64,
    /// From the send to the end of the receive.
    pub deadline: u64,
}

impl Contract {
    /// One event each `distance`, which runs for `budget` at most and is done before the next one.
    pub fn periodic(distance: u64, budget: u64) -> Self {
        Self { distance, burst: 1, budget, deadline: distance }
    }

    /// With another deadline.
    pub fn deadline(self, deadline: u64) -> Self {
        Self { deadline, ..self }
    }

    /// With events that may come at once.
    pub fn burst(self, burst: u32) -> Self {
        Self { burst, ..self }
    }

    /// Arrivals in any window of `length`, its ends with it: what [`Contract::charge`] lets through.
    pub fn arrivals(&self, length: u64) -> u64 {
        u64::from(self.burst.max(1)) + length / self.distance.max(1)
    }

    /// The earliest that the `number`th arrival (from 1) can be after the first.
    pub fn earliest(&self, number: u64) -> u64 {
        number.saturating_sub(u64::from(self.burst.max(1))).saturating_mul(self.distance)
    }

    /// Lets an event through at `now` or not: the generic cell rate algorithm. `due` is the queue's, for all senders.
    pub fn charge(&self, due: &AtomicU64, now: u64) -> bool {
        let tolerance = u64::from(self.burst.max(1) - 1).saturating_mul(self.distance);
        let mut seen = due.load(Ordering::Relaxed);
        loop {
            if seen > now.saturating_add(tolerance) {
                return false;
            }
            let next = seen.max(now).saturating_add(self.distance);
            match due.compare_exchange_weak(seen, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
    }
}

/// What is not the application's: terms of each bound, shown with it. All times in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overheads {
    /// Dispatch of one event: taking it out, calling, watching.
    pub event: u64,
    /// Looking once at rings, timers and jobs.
    pub poll: u64,
    /// What the kernel or the host takes at once from the core at most.
    pub interference: u64,
    /// The least distance between two such; 0 where there is no interference.
    pub interference_distance: u64,
}

impl Overheads {
    /// What others take within `length`, its ends with it.
    pub fn taken(&self, length: u64) -> u64 {
        match length.checked_div(self.interference_distance) {
            Some(times) => (times + 1).saturating_mul(self.interference),
            None => 0,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever is tried, no window sees more than the contract's arrivals.
        #[test]
        fn what_is_let_through_keeps_the_contract(
            distance in 1_u64..50, burst in 1_u32..5, gaps in prop::collection::vec(0_u64..30, 1..100),
        ) {
            let contract = Contract { distance, burst, budget: 1, deadline: 1 };
            let (due, mut now, mut passed) = (AtomicU64::new(0), 100, Vec::new());
            for gap in gaps {
                now += gap;
                if contract.charge(&due, now) {
                    passed.push(now);
                }
            }
            for (first, start) in passed.iter().enumerate() {
                for (last, end) in passed.iter().enumerate().skip(first) {
                    prop_assert!((last - first + 1) as u64 <= contract.arrivals(end - start));
                }
            }
            // And nobody is refused who keeps it: the first of all always passes.
            prop_assert!(!passed.is_empty());
        }
    }

    #[test]
    fn a_burst_passes_at_once_and_the_next_waits_its_distance() {
        let (contract, due) = (Contract::periodic(10, 1).burst(2), AtomicU64::new(0));
        let passed: Vec<bool> =
            [100, 100, 100, 109, 110].iter().map(|now| contract.charge(&due, *now)).collect();
        assert_eq!(passed, [true, true, false, false, true]);
    }
}
