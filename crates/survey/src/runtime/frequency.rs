//! Which CPUs the kernel may clock up and down (Documentation/admin-guide/pm/cpufreq.rst).

use record::Fact;
use sysroot::SysRoot;
use units::{CpuId, CpuList};

use crate::survey::{NamedFact, Survey, fact};
use crate::value::{Reading, Value, item, reading};

pub(super) const FACTS: &[NamedFact] = &[
    fact("frequency.floating", "CPUs for real time whose clock may move: governor and limits", floating),
    fact("frequency.drivers", "what sets the clocks of CPUs for real time", drivers),
];

const POLICIES: &str = "/sys/devices/system/cpu/cpufreq";

/// A group of CPUs with one clock.
struct Policy {
    name: String,
    cpus: CpuList,
}

impl Policy {
    fn of(root: &SysRoot, name: &str) -> Option<Self> {
        let cpus = root.read(&format!("{POLICIES}/{name}/related_cpus"));
        let cpus = cpus.value()?.split_whitespace().filter_map(|cpu| cpu.parse::<u32>().ok());
        Some(Self { name: name.to_owned(), cpus: cpus.map(CpuId).collect() })
    }

    fn file(&self, root: &SysRoot, file: &str) -> Fact<String> {
        root.read(&format!("{POLICIES}/{}/{file}", self.name))
    }

    /// The governor and the limits in MHz, where the clock may move: neither is its governor `performance`, nor are
    /// its limits equal.
    fn range(&self, root: &SysRoot) -> Option<String> {
        let governor = self.file(root, "scaling_governor").value()?.clone();
        let limit =
            |name: &str| self.file(root, name).value().and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
        let (lowest, highest) = (limit("scaling_min_freq"), limit("scaling_max_freq"));
        let moves = governor != "performance" && lowest != highest;
        moves.then(|| format!("{governor}, {} to {} MHz", lowest / 1000, highest / 1000))
    }
}

/// The policies of the CPUs for real time; absent on a machine without frequency scaling.
fn policies(survey: &Survey) -> Fact<Vec<Policy>> {
    let wanted = survey.real_time_cpus();
    let names = survey.root.list(POLICIES);
    let policies = names.map(|names| {
        let names = names.iter().filter(|name| name.starts_with("policy"));
        let policies = names.filter_map(|name| Policy::of(&survey.root, name));
        policies.filter(|policy| !policy.cpus.intersection(&wanted).is_empty()).collect::<Vec<_>>()
    });
    policies.and_then(|policies| if policies.is_empty() { Fact::Absent } else { Fact::Value(policies) })
}

fn floating(survey: &Survey) -> Reading {
    let items = policies(survey).map(|policies| {
        let named =
            |policy: &Policy| policy.range(&survey.root).map(|range| item(policy.cpus.named(), range));
        Value::List(policies.iter().filter_map(named).collect())
    });
    reading(items, "/sys/devices/system/cpu/cpufreq/policy*/scaling_{governor,min_freq,max_freq}")
}

/// Who sets the clocks of the CPUs for real time.
fn drivers(survey: &Survey) -> Reading {
    let items = policies(survey).map(|policies| {
        let named = |policy: &Policy| {
            let driver = policy.file(&survey.root, "scaling_driver").value()?.clone();
            Some(item(policy.cpus.named(), driver))
        };
        Value::List(policies.iter().filter_map(named).collect())
    });
    reading(items, "/sys/devices/system/cpu/cpufreq/policy*/scaling_driver")
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Isolated, shown};
    use sysroot::FakeTree;

    fn machine() -> FakeTree {
        let tree = FakeTree::new(&[("/sys/devices/system/cpu/online", "0-3")]);
        for (policy, cpus, governor, lowest, highest) in [
            (0, "0 1", "schedutil", "800000", "2400000"),
            (2, "2", "performance", "800000", "2400000"),
            (3, "3", "userspace", "1500000", "1500000"),
        ] {
            let place = format!("/sys/devices/system/cpu/cpufreq/policy{policy}");
            tree.write(&format!("{place}/related_cpus"), cpus);
            tree.write(&format!("{place}/scaling_governor"), governor);
            tree.write(&format!("{place}/scaling_min_freq"), lowest);
            tree.write(&format!("{place}/scaling_max_freq"), highest);
            tree.write(&format!("{place}/scaling_driver"), "acpi-cpufreq");
        }
        tree
    }

    #[test]
    fn a_clock_moves_unless_its_governor_or_its_limits_forbid_it() {
        let tree = machine();
        assert_eq!(
            shown(&tree, Isolated::None, "frequency.floating"),
            "CPUs 0-1: schedutil, 800 to 2400 MHz"
        );
    }

    #[test]
    fn only_cpus_for_real_time_are_looked_at() {
        let tree = machine();
        assert_eq!(shown(&tree, Isolated::Cpus("2-3"), "frequency.floating"), "none");
        assert_eq!(
            shown(&tree, Isolated::Cpus("2-3"), "frequency.drivers"),
            "CPU 2: acpi-cpufreq, CPU 3: acpi-cpufreq"
        );
    }

    #[test]
    fn a_machine_without_scaling_has_no_such_fact() {
        assert_eq!(shown(&FakeTree::empty(), Isolated::None, "frequency.floating"), "absent");
    }
}
