//! When the activations of a series are due.

use std::ops::Range;

use histogram::{Histogram, Summary, record_missed};
use serde::{Deserialize, Serialize};
use units::{Nanos, Random, Seed};

/// The ideal times of one series: activation 0 at `origin` and one each `interval`, moved by a [`Sweep`] if there is
/// one. Everything that counts activations against a clock asks this type, so that no two places can disagree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// What the clock reads when activation 0 is due, in nanoseconds, without the sweep's first draw.
    pub origin: u64,
    /// The period in nanoseconds, at least 1.
    pub interval: u64,
    /// How the ideal times move against the tick.
    pub sweep: Option<Sweep>,
}

/// Moves the ideal times slowly past the kernel's tick, so that a run meets every phase and not one for ever. After
/// each `block` activations comes an extra `stretch`, and a draw below `stretch` places each block within its own.
/// Ideal times only ever move later: two activations are never closer than the period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sweep {
    /// Activations that share an offset, at least 1.
    pub block: u64,
    /// By how much each block lies later than the one before, on average: nanoseconds.
    pub stretch: u64,
    /// From which each block's draw is made.
    pub key: u64,
}

/// The longest tick of common kernels, CONFIG_HZ=100: a sweep over it covers the tick of each of them.
const LONGEST_TICK: u64 = 10_000_000;
/// How long a block lasts, in nanoseconds, where the range is [`SHORT_RANGE`] or less; as many times shorter as the range
/// is longer, so that neighbouring blocks are never further apart. One activation, where the period is longer.
const BLOCK: u64 = 100_000_000;
/// A millisecond: its blocks lie 1.7 us apart on average, closer than what a tick does to wake-ups before and behind it.
const SHORT_RANGE: u64 = 1_000_000;
/// In this time a sweep covers its range once, in nanoseconds.
const LAP: u64 = 60_000_000_000;

impl Sweep {
    /// For activations each `interval`: a minute covers every phase, in blocks of 100 ms or less. Where the period is
    /// shorter than the tick, its own length is range enough: the activations in between meet the rest of the tick.
    pub fn new(interval: Nanos, seed: Seed, purpose: &str) -> Self {
        let interval = interval.0.max(1);
        let range = interval.min(LONGEST_TICK);
        let block = (BLOCK / (range / SHORT_RANGE).max(1) / interval).max(1);
        let blocks = (LAP / block.saturating_mul(interval)).max(1);
        Self { block, stretch: range.div_ceil(blocks).max(1), key: seed.stream(purpose).next_u64() }
    }

    /// By how much block `block` lies later within its own stretch.
    fn draw(&self, block: u64) -> u64 {
        Random::after(self.key, block).below(self.stretch)
    }
}

impl Grid {
    /// Without a sweep.
    pub fn fixed(origin: u64, interval: u64) -> Self {
        Self { origin, interval: interval.max(1), sweep: None }
    }

    /// What the clock reads when `activation` is due.
    #[inline]
    pub fn due(&self, activation: u64) -> u64 {
        self.origin.wrapping_add(self.offset(activation))
    }

    /// When `activation` is due, since the first: what records say of a sample.
    pub fn since_first(&self, activation: u64) -> Nanos {
        Nanos(self.offset(activation).wrapping_sub(self.offset(0)))
    }

    fn offset(&self, activation: u64) -> u64 {
        let plain = activation.wrapping_mul(self.interval);
        self.sweep.map_or(plain, |sweep| {
            let block = activation / sweep.block.max(1);
            plain.wrapping_add(block.wrapping_mul(sweep.stretch)).wrapping_add(sweep.draw(block))
        })
    }

    /// How many activations are due when the clock reads `clock`, from activation 0 on.
    pub fn due_by(&self, clock: u64) -> u64 {
        let Some(since) = clock.checked_sub(self.origin) else { return 0 };
        let Some(sweep) = self.sweep else { return since / self.interval + 1 };
        let block = sweep.block.max(1);
        let length = block.saturating_mul(self.interval).saturating_add(sweep.stretch);
        let (whole, within) = (since / length, since % length);
        let begun = within.checked_sub(sweep.draw(whole)).map_or(0, |since| since / self.interval + 1);
        whole.saturating_mul(block).saturating_add(begun.min(block))
    }

    /// The same activations with `activation` due at `due`: where a clock was set or a reservation began anew.
    pub fn moved(&self, activation: u64, due: u64) -> Self {
        Self { origin: due.wrapping_sub(self.offset(activation)), ..*self }
    }

    /// `activations` in ranges that each lie on one even grid: within a range they are due a period apart.
    pub fn even_ranges(&self, activations: Range<u64>) -> impl Iterator<Item = Range<u64>> + use<> {
        let (grid, mut next) = (*self, activations.start);
        std::iter::from_fn(move || {
            let range = next..grid.block_end(next).saturating_add(1).min(activations.end);
            next = range.end;
            (!range.is_empty()).then_some(range)
        })
    }

    /// The latencies that the activations in `missed` would have had, which a wake-up at `now` slept through. The numbers may
    /// come from a damaged or a hostile record: no loop depends on them, and nothing is due after `now`.
    pub fn missed(&self, missed: Range<u64>, now: u64) -> Histogram {
        const MOST_RANGES: usize = 10_000;
        let mut all = Histogram::default();
        for (place, range) in self.even_ranges(missed.clone()).take(MOST_RANGES).enumerate() {
            let end = if place + 1 < MOST_RANGES { range.end } else { missed.end };
            let greatest = now.saturating_sub(self.due(range.start));
            all.merge(&evenly(greatest, self.interval, end - range.start));
        }
        all
    }

