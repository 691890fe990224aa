//! Idle states from which a CPU for real time wakes late (Documentation/admin-guide/pm/cpuidle.rst).

use std::collections::BTreeMap;

use machine::facts::processors::cpu_file;
use machine::latency_request;
use record::Fact;
use sysroot::SysRoot;
use units::{CpuId, CpuList};

use crate::survey::{NamedFact, Survey, fact};
use crate::value::{Reading, Value, item, reading};

pub(super) const FACTS: &[NamedFact] = &[fact(
    "idle.deep",
    "idle states above 10 us that CPUs for real time may enter, each with these CPUs",
    deep_states,
)];

/// States that take longer to leave are deep, in microseconds: the first halt state of every common processor takes
/// less, the next one often ten times more.
const DEEP: u64 = 10;

/// States that CPUs for real time may enter although they take long to leave, each with its CPUs; absent where no such
/// CPU has idle states.
fn deep_states(survey: &Survey) -> Reading {
    let limit = global_limit(&survey.root);
    let mut deep: BTreeMap<(u64, String), CpuList> = BTreeMap::new();
    let mut any = false;
    for cpu in survey.real_time_cpus().iter() {
        let limit = limit.min(own_limit(&survey.root, cpu));
        for number in survey.root.numbered(&cpu_file(cpu, "cpuidle"), "state") {
            any = true;
            if let Some((latency, name)) =
                state(&survey.root, cpu, number).filter(|(latency, _)| *latency <= limit)
            {
                deep.entry((latency, name)).or_default().insert(cpu);
            }
        }
    }
    let items = deep.into_iter().map(|((latency, name), cpus)| item(format!("{name} ({latency} us)"), cpus));
    let value = if any { Fact::Value(Value::List(items.collect())) } else { Fact::Absent };
    reading(value, "/sys/devices/system/cpu/cpu*/cpuidle/state*/{latency,disable}")
}

/// Exit latency and name of a state, if it is deep and not disabled.
fn state(root: &SysRoot, cpu: CpuId, number: u32) -> Option<(u64, String)> {
    let file = |name: &str| cpu_file(cpu, &format!("cpuidle/state{number}/{name}"));
    let latency = *root.number::<u64>(&file("latency")).value().filter(|latency| **latency > DEEP)?;
    let disabled = root.number::<u64>(&file("disable")).value().is_some_and(|disabled| *disabled != 0);
    let name = root.read(&file("name")).value().cloned().unwrap_or_else(|| format!("state{number}"));
    (!disabled).then_some((latency, name))
}

/// The limit on exit latencies for all CPUs.
fn global_limit(root: &SysRoot) -> u64 {
    latency_request::in_effect(root).value().and_then(|limit| u64::try_from(*limit).ok()).unwrap_or(u64::MAX)
}

/// The limit for one CPU: `n/a` lets it enter no idle state, 0 is none (Documentation/ABI/testing/sysfs-devices-power).
fn own_limit(root: &SysRoot, cpu: CpuId) -> u64 {
    match root.read(&cpu_file(cpu, "power/pm_qos_resume_latency_us")).value().map(String::as_str) {
        Some("n/a") => 0,
        Some(text) => text.parse().ok().filter(|limit| *limit > 0).unwrap_or(u64::MAX),
        None => u64::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Isolated, shown};
    use sysroot::FakeTree;

    fn machine() -> FakeTree {
        let tree = FakeTree::new(&[("/sys/devices/system/cpu/online", "0-3")]);
        for cpu in 0..4 {
            for (number, name, latency) in
                [(0, "POLL", "0"), (1, "C1", "2"), (2, "C6", "133"), (3, "C10", "890")]
            {
                let place = format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle/state{number}");
                tree.write(&format!("{place}/name"), name);
                tree.write(&format!("{place}/latency"), latency);
                tree.write(&format!("{place}/disable"), "0");
            }
        }
        tree
    }

    #[test]
    fn deep_states_are_reported_with_their_cpus() {
        let tree = machine();
        assert_eq!(shown(&tree, Isolated::None, "idle.deep"), "C6 (133 us): 0-3, C10 (890 us): 0-3");
        assert_eq!(shown(&tree, Isolated::Cpus("2-3"), "idle.deep"), "C6 (133 us): 2-3, C10 (890 us): 2-3");
    }

    #[test]
    fn what_is_disabled_or_beyond_a_limit_is_not_entered() {
        let tree = machine();
        tree.write("/sys/devices/system/cpu/cpu0/cpuidle/state3/disable", "1");
        tree.write("/sys/devices/system/cpu/cpu1/power/pm_qos_resume_latency_us", "n/a");
        tree.write("/sys/devices/system/cpu/cpu2/power/pm_qos_resume_latency_us", "500");
        tree.write("/sys/devices/system/cpu/cpu3/power/pm_qos_resume_latency_us", "0");
        assert_eq!(shown(&tree, Isolated::None, "idle.deep"), "C6 (133 us): 0,2-3, C10 (890 us): 3");
        tree.write("/dev/cpu_dma_latency", 20_i32.to_ne_bytes());
        assert_eq!(shown(&tree, Isolated::None, "idle.deep"), "none");
    }

    #[test]
    fn a_machine_without_idle_states_has_no_such_fact() {
        let tree = FakeTree::new(&[("/sys/devices/system/cpu/online", "0-3")]);
        assert_eq!(shown(&tree, Isolated::None, "idle.deep"), "absent");
    }
}
