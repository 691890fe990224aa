//! What an account is made of.

use std::collections::BTreeMap;

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
    /// Whether the machine is a hypervisor's guest: an idle CPU is handed back to it.
    pub is_guest: bool,
    /// Events of each CPU in order of time, from some time before `due`.
    pub events: BTreeMap<CpuId, Vec<Event>>,
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
            Kind::Switch { previous, next } => vec![previous, next],
            Kind::Waking(task) => vec![task],
            _ => Vec::new(),
        });
        described.map(|task| (task.tid, task.clone())).collect()
    }

    /// All events, in order of time for each CPU.
    pub fn all(&self) -> impl Iterator<Item = &Event> {
        self.events.values().flatten()
    }
}
