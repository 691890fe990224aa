//! Interrupts: which may fire on CPUs set apart, which of them can be moved, and the threads that handle them
//! (Documentation/core-api/irq/irq-affinity.rst, filesystems/proc.rst; `show_interrupts` in kernel/irq/proc.c).

use record::Fact;
use units::CpuList;

use super::{item, list, reading, unsupported};
use crate::survey::facts::{NamedFact, fact};
use crate::survey::{Item, Reading, Survey, Value};
use crate::{SysRoot, tasks};

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

const PATH: &str = "/proc/interrupts";

/// One line of /proc/interrupts for a device.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Interrupt {
    number: u32,
    /// What handles it: `eth0-rx-0`.
    name: String,
    /// Whether each CPU has its own, so that it cannot be moved and is nobody's guest.
    per_cpu: bool,
}

/// Parses /proc/interrupts: lines with a number, a handler, and as many counts as the head has CPUs.
fn parse(text: &str) -> Vec<Interrupt> {
    let mut lines = text.lines();
    let cpus = lines.next().unwrap_or_default().split_whitespace().count();
    lines.filter_map(|line| parse_line(line, cpus)).collect()
}

/// ` 36:  0  208381 PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0`, ` 3:  7  9  GICv3  30 Level     arch_timer`.
fn parse_line(line: &str, cpus: usize) -> Option<Interrupt> {
    let (number, rest) = line.trim_start().split_once(':')?;
    let number = number.parse().ok()?;
    let mut words = rest.split_whitespace().skip(cpus).peekable();
    let chip = words.next()?;
    let source = words.next_if(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    words.next_if(|word| matches!(*word, "Level" | "Edge" | "None"));
    let name = words.collect::<Vec<_>>().join(" ");
    (!name.is_empty()).then(|| Interrupt { number, per_cpu: is_per_cpu(chip, source, &name), name })
}

/// A source below 32 of ARM's interrupt controller is a CPU's own; other controllers tell by what the sources do.
fn is_per_cpu(chip: &str, source: &str, name: &str) -> bool {
    const OWN: [&str; 8] =
        ["arch_timer", "arm-pmu", "IPI", "riscv-timer", "twd", "local_timer", "kvm guest", "percpu"];
    let below_32 = source.parse::<u32>().is_ok_and(|source| source < 32);
    chip.starts_with("GIC") && below_32 || chip == "riscv-intc" || OWN.iter().any(|own| name.starts_with(own))
}

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

/// Whether the kernel manages the affinity itself. Told only by debugfs (kernel/irq/debugfs.c).
fn is_managed(root: &SysRoot, number: u32) -> bool {
    let state = root.read(&format!("/sys/kernel/debug/irq/irqs/{number}"));
    state.value().is_some_and(|text| text.contains("IRQD_AFFINITY_MANAGED"))
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
    choose(survey, |interrupt| match interrupt.fixed {
        true => CpuList::new(),
        false => interrupt.effective.intersection(&survey.isolated),
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
        Fact::Value(_) => choose(survey, |interrupt| match interrupt.fixed {
            true => interrupt.effective.intersection(&survey.isolated),
            false => CpuList::new(),
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
    let value = match threads.is_empty() {
        true => Fact::Absent,
        false => Fact::Value(Value::Number(i64::try_from(raised).unwrap_or(i64::MAX))),
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
    use super::{Interrupt, parse};
    use crate::fake::FakeTree;
    use proptest::prelude::*;

    const TEXT: &str = "           CPU0       CPU1       \n \
        \x20 1:          9          0   IO-APIC   1-edge      i8042\n \
        \x2016:          0          7   IO-APIC  16-fasteoi   ehci_hcd:usb1, snd hda\n \
        \x2036:          0     208381 PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0\n \
        \x2037:          0          0   PCI-MSI 524288-edge\n\
        NMI:          0          0   Non-maskable interrupts\n\
        LOC:     269190     271609   Local timer interrupts\n\
        ERR:          0\n";

    fn names(text: &str) -> Vec<(u32, String, bool)> {
        parse(text).into_iter().map(|Interrupt { number, name, per_cpu }| (number, name, per_cpu)).collect()
    }

    #[test]
    fn interrupts_of_devices_are_told_from_the_rest() {
        assert_eq!(
            names(TEXT),
            [
                (1, "i8042".into(), false),
                (16, "ehci_hcd:usb1, snd hda".into(), false),
                (36, "virtio1-req.0".into(), false)
            ]
        );
    }

    #[test]
    fn a_cpus_own_interrupts_are_known_on_arm() {
        let text = "           CPU0       CPU1\n \
            \x203:     237357      90193     GICv3  30 Level     arch_timer\n \
            \x206:          0          0     GICv3  79 Level     timer@306a0000\n \
            \x207:          0          0     GICv3  23 Level     arm-pmu\n \
            \x2052:    1355491          0  gpio-mxc  12 Edge      latmon-pulse\n \
            \x2029:       9999       9999       GIC  29  twd\n\
            IPI0:       100       200  Rescheduling interrupts\n";
        assert_eq!(
            names(text),
            [
                (3, "arch_timer".into(), true),
                (6, "timer@306a0000".into(), false),
                (7, "arm-pmu".into(), true),
                (52, "latmon-pulse".into(), false),
                (29, "twd".into(), true)
            ]
        );
    }

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
        let told = |name: &str| shown(&tree, Isolated::Cpus("2-3"), name);
        assert_eq!(
            told("interrupts.on-isolated"),
            "irq 16 ehci_hcd:usb1, snd hda: 2, irq 36 virtio1-req.0: 3"
        );
        assert_eq!(told("interrupts.allowed-on-isolated"), "irq 1 i8042: 2-3");
        assert_eq!(told("interrupts.managed-on-isolated"), "absent");
        assert_eq!(told("interrupts.shared"), "irq 16: ehci_hcd:usb1, snd hda");
        assert_eq!(shown(&tree, Isolated::None, "interrupts.on-isolated"), "unknown");
    }

    #[test]
    fn managed_interrupts_stand_apart() {
        let tree = machine();
        tree.write("/sys/kernel/debug/irq/irqs/36", "handler: handle_edge_irq\nIRQD_AFFINITY_MANAGED\n");
        let told = |name: &str| shown(&tree, Isolated::Cpus("2-3"), name);
        assert_eq!(told("interrupts.on-isolated"), "irq 16 ehci_hcd:usb1, snd hda: 2");
        assert_eq!(told("interrupts.managed-on-isolated"), "irq 36 virtio1-req.0: 3");
    }

    #[test]
    fn without_effective_masks_the_requested_ones_count() {
        let tree = FakeTree::new(&[("/proc/interrupts", TEXT), ("/proc/irq/1/smp_affinity_list", "1-2")]);
        assert_eq!(shown(&tree, Isolated::Cpus("2-3"), "interrupts.on-isolated"), "irq 1 i8042: 2");
    }

    #[test]
    fn threads_of_interrupts_and_how_many_are_raised() {
        let tree = FakeTree::empty();
        let told = |name: &str| shown(&tree, Isolated::None, name);
        assert_eq!(
            (told("interrupts.threads"), told("interrupts.raised-threads")),
            ("absent".into(), "absent".into())
        );
        thread(&tree, (50, 50), "irq/16-ehci", 0x0020_0000, (1, 50), "0-3");
        thread(&tree, (51, 51), "irq/36-gpio", 0x0020_0000, (1, 90), "0-3");
        thread(&tree, (52, 52), "irq/fake", 0, (1, 90), "0-3");
        assert_eq!(told("interrupts.threads"), "irq/16-ehci (50): fifo 50, irq/36-gpio (51): fifo 90");
        assert_eq!(told("interrupts.raised-threads"), "1");
    }

    proptest! {
        #[test]
        fn any_text_is_answered_without_a_panic(text in "(CPU0 CPU1\n)?( ?[0-9]{0,3}: {0,2}[0-9 ]{0,8}(GIC|x) ?[0-9]{0,3}[- a-z]{0,9}\n?){0,4}|.{0,60}") {
            let _ = parse(&text);
        }
    }
}
