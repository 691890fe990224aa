//! Interrupts: which may fire on CPUs set apart, which of them can be moved, and the threads that handle them
//! (Documentation/core-api/irq/irq-affinity.rst, filesystems/proc.rst; `show_interrupts` in kernel/irq/proc.c).

use machine::interrupts::{PATH, is_managed, parse};
use machine::tasks;
use record::Fact;
use sysroot::SysRoot;
use units::CpuList;

use crate::survey::{NamedFact, Survey, fact};
use crate::value::{Item, Reading, Value, item, list, reading, unsupported};

pub(super) const FACTS: &[NamedFact] = &[
    fact(
        "interrupts.on-isolated",
        "interrupts that can be moved and fire on CPUs set apart, each with these",
        on_isolated,
    ),
    fact(
        "interrupts.allowed-on-isolated",
        "interrupts that fire elsewhere and may be moved to CPUs set apart",
        allowed_on_isolated,
    ),
    fact(
        "interrupts.managed-on-isolated",
        "interrupts that the kernel manages itself and that fire on CPUs set apart",
        fixed_on_isolated,
    ),
    fact(
        "interrupts.raised-threads",
        "how many threads of interrupts are above the priority 50 that all begin with",
        raised_threads,
    ),
    fact("interrupts.shared", "interrupts with several handlers", shared),
    fact("interrupts.threads", "threads of interrupts with policy and priority", threads),
];

/// Where an interrupt may go.
struct Affinity {
    /// What was asked for.
    requested: CpuList,
    /// What its controller made of it.
    effective: CpuList,
    /// Whether the kernel keeps it where it is.
    fixed: bool,
}

fn affinity(root: &SysRoot, number: u32) -> Option<Affinity> {
    let directory = format!("/proc/irq/{number}");
    let requested = root.cpu_list(&format!("{directory}/smp_affinity_list")).value()?.clone();
    let effective = root.cpu_list(&format!("{directory}/effective_affinity_list"));
    let effective = effective.value().filter(|cpus| !cpus.is_empty()).cloned();
    Some(Affinity {
        effective: effective.unwrap_or_else(|| requested.clone()),
        requested,
        fixed: is_managed(root, number),
    })
}

/// The interrupts that `wanted` picks, each with the CPUs that it gives for them.
fn choose(survey: &Survey, wanted: impl Fn(&Affinity) -> CpuList) -> Reading {
    if survey.isolated.is_empty() {
        return unsupported(PATH);
    }
    let value = survey.root.read(PATH).map(|text| {
        let movable = parse(&text).into_iter().filter(|interrupt| !interrupt.per_cpu);
        let items = movable.filter_map(|interrupt| {
            let cpus = wanted(&affinity(&survey.root, interrupt.number)?);
            (!cpus.is_empty()).then(|| item(format!("irq {} {}", interrupt.number, interrupt.name), cpus))
        });
        Value::List(items.collect())
    });
    Reading { value, from: vec![PATH.to_owned(), "/proc/irq/*/effective_affinity_list".to_owned()] }
}

/// Interrupts that can be moved and fire on CPUs set apart.
fn on_isolated(survey: &Survey) -> Reading {
    choose(survey, |interrupt| {
        if interrupt.fixed { CpuList::new() } else { interrupt.effective.intersection(&survey.isolated) }
    })
}

/// Interrupts that do not fire on CPUs set apart, and may be moved there by the kernel.
fn allowed_on_isolated(survey: &Survey) -> Reading {
    choose(survey, |interrupt| {
        let fires = !interrupt.effective.intersection(&survey.isolated).is_empty();
        if fires || interrupt.fixed {
            CpuList::new()
        } else {
            interrupt.requested.intersection(&survey.isolated)
        }
    })
}

/// Interrupts of queues that the kernel has spread over all CPUs and lets nobody move.
fn fixed_on_isolated(survey: &Survey) -> Reading {
    const DEBUGFS: &str = "/sys/kernel/debug/irq/irqs";
    match survey.root.list(DEBUGFS) {
        Fact::Value(_) => choose(survey, |interrupt| {
            if interrupt.fixed { interrupt.effective.intersection(&survey.isolated) } else { CpuList::new() }
        }),
        other => reading(other.and_then(|_| Fact::Absent), DEBUGFS),
    }
}

/// Threads that handle interrupts: their names, policies and priorities.
fn interrupt_threads(root: &SysRoot) -> Vec<tasks::Task> {
    let all = tasks::all(root).into_iter();
    all.filter(|task| task.kernel && task.name.starts_with("irq/")).collect()
}

fn thread_items<'a>(threads: impl IntoIterator<Item = &'a tasks::Task>) -> Vec<Item> {
    let shown = |task: &tasks::Task| {
        item(format!("{} ({})", task.name, task.tid), format!("{} {}", task.policy, task.priority))
    };
    threads.into_iter().map(shown).collect()
}

