//! Interrupts of devices: the CPUs that may be given them (Documentation/core-api/irq/irq-affinity.rst), and the threads
//! that handle them.

use std::fmt;

use control::Kernel;
use machine::interrupts::{self, Interrupt};
use record::Fact;
use rustix::io::Errno;
use sysroot::SysRoot;
use units::{CpuList, Policy, Priority};

use super::{Expansion, Form, Found, Kind, Phase, Target, Thread};

/// How rules name the CPUs of all interrupts.
pub(super) const FILES: &str = "/proc/irq/*/smp_affinity_list";

/// Threads and interrupts that somebody has named, and what exactly is to become of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handlers {
    /// The threads.
    pub threads: Vec<Thread>,
    /// Their policy, one of real time.
    pub policy: Policy,
    /// Their priority.
    pub priority: Priority,
    /// The interrupts that are to go to [`Handlers::cpus`].
    pub interrupts: Vec<Interrupt>,
    /// Where these are to go; none where they stay.
    pub cpus: Option<CpuList>,
}

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
        expansion.refuse(
            target.to_string(),
            "the kernel manages it: fewer queues, or isolcpus=managed_irq,domain,CPUS",
        );
    } else {
        return Some(target);
    }
    None
}

/// The CPUs of an interrupt: see [`Target::Interrupt`].
pub(super) struct Cpus<'a> {
    pub number: u32,
    pub identity: &'a str,
}

impl Cpus<'_> {
    fn file(&self) -> String {
        format!("/proc/irq/{}/smp_affinity_list", self.number)
    }
}

impl fmt::Display for Cpus<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CPUs of irq {} ({})", self.number, self.identity)
    }
}

impl Kind for Cpus<'_> {
    fn text(&self, root: &SysRoot) -> Fact<String> {
        root.read(&self.file())
    }

    fn write(&self, kernel: &mut dyn Kernel, value: &str) -> Result<(), Errno> {
        kernel.write_file(&self.file(), value)
    }

    fn form(&self, _text: &str) -> Form {
        Form::List
    }

    fn phase(&self) -> Phase {
        Phase::Interrupts
    }

    fn may_be_refused(&self) -> bool {
        true
    }

    /// `irq_can_set_affinity_usr` in kernel/irq/manage.c.
    fn why_refused(&self, errno: i32) -> Option<&'static str> {
        let errnos = [Errno::PERM, Errno::IO];
        errnos.iter().any(|one| one.raw_os_error() == errno).then_some(
            "the kernel manages it, or its controller cannot move it: fewer queues of the device, or isolcpus=managed_irq",
        )
    }

    /// Many controllers move an interrupt when it comes the next time (`irq_move_irq` in kernel/irq/migration.c).
    fn pending(&self, root: &SysRoot) -> Option<String> {
        let effective = root.cpu_list(&format!("/proc/irq/{}/effective_affinity_list", self.number));
        let allowed = root.cpu_list(&self.file());
        let elsewhere = effective.value()?.difference(allowed.value()?);
        (!elsewhere.is_empty()).then(|| format!("the next one still comes to CPU {elsewhere}"))
    }

    /// By its number, if that has the same identity still; else by its identity, if one interrupt alone has it.
    fn find(&self, root: &SysRoot, _this: &Target) -> Found {
        let all = interrupts::all(root);
        let same = all.iter().filter(|interrupt| interrupt.identity() == self.identity);
        let numbers: Vec<u32> = same.map(|interrupt| interrupt.number).collect();
        let here = |number| Found::Here(Target::Interrupt { number, identity: self.identity.to_owned() });
        match numbers.as_slice() {
            numbers if numbers.contains(&self.number) => here(self.number),
            [other] => here(*other),
            [] => Found::Gone("no interrupt of that name is there now".to_owned()),
            _ => Found::Unclear("several interrupts have its name now, and none its number".to_owned()),
        }
    }
}
