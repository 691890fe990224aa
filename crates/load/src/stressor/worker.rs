//! What a built-in stressor works with, whoever has started it.

use std::os::fd::BorrowedFd;

use sys::shared::Word;
use units::{Bytes, Random};

use super::about::About;
use super::counters::Counters;
use super::scratch::Scratch;

/// A stressor that is built in.
pub(super) trait BuiltIn {
    /// What it says of itself.
    fn about(&self) -> About;

    /// Does the work for ever; returns only why it cannot go on. It calls [`Worker::started`] once it works.
    fn run(&self, worker: &mut Worker<'_>) -> String;
}

/// What a worker says to those around it, and asks of them.
pub(crate) trait Surroundings: Sync {
    /// The work has begun.
    fn started(&self);

    /// Something went wrong; the parent leaves out repeats.
    fn failed(&self, text: &str);

    /// Whether workers with other work are still getting ready.
    fn others_are_starting(&self) -> bool;
}

/// Where a worker may write.
#[derive(Clone, Debug)]
pub(crate) struct Space<'a> {
    pub directory: BorrowedFd<'a>,
    /// The directory's name, for errors.
    pub shown: &'a str,
    /// Where files are made that must have a name for a moment.
    pub scratch: Option<&'a Scratch>,
    /// That name.
    pub name: String,
    /// How many write there as this one does.
    pub workers: u64,
    /// How much must stay free.
    pub floor: Bytes,
}

/// One worker.
pub(crate) struct Worker<'a> {
    pub(super) random: Random,
    pub(super) counters: Counters<'a>,
    /// What it may map above what it had mapped at its start.
    pub(super) ceiling: Bytes,
    /// Where it may write; none for a load that does not.
    pub(super) space: Option<Space<'a>>,
    surroundings: &'a dyn Surroundings,
}

impl<'a> Worker<'a> {
    /// A worker with its counters on the board.
    pub fn new(
        random: Random,
        counters: &'a [Word],
        ceiling: Bytes,
        space: Option<Space<'a>>,
        surroundings: &'a dyn Surroundings,
    ) -> Self {
        Self { random, counters: Counters::of(counters), ceiling, space, surroundings }
    }

    /// Says that the work has begun.
    pub(super) fn started(&self) {
        self.surroundings.started();
    }

    /// Says what went wrong.
    pub(super) fn failed(&self, text: &str) {
        self.surroundings.failed(text);
    }

    /// Whether workers with other work are still getting ready.
    pub(super) fn others_are_starting(&self) -> bool {
        self.surroundings.others_are_starting()
    }

    /// Counts `amount` of work, where the worker has one counter.
    pub(super) fn count(&mut self, amount: u64) {
        self.counters.count(amount);
    }
}
