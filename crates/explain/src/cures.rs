//! What helps against a sort of delay: rules by their ids.

use record::{Class, HandlerKind};

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
pub const CLASSES: [Class; 18] = [
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
    Class::TimerSlack,
    Class::Usual,
    Class::Tracing,
    Class::Unknown,
];

/// What is to be said of a class.
pub const fn of(class: Class) -> Sort {
    match class {
        Class::Host => {
            sort(class.words(), &["rn-guest-steal", "fw-smi"], "pin and isolate the virtual CPUs on the host")
        }
        Class::InterruptsOff => sort(class.words(), &["kc-preempt-rt", "rn-printk", "bt-serial-console"], ""),
        Class::PreemptionOff => sort(class.words(), &["kc-preempt-rt"], ""),
        Class::NoPreemption => sort(class.words(), &["kc-preempt-rt", "bt-preempt", "rn-thp"], ""),
        Class::Interrupt => sort(class.words(), &["rn-irq-affinity", "rn-irq-allowed", "bt-threadirqs"], ""),
        Class::Call => sort(class.words(), &["rn-cpuset-partition", "bt-nohz-full"], ""),
        Class::Softirq => sort(class.words(), &["bt-threadirqs", "kc-preempt-rt", "rn-irq-affinity"], ""),
        Class::Timer => sort(class.words(), &["rn-timer-migration", "bt-skew-tick", "bt-nohz-full"], ""),
        Class::Nmi => sort(class.words(), &["rn-nmi-watchdog"], ""),
        Class::Rival => sort(
            class.words(),
            &["rn-equal-priorities", "pr-prio-unique"],
            "give the thread a higher priority, or the other one another CPU",
        ),
        Class::Throttling => sort(class.words(), &["rn-rt-throttle", "rn-throttled", "rn-fair-server"], ""),
        Class::IdleExit => sort(class.words(), &["rn-cpu-dma-latency", "bt-idle-poll"], ""),
        Class::Migration => sort(class.words(), &["pr-pinned"], ""),
        Class::PageFault => sort(class.words(), &["pr-mlock", "pr-prefault"], ""),
        Class::TimerSlack => sort(class.words(), &["pr-timerslack"], ""),
        Class::Usual => sort(class.words(), &[], ""),
        Class::Tracing => sort(class.words(), &[], ""),
        Class::Unknown => sort(class.words(), &[], ""),
    }
}

/// The rule that a trial on the running machine can try against a sort of delay; none where the cure is another kernel, another
/// host, or a partition.
pub const fn trial(class: Class) -> Option<&'static str> {
    match class {
        Class::InterruptsOff => Some("rn-printk"),
        Class::NoPreemption => Some("rn-thp"),
        Class::Nmi => Some("rn-nmi-watchdog"),
        Class::Throttling => Some("rn-rt-throttle"),
        _ => None,
    }
}

/// What can be done about something that runs and is no thread: whether it can be made a thread or be moved to another CPU, and
/// how. The words begin a line.
pub fn of_handler(kind: HandlerKind, name: &str) -> Sort {
    match (kind, name) {
        (HandlerKind::Interrupt, _) => sort(
            "threaded by threadirqs or PREEMPT_RT, unless its driver forbids it; moved by smp_affinity_list",
            &["bt-threadirqs", "rn-irq-affinity", "rn-irq-allowed"],
            "",
        ),
        (HandlerKind::Vector, "local_timer") => {
            sort("neither: fewer of them without a tick", &["bt-nohz-full", "rn-timer-migration"], "")
        }
        (HandlerKind::Vector, _) => {
            sort("neither: fewer of them on a CPU of its own", &["rn-cpuset-partition", "bt-nohz-full"], "")
        }
        (HandlerKind::Softirq, "NET_RX" | "NET_TX" | "BLOCK" | "IRQ_POLL" | "TASKLET" | "HI") => sort(
            "threaded by threadirqs or PREEMPT_RT; moves with its device's interrupt",
            &["bt-threadirqs", "rn-irq-affinity", "rn-rps", "rn-rq-affinity"],
            "",
        ),
        (HandlerKind::Softirq, "RCU") => {
            sort("moved to threads by rcu_nocbs", &["bt-rcu-nocbs", "rn-rcu-kthreads"], "")
        }
        (HandlerKind::Softirq, "SCHED") => {
            sort("neither: absent on a CPU without load balancing", &["rn-cpuset-partition"], "")
        }
        (HandlerKind::Softirq, _) => sort(
            "threaded by PREEMPT_RT; stays with the CPU that set the timer",
            &["kc-preempt-rt", "rn-timer-migration"],
            "",
        ),
        (HandlerKind::Call, _) => {
            sort("neither: keep its sender from that CPU", &["rn-cpuset-partition", "bt-nohz-full"], "")
        }
        (HandlerKind::Timer, _) => sort(
            "threaded by PREEMPT_RT, unless it is marked hard; stays with the CPU that set it",
            &["kc-preempt-rt", "rn-timer-migration"],
            "",
        ),
        (HandlerKind::Work, _) => {
            sort("is a thread; moved by the workqueues' cpumask, unless bound", &["rn-wq-cpumask"], "")
        }
        (HandlerKind::Nmi, _) => sort("neither", &["rn-nmi-watchdog"], ""),
    }
}
