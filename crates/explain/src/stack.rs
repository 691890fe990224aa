//! What stacks of callers say: what an interrupt interrupted, and where a thread gave way.

/// What ran when an interrupt came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupted<'a> {
    /// The kernel: its frames, innermost first.
    Kernel(&'a [String]),
    /// User space.
    User,
    /// The stack does not show an interrupt.
    Unknown,
}

/// How a thread came to give way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GaveWay<'a> {
    /// At a resched point that it reached by itself: the frames that called it.
    ReschedPoint(&'a [String]),
    /// As soon as it allowed preemption again: the frames that did.
    Preempted(&'a [String]),
    /// On its way back to user space.
    ToUser,
    /// It went to sleep.
    Slept(&'a [String]),
    /// The stack does not say.
    Unknown,
}

/// Where the kernel is entered by an interrupt: x86, arm64, others.
const ENTRIES: [&str; 8] = [
    "asm_sysvec_",
    "asm_common_interrupt",
    "asm_exc_nmi",
    "el1_interrupt",
    "el1h_64_irq",
    "el0_interrupt",
    "el0t_64_irq",
    "handle_riscv_irq",
];

/// Ways into the kernel, and what all of its threads begin with.
const OUTSIDE: [&str; 11] = [
    "do_syscall_64",
    "entry_",
    "x64_sys_call",
    "ret_from_fork",
    "kthread",
    "worker_thread",
    "asm_exc_",
    "exc_",
    "irqentry_",
    "el0",
    "el1",
];

/// Entries from user space only.
const USER_ENTRIES: [&str; 2] = ["el0_interrupt", "el0t_64_irq"];

/// Where the kernel is left for user space: the generic entry code of several versions, which has one of these in the others or
/// not; arm64, arm and PowerPC.
const TO_USER: [&str; 7] = [
    "exit_to_user_mode",
    "syscall_exit_to_user_mode",
    "irqentry_exit_to_user",
    "do_notify_resume",
    "do_work_pending",
    "syscall_exit_prepare",
    "interrupt_exit_user_prepare",
];

/// Frames that turn interrupts or preemption on again for their callers, and are not what held them off.
const HELPERS: [&str; 17] = [
    "_raw_spin_unlock",
    "_raw_read_unlock",
    "_raw_write_unlock",
    "rt_spin_unlock",
    "rt_mutex_",
    "__local_bh_enable",
    "preempt_schedule",
    "preempt_count_sub",
    "__raw_spin_unlock",
    "irqentry_exit",
    "raw_irqentry_exit",
    "finish_task_switch",
    "__cond_resched",
    "__might_resched",
    "local_bh_enable",
    "migrate_enable",
    "rcu_read_unlock",
];

/// Functions that switch interrupts on again by an instruction of their own, not by a lock's: entries from user space, softirqs, the
/// idle loop, the scheduler, calls of other CPUs. There may be others.
const SWITCH_ON: [&str; 17] = [
    "exc_",
    "do_user_addr_fault",
    "do_syscall_64",
    "do_int80",
    "__do_softirq",
    "handle_softirqs",
    "do_idle",
    "default_idle",
    "native_safe_halt",
    "pv_native_safe_halt",
    "mwait_idle",
    "intel_idle",
    "cpuidle_enter",
    "__schedule",
    "smp_call_function",
    "__flush_smp_call_function_queue",
    "flush_smp_call_function_queue",
];

fn begins_with_any(name: &str, beginnings: &[&str]) -> bool {
    beginnings.iter().any(|beginning| name.starts_with(beginning))
}

/// What the interrupt at the top of a stack interrupted. Frames are innermost first.
pub fn interrupted(stack: &[String]) -> Interrupted<'_> {
    let Some(entry) = stack.iter().position(|frame| begins_with_any(frame, &ENTRIES)) else {
        return Interrupted::Unknown;
    };
    // Entries follow one another: el1_interrupt < el1h_64_irq_handler < el1h_64_irq.
    let below = stack[entry..].iter().position(|frame| !begins_with_any(frame, &ENTRIES));
    let is_user = stack[entry..].iter().any(|frame| begins_with_any(frame, &USER_ENTRIES));
    match below {
        Some(below) if !is_user => Interrupted::Kernel(&stack[entry + below..]),
        _ => Interrupted::User,
    }
}

/// How the thread whose switch this stack is of gave way.
pub fn gave_way(stack: &[String]) -> GaveWay<'_> {
    let at = |name: &str| stack.iter().position(|frame| frame.starts_with(name));
    let behind = |place: usize| &stack[(place + 1).min(stack.len())..];
    if let Some(place) = at("__cond_resched") {
        return GaveWay::ReschedPoint(behind(place));
    }
    if stack.iter().any(|frame| begins_with_any(frame, &TO_USER)) {
        return GaveWay::ToUser;
    }
    if at("preempt_schedule").is_some() || at("raw_irqentry_exit_cond_resched").is_some() {
        return match interrupted(stack) {
            Interrupted::Kernel(frames) => GaveWay::Preempted(frames),
            Interrupted::User => GaveWay::ToUser,
            Interrupted::Unknown => {
                let place = at("preempt_schedule").unwrap_or_default();
                GaveWay::Preempted(behind(place))
            }
        };
    }
    match at("schedule") {
        Some(place) => GaveWay::Slept(behind(place)),
        None => GaveWay::Unknown,
    }
}

/// The function that a stack is about: the innermost that is no helper.
pub fn function(frames: &[String]) -> Option<&str> {
    frames.iter().map(String::as_str).find(|frame| !begins_with_any(frame, &HELPERS))
}

