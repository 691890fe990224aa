//! Interrupts of devices: the CPUs that may be given them (Documentation/core-api/irq/irq-affinity.rst), and the threads
//! that handle them.

use machine::interrupts::{self, Interrupt};
use sysroot::SysRoot;

use super::{Expansion, Target};
use crate::plan::Handlers;

/// How rules name the CPUs of all interrupts.
pub(super) const FILES: &str = "/proc/irq/*/smp_affinity_list";

/// Every interrupt of a device narrowed to `cpus`, where the kernel lets others move it.
pub(super) fn expand(root: &SysRoot, cpus: &str) -> Expansion {
    let mut expansion = Expansion::default();
    for interrupt in interrupts::all(root) {
        if let Some(target) = movable(root, &mut expansion, &interrupt) {
            expansion.change(root, target, cpus);
        }
    }
    expansion
}

/// Just what was asked for. The thread of an interrupt follows it to its CPUs by itself, with the next interrupt
/// (`irq_thread_check_affinity` in kernel/irq/manage.c).
pub(super) fn handlers(root: &SysRoot, handlers: &Handlers) -> Expansion {
    let mut expansion = Expansion::default();
    if let Some(cpus) = &handlers.cpus {
        for interrupt in &handlers.interrupts {
            if let Some(target) = movable(root, &mut expansion, interrupt) {
                expansion.set(root, target, &cpus.to_string());
            }
        }
    }
    let wanted = format!("{} {}", handlers.policy, handlers.priority);
    for thread in &handlers.threads {
        expansion.set(root, Target::Scheduling(thread.clone()), &wanted);
    }
    expansion
}

/// An interrupt's CPUs, where others than the kernel may choose them.
fn movable(root: &SysRoot, expansion: &mut Expansion, interrupt: &Interrupt) -> Option<Target> {
    let target = Target::Interrupt { number: interrupt.number, identity: interrupt.identity() };
    if interrupt.per_cpu {
        expansion.refuse(target.to_string(), "each CPU has its own: it cannot be moved");
    } else if interrupts::is_managed(root, interrupt.number) {
        expansion.refuse(target.to_string(), "the kernel manages it: fewer queues, or isolcpus=managed_irq");
    } else {
        return Some(target);
    }
    None
}
