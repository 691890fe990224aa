//! CPUs of virtual machines that run on this host: threads of the programs that run them.

use machine::tasks::{self, Task};
use record::Fact;

use crate::survey::{NamedFact, Survey, fact};
use crate::value::{Item, Reading, item, list, reading};

pub(super) const FACTS: &[NamedFact] = &[
    fact("virtual-cpus.without-priority", "threads of virtual CPUs that are not real-time ones", |survey| {
        unfit(survey, |task| (!task.policy.is_real_time()).then(|| task.policy.to_string()))
    }),
    fact("virtual-cpus.wandering", "threads of virtual CPUs that are not bound to one CPU", |survey| {
        unfit(survey, |task| {
            let task = tasks::with_affinity(&survey.root, task.clone());
            (task.cpus.len() != 1).then(|| task.cpus.named())
        })
    }),
];

/// What comes before and after the number in the names that QEMU (with `-name ...,debug-threads=on`, as libvirt starts
/// it), Firecracker, Cloud Hypervisor and crosvm give to these threads.
const NAMES: [(&str, &str); 4] = [("CPU ", "/KVM"), ("fc_vcpu ", ""), ("vcpu", ""), ("crosvm_vcpu", "")];

fn is_virtual_cpu(name: &str) -> bool {
    let number =
        |(before, after): &(&str, &str)| name.strip_prefix(before)?.strip_suffix(after)?.parse::<u32>().ok();
    NAMES.iter().any(|affixes| number(affixes).is_some())
}

fn threads(survey: &Survey) -> Vec<Task> {
    tasks::all(&survey.root).into_iter().filter(|task| !task.kernel && is_virtual_cpu(&task.name)).collect()
}

/// Those of which `fault` finds one; absent on a machine that runs none.
fn unfit(survey: &Survey, fault: impl Fn(&Task) -> Option<String>) -> Reading {
    const FROM: &str = "/proc/*/task/*/{stat,status}";
    let threads = threads(survey);
    if threads.is_empty() {
        return reading(Fact::Absent, FROM);
    }
    let items: Vec<Item> = threads
        .iter()
        .filter_map(|task| Some(item(format!("{} of process {}", task.name, task.pid), fault(task)?)))
        .collect();
    list(items, FROM)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Isolated, shown, thread};
    use sysroot::FakeTree;

    #[test]
    fn virtual_cpus_are_known_by_their_names() {
        let tree = FakeTree::empty();
        assert_eq!(shown(&tree, Isolated::None, "virtual-cpus.wandering"), "absent");
        thread(&tree, (70, 70), "qemu-system-x86", 0, (0, 0), "0-3");
        thread(&tree, (70, 71), "CPU 0/KVM", 0, (1, 1), "2");
        thread(&tree, (70, 72), "CPU 1/KVM", 0, (0, 0), "2-3");
        thread(&tree, (80, 81), "fc_vcpu 0", 0, (1, 1), "1");
        assert_eq!(
            shown(&tree, Isolated::None, "virtual-cpus.wandering"),
            "CPU 1/KVM of process 70: CPUs 2-3"
        );
        assert_eq!(
            shown(&tree, Isolated::None, "virtual-cpus.without-priority"),
            "CPU 1/KVM of process 70: other"
        );
    }
}
