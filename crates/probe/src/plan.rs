//! What one probe process is to do.

use record::{ClockName, Grid};
use serde::{Deserialize, Serialize};
use sys::shared::Word;
use units::{CpuId, CpuList, Nanos, Policy, Priority};

use crate::Job;
use crate::board;

/// One measurement: which threads, what each does, for how long.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProbePlan {
    /// The CPU of each thread that it is pinned to; none: not pinned.
    pub threads: Vec<Option<CpuId>>,
    /// Scheduling policy; with [`record::Wake::Deadline`] it is not used.
    pub policy: Policy,
    /// Priority, for a policy that has one.
    pub priority: Option<Priority>,
    /// A value that stops all threads.
    pub stop_at: Option<Nanos>,
    /// Whether every sample is passed on to the parent.
    pub every_sample: bool,
    /// The threads end the run where the main thread, an ordinary one, had no CPU for so long.
    #[serde(default)]
    pub fail_safe: Option<Nanos>,
    /// Where the probe's main thread stays while its threads measure.
    pub housekeeping: CpuList,
    /// The file by which threads mark late wake-ups in a trace; none: nothing is marked.
    #[serde(default)]
    pub marker: Option<String>,
    /// What the threads do.
    pub job: Job,
}

impl ProbePlan {
    /// Words of the board.
    pub fn words(&self) -> usize {
        board::words(self.threads.len(), self.every_sample) + self.threads.len() * self.tally_words()
    }

    /// What each thread of some instruments counts with stands behind all blocks, in pages of its own.
    fn tally_words(&self) -> usize {
        self.job.own().words().next_multiple_of(512)
    }

    /// The words of thread `thread` for its tally; none for other instruments.
    pub fn tally<'a>(&self, board: &'a [Word], thread: usize) -> &'a [Word] {
        let size = self.tally_words();
        let first = board::words(self.threads.len(), self.every_sample) + thread * size;
        &board[first..first + size]
    }

    /// The clock that the threads read.
    pub fn clock(&self) -> ClockName {
        self.job.own().clock()
    }

    /// When the values of thread `thread` were due or came, if number 0 lies at `origin` on the clock.
    pub fn grid(&self, thread: usize, origin: u64) -> Grid {
        self.job.own().setup().grid(thread, origin)
    }

    /// The policy that the threads have when nothing is denied.
    pub fn expected_policy(&self) -> Policy {
        if self.job.own().reservation().is_some() { Policy::Deadline } else { self.policy }
    }

    /// The numbers that values of a thread may have, from 0: activations, cycles or nanoseconds. None where the threads are stopped.
    pub fn numbers(&self) -> Option<u64> {
        self.job.own().numbers()
    }

    /// How long the threads are to measure, the warm-up included; none where they are stopped.
    pub fn length(&self) -> Option<Nanos> {
        self.job.own().length()
    }

    /// The call by which the threads sleep, as errors name it.
    pub fn sleeping_call(&self) -> &'static str {
        self.job.own().sleeping_call()
    }

    /// Whether values can be missed.
    pub fn has_missed(&self) -> bool {
        self.job.own().has_missed()
    }
}