/// Whether code was interrupted where interrupts are switched on again.
pub fn switches_on(frames: &[String]) -> bool {
    frames.first().is_some_and(|frame| begins_with_any(frame, &HELPERS) || begins_with_any(frame, &SWITCH_ON))
}

/// The innermost function that stands in both stacks with all its callers: what ran at both moments.
pub fn common<'a>(one: &'a [String], other: &[String]) -> Option<&'a str> {
    let alike = one.iter().rev().zip(other.iter().rev()).take_while(|(one, other)| one == other).count();
    let common = &one[one.len() - alike..];
    function(common).filter(|name| !begins_with_any(name, &OUTSIDE))
}

/// Whether a stack goes down to where the kernel was entered. The kernel walks it no further than code that it knows nothing
/// of: programs of BPF that were compiled.
pub fn is_whole(frames: &[String]) -> bool {
    frames.last().is_some_and(|last| begins_with_any(last, &OUTSIDE))
}

/// Whether a thread came to where this stack shows it by a system call.
pub fn is_of_call(stack: &[String]) -> bool {
    const CALLS: [&str; 4] = ["do_syscall", "entry_SYSCALL", "el0_svc", "system_call"];
    stack.iter().any(|frame| begins_with_any(frame, &CALLS))
}

/// Whether a thread read a trace: `per_cpu/cpuN/trace_pipe_raw` (kernel/trace/trace.c).
pub fn reads_a_trace(stack: &[String]) -> bool {
    stack.iter().any(|frame| frame.starts_with("tracing_buffers_"))
}

/// From the outermost function on that is no way into the kernel: a system call, a page fault, a thread of the kernel.
pub fn outermost(frames: &[String]) -> &[String] {
    let place = frames.iter().rposition(|frame| !begins_with_any(frame, &OUTSIDE));
    place.map_or(frames, |place| &frames[place..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn frames_below_the_entry_of_an_interrupt_are_what_it_interrupted() {
        let kernel = stack(
            "ttwu_do_activate try_to_wake_up hrtimer_wakeup __hrtimer_run_queues hrtimer_interrupt \
             __sysvec_apic_timer_interrupt sysvec_apic_timer_interrupt asm_sysvec_apic_timer_interrupt \
             _raw_spin_unlock_irqrestore console_flush_all vprintk_emit",
        );
        let Interrupted::Kernel(frames) = interrupted(&kernel) else { panic!("{kernel:?}") };
        assert_eq!(function(frames), Some("console_flush_all"));
        assert_eq!(interrupted(&kernel[..8]), Interrupted::User);
        assert_eq!(interrupted(&kernel[..5]), Interrupted::Unknown);
        let arm =
            stack("try_to_wake_up hrtimer_wakeup el1_interrupt el1h_64_irq_handler el1h_64_irq clear_page");
        assert_eq!(interrupted(&arm), Interrupted::Kernel(&arm[5..]));
        let user =
            stack("try_to_wake_up el0_interrupt __el0_irq_handler_common el0t_64_irq_handler el0t_64_irq");
        assert_eq!(interrupted(&user), Interrupted::User);
    }

    #[test]
    fn a_resched_point_a_preemption_and_a_return_to_user_space_are_distinguished() {
        let point = stack("__schedule __cond_resched clear_huge_page do_huge_pmd_anonymous_page");
        assert_eq!(gave_way(&point), GaveWay::ReschedPoint(&point[2..]));
        let preempted = stack(
            "__schedule preempt_schedule preempt_schedule_thunk _raw_spin_unlock ext4_writepages do_writepages",
        );
        let GaveWay::Preempted(frames) = gave_way(&preempted) else { panic!() };
        assert_eq!(function(frames), Some("ext4_writepages"));
        let at_interrupt = stack(
            "__schedule preempt_schedule_irq raw_irqentry_exit_cond_resched irqentry_exit \
             sysvec_apic_timer_interrupt asm_sysvec_apic_timer_interrupt copy_page",
        );
        assert_eq!(gave_way(&at_interrupt), GaveWay::Preempted(&at_interrupt[6..]));
        for user in [
            "exit_to_user_mode_prepare irqentry_exit_to_user_mode asm_sysvec_x",
            "exit_to_user_mode_prepare syscall_exit_to_user_mode do_syscall_64 entry_x",
            "syscall_exit_to_user_mode do_syscall_64 entry_x",
            "exit_to_user_mode_loop do_syscall_64 entry_x",
            "irqentry_exit_to_user_mode asm_sysvec_x",
            "do_notify_resume el0_svc el0t_64_sync",
        ] {
            assert_eq!(gave_way(&stack(&format!("__schedule schedule {user}"))), GaveWay::ToUser, "{user}");
        }
        let slept = stack("__schedule schedule do_nanosleep");
        assert_eq!(gave_way(&slept), GaveWay::Slept(&slept[2..]));
    }

    #[test]
    fn what_ran_at_both_moments_is_the_innermost_common_caller() {
        let waking = stack("clear_page_erms clear_huge_page do_huge_pmd do_fault entry_x");
        let switch = stack("__cond_resched clear_huge_page do_huge_pmd do_fault entry_x");
        assert_eq!(common(&waking, &switch), Some("clear_huge_page"));
        assert_eq!(common(&stack("a entry_x"), &stack("b entry_x")), None);
        assert_eq!(common(&[], &switch), None);
        let call = stack("memset bpf_check __x64_sys_bpf x64_sys_call do_syscall_64 entry_SYSCALL_64");
        assert_eq!(function(outermost(&call)), Some("__x64_sys_bpf"));
        assert!(outermost(&[]).is_empty());
        assert!(is_whole(&call) && !is_whole(&call[..3]) && !is_whole(&[]));
        assert!(is_of_call(&call) && !is_of_call(&stack("page_fault asm_exc_page_fault")));
    }
}
