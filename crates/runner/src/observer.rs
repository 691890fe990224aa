//! Who follows a run while it goes on.

use failure::Result;
use histogram::Summary;
use probe::Probe;
use record::{Block, Scenario, ScenarioHead, Words};
use units::{CpuId, Nanos};

/// A look at a scenario while it is measured.
pub struct Live<'a> {
    /// What is measured.
    pub head: &'a ScenarioHead,
    /// The probe, for what else an observer wants to read.
    pub probe: &'a Probe,
    /// What the instrument's values are called.
    pub words: &'static Words,
    /// Time since the warm-up's end.
    pub elapsed: Nanos,
    /// One a thread.
    pub threads: Vec<LiveThread<'a>>,
}

/// A look at one measuring thread.
pub struct LiveThread<'a> {
    /// Its CPU.
    pub cpu: Option<CpuId>,
    /// Its kernel thread id.
    pub tid: i32,
    /// Its real-time priority, read just now, or when the warm-up was over where it has ended since; 0 for an ordinary policy,
    /// and where it cannot be read.
    pub priority: u32,
    /// Its latest latency.
    pub now: Option<Nanos>,
    /// Its wake-ups so far.
    pub summary: Summary,
    /// Activations missed so far; none for an instrument without activations.
    pub missed: Option<u64>,
    /// The last seconds, oldest first.
    pub recent: &'a [Block],
    /// Seconds that ended since the last look, with their number.
    pub new: &'a [(u64, Block)],
}

impl Live<'_> {
    /// p99.9 of thread `thread`'s corrected histogram so far.
    pub fn p999(&self, thread: usize) -> Option<Nanos> {
        let view = self.probe.view(thread);
        let mut corrected = view.observed();
        corrected.merge(&view.missed());
        corrected.quantile(0.999)
    }
}

/// Follows a run. Whoever returns `false` does not look any more (a closed pipe): the run then ends.
pub trait Observer {
    /// A scenario begins: the `number`th of `of`.
    fn begins(&mut self, head: &ScenarioHead, number: usize, of: usize) -> Result<bool> {
        let _ = (head, number, of);
        Ok(true)
    }

    /// A second went by.
    fn second(&mut self, live: &Live<'_>) -> Result<bool> {
        let _ = live;
        Ok(true)
    }

    /// The user asked for a look (SIGUSR1).
    fn snapshot(&mut self, live: &Live<'_>) -> Result<bool> {
        let _ = live;
        Ok(true)
    }

    /// A scenario ended.
    fn ended(&mut self, scenario: &Scenario) -> Result<bool> {
        let _ = scenario;
        Ok(true)
    }
}

/// Looks at nothing.
#[derive(Clone, Copy, Debug)]
pub struct Unobserved;

impl Observer for Unobserved {}
