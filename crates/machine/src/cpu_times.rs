//! How long each CPU was busy, idle and without its hypervisor's CPU, as /proc/stat counts it.

use std::collections::BTreeMap;

use record::Fact;
use sysroot::SysRoot;
use units::{CpuId, CpuList, Nanos};

/// A line of /proc/stat, in clock ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CpuTime {
    busy: u64,
    idle: u64,
    waiting: u64,
    pub(crate) steal: Option<u64>,
}

/// How long each CPU has been busy and idle since boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuTimes {
    times: BTreeMap<CpuId, CpuTime>,
    runnable: Option<u64>,
}

impl CpuTimes {
    /// Reads /proc/stat.
    pub fn read(root: &SysRoot) -> Fact<Self> {
        let parse = |text: String| Self { times: parse_stat(&text), runnable: runnable(&text) };
        root.read("/proc/stat").map(parse)
    }

    /// How many threads run or wait for a CPU at this moment, in thousandths of one for each CPU of the machine.
    pub fn runnable_permille(&self) -> Option<u64> {
        self.runnable?.saturating_mul(1000).checked_div(self.times.len() as u64)
    }

    /// Time that `cpus` were not idle, all together, whoever ran there.
    pub fn busy(&self, cpus: &CpuList) -> Nanos {
        self.sum(cpus, |time| time.busy)
    }

    /// Time that `cpus` were idle, waiting for I/O or not, all together.
    pub fn idle(&self, cpus: &CpuList) -> Nanos {
        self.sum(cpus, |time| time.idle.saturating_add(time.waiting))
    }

    fn sum(&self, cpus: &CpuList, ticks: fn(&CpuTime) -> u64) -> Nanos {
        let ticks = cpus.iter().filter_map(|cpu| self.times.get(&cpu)).map(ticks);
        from_ticks(ticks.fold(0, u64::saturating_add))
    }
}

/// The times of every CPU.
pub(crate) fn cpu_times(root: &SysRoot) -> Fact<BTreeMap<CpuId, CpuTime>> {
    root.read("/proc/stat").map(|text| parse_stat(&text))
}

fn runnable(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("procs_running "))?.trim().parse().ok()
}

/// The lines `cpuN` of /proc/stat, proc(5): user nice system idle iowait irq softirq steal. Guest time, which
/// follows, is in user time already.
fn parse_stat(text: &str) -> BTreeMap<CpuId, CpuTime> {
    let times = text.lines().filter_map(|line| {
        let mut words = line.strip_prefix("cpu")?.split(' ');
        let cpu = CpuId(words.next()?.parse().ok()?);
        let ticks: Vec<u64> = words.map_while(|word| word.parse().ok()).take(8).collect();
        let (idle, waiting) = (*ticks.get(3)?, ticks.get(4).copied().unwrap_or_default());
        let busy =
            ticks.iter().enumerate().filter(|(field, _)| !(3..5).contains(field)).map(|(_, ticks)| ticks);
        let busy = busy.fold(0_u64, |sum, ticks| sum.saturating_add(*ticks));
        Some((cpu, CpuTime { busy, idle, waiting, steal: ticks.get(7).copied() }))
    });
    times.collect()
}

/// Clock ticks (USER_HZ, sysconf(3)) as time.
pub(crate) fn from_ticks(ticks: u64) -> Nanos {
    let tick = 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1);
    Nanos(ticks.saturating_mul(tick))
}

/// How busy a CPU was between two readings; nothing for counters that all stood still.
pub(crate) fn busy_permille(before: &CpuTime, after: &CpuTime) -> Option<u32> {
    let busy = u128::from(after.busy.saturating_sub(before.busy));
    let idle = u128::from(after.idle.saturating_sub(before.idle));
    let waiting = u128::from(after.waiting.saturating_sub(before.waiting));
    u32::try_from((busy * 1000).checked_div(busy + idle + waiting)?).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn shares_leave_out_idle_and_waiting_time() {
        let share = |before: &str, after: &str| {
            let time = |text: &str| parse_stat(&format!("cpu3 {text}"))[&CpuId(3)];
            busy_permille(&time(before), &time(after))
        };
        assert_eq!(share("0 0 0 0 0 0 0 0 0 0", "10 5 5 60 20 0 0 0 10 0"), Some(200));
        assert_eq!(share("0 0 0 0 0", "0 0 0 100 0"), Some(0));
        assert_eq!(share("10 0 0 50 50", "20 0 0 40 10"), Some(1000));
        assert_eq!(share("10 0 0 50 50", "10 0 0 50 50"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_answered_without_a_panic(text in "(cpu[0-9]{0,2} ([0-9]{1,20} ?){0,10}\n?){0,4}|.{0,60}") {
            let nothing = CpuTime::default();
            for time in parse_stat(&text).values() {
                let _ = (busy_permille(&nothing, time), busy_permille(time, &nothing));
            }
        }
    }
}
