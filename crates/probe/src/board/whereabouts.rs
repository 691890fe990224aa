//! On which CPU each activation woke up.

use sys::cpu::CpuReader;
use sys::shared::Word;
use units::CpuId;

use super::at;

/// No CPU has this number.
const NOWHERE: u32 = u32::MAX;

/// Compares each wake-up's CPU with the one that it should be on.
pub(super) struct Whereabouts<R = CpuReader> {
    reader: R,
    pinned: bool,
    /// A pinned thread's own CPU; that of the latest wake-up for another one.
    expected: u32,
    /// Which wake-up was the latest elsewhere, by the count of all: the next one is part of the same stay.
    latest: u64,
}

/// Says which CPU the calling thread is on. Tests script their own.
pub(super) trait Reads {
    fn now(&self) -> u32;
}

impl Reads for CpuReader {
    #[inline]
    fn now(&self) -> u32 {
        CpuReader::now(self)
    }
}

impl<R: Reads> Whereabouts<R> {
    pub(super) fn new(reader: R, home: Option<CpuId>) -> Self {
        let expected = home.map_or(NOWHERE, |cpu| cpu.0);
        Self { reader, pinned: home.is_some(), expected, latest: 0 }
    }

    /// Looks where `activation` woke up, which `words` have counted already.
    #[inline]
    pub(super) fn look(&mut self, words: &[Word], activation: u64) {
        let cpu = self.reader.now();
        if cpu != self.expected {
            self.elsewhere(words, activation, cpu);
        }
    }

    #[cold]
    fn elsewhere(&mut self, words: &[Word], activation: u64, cpu: u32) {
        if !self.pinned {
            if std::mem::replace(&mut self.expected, cpu) != NOWHERE {
                words[at::MIGRATIONS].add(1);
            }
            return;
        }
        let wake = words[at::COUNT].get();
        if self.latest + 1 != wake || self.latest == 0 {
            words[at::MIGRATIONS].add(1);
        }
        self.latest = wake;
        if words[at::ELSEWHERE].add(1) == 1 {
            words[at::ELSEWHERE_FIRST].set(activation);
        }
        words[at::ELSEWHERE_LAST].set(activation);
        words[at::ELSEWHERE_CPU].set(cpu.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{View, block, words};
    use record::Elsewhere;
    use std::cell::Cell;
    use sys::shared::SharedWords;

    impl Reads for &Cell<u32> {
        fn now(&self) -> u32 {
            self.get()
        }
    }

    /// Wakes up on each of `cpus` in turn.
    fn wake_on(cpus: &[u32], home: Option<CpuId>) -> (u64, Option<Elsewhere>) {
        let (board, _file) = SharedWords::create(words(1, false)).unwrap();
        let (own, place) = (block(&board, 0, false), Cell::new(0));
        let mut whereabouts = Whereabouts::new(&place, home);
        for (activation, &cpu) in cpus.iter().enumerate() {
            place.set(cpu);
            own[at::COUNT].add(1);
            whereabouts.look(own, activation as u64);
        }
        (View(own).migrations(), View(own).elsewhere())
    }

    #[test]
    fn a_pinned_thread_that_left_and_came_back_is_seen() {
        let seen = wake_on(&[3, 3, 1, 1, 1, 3, 2, 3], Some(CpuId(3)));
        assert_eq!(seen, (2, Some(Elsewhere { wakes: 4, cpu: CpuId(2), first: 2, last: 6 })));
        assert_eq!(wake_on(&[3, 3, 3], Some(CpuId(3))), (0, None));
        assert_eq!(wake_on(&[1, 3, 3], Some(CpuId(3))).0, 1);
    }

    #[test]
    fn a_thread_that_may_be_anywhere_is_counted_each_time_it_moves() {
        assert_eq!(wake_on(&[0, 0, 1, 1, 0, 2], None), (3, None));
        assert_eq!(wake_on(&[2, 2], None), (0, None));
    }
}
