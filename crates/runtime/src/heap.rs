//! Due times of a core: a binary heap in which each timeout has at most one entry, so that it never grows.
//!
//! With n timeouts each change takes at most log2(n) steps: 8 for 256.

const NOWHERE: u32 = u32::MAX;

/// Numbers below the capacity, ordered by when they are due; equal times in the order of their numbers.
pub struct Heap {
    entries: Vec<(u64, u32)>,
    /// Where each number stands.
    places: Box<[u32]>,
}

impl Heap {
    pub fn new(capacity: usize) -> Self {
        Self { entries: Vec::with_capacity(capacity), places: vec![NOWHERE; capacity].into() }
    }

    /// The next due time.
    #[inline(always)]
    pub fn next(&self) -> Option<u64> {
        self.entries.first().map(|entry| entry.0)
    }

    /// Sets or changes when `number` is due.
    pub fn set(&mut self, number: u32, due: u64) {
        match self.places[number as usize] {
            NOWHERE => {
                self.entries.push((due, number));
                self.settle(self.entries.len() - 1);
            }
            place => {
                self.entries[place as usize].0 = due;
                self.settle(place as usize);
            }
        }
    }

    /// Takes `number` out.
    pub fn remove(&mut self, number: u32) {
        let place = self.places[number as usize];
        if place == NOWHERE {
            return;
        }
        self.entries.swap_remove(place as usize);
        self.places[number as usize] = NOWHERE;
        if (place as usize) < self.entries.len() {
            self.settle(place as usize);
        }
    }

    /// The number that is due longest, taken out.
    pub fn pop_due(&mut self, now: u64) -> Option<(u64, u32)> {
        let first = *self.entries.first().filter(|entry| entry.0 <= now)?;
        self.remove(first.1);
        Some(first)
    }

    /// Moves the entry at `place` up or down to where it belongs.
    fn settle(&mut self, mut place: usize) {
        let entry = self.entries[place];
        while place > 0 && entry < self.entries[(place - 1) / 2] {
            self.put(place, self.entries[(place - 1) / 2]);
            place = (place - 1) / 2;
        }
        loop {
            let below =
                [2 * place + 1, 2 * place + 2].into_iter().filter(|child| *child < self.entries.len());
            let Some(least) = below.min_by_key(|child| self.entries[*child]) else { break };
            if self.entries[least] >= entry {
                break;
            }
            self.put(place, self.entries[least]);
            place = least;
        }
        self.put(place, entry);
    }

    fn put(&mut self, place: usize, entry: (u64, u32)) {
        self.entries[place] = entry;
        self.places[entry.1 as usize] = place as u32;
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Against a map: set, change, remove, and all that is due in its order; never more entries than numbers.
        #[test]
        fn it_gives_what_is_due_in_order(steps in prop::collection::vec((0_u32..16, 0_u64..100, 0..4), 1..200)) {
            let mut heap = Heap::new(16);
            let mut map: BTreeMap<u32, u64> = BTreeMap::new();
            for (number, due, action) in steps {
                match action {
                    0 | 1 => { heap.set(number, due); map.insert(number, due); }
                    2 => { heap.remove(number); map.remove(&number); }
                    _ => while let Some((at, which)) = heap.pop_due(due) {
                        prop_assert_eq!(map.iter().map(|(number, due)| (*due, *number)).min(), Some((at, which)));
                        map.remove(&which);
                    },
                }
                prop_assert_eq!(heap.next(), map.values().copied().min());
                prop_assert!(heap.entries.len() <= 16);
            }
        }
    }
}
