//! The CPUs' own counters around a scenario, of the measuring threads and of their CPUs.
//!
//! They are opened before the threads begin and read when these are done: opening and reading interrupt the CPU in question.

use record::{Counted, CountedOn, Counters, Fact};
use sys::Errno;
use sys::perf::{Counter, Event, Target};
use units::CpuList;

const SOURCE: &str = "perf_event_open, warm-up included";
const EVENTS: [(Counted, Event); 4] = [
    (Counted::Instructions, Event::Instructions),
    (Counted::Cycles, Event::Cycles),
    (Counted::CacheMisses, Event::CacheMisses),
    (Counted::TlbMisses, Event::TlbMisses),
];

/// Counters that count, and those that could not be had.
pub struct Perf(Vec<(Counted, CountedOn, Fact<Counter>)>);

impl Perf {
    /// Begins to count on `cpus` and for the threads `tids`, in the order of the probe's threads.
    pub fn begin(cpus: &CpuList, tids: &[i32]) -> Self {
        let cpus = cpus.iter().map(|cpu| (CountedOn::Cpu(cpu), Target::Cpu(cpu.0)));
        let threads = tids.iter().enumerate();
        let threads = threads.map(|(index, tid)| (CountedOn::Thread(index as u32), Target::Thread(*tid)));
        let targets: Vec<_> = cpus.chain(threads).collect();
        let counters = EVENTS.iter().flat_map(|(what, event)| {
            targets.iter().map(|(of, target)| (*what, *of, known(Counter::open(*event, *target))))
        });
        Self(counters.collect())
    }

    /// Ends it, and enters what was counted.
    pub fn enter(self, counters: &mut Counters) {
        for (what, of, counter) in self.0 {
            let count = counter.and_then(|counter| known(counter.read()));
            counters.add(
                what,
                SOURCE,
                of,
                count.and_then(|count| count.map_or(Fact::Unsupported, Fact::Value)),
            );
        }
    }
}

/// A CPU that has no such counter says so by several errnos.
fn known<T>(result: sys::Result<T>) -> Fact<T> {
    match result {
        Ok(value) => Fact::Value(value),
        Err(error)
            if matches!(error.errno, Errno::NOENT | Errno::NODEV | Errno::OPNOTSUPP | Errno::NOSYS) =>
        {
            Fact::Unsupported
        }
        Err(error) => Fact::Unreadable(error.number()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_cpu_does_not_count_is_unknown_and_has_its_source() {
        let mut counters = Counters::default();
        Perf::begin(&"0".parse().unwrap(), &[i32::MAX]).enter(&mut counters);
        assert_eq!(counters.counters.len(), EVENTS.len());
        for counter in &counters.counters {
            let [_, thread] = &counter.counts[..] else { panic!("{counter:?}") };
            assert_eq!((thread.of, counter.source.as_str()), (CountedOn::Thread(0), SOURCE));
            assert!(thread.added.value().is_none(), "no thread has this id: {counter:?}");
        }
    }
}
