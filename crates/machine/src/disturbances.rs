//! What the kernel counts that takes a CPU from a thread: interrupts, and time that the hypervisor says it took.
//!
//! Reading it interrupts no other CPU: /proc/interrupts and /proc/stat, proc(5).

use std::collections::BTreeMap;

use record::Fact;
use record::instrument::noise::Around;
use sysroot::SysRoot;
use units::{CpuId, Nanos};

use crate::cpu_times::{cpu_times, from_ticks};
use crate::{activity, interrupts};

/// The counters of every CPU at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Disturbances {
    interrupts: Fact<BTreeMap<CpuId, u64>>,
    steal: Fact<BTreeMap<CpuId, Nanos>>,
}

impl Disturbances {
    /// Reads /proc/interrupts and /proc/stat.
    pub fn read(root: &SysRoot) -> Self {
        let steal = cpu_times(root).map(|times| {
            times.into_iter().filter_map(|(cpu, time)| Some((cpu, from_ticks(time.steal?)))).collect()
        });
        Self { interrupts: root.read(interrupts::PATH).map(|text| by_cpu(&text)), steal }
    }

    /// What was added on `cpu` since `before`: nothing is known of preemptions here. Absent where the CPU was not there both
    /// times.
    pub fn since(&self, before: &Self, cpu: CpuId) -> Fact<Around> {
        let grown = |now: &BTreeMap<CpuId, u64>, before: &BTreeMap<CpuId, u64>| {
            Some(now.get(&cpu)?.saturating_sub(*before.get(&cpu)?))
        };
        let interrupts = match (&self.interrupts, &before.interrupts) {
            (Fact::Value(now), Fact::Value(before)) => match grown(now, before) {
                Some(interrupts) => interrupts,
                None => return Fact::Absent,
            },
            (Fact::Value(_), missing) | (missing, _) => return missing.clone().map(|_| Around::default()),
        };
        // A kernel without steal accounting reports none: the machine's own facts say whether it is a guest.
        let steal = |times: &Fact<BTreeMap<CpuId, Nanos>>| times.value()?.get(&cpu).copied();
        let steal = steal(&self.steal).zip(steal(&before.steal));
        let steal = steal.map_or(Nanos::ZERO, |(now, before)| now - before);
        Fact::Value(Around { interrupts, preemptions: 0, steal })
    }
}

/// All rows of a CPU together, those of the kernel's own interrupts among them.
fn by_cpu(text: &str) -> BTreeMap<CpuId, u64> {
    let mut sums = BTreeMap::new();
    for (cpu, count) in activity::rows(text).into_values().flat_map(|row| row.counts) {
        let sum: &mut u64 = sums.entry(cpu).or_default();
        *sum = sum.saturating_add(count);
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use sysroot::FakeTree;

    fn read(interrupts: &str, stat: &str) -> Disturbances {
        let tree = FakeTree::new(&[("/proc/interrupts", interrupts), ("/proc/stat", stat)]);
        Disturbances::read(&tree.root)
    }

    #[test]
    fn interrupts_of_all_rows_and_steal_are_added_up_for_each_cpu() {
        let before = read(
            "     CPU0 CPU1\n  0:  5  7  IO-APIC timer\nLOC:  10  20  Local timer interrupts\nERR:  3\n",
            "cpu  1 1 1 1 1 1 1 9\ncpu0 0 0 0 0 0 0 0 4\ncpu1 0 0 0 0 0 0 0 5\n",
        );
        let after = read(
            "     CPU0 CPU1\n  0:  5  8  IO-APIC timer\nLOC:  11  40  Local timer interrupts\nERR:  9\n",
            "cpu  1 1 1 1 1 1 1 9\ncpu0 0 0 0 0 0 0 0 4\ncpu1 0 0 0 0 0 0 0 7\n",
        );
        let on = |cpu| after.since(&before, CpuId(cpu));
        let expected = |interrupts, steal| Fact::Value(Around { interrupts, preemptions: 0, steal });
        assert_eq!(on(0), expected(1, Nanos::ZERO));
        assert_eq!(on(1), expected(21, Nanos::from_millis(20)));
        assert_eq!(on(2), Fact::Absent);
        let nothing = Disturbances::read(&FakeTree::empty().root);
        assert_eq!(after.since(&nothing, CpuId(0)), Fact::Absent);
    }
}