fn threads(survey: &Survey) -> Reading {
    let threads = interrupt_threads(&survey.root);
    if threads.is_empty() {
        return reading(Fact::Absent, "/proc/*/stat");
    }
    list(thread_items(&threads), "/proc/*/stat")
}

/// How many threads of interrupts somebody put above the 50 that the kernel gives to all (`sched_set_fifo` in
/// kernel/sched/syscalls.c); absent where no interrupt has a thread.
fn raised_threads(survey: &Survey) -> Reading {
    let threads = interrupt_threads(&survey.root);
    let raised = threads.iter().filter(|task| task.priority > 50).count();
    let value = if threads.is_empty() {
        Fact::Absent
    } else {
        Fact::Value(Value::Number(i64::try_from(raised).unwrap_or(i64::MAX)))
    };
    reading(value, "/proc/*/stat")
}

/// Interrupts with several handlers, which the kernel lists with commas between them.
fn shared(survey: &Survey) -> Reading {
    let value = survey.root.read(PATH).map(|text| {
        let shared = parse(&text).into_iter().filter(|interrupt| interrupt.name.contains(", "));
        Value::List(
            shared.map(|interrupt| item(format!("irq {}", interrupt.number), interrupt.name)).collect(),
        )
    });
    reading(value, PATH)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Isolated, shown, thread};
    use sysroot::FakeTree;

    const TEXT: &str = "           CPU0       CPU1       \n \
        \x20 1:          9          0   IO-APIC   1-edge      i8042\n \
        \x2016:          0          7   IO-APIC  16-fasteoi   ehci_hcd:usb1, snd hda\n \
        \x2036:          0     208381 PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0\n \
        \x2037:          0          0   PCI-MSI 524288-edge\n\
        NMI:          0          0   Non-maskable interrupts\n";

    fn machine() -> FakeTree {
        let tree = FakeTree::new(&[("/proc/interrupts", TEXT)]);
        for (number, requested, effective) in
            [(1, "0-3", "0"), (16, "0-3", "2"), (36, "3", "3"), (37, "3", "3")]
        {
            tree.write(&format!("/proc/irq/{number}/smp_affinity_list"), requested);
            tree.write(&format!("/proc/irq/{number}/effective_affinity_list"), effective);
        }
        tree
    }

    #[test]
    fn where_interrupts_fire_and_may_fire() {
        let tree = machine();
        let reading = |name: &str| shown(&tree, Isolated::Cpus("2-3"), name);
        assert_eq!(
            reading("interrupts.on-isolated"),
            "irq 16 ehci_hcd:usb1, snd hda: 2, irq 36 virtio1-req.0: 3"
        );
        assert_eq!(reading("interrupts.allowed-on-isolated"), "irq 1 i8042: 2-3");
        assert_eq!(reading("interrupts.managed-on-isolated"), "absent");
        assert_eq!(reading("interrupts.shared"), "irq 16: ehci_hcd:usb1, snd hda");
        assert_eq!(shown(&tree, Isolated::None, "interrupts.on-isolated"), "unknown");
    }

    #[test]
    fn managed_interrupts_stand_apart() {
        let tree = machine();
        tree.write("/sys/kernel/debug/irq/irqs/36", "handler: handle_edge_irq\nIRQD_AFFINITY_MANAGED\n");
        let reading = |name: &str| shown(&tree, Isolated::Cpus("2-3"), name);
        assert_eq!(reading("interrupts.on-isolated"), "irq 16 ehci_hcd:usb1, snd hda: 2");
        assert_eq!(reading("interrupts.managed-on-isolated"), "irq 36 virtio1-req.0: 3");
    }

    #[test]
    fn without_effective_masks_the_requested_ones_count() {
        let tree = FakeTree::new(&[("/proc/interrupts", TEXT), ("/proc/irq/1/smp_affinity_list", "1-2")]);
        assert_eq!(shown(&tree, Isolated::Cpus("2-3"), "interrupts.on-isolated"), "irq 1 i8042: 2");
    }

    #[test]
    fn threads_of_interrupts_and_how_many_are_raised() {
        let tree = FakeTree::empty();
        let reading = |name: &str| shown(&tree, Isolated::None, name);
        assert_eq!(
            (reading("interrupts.threads"), reading("interrupts.raised-threads")),
            ("absent".into(), "absent".into())
        );
        thread(&tree, (50, 50), "irq/16-ehci", 0x0020_0000, (1, 50), "0-3");
        thread(&tree, (51, 51), "irq/36-gpio", 0x0020_0000, (1, 90), "0-3");
        thread(&tree, (52, 52), "irq/fake", 0, (1, 90), "0-3");
        assert_eq!(reading("interrupts.threads"), "irq/16-ehci (50): fifo 50, irq/36-gpio (51): fifo 90");
        assert_eq!(reading("interrupts.raised-threads"), "1");
    }
}
