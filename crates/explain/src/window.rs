//! What an account is made of.

use std::collections::{BTreeMap, BTreeSet};

use units::{CpuId, Nanos};

use crate::event::{Event, Kind, Task};

/// A late wake-up and the events around it.
#[derive(Clone, Debug, Default)]
pub struct Window {
    /// The CPU that the thread woke up on.
    pub cpu: CpuId,
    /// The thread.
    pub tid: i32,
    /// Its kernel priority (0 to 98 is real time, lower is sooner); none where it is unknown.
    pub priority: Option<i32>,
    /// When it was due, on `CLOCK_MONOTONIC`.
    pub due: Nanos,
    /// When it ran its own code again.
    pub woke: Nanos,
    /// Until when its timer slack let the kernel wait with its timer.
    pub slack_until: Option<Nanos>,
    /// Whether the machine is the guest of a hypervisor that takes its time: an idle CPU is handed back to it. A guest of the lab in
    /// instruction time is not.
    pub is_guest: bool,
    /// Whether the threads' clock has shown what a host took, in this wake-up or one before: where it shows none, the host took none.
    pub shows_steal: bool,
    /// Threads whose time is the recording's: reading the trace is all they do.
    pub recorders: BTreeSet<i32>,
    /// The thread that reads the trace among other things: what it takes is the recording's where its stacks show that.
    pub reader: Option<i32>,
    /// Events of each CPU in order of time, from some time before `due`.
    pub events: BTreeMap<CpuId, Vec<Event>>,
}

/// The end of the slack of a timer that is due; none where it has none.
pub(crate) fn slack(due: Nanos, latest: Nanos) -> Option<Nanos> {
    (latest > due).then_some(latest)
}

impl Window {
    /// How late the thread was.
    pub fn latency(&self) -> Nanos {
        Nanos(self.woke.0.saturating_sub(self.due.0))
    }

    /// The events of a CPU.
    pub fn of(&self, cpu: CpuId) -> &[Event] {
        self.events.get(&cpu).map_or(&[], Vec::as_slice)
    }

    /// What events say about threads: name and priority, as the last of each says.
    pub fn tasks(&self) -> BTreeMap<i32, Task> {
        let described = self.all().flat_map(|event| match &event.kind {
            Kind::Switch { previous, next } => vec![(event.at, previous), (event.at, next)],
            Kind::Waking(task) => vec![(event.at, task)],
            _ => Vec::new(),
        });
        let mut last: BTreeMap<i32, (Nanos, Task)> = BTreeMap::new();
        for (at, task) in described {
            let known = last.entry(task.tid).or_insert_with(|| (at, task.clone()));
            if known.0 <= at {
                *known = (at, task.clone());
            }
        }
        last.into_iter().map(|(tid, (_, task))| (tid, task)).collect()
    }

    /// All events, in order of time for each CPU.
    pub fn all(&self) -> impl Iterator<Item = &Event> {
        self.events.values().flatten()
    }
}
