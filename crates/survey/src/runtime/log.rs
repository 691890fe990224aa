//! What the kernel has complained of since it booted, as far as its log still holds it.

use machine::kernel_log::{self, CLOCKS, LONG_INTERRUPTS, STALLS, THROTTLING};
use record::Fact;
use rustix::io::Errno;

use crate::survey::{NamedFact, Survey, fact};
use crate::value::{Reading, Value, item, reading};

pub(super) const FACTS: &[NamedFact] = &[
    fact("log.throttling", "lines of the kernel's log on real-time threads that were throttled", |survey| {
        complaints(survey, THROTTLING)
    }),
    fact("log.long-interrupts", "lines of the kernel's log on interrupts that took too long", |survey| {
        complaints(survey, LONG_INTERRUPTS)
    }),
    fact("log.clocks", "lines of the kernel's log on clocks that it gave up", |survey| {
        complaints(survey, CLOCKS)
    }),
    fact("log.stalls", "lines of the kernel's log on stalls, lockups and hung tasks", |survey| {
        complaints(survey, STALLS)
    }),
];

/// Lines that hold one of `signs`; unreadable (ENODATA) where there is none and the log has lost its beginning.
fn complaints(survey: &Survey, signs: &[&str]) -> Reading {
    let value = kernel_log::boot_log(&survey.root).and_then(|log| {
        let reading: Vec<_> =
            log.lines.iter().filter(|line| signs.iter().any(|sign| line.contains(sign))).collect();
        if reading.is_empty() && !log.is_whole {
            Fact::Unreadable(Errno::NODATA.raw_os_error())
        } else {
            Fact::Value(Value::List(reading.into_iter().map(|line| item("log", line)).collect()))
        }
    });
    reading(value, "the kernel's log")
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Isolated, shown};
    use sysroot::FakeTree;

    #[test]
    fn complaints_are_reported_by_kind() {
        let log = "5,0,0,-;Linux version 6.1\n4,1,9,-;sched: RT throttling activated\n\
            6,2,9,-;hrtimer: interrupt took 31415 ns\n4,4,9,-;tsc: Marking TSC unstable due to clocksource watchdog\n12,3,9,-;app: soft lockup\n";
        let tree = FakeTree::new(&[("/dev/kmsg", log)]);
        let reading = |name: &str| shown(&tree, Isolated::None, name);
        assert_eq!(reading("log.throttling"), "log: sched: RT throttling activated");
        assert_eq!(reading("log.long-interrupts"), "log: hrtimer: interrupt took 31415 ns");
        assert_eq!(reading("log.clocks"), "log: tsc: Marking TSC unstable due to clocksource watchdog");
        assert_eq!(reading("log.stalls"), "none");
    }

    #[test]
    fn a_log_without_its_beginning_proves_nothing() {
        let tree = FakeTree::new(&[("/dev/kmsg", "4,7,9,-;sched: RT throttling activated\n")]);
        let reading = |name: &str| shown(&tree, Isolated::None, name);
        assert_eq!(reading("log.throttling"), "log: sched: RT throttling activated");
        assert!(reading("log.stalls").starts_with("unreadable"), "{}", reading("log.stalls"));
    }
}
