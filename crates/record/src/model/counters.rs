//! What the kernel and the CPUs counted around a scenario.

use serde::{Deserialize, Serialize};
use units::{CpuId, Nanos};

use super::Fact;

/// What was added to counters while the threads measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Counters {
    /// From the first reading to the last.
    pub over: Nanos,
    /// One for each thing that is counted and each place where it is read.
    pub counters: Vec<Counter>,
    /// Interrupts and softirqs by their names; those that did not come are left out.
    pub sources: Vec<InterruptSource>,
}

impl Counters {
    /// Whether nothing was read, as in records of former versions.
    pub fn is_empty(&self) -> bool {
        self.counters.is_empty() && self.sources.is_empty()
    }

    /// The mean power of all that RAPL's packages took, with their memory, or of the whole platform where there is a zone for that,
    /// in watts. None where no zone was read, or one of them could not be: a sum of the others would be too small.
    pub fn watts(&self) -> Option<f64> {
        let zones = |name: &'static str| {
            let own = self.counters.iter().filter(|counter| counter.what == Counted::Energy);
            own.filter(move |counter| {
                counter
                    .source
                    .split(", ")
                    .nth(1)
                    .is_some_and(|zone| zone == name || zone.starts_with(&format!("{name}-")))
            })
        };
        let total = |zones: &mut dyn Iterator<Item = &Counter>| -> Option<u64> {
            let mut sum = None;
            for count in zones.flat_map(|zone| &zone.counts) {
                sum = Some(sum.unwrap_or(0_u64).saturating_add(*count.added.value()?));
            }
            sum
        };
        let microjoules = match zones("psys").next() {
            Some(_) => total(&mut zones("psys")),
            None if zones("package").next().is_none() => None,
            None => total(&mut zones("package").chain(zones("dram"))),
        };
        let seconds = self.over.0 as f64 / 1e9;
        Some(microjoules? as f64 / 1e6 / seconds).filter(|watts| watts.is_finite())
    }

    /// Adds what somebody else counted.
    pub fn add(&mut self, what: Counted, source: &str, of: CountedOn, added: Fact<u64>) {
        let count = Count { of, added };
        let same = |known: &&mut Counter| known.what == what && known.source == source;
        match self.counters.iter_mut().find(same) {
            Some(known) => known.counts.push(count),
            None => self.counters.push(Counter { what, source: source.to_owned(), counts: vec![count] }),
        }
    }
}

/// A counter, as one place shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Counter {
    /// What is counted.
    pub what: Counted,
    /// Where it was read.
    pub source: String,
    /// What was added, for each that it is counted for.
    pub counts: Vec<Count>,
}

/// What was added to a counter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Count {
    /// What it was counted for.
    pub of: CountedOn,
    /// In the unit of [`Counted::unit`]; or why it is not known, which is never 0.
    pub added: Fact<u64>,
}

/// What a counter is kept for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CountedOn {
    /// All of the machine.
    Machine,
    /// A CPU.
    Cpu(CpuId),
    /// A measuring thread, by its number in the probe.
    Thread(u32),
}

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Counted {
    /// Threads that a CPU was given to in place of another.
    ContextSwitches,
    /// Interrupts, those of the timer and of other CPUs too.
    Interrupts,
    /// Runs of softirq handlers.
    Softirqs,
    /// Processes and threads that were created.
    TasksCreated,
    /// Threads that run, are ready, or wait uninterruptibly, in thousandths: the kernel's mean of a minute, when the scenario
    /// ended.
    LoadAverage,
    /// Times that a CPU was given to a thread.
    Slices,
    /// Time that threads were ready to run without a CPU, all together, in nanoseconds.
    RunQueueWait,
    /// Instructions.
    Instructions,
    /// Cycles in which the CPU was not halted.
    Cycles,
    /// Accesses that the last cache did not hold.
    CacheMisses,
    /// Reads whose page the data TLB did not hold.
    TlbMisses,
    /// Energy that a meter of the machine counted, in microjoules. Where there is no meter, that is absent.
    Energy,
    /// Power that a meter showed when the scenario had ended, in microwatts.
    Power,
}

/// In what a counter counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterUnit {
    /// Things that happened.
    Events,
    /// Nanoseconds.
    Time,
    /// Thousandths, at one moment: not a sum.
    Thousandths,
    /// Microjoules.
    Energy,
    /// Microwatts, at one moment: not a sum.
    Power,
}

impl Counted {
    /// What people call it.
    pub fn words(self) -> &'static str {
        match self {
            Self::ContextSwitches => "context switches",
            Self::Interrupts => "interrupts",
            Self::Softirqs => "softirqs",
            Self::TasksCreated => "tasks created",
            Self::LoadAverage => "load average (1 min)",
            Self::Slices => "slices given",
            Self::RunQueueWait => "run-queue wait",
            Self::Instructions => "instructions",
            Self::Cycles => "cycles",
            Self::CacheMisses => "cache misses",
            Self::TlbMisses => "data TLB misses",
            Self::Energy => "energy",
            Self::Power => "power at the end",
        }
    }

    /// In what it counts.
    pub fn unit(self) -> CounterUnit {
        match self {
            Self::RunQueueWait => CounterUnit::Time,
            Self::LoadAverage => CounterUnit::Thousandths,
            Self::Energy => CounterUnit::Energy,
            Self::Power => CounterUnit::Power,
            _ => CounterUnit::Events,
        }
    }
}

/// An interrupt or a softirq by its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InterruptSource {
    /// Interrupts or softirqs.
    pub what: Counted,
    /// Where it was read.
    pub source: String,
    /// The row in the kernel's table: `LOC`, `36`, `TIMER`.
    pub name: String,
    /// What the kernel says of it: controller, source, handlers. May be empty.
    pub words: String,
    /// What was added, on each CPU where it came.
    pub counts: Vec<Count>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(zones: &[(&str, Fact<u64>)]) -> Counters {
        let mut counters = Counters { over: Nanos::from_secs(2), ..Counters::default() };
        for (place, (name, added)) in zones.iter().enumerate() {
            let source = format!("/sys/class/powercap/intel-rapl:{place}/energy_uj, {name}");
            counters.add(Counted::Energy, &source, CountedOn::Machine, added.clone());
        }
        counters
    }

    #[test]
    fn packages_and_their_memory_are_a_machine_and_cores_are_in_them() {
        let joules = |joules: u64| Fact::Value(joules * 1_000_000);
        let zones =
            [("package-0", joules(20)), ("core", joules(9)), ("dram", joules(4)), ("package-1", joules(6))];
        assert_eq!(counted(&zones).watts(), Some(15.0));
        assert_eq!(counted(&[("psys", joules(50)), ("package-0", joules(20))]).watts(), Some(25.0));
    }

    #[test]
    fn a_zone_that_was_not_read_leaves_the_power_unknown() {
        assert_eq!(
            counted(&[("package-0", Fact::Value(1)), ("package-1", Fact::Unreadable(13))]).watts(),
            None
        );
        assert_eq!(counted(&[("package-0", Fact::Value(1)), ("dram", Fact::Unsupported)]).watts(), None);
        assert_eq!(counted(&[("core", Fact::Value(1))]).watts(), None);
        assert_eq!(Counters::default().watts(), None);
    }
}
