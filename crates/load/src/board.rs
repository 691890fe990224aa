//! The board: shared words on which workers count their work, one writer a word.
//!
//! First the supervisor's own word, the number of requests for samples that it has answered; then for each stressor
//! its CPU time in ns, written by the supervisor, and for each of its workers a state and its counters.

use std::os::fd::{BorrowedFd, OwnedFd};

use sys::shared::{SharedWords, Word};

use crate::{LoadPlan, Work};

/// How far a worker is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Starting,
    Running,
    Failed,
}

/// Where the words of one stressor lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    first: usize,
    workers: usize,
    counters: usize,
}

/// The board of a plan: parent and supervisor find the same words for the same plan.
#[derive(Debug)]
pub(crate) struct Board {
    words: SharedWords,
    places: Vec<Place>,
}

impl Board {
    pub fn create(plan: &LoadPlan) -> sys::Result<(Self, OwnedFd)> {
        let (places, length) = layout(plan);
        let (words, file) = SharedWords::create(length)?;
        Ok((Self { words, places }, file))
    }

    pub fn open(plan: &LoadPlan, file: BorrowedFd<'_>) -> sys::Result<Self> {
        let (places, length) = layout(plan);
        Ok(Self { words: SharedWords::open(file, length)?, places })
    }

    /// How many requests for samples the supervisor has answered.
    pub fn answered(&self) -> &Word {
        &self.words[0]
    }

    /// CPU time of a stressor, in ns.
    pub fn cpu_time(&self, stressor: usize) -> &Word {
        &self.words[self.places[stressor].first]
    }

    fn state(&self, stressor: usize, worker: usize) -> &Word {
        let place = self.places[stressor];
        &self.words[place.first + 1 + worker * (1 + place.counters)]
    }

    pub fn set_state(&self, stressor: usize, worker: usize, state: State) {
        self.state(stressor, worker).publish(state as u64);
    }

    /// States of all workers.
    pub fn states(&self) -> impl Iterator<Item = State> {
        let all = self.places.iter().enumerate().flat_map(move |(stressor, place)| {
            (0..place.workers).map(move |worker| self.state(stressor, worker).observe())
        });
        all.map(|state| match state {
            0 => State::Starting,
            1 => State::Running,
            _ => State::Failed,
        })
    }

    /// Whether a worker of `stressor` is still getting ready.
    pub fn is_starting(&self, stressor: usize) -> bool {
        let mut states = (0..self.workers(stressor)).map(|worker| self.state(stressor, worker).observe());
        states.any(|state| state == State::Starting as u64)
    }

    /// A worker's counter `index`.
    pub fn counter(&self, stressor: usize, worker: usize, index: usize) -> &Word {
        let place = self.places[stressor];
        &self.words[place.first + 2 + worker * (1 + place.counters) + index]
    }

    /// Work done by a stressor so far.
    pub fn work(&self, stressor: usize) -> u64 {
        let place = self.places[stressor];
        let counters = (0..place.workers).flat_map(|worker| {
            (0..place.counters).map(move |index| self.counter(stressor, worker, index).get())
        });
        counters.fold(0, u64::wrapping_add)
    }

    /// How many processes a stressor has as its workers.
    pub fn workers(&self, stressor: usize) -> usize {
        self.places[stressor].workers
    }
}

fn layout(plan: &LoadPlan) -> (Vec<Place>, usize) {
    let mut places = Vec::new();
    let mut next = 1;
    for (index, stressor) in plan.load.stressors.iter().enumerate() {
        // A program is one process to start, however many it makes of that.
        let workers = match stressor.work {
            Work::Program(_) => 1,
            _ => stressor.count(plan.cpus_of(index)) as usize,
        };
        let counters = counters(&stressor.work);
        places.push(Place { first: next, workers, counters });
        next += 1 + workers * (1 + counters);
    }
    (places, next)
}

/// How many processes or threads of one worker count for themselves.
fn counters(work: &Work) -> usize {
    match work {
        Work::Hackbench { groups, pairs, .. } => *groups as usize * *pairs as usize,
        Work::Network { .. } => 2,
        Work::Program(_) => 0,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Catalogue;
    use std::os::fd::AsFd;

    #[test]
    fn every_word_has_one_owner() {
        let load = Catalogue::shipped().unwrap().get("scary-grinder").unwrap().clone();
        let mut plan = LoadPlan::new(load, "0-1".parse().unwrap(), units::Seed(1));
        plan.load.stressors[1].workers = crate::Workers::PerCpu;
        let (board, file) = Board::create(&plan).unwrap();
        let theirs = Board::open(&plan, file.as_fd()).unwrap();
        for stressor in 0..2 {
            theirs.cpu_time(stressor).set(1 + stressor as u64);
            for worker in 0..board.workers(stressor) {
                theirs.set_state(stressor, worker, State::Running);
                for index in 0..board.places[stressor].counters {
                    theirs.counter(stressor, worker, index).add(1);
                }
            }
        }
        theirs.answered().set(9);
        assert_eq!((board.work(0), board.work(1)), (200, 2));
        assert_eq!((board.cpu_time(0).get(), board.cpu_time(1).get()), (1, 2));
        assert_eq!(board.answered().get(), 9);
        assert!(board.states().all(|state| state == State::Running));
        assert_eq!(board.words.iter().filter(|word| word.get() == 0).count(), 0);
    }
}
