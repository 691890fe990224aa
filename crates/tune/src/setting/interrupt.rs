//! Interrupts of devices: the CPUs that may be given them (Documentation/core-api/irq/irq-affinity.rst).

use machine::{SysRoot, interrupts};

use super::{Expansion, Target};

/// How rules name the CPUs of all interrupts.
pub(super) const FILES: &str = "/proc/irq/*/smp_affinity_list";

/// Every interrupt of a device narrowed to `cpus`, where the kernel lets others move it.
pub(super) fn expand(root: &SysRoot, cpus: &str) -> Expansion {
    let mut expansion = Expansion::default();
    for interrupt in interrupts::all(root) {
        let target = Target::Interrupt { number: interrupt.number, identity: interrupt.identity() };
        if interrupt.per_cpu {
            expansion.refuse(target.to_string(), "each CPU has its own: it cannot be moved");
        } else if interrupts::is_managed(root, interrupt.number) {
            expansion
                .refuse(target.to_string(), "the kernel manages it: fewer queues, or isolcpus=managed_irq");
        } else {
            expansion.change(root, target, cpus);
        }
    }
    expansion
}
