//! Whether the idle threads leave events: the kernel can lose those of one for good, and says nothing.

use std::collections::BTreeMap;

use units::{CpuId, CpuList};

use crate::event::{Event, Kind};

/// The idle thread of each CPU.
const IDLE: i32 = 0;
/// A CPU that went idle so often without a switch back has not been idle since: its idle thread leaves no events.
const LEAST: u64 = 20;

/// Switches to and from the idle threads.
#[derive(Debug, Default)]
pub(super) struct Idle(BTreeMap<CpuId, Switches>);

#[derive(Debug, Default)]
struct Switches {
    to: u64,
    from: u64,
}

impl Idle {
    pub fn see(&mut self, event: &Event) {
        let Kind::Switch { previous, next } = &event.kind else { return };
        let switches = self.0.entry(event.cpu).or_default();
        switches.to += u64::from(next.tid == IDLE);
        switches.from += u64::from(previous.tid == IDLE);
    }

    /// CPUs whose idle thread runs, and leaves no events.
    pub fn silent(&self) -> CpuList {
        let is_silent = |switches: &Switches| switches.from == 0 && switches.to >= LEAST;
        self.0.iter().filter(|(_, switches)| is_silent(switches)).map(|(cpu, _)| *cpu).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Task;
    use units::Nanos;

    #[test]
    fn a_cpu_that_goes_idle_again_and_again_without_coming_back_lacks_events() {
        let (idle, own) = (Task::default(), Task { tid: 7, ..Task::default() });
        let mut seen = Idle::default();
        let mut switch = |cpu, previous: &Task, next: &Task| {
            let kind = Kind::Switch { previous: previous.clone(), next: next.clone() };
            seen.see(&Event { at: Nanos(1), cpu: CpuId(cpu), task: previous.tid, is_wanted: None, kind });
        };
        for _ in 0..LEAST {
            switch(0, &own, &idle);
            switch(0, &idle, &own);
            switch(1, &own, &idle);
        }
        switch(2, &own, &idle);
        assert_eq!(seen.silent(), CpuList::from_iter([CpuId(1)]));
    }
}