    /// The last activation that lies on one even grid with `activation`.
    pub fn block_end(&self, activation: u64) -> u64 {
        self.sweep.map_or(u64::MAX, |sweep| {
            let block = sweep.block.max(1);
            (activation / block).saturating_add(1).saturating_mul(block) - 1
        })
    }
}

/// The latencies of missed activations that lie a period apart, the first of them `greatest` late: of `count`, or as many as
/// there can have been.
fn evenly(greatest: u64, interval: u64, count: u64) -> Histogram {
    let latency = greatest.saturating_add(interval);
    let count = count.min(latency / interval);
    let mut cells = Histogram::default();
    let sum = record_missed(&mut cells, latency, interval, count);
    let min = latency - count * interval;
    Histogram::from_parts(Summary { count, sum, min, max: greatest }, cells.cells())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn swept(interval: u64, seed: u64) -> Grid {
        let sweep = Sweep::new(Nanos(interval), Seed(seed), "test");
        Grid { origin: 1_000_000_007, interval, sweep: Some(sweep) }
    }

    #[test]
    fn a_sweep_meets_every_phase_of_the_tick_within_a_minute() {
        for (interval, tick) in [
            (1_000_000, 4_000_000),
            (1_000_000, 1_000_000),
            (250_000, 4_000_000),
            (5_000_000, 4_000_000),
            (10_000_000, 4_000_000),
        ] {
            let grid = swept(interval, 5);
            let activations = 60_000_000_000 / interval;
            let mut seen = [false; 100];
            for activation in 0..activations {
                seen[(grid.due(activation) % tick * 100 / tick) as usize] = true;
            }
            assert!(seen.iter().all(|&seen| seen), "interval {interval} tick {tick}: {seen:?}");
        }
    }

    #[test]
    fn blocks_of_a_sweep_lie_as_close_at_every_period_up_to_the_longest_tick() {
        for interval in [200_000, 1_000_000, 2_000_000, 4_000_000, 10_000_000] {
            let sweep = Sweep::new(Nanos(interval), Seed(1), "test");
            assert!(sweep.stretch <= 1_700 && sweep.block * interval <= BLOCK, "{interval}: {sweep:?}");
        }
    }

    #[test]
    fn a_sweep_makes_a_run_longer_by_one_range_a_minute() {
        let grid = swept(1_000_000, 9);
        let minute = grid.due(60_000) - grid.due(0);
        assert!(minute.abs_diff(60_000_000_000 + 1_000_000) <= 20_000, "{minute}");
    }

    #[test]
    fn before_the_origin_nothing_is_due() {
        assert_eq!(Grid::fixed(1000, 10).due_by(999), 0);
        assert_eq!(Grid::fixed(1000, 10).due_by(1000), 1);
        assert_eq!(Grid::fixed(1000, 10).due_by(1009), 1);
        assert_eq!(Grid::fixed(1000, 10).due_by(1010), 2);
    }

    proptest! {
        #[test]
        fn even_ranges_are_all_activations_in_turn_and_even(
            interval in 1_000..20_000_000_u64, seed: u64, start in 0..1_000_000_u64, count in 0..1_000_u64, sweeps: bool,
        ) {
            let mut grid = swept(interval, seed);
            grid.sweep = grid.sweep.filter(|_| sweeps);
            let mut next = start;
            for range in grid.even_ranges(start..start + count) {
                prop_assert_eq!(range.start, next);
                next = range.end;
                let last = range.end - 1;
                prop_assert_eq!(grid.due(last) - grid.due(range.start), (last - range.start) * interval);
            }
            prop_assert_eq!(next, start + count);
        }

        #[test]
        fn missed_activations_are_as_late_as_each_one_would_have_been(
            interval in 1_000..20_000_000_u64, seed: u64, start in 0..1_000_000_u64, count in 0..1_000_u64, sweeps: bool,
        ) {
            let mut grid = swept(interval, seed);
            grid.sweep = grid.sweep.filter(|_| sweeps);
            let now = grid.due(start + count);
            let mut singly = Histogram::default();
            (start..start + count).for_each(|activation| singly.record(Nanos(now - grid.due(activation))));
            prop_assert_eq!(grid.missed(start..start + count, now), singly);
        }

        #[test]
        fn no_numbers_of_a_hostile_record_make_missed_activations_take_long(
            origin: u64, interval: u64, block: u64, stretch: u64, key: u64, start: u64, end: u64, now: u64,
        ) {
            let sweep = Some(Sweep { block, stretch, key });
            let grid = Grid { origin, interval: interval.max(1), sweep };
            grid.missed(start..end.max(start), now);
        }

        #[test]
        fn what_is_due_is_what_was_counted(
            interval in 1_000..20_000_000_u64, seed: u64, activation in 0..10_000_000_u64, sweeps: bool,
        ) {
            let mut grid = swept(interval, seed);
            grid.sweep = grid.sweep.filter(|_| sweeps);
            let due = grid.due(activation);
            prop_assert_eq!(grid.due_by(due), activation + 1);
            prop_assert_eq!(grid.due_by(due - 1), activation);
            prop_assert!(grid.due(activation + 1) >= due + interval);
            prop_assert_eq!(grid.moved(activation, due + 77).due(activation), due + 77);
        }

        #[test]
        fn any_numbers_are_answered_without_a_panic(origin: u64, interval: u64, block: u64, stretch: u64, key: u64, at: u64) {
            let sweep = Some(Sweep { block, stretch, key });
            let grid = Grid { origin, interval: interval.max(1), sweep };
            let _ = (grid.due(at), grid.due_by(at), grid.block_end(at), grid.moved(at, origin));
        }
    }
}
