//! What helps against a sort of delay: rules by their ids.

use record::Class;

/// What a sort of cause is called, and the rules whose cures act on it, the most telling first.
#[derive(Clone, Copy, Debug)]
pub struct Sort {
    /// In a few words, the kernel's terms.
    pub words: &'static str,
    /// Ids of rules.
    pub rules: &'static [&'static str],
    /// What else helps; empty where rules say it all.
    pub advice: &'static str,
}

const fn sort(words: &'static str, rules: &'static [&'static str], advice: &'static str) -> Sort {
    Sort { words, rules, advice }
}

/// All classes.
pub const CLASSES: [Class; 17] = [
    Class::Host,
    Class::InterruptsOff,
    Class::PreemptionOff,
    Class::NoPreemption,
    Class::Interrupt,
    Class::Call,
    Class::Softirq,
    Class::Timer,
    Class::Nmi,
    Class::Rival,
    Class::Throttling,
    Class::IdleExit,
    Class::Migration,
    Class::PageFault,
    Class::Usual,
    Class::Tracing,
    Class::Unknown,
];

/// What is to be said of a class.
pub const fn of(class: Class) -> Sort {
    match class {
        Class::Host => sort(
            "the hypervisor or the firmware had the CPU",
            &["rn-guest-steal", "fw-smi"],
            "pin and isolate the virtual CPUs on the host",
        ),
        Class::InterruptsOff => {
            sort("interrupts off", &["kc-preempt-rt", "rn-printk", "bt-serial-console"], "")
        }
        Class::PreemptionOff => sort("preemption off", &["kc-preempt-rt"], ""),
        Class::NoPreemption => {
            sort("kernel code without a preemption point", &["kc-preempt-rt", "bt-preempt", "rn-thp"], "")
        }
        Class::Interrupt => {
            sort("a hard interrupt", &["rn-irq-affinity", "rn-irq-allowed", "bt-threadirqs"], "")
        }
        Class::Call => {
            sort("a function called by another CPU (IPI)", &["rn-cpuset-partition", "bt-nohz-full"], "")
        }
        Class::Softirq => sort("a softirq", &["bt-threadirqs", "kc-preempt-rt", "rn-irq-affinity"], ""),
        Class::Timer => sort("a kernel timer", &["rn-timer-migration", "bt-skew-tick", "bt-nohz-full"], ""),
        Class::Nmi => sort("a non-maskable interrupt", &["rn-nmi-watchdog"], ""),
        Class::Rival => sort(
            "a thread of the same or a higher priority",
            &["rn-equal-priorities", "pr-prio-unique"],
            "give the thread a higher priority, or the other one another CPU",
        ),
        Class::Throttling => sort("real-time throttling", &["rn-rt-throttle", "rn-throttled"], ""),
        Class::IdleExit => sort("leaving an idle state", &["rn-cpu-dma-latency", "bt-idle-poll"], ""),
        Class::Migration => sort("moving to another CPU", &["pr-pinned"], ""),
        Class::PageFault => sort("a page fault of the thread", &["pr-mlock", "pr-prefault"], ""),
        Class::Usual => sort("what each wake-up takes", &[], ""),
        Class::Tracing => sort("recording the trace", &[], ""),
        Class::Unknown => sort("not explained", &[], ""),
    }
}
