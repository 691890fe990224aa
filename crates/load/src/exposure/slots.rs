//! Slots of 100 ms, counted by how much was done in each, so that a day takes as much memory as a minute.

use std::collections::BTreeMap;

/// Cells of an octave: a slot's work is known to a fifth.
const PER_OCTAVE: u32 = 4;
/// A slot counts as loaded if this many octaves at most lie between its work and the usual work, the 90th percentile of
/// all slots: an eighth.
///
/// What stops a load leaves it nothing, and what lets through less than its share all the time is found by its CPU time.
/// So this need only tell a slot that is slow from one that stood still for most of its length. Slow slots are ordinary:
/// a worker that moves from a fast core to a slow one does a fifth, one that shares its CPU with three others a quarter.
const OCTAVES_BELOW: u32 = 3;

/// What one slot was, beside its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    /// Judged by its work.
    Open,
    /// Spent ready to work: waiting for a CPU that others had, or for a device where that is what the load is there for.
    Ready,
    /// In a second in which the load got less of the CPUs than it could have had.
    HeldBack,
}

/// The slots of one worker.
#[derive(Debug, Default)]
pub(super) struct Slots {
    /// Slots by the cell of their work: all of them, and those judged by it.
    all: BTreeMap<u32, u64>,
    open: BTreeMap<u32, u64>,
    pub count: u64,
    pub ready: u64,
    pub held_back: u64,
}

impl Slots {
    /// Takes in a slot in which `work` was done.
    pub fn push(&mut self, work: u64, slot: Slot) {
        self.count += 1;
        *self.all.entry(cell(work)).or_default() += 1;
        match slot {
            Slot::Open => *self.open.entry(cell(work)).or_default() += 1,
            Slot::Ready => self.ready += 1,
            Slot::HeldBack => self.held_back += 1,
        }
    }

    /// How many slots were loaded.
    pub fn loaded(&self) -> u64 {
        let least = self.usual_cell().saturating_sub(OCTAVES_BELOW * PER_OCTAVE).max(1);
        self.ready + self.open.range(least..).map(|(_, count)| count).sum::<u64>()
    }

    /// The 90th percentile of a slot's work, to a fifth.
    pub fn usual(&self) -> u64 {
        lowest(self.usual_cell())
    }

    fn usual_cell(&self) -> u32 {
        let rank = (self.count * 9).div_ceil(10).max(1);
        let mut seen = 0;
        let found = self.all.iter().find(|(_, count)| {
            seen += **count;
            seen >= rank
        });
        found.map_or(0, |(cell, _)| *cell)
    }
}

/// The cell of some work; 0 is none.
fn cell(work: u64) -> u32 {
    let Some(octave) = work.checked_ilog2() else { return 0 };
    // The two bits behind the leading one.
    let quarter = (work << (63 - octave) >> 61) & 3;
    1 + octave * PER_OCTAVE + quarter as u32
}

/// The least work of a cell.
fn lowest(cell: u32) -> u64 {
    let Some(cell) = cell.checked_sub(1) else { return 0 };
    let (octave, quarter) = (cell / PER_OCTAVE, u64::from(cell % PER_OCTAVE));
    (((4 + quarter) as u128) << octave >> 2) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(work: &[(u64, u64)]) -> Slots {
        let mut slots = Slots::default();
        for &(work, count) in work {
            (0..count).for_each(|_| slots.push(work, Slot::Open));
        }
        slots
    }

    #[test]
    fn a_cell_holds_what_is_within_a_quarter_of_its_least() {
        for work in (0..5000).chain([u64::MAX, u64::MAX / 3, 1 << 40]) {
            let least = lowest(cell(work));
            assert!(least <= work && work - least <= least / 4, "{work}: {least}");
            assert_eq!(cell(least), cell(work), "{work}");
        }
    }

    #[test]
    fn a_load_that_mostly_stood_is_judged_by_what_it_did_when_it_ran() {
        let stopped = slots(&[(1000, 8), (0, 32)]);
        assert_eq!((stopped.loaded(), stopped.count), (8, 40));
        assert!((750..=1000).contains(&stopped.usual()));
        assert_eq!(slots(&[(1000, 1), (0, 99)]).loaded(), 1, "the percentile itself is 0");
    }

    #[test]
    fn slow_slots_are_loaded_and_trickles_are_not() {
        assert_eq!(slots(&[(1000, 20), (200, 20)]).loaded(), 40, "a slow core");
        assert_eq!(slots(&[(1000, 20), (50, 20)]).loaded(), 20, "stopped for most of the slot");
    }

    #[test]
    fn nothing_done_is_nothing_loaded() {
        assert_eq!(slots(&[(0, 40)]).loaded(), 0);
        assert_eq!(Slots::default().loaded(), 0);
    }

    #[test]
    fn readiness_counts_and_what_is_held_back_does_not() {
        let mut slots = Slots::default();
        slots.push(0, Slot::Ready);
        slots.push(100, Slot::HeldBack);
        slots.push(100, Slot::Open);
        assert_eq!((slots.loaded(), slots.ready, slots.held_back), (2, 1, 1));
    }
}
