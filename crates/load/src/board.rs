//! The board: shared words on which workers count their work, one writer a word.
//!
//! First the supervisor's own words: the number of requests for samples that it has answered, and the number and the time
//! of its last look. Then for each stressor what that look found, and for each of its workers a state, how long the
//! supervisor saw it ready, and its counters.

use std::os::fd::{BorrowedFd, OwnedFd};

use sys::shared::{SharedWords, Word};
use units::Nanos;

use crate::{LoadPlan, Work};

/// How far a worker is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Starting,
    Running,
    Failed,
}

/// The supervisor's own words, before those of the stressors.
const ANSWERED: usize = 0;
const LOOKS: usize = 1;
const LOOKED_AT: usize = 2;
const OWN: usize = 3;
/// Words of a stressor before those of its workers: CPU time.
const OF_STRESSOR: usize = 1;
/// Words of a worker before its counters: state and readiness.
const OF_WORKER: usize = 2;

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
        &self.words[ANSWERED]
    }

    /// Writes down what a look found: each stressor's CPU time, and how long each worker has been ready. Whoever reads
    /// meanwhile notices.
    pub fn write_look(&self, at: Nanos, cpu_times: &[Nanos], ready: impl Fn(usize, usize) -> Nanos) {
        let looks = self.words[LOOKS].get();
        self.words[LOOKS].publish(looks + 1);
        for (stressor, (place, cpu_time)) in self.places.iter().zip(cpu_times).enumerate() {
            self.words[place.first].publish(cpu_time.0);
            for worker in 0..place.workers {
                self.ready_word(stressor, worker).publish(ready(stressor, worker).0);
            }
        }
        self.words[LOOKED_AT].publish(at.0);
        self.words[LOOKS].publish(looks + 2);
    }

    /// What `read` finds in the supervisor's last look, and when that was; none before the first look and in the
    /// middle of one.
    pub fn read_look<T>(&self, read: impl FnOnce(&Self) -> T) -> Option<(Nanos, T)> {
        let looks = self.words[LOOKS].observe();
        let found = (Nanos(self.words[LOOKED_AT].observe()), read(self));
        let whole = looks > 0 && looks % 2 == 0 && self.words[LOOKS].observe() == looks;
        whole.then_some(found)
    }

    /// CPU time of a stressor's workers and all that they started, as the supervisor found it.
    pub fn cpu_time(&self, stressor: usize) -> Nanos {
        Nanos(self.words[self.places[stressor].first].observe())
    }

    /// How long a worker, or one process at least of all that it started, was seen ready: running, waiting for a CPU, or
    /// for a device where that is its work; or alive, where that is all that is asked of it.
    pub fn ready(&self, stressor: usize, worker: usize) -> Nanos {
        Nanos(self.ready_word(stressor, worker).observe())
    }

    fn ready_word(&self, stressor: usize, worker: usize) -> &Word {
        &self.words[self.worker(stressor, worker) + 1]
    }

    /// The first word of a worker.
    fn worker(&self, stressor: usize, worker: usize) -> usize {
        let place = self.places[stressor];
        assert!(worker < place.workers, "worker {worker} of {} has no place on the board", place.workers);
        place.first + OF_STRESSOR + worker * (OF_WORKER + place.counters)
    }

    fn state(&self, stressor: usize, worker: usize) -> &Word {
        &self.words[self.worker(stressor, worker)]
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

    /// A worker's counters, all of them and no others: who asks for one that is not there panics.
    pub fn counters(&self, stressor: usize, worker: usize) -> &[Word] {
        let first = self.worker(stressor, worker) + OF_WORKER;
        &self.words[first..first + self.places[stressor].counters]
    }

    /// Work done by a worker so far.
    pub fn work_of(&self, stressor: usize, worker: usize) -> u64 {
        self.counters(stressor, worker).iter().map(Word::get).fold(0, u64::wrapping_add)
    }

    /// Work done by a stressor so far.
    pub fn work(&self, stressor: usize) -> u64 {
        (0..self.workers(stressor)).map(|worker| self.work_of(stressor, worker)).fold(0, u64::wrapping_add)
    }

    /// How many processes a stressor has as its workers.
    pub fn workers(&self, stressor: usize) -> usize {
        self.places[stressor].workers
    }
}

fn layout(plan: &LoadPlan) -> (Vec<Place>, usize) {
    let mut places = Vec::new();
    let mut next = OWN;
    for (index, stressor) in plan.load.stressors.iter().enumerate() {
        // A program is one process to start, however many it makes of that.
        let workers = match stressor.work {
            Work::Program(_) => 1,
            _ => stressor.count(plan.cpus_of(index)) as usize,
        };
        let counters = stressor.work.about().counters;
        places.push(Place { first: next, workers, counters });
        next += OF_STRESSOR + workers * (OF_WORKER + counters);
    }
    (places, next)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Catalogue;
    use std::os::fd::AsFd;

    fn boards(load: &str) -> (Board, Board) {
        let load = Catalogue::shipped().unwrap().get(load).unwrap().clone();
        let mut plan = LoadPlan::new(load, "0-1".parse().unwrap(), units::Seed(1));
        plan.load.stressors[1].workers = crate::Workers::PerCpu;
        let (board, file) = Board::create(&plan).unwrap();
        let theirs = Board::open(&plan, file.as_fd()).unwrap();
        (board, theirs)
    }

    #[test]
    fn every_word_has_one_owner() {
        let (board, theirs) = boards("scary-grinder");
        theirs.write_look(Nanos(77), &[Nanos(1), Nanos(2)], |stressor, worker| {
            Nanos(100 + 10 * stressor as u64 + worker as u64)
        });
        for stressor in 0..2 {
            for worker in 0..board.workers(stressor) {
                theirs.set_state(stressor, worker, State::Running);
                theirs.counters(stressor, worker).iter().for_each(|counter| counter.set(1));
            }
        }
        theirs.answered().set(9);
        assert_eq!((board.work(0), board.work(1), board.work_of(1, 1)), (200, 2, 1));
        assert_eq!([board.cpu_time(0), board.cpu_time(1)], [Nanos(1), Nanos(2)]);
        assert_eq!([board.ready(0, 0), board.ready(1, 0), board.ready(1, 1)], [100, 110, 111].map(Nanos));
        assert_eq!(board.answered().get(), 9);
        assert!(board.states().all(|state| state == State::Running));
        assert_eq!(board.words.iter().filter(|word| word.get() == 0).count(), 0);
    }

    #[test]
    fn a_look_that_is_being_written_is_not_read() {
        let (board, theirs) = boards("scary-grinder");
        assert_eq!(board.read_look(|_| ()), None, "none yet");
        theirs.write_look(Nanos(5), &[Nanos(3); 2], |_, _| {
            assert_eq!(board.read_look(|_| ()), None);
            Nanos(0)
        });
        assert_eq!(board.read_look(|board| board.cpu_time(0)), Some((Nanos(5), Nanos(3))));
    }

    #[test]
    fn a_counter_too_many_is_not_a_neighbours() {
        let (board, _) = boards("scary-grinder");
        assert_eq!((board.counters(0, 0).len(), board.counters(1, 0).len()), (200, 1));
        assert!(std::panic::catch_unwind(|| board.counters(1, 0)[1].add(1)).is_err());
        assert!(std::panic::catch_unwind(|| board.counters(1, 2).len()).is_err());
    }
}
