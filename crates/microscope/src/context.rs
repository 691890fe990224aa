//! What an instruction ran for, and what that is to a late wake-up.

use record::{Class, Stage};
use serde::Serialize;

use crate::machine::begins;

/// What a CPU was in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case", tag = "is")]
pub enum Context {
    /// It halted.
    Halted,
    /// A non-maskable interrupt.
    Nmi,
    /// A hard interrupt.
    Interrupt {
        /// Its entry: `sysvec_apic_timer_interrupt`.
        name: String,
    },
    /// A softirq.
    Softirq,
    /// A thread in the kernel.
    Thread {
        /// Its name.
        name: String,
    },
    /// A thread in its program.
    Program {
        /// Its name.
        name: String,
    },
    /// It is not recorded: the wake-up was later than what is kept reaches back.
    NotRecorded,
}

/// What decides a piece: how far the wake-up had come, what ran, whether interrupts were off, the preemption count, and whether a reschedule
/// was wanted.
pub(crate) type State = (Stage, Context, bool, u32, bool);

/// What runs the functions of timers (kernel/time/hrtimer.c), and what it calls besides them.
const RUNS_TIMERS: &str = "__hrtimer_run_queues";
const BESIDE_TIMERS: [&str; 11] = [
    "hrtimer_wakeup",
    "__remove_hrtimer",
    "_raw_spin_",
    "__raw_spin_",
    "enqueue_hrtimer",
    "hrtimer_",
    "timerqueue_",
    "ktime_",
    "trace_",
    "__traceiter_",
    "rb_",
];

/// Whether an instruction in a hard interrupt is of the timer's own way to the waking, and not of another timer's function.
fn is_of_the_waking(context: &Context, path: &[String]) -> bool {
    let Context::Interrupt { name } = context else { return false };
    let called = path.iter().position(|function| function == RUNS_TIMERS);
    let function = called.and_then(|place| path.get(place + 1));
    name.contains("timer") && function.is_none_or(|function| begins(function, &BESIDE_TIMERS))
}

/// Why the wake-up did not come further meanwhile.
pub(crate) fn class(
    (stage, context, interrupts_off, count, is_wanted): &State,
    path: &[String],
    is_fault: bool,
    is_switch: bool,
) -> Class {
    match (stage, context) {
        (_, Context::NotRecorded) => Class::Unknown,
        (_, Context::Nmi) => Class::Nmi,
        (_, Context::Halted) => Class::Usual,
        (Stage::Running, _) => {
            if is_fault {
                Class::PageFault
            } else {
                Class::Usual
            }
        }
        (_, Context::Interrupt { .. }) if is_of_the_waking(context, path) => Class::Usual,
        (_, Context::Interrupt { .. }) => Class::Interrupt,
        (_, Context::Softirq) => Class::Softirq,
        (Stage::BeforeInterrupt, _) => {
            if *interrupts_off {
                Class::InterruptsOff
            } else {
                Class::Usual
            }
        }
        (_, Context::Thread { name } | Context::Program { name }) if name.starts_with("swapper/") => {
            Class::Usual
        }
        _ if is_switch => Class::Usual,
        // On the way in and out of the timer's own interrupt.
        (Stage::InInterrupt, _) if *interrupts_off => Class::Usual,
        _ if *interrupts_off => Class::InterruptsOff,
        _ if *count > 0 => Class::PreemptionOff,
        _ if *is_wanted => Class::NoPreemption,
        _ => Class::Rival,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_timers_function_is_no_part_of_the_wake_up() {
        let timer = Context::Interrupt { name: "sysvec_apic_timer_interrupt".to_owned() };
        let is_of_it = |context: &Context, path: &str| {
            let path: Vec<String> = path.split_whitespace().map(str::to_owned).collect();
            is_of_the_waking(context, &path)
        };
        assert!(is_of_it(&timer, "hrtimer_interrupt __hrtimer_run_queues hrtimer_wakeup try_to_wake_up"));
        assert!(is_of_it(&timer, "hrtimer_interrupt __hrtimer_run_queues __remove_hrtimer"));
        assert!(is_of_it(&timer, "irqentry_enter"));
        assert!(!is_of_it(
            &timer,
            "hrtimer_interrupt __hrtimer_run_queues tick_nohz_handler update_process_times"
        ));
        let other = Context::Interrupt { name: "sysvec_reschedule_ipi".to_owned() };
        assert!(!is_of_it(&other, "irqentry_enter"));
        assert!(!is_of_it(&Context::Softirq, "hrtimer_interrupt"));
    }
}
