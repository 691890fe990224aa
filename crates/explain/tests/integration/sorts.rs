//! Each sort of delay by its signature.

use explain::{Frame, Kind, Usual, Window, account};
use record::{Activity, Certainty, Class, Stage};
use units::{CpuId, CpuList, Nanos};

use crate::made_up::{IDLE, OTHER, OWN, Script, TO_USER, USER, USUAL, main_cause, main_cause_of, task};

/// Of a machine on which the timer's interrupt comes at once.
const USUAL_OF_SHORT: Usual = Usual { before_interrupt: Nanos(500), ..USUAL };

/// Kernel code with interrupts off, seen when they came on again.
const PRINTING: &str = "try_to_wake_up hrtimer_wakeup hrtimer_interrupt asm_sysvec_apic_timer_interrupt \
                        _raw_spin_unlock_irqrestore console_flush_all vprintk_emit";
/// A system call with its callers.
const SYSTEM_CALL: &str = "try_to_wake_up hrtimer_wakeup hrtimer_interrupt asm_sysvec_apic_timer_interrupt \
                           memset bpf_check __x64_sys_bpf do_syscall_64 entry_SYSCALL_64_after_hwframe";

#[test]
fn a_usual_wake_up_has_no_culprit() {
    let window = Script::default()
        .switch(900_000, OWN, 0)
        .timer(1_001_000, 0, "")
        .switch(1_002_500, 0, OWN)
        .window(1_003_000);
    let account = account(&window, Some(&USUAL));
    assert!(account.causes.iter().all(|cause| cause.class == Class::Usual), "{:#?}", account.causes);
    let stages: Vec<Stage> = account.pieces.iter().map(|piece| piece.stage).collect();
    assert!(
        stages.is_sorted() && stages[0] == Stage::BeforeInterrupt && stages.last() == Some(&Stage::Running)
    );
}

#[test]
fn most_of_a_stage_that_was_long_as_a_whole_is_not_what_each_wake_up_takes() {
    // Ready for 100 ns of the timer's function, then its interrupt for `rest`, then 1700 ns of a thread: 6 us are usual.
    let of = |rest: u64| {
        let vector = || Frame::Vector("local_timer".to_owned());
        let timer = || Frame::Timer("hrtimer_wakeup".to_owned(), 7);
        let window = Script::default()
            .switch(900_000, OWN, OTHER)
            .enter(1_001_000, OTHER, vector())
            .enter(1_001_200, OTHER, timer())
            .at(1_001_500, OTHER, Kind::Waking(task(OWN)))
            .leave(1_001_600, OTHER, timer())
            .leave(1_001_600 + rest, OTHER, vector())
            .switch(1_003_300 + rest, OTHER, OWN)
            .window(1_003_500 + rest);
        account(&window, Some(&USUAL)).causes
    };
    assert!(of(4_000).iter().all(|cause| cause.class == Class::Usual), "{:#?}", of(4_000));
    let host: Vec<u64> =
        of(5_200).iter().filter(|cause| cause.class == Class::Host).map(|cause| cause.length.0).collect();
    assert_eq!(host, [5_200], "{:#?}", of(5_200));
}

#[test]
fn a_thread_that_held_the_cpu_for_longer_than_the_scheduler_takes_is_named_though_the_whole_wait_is_usual() {
    let waking = "try_to_wake_up hrtimer_wakeup asm_sysvec_apic_timer_interrupt blake2s_compress get_random_u32 do_exit";
    let point = "__schedule __cond_resched do_exit";
    // Recording a stack makes the usual wait long.
    let usual = Usual { runnable: Nanos(12_000), ..USUAL };
    let of = |held: u64, stack: &str| {
        let window = Script::default()
            .switch(900_000, OWN, OTHER)
            .timer(1_001_000, OTHER, waking)
            .switch(1_001_700 + held, OTHER, OWN)
            .stack(1_001_800 + held, OTHER, stack)
            .window(1_002_200 + held);
        let causes = account(&window, Some(&usual)).causes;
        let mut unusual =
            causes.into_iter().filter(|cause| !matches!(cause.class, Class::Usual | Class::Tracing));
        unusual.next().map(|cause| (cause.class, cause.length.0))
    };
    assert_eq!(of(2_500, point), None, "the scheduler takes 1 us: three are usual");
    assert_eq!(of(9_000, point), Some((Class::NoPreemption, 9_000)));
    assert_eq!(of(9_000, ""), None, "nothing says that it was held up");
}

/// As on PREEMPT_RT, where threads carry softirqs out themselves.
#[test]
fn a_softirq_that_gave_way_before_its_end_is_no_cause_and_what_held_it_is() {
    let of = |held: u64, stack: &str| {
        let window = Script::default()
            .switch(900_000, OWN, OTHER)
            .enter(950_000, OTHER, Frame::Softirq("NET_RX".to_owned()))
            .timer(
                1_001_000,
                OTHER,
                "try_to_wake_up hrtimer_wakeup asm_sysvec_apic_timer_interrupt net_rx_action",
            )
            .switch(1_001_700 + held, OTHER, OWN)
            .stack(1_001_800 + held, OTHER, stack)
            .window(1_002_200 + held);
        let causes = account(&window, Some(&USUAL)).causes;
        let unusual = causes.into_iter().find(|cause| !matches!(cause.class, Class::Usual | Class::Tracing));
        unusual.map(|cause| (cause.class, cause.culprit, cause.certainty, cause.length.0))
    };
    let stack = "__schedule preempt_schedule_common rt_spin_unlock net_rx_action";
    assert_eq!(of(900, stack), None);
    let held = "net_rx_action in stress [200]".to_owned();
    assert_eq!(of(90_000, stack), Some((Class::PreemptionOff, held, Certainty::Likely, 90_000)));
}

#[test]
fn time_until_the_end_of_the_timers_slack_is_the_slack_and_what_comes_after_it_is_not() {
    let idle = || {
        let script = Script::default().switch(900_000, OWN, 0).timer(11_000_000, 0, "");
        script.switch(11_002_500, 0, OWN).window(11_003_000)
    };
    let of = |slack_until| {
        let window = Window { is_guest: true, slack_until, ..idle() };
        let causes = account(&window, Some(&USUAL)).causes;
        let length = |class| {
            causes.iter().filter(|cause| cause.class == class).map(|cause| cause.length.0).sum::<u64>()
        };
        (length(Class::TimerSlack), length(Class::Host))
    };
    assert_eq!(of(None), (0, 10_000_000));
    assert_eq!(of(Some(Nanos(4_000_000))), (3_000_000, 7_000_000));
    // Something else made it come before.
    assert_eq!(of(Some(Nanos(90_000_000))), (10_000_000, 0));
}

#[test]
fn what_is_usual_of_a_thread_that_sweeps_is_counted_from_when_its_timers_were_due() {
    // Each activation is 400 ns further from the one before than the interval says.
    let due = |number: u64| 1_000_000 * number + 400 * number;
    let wake_up = |script: Script, number: u64| {
        let at = due(number);
        let arm = Kind::Arm { timer: 7, due: Nanos(at), latest: Nanos(at) };
        script
            .at(at - 900_000, OWN, arm)
            .switch(at - 800_000, OWN, 0)
            .timer(at + 600, 0, "")
            .switch(at + 2_000, 0, OWN)
            .at(at + 3_000, OWN, Kind::Other)
    };
    let window = (1..=20).fold(Script::default(), wake_up).window(0);
    let usual = Usual::before(window.of(CpuId(0)), OWN, Nanos(due(21)), Nanos(1_000_000)).unwrap();
    assert_eq!(usual.before_interrupt, Nanos(600));
    assert_eq!((usual.runnable, usual.scheduling), (Nanos(900), Nanos(700)));
}

#[test]
fn interrupts_that_were_off_are_the_functions_that_turned_them_on_again() {
    let window = Script::default()
        .switch(900_000, OWN, OTHER)
        .timer(3_000_000, OTHER, PRINTING)
        .switch(3_002_000, OTHER, OWN)
        .window(3_003_000);
    let (class, culprit, certainty, share) = main_cause(&window);
    assert_eq!(
        (class, culprit.as_str(), certainty),
        (Class::InterruptsOff, "console_flush_all in stress [200]", Certainty::Likely)
    );
    assert!(share >= 99);
}

#[test]
fn an_interrupt_that_came_late_in_user_space_is_the_hosts() {
    let script = || Script::default().switch(900_000, OWN, OTHER);
    let late =
        |script: Script| script.timer(3_000_000, OTHER, USER).switch(3_002_000, OTHER, OWN).window(3_003_000);
    let (class, _, certainty, _) = main_cause(&late(script()));
    assert_eq!((class, certainty), (Class::Host, Certainty::Likely));
    // The thread's own clock stood still meanwhile.
    let mut window = late(script());
    let stolen = Kind::Runtime { tid: OTHER, length: Nanos(120_000) };
    let events = window.events.values_mut().next().unwrap();
    let place = events.len() - 1;
    events.insert(
        place,
        explain::Event { at: Nanos(3_001_900), is_wanted: None, kind: stolen, ..events[place].clone() },
    );
    let (class, _, certainty, share) = main_cause(&Window { is_guest: true, ..window.clone() });
    assert_eq!((class, certainty), (Class::Host, Certainty::Sure));
    assert!(share >= 99);
    // Without a host it is no steal that two clocks differ.
    assert_eq!(main_cause(&window).2, Certainty::Likely);
}

#[test]
fn without_a_stack_it_is_not_known_who_had_interrupts_off() {
    let window = Script::default()
        .switch(900_000, OWN, OTHER)
        .timer(3_000_000, OTHER, "")
        .switch(3_002_000, OTHER, OWN)
        .window(3_003_000);
    let (class, _, certainty, _) = main_cause(&window);
    assert_eq!((class, certainty), (Class::Unknown, Certainty::Unknown));
}

#[test]
fn a_thread_that_gave_way_late_is_named_with_the_function_that_held_the_cpu() {
    let woken =
        "try_to_wake_up hrtimer_wakeup asm_sysvec_apic_timer_interrupt clear_page clear_huge_page do_fault";
    let point = "__schedule __cond_resched clear_huge_page do_fault";
    let locked =
        "__schedule preempt_schedule preempt_schedule_thunk _raw_spin_unlock unmap_page_range do_fault";
    for (stack, class, culprit) in [
        (point, Class::NoPreemption, "clear_huge_page in stress [200]"),
        (locked, Class::PreemptionOff, "do_fault in stress [200]"),
    ] {
        let window = Script::default()
            .switch(900_000, OWN, OTHER)
            .timer(1_002_000, OTHER, woken)
            .switch(4_000_000, OTHER, OWN)
            // The kernel records it before the switch is done: it names the thread that gave way.
            .stack(4_000_400, OTHER, stack)
            .window(4_001_000);
        let found = main_cause(&window);
        assert_eq!((found.0, found.1.as_str()), (class, culprit));
        let last = account(&window, Some(&USUAL)).pieces.pop().unwrap();
        assert!(matches!(last.activity, Activity::Thread { tid: OWN, .. }), "{last:?}");
        assert!(found.3 >= 99);
    }
}

#[test]
fn a_rival_a_softirq_a_handler_and_a_call_are_named_by_their_events() {
    let rival = Script::default()
        .switch(900_000, OWN, 300)
        .timer(1_002_000, 300, USER)
        .switch(6_000_000, 300, OWN)
        .window(6_001_000);
    assert_eq!(main_cause(&rival), (Class::Rival, "hog [300]".to_owned(), Certainty::Sure, 99));

    let softirq = Frame::Softirq("NET_RX".to_owned());
    let with_softirq = Script::default()
        .switch(900_000, OWN, 0)
        .timer(1_002_000, 0, "")
        .enter(1_002_800, 0, softirq.clone())
        .leave(2_000_000, 0, softirq)
        .switch(2_001_000, 0, OWN)
        .window(2_001_500);
    assert_eq!(main_cause(&with_softirq).1, "NET_RX");

    let (vector, handler) =
        (Frame::Vector("call_function_single".to_owned()), Frame::Handler("eth0".to_owned(), 24));
    for (frame, class) in [(vector, Class::Call), (handler, Class::Interrupt)] {
        let window = Script::default()
            .switch(900_000, OWN, 0)
            .enter(999_000, 0, frame.clone())
            .leave(2_500_000, 0, frame)
            .timer(2_500_200, 0, "")
            .switch(2_502_000, 0, OWN)
            .window(2_502_500);
        assert_eq!((main_cause(&window).0, main_cause(&window).2), (class, Certainty::Sure));
    }
}

#[test]
fn an_idle_cpu_that_wakes_late_left_an_idle_state_and_in_a_guest_the_hypervisor_had_it() {
    let idle =
        || Script::default().switch(900_000, OWN, 0).timer(171_000_000, 0, "").switch(171_002_500, 0, OWN);
    let window = idle().window(171_003_000);
    let (class, _, certainty, share) = main_cause(&window);
    assert_eq!((class, certainty), (Class::IdleExit, Certainty::Likely));
    assert!(share >= 99);
    let (class, _, certainty, share) = main_cause(&Window { is_guest: true, ..window });
    assert_eq!((class, certainty), (Class::Host, Certainty::Likely));
    assert!(share >= 99);
}

/// As on PREEMPT_RT, where an interrupt's exit wakes the thread of the softirqs.
#[test]
fn an_idle_thread_that_is_awake_had_interrupts_off_and_the_hypervisor_did_not_have_its_cpu() {
    let vector = || Frame::Vector("local_timer".to_owned());
    let slept = || {
        Script::default()
            .switch(900_000, OWN, 0)
            .at(901_000, 0, Kind::Sleep(true))
            .enter(1_000_200, 0, vector())
            .leave(1_001_000, 0, vector())
    };
    let woken = slept()
        .at(1_002_000, 0, Kind::Waking(task(OTHER)))
        .timer(1_100_000, 0, IDLE)
        .switch(1_102_500, 0, OWN);
    let awake = slept().timer(1_100_000, 0, IDLE).switch(1_102_500, 0, OWN);
    for (script, culprit) in
        [(woken, "try_to_wake_up in swapper/0 [0]"), (awake, "default_idle_call in swapper/0 [0]")]
    {
        let window = Window { is_guest: true, ..script.window(1_103_000) };
        let (class, found, certainty, share) = main_cause(&window);
        assert_eq!((class, found.as_str(), certainty), (Class::InterruptsOff, culprit, Certainty::Likely));
        assert!(share >= 90);
    }
}

#[test]
fn without_a_stack_a_thread_that_woke_another_last_had_interrupts_off_in_that() {
    let woke_at = |at: u64| {
        Script::default()
            .switch(900_000, OWN, OTHER)
            .at(at, OTHER, Kind::Waking(task(400)))
            .at(at + 1_000, OTHER, Kind::Runtime { tid: OTHER, length: Nanos(at + 1_000 - 900_000) })
            .timer(1_100_000, OTHER, "")
            .switch(1_102_500, OTHER, OWN)
            .window(1_103_000)
    };
    let (class, culprit, ..) = main_cause(&woke_at(1_000_200));
    assert_eq!((class, culprit.as_str()), (Class::InterruptsOff, "try_to_wake_up in stress [200]"));
    assert_eq!(main_cause(&woke_at(998_000)).0, Class::Unknown, "it had ended when the timer came due");
}

#[test]
fn real_time_throttling_is_idle_until_its_timer() {
    let period = Frame::Timer("sched_rt_period_timer".to_owned(), 9);
    let window = Script::default()
        .switch(900_000, OWN, 0)
        .timer(1_002_000, 0, "")
        .enter(51_000_000, 0, period.clone())
        .leave(51_001_000, 0, period)
        .switch(51_002_000, 0, OWN)
        .window(51_003_000);
    assert_eq!(main_cause(&window).0, Class::Throttling);
}

/// It expires each second where real-time threads run, throttled or not.
#[test]
fn its_timer_in_the_midst_of_a_system_call_is_no_throttling() {
    let period = Frame::Timer("sched_rt_period_timer".to_owned(), 9);
    let expired_at = |at: u64| {
        Script::default()
            .switch(900_000, OWN, OTHER)
            .timer(1_002_000, OTHER, SYSTEM_CALL)
            .enter(at, OTHER, period.clone())
            .leave(at + 1_000, OTHER, period.clone())
            .switch(9_002_000, OTHER, OWN)
            .stack(9_002_400, OTHER, TO_USER)
            .window(9_003_000)
    };
    assert_eq!(main_cause(&expired_at(4_000_000)).0, Class::NoPreemption);
    let last = main_cause(&expired_at(9_000_000));
    assert_eq!((last.0, last.2), (Class::Throttling, Certainty::Likely), "what came first is not known");
}

#[test]
fn a_stack_that_breaks_off_names_a_system_call_and_not_the_function_that_was_interrupted() {
    let window = Script::default()
        .switch(900_000, OWN, OTHER)
        .timer(1_002_000, OTHER, &format!("{USER} read_tsc"))
        .switch(9_002_000, OTHER, OWN)
        .stack(9_002_400, OTHER, TO_USER)
        .window(9_003_000);
    let found = main_cause(&window);
    assert_eq!(found.0, Class::NoPreemption);
    assert!(found.1.starts_with("a system call in "), "{found:?}");
}

#[test]
fn threads_of_lower_priority_that_take_turns_while_one_is_ready_are_no_code_without_a_preemption_point() {
    let turns = |turns: &[(u64, i32, i32)]| {
        let begun = Script::default().switch(900_000, OWN, OTHER).timer(1_002_000, OTHER, "");
        let script = turns.iter().fold(begun, |script, &(at, from, to)| script.switch(at, from, to));
        let last = turns.last().map_or(OTHER, |turn| turn.2);
        script.switch(22_000_000, last, OWN).stack(22_000_400, last, "schedule").window(22_001_000)
    };
    let passed_over = turns(&[(4_000_000, OTHER, 400), (9_000_000, 400, 401), (15_000_000, 401, OTHER)]);
    let found = main_cause(&passed_over);
    assert_eq!((found.0, found.2), (Class::Throttling, Certainty::Likely), "{found:?}");
    // Once can be a waking that is still on its way from another CPU.
    assert_ne!(main_cause(&turns(&[(1_004_000, OTHER, 400)])).0, Class::Throttling);
}

#[test]
fn interrupts_that_were_off_are_claimed_in_a_guest_where_no_host_can_have_had_the_cpu() {
    let late_in = |late: u64, frames: &str, is_guest: bool, shows_steal: bool| {
        let stack = format!(
            "try_to_wake_up hrtimer_wakeup hrtimer_interrupt asm_sysvec_apic_timer_interrupt {frames}"
        );
        let script = Script::default()
            .switch(900_000, OWN, OTHER)
            .timer(1_000_000 + late, OTHER, &stack)
            .switch(1_002_000 + late, OTHER, OWN)
            .stack(1_002_400 + late, OTHER, TO_USER);
        let (class, culprit, ..) =
            main_cause(&Window { is_guest, shows_steal, ..script.window(1_003_000 + late) });
        (class, culprit)
    };
    let (on_again, anywhere) =
        ("_raw_spin_unlock_irqrestore console_flush_all vprintk_emit", "clear_page_erms clear_huge_page");
    let console = |class| (class, "console_flush_all in stress [200]".to_owned());
    assert_eq!(late_in(500_000, on_again, true, false), console(Class::InterruptsOff));
    // So long a host has the CPU, too, and it may have had it while they were off for a moment.
    assert_eq!(late_in(3_000_000, on_again, true, false), console(Class::Unknown));
    assert_eq!(late_in(3_000_000, on_again, true, true), console(Class::InterruptsOff));
    assert_eq!(late_in(3_000_000, on_again, false, false), console(Class::InterruptsOff));
    assert_eq!(late_in(500_000, anywhere, true, false).0, Class::Unknown);
    assert_eq!(late_in(500_000, anywhere, true, true).0, Class::InterruptsOff);
    assert_eq!(late_in(500_000, anywhere, false, false).0, Class::InterruptsOff);
}

#[test]
fn the_timer_that_woke_the_thread_is_part_of_each_wake_up_whatever_its_function() {
    let vector = || Frame::Vector("local_timer".to_owned());
    let timer = || Frame::Timer("timerfd_tmrproc".to_owned(), 7);
    let window = Script::default()
        .switch(900_000, OWN, OTHER)
        .enter(1_000_500, OTHER, vector())
        .enter(1_000_700, OTHER, timer())
        .at(1_001_000, OTHER, Kind::Waking(task(OWN)))
        .leave(1_001_200, OTHER, timer())
        .leave(1_001_300, OTHER, vector())
        .switch(1_002_000, OTHER, OWN)
        .window(1_002_500);
    let causes = account(&window, Some(&USUAL)).causes;
    assert!(causes.iter().all(|cause| cause.class == Class::Usual), "{causes:#?}");
}

#[test]
fn a_thread_that_reads_the_trace_is_the_recordings_where_it_does_that() {
    let stack = |frames: &str| {
        format!(
            "try_to_wake_up hrtimer_wakeup hrtimer_interrupt asm_sysvec_apic_timer_interrupt {frames} do_syscall_64"
        )
    };
    let class = |frames: &str, reader: Option<i32>| {
        let script = Script::default()
            .switch(900_000, OWN, OTHER)
            .timer(1_002_000, OTHER, &stack(frames))
            .switch(3_002_000, OTHER, OWN)
            .stack(3_002_400, OTHER, TO_USER);
        main_cause(&Window { reader, ..script.window(3_003_000) }).0
    };
    let reads = "ring_buffer_read_page tracing_buffers_read vfs_read ksys_read";
    assert_eq!(class(reads, Some(OTHER)), Class::Tracing);
    assert_eq!(class(reads, None), Class::NoPreemption, "another program's trace is that program's");
    assert_eq!(class("seq_read vfs_read ksys_read", Some(OTHER)), Class::NoPreemption);
}

#[test]
fn a_chain_goes_back_to_the_interrupt_that_began_it() {
    const TIMERS: i32 = 50;
    let softirq = Frame::Softirq("TIMER".to_owned());
    let vector = Frame::Vector("local_timer".to_owned());
    let window = Script::default()
        .switch(900_000, OWN, 300)
        .enter(1_001_000, 300, vector.clone())
        .at(1_001_300, 300, Kind::Waking(task(TIMERS)))
        .leave(1_001_500, 300, vector)
        // ktimers waits for the hog, then wakes the thread.
        .switch(3_000_000, 300, TIMERS)
        .enter(3_000_500, TIMERS, softirq.clone())
        .at(3_001_000, TIMERS, Kind::Waking(task(OWN)))
        .leave(3_001_500, TIMERS, softirq)
        .switch(3_002_000, TIMERS, OWN)
        .window(3_002_500);
    let account = account(&window, Some(&USUAL));
    assert_eq!(account.stages.waking, Some(Nanos(1_001_300)));
    assert_eq!((account.causes[0].class, account.causes[0].culprit.as_str()), (Class::Rival, "hog [300]"));
}

#[test]
fn a_rival_has_the_name_that_it_has_given_itself_meanwhile() {
    let before = explain::Task { name: "chrt".to_owned(), ..task(300) };
    let window = Script::default()
        .at(900_000, OWN, Kind::Switch { previous: task(OWN), next: before })
        .timer(1_002_000, 300, USER)
        .switch(6_000_000, 300, OWN)
        .window(6_001_000);
    assert_eq!(main_cause(&window).1, "hog [300]");
}

#[test]
fn a_thread_that_became_a_rival_while_it_ran_is_known_by_the_priority_with_which_it_gave_way() {
    let before = explain::Task { priority: Some(120), ..task(300) };
    for (after, class) in [(0, Class::Rival), (120, Class::Unknown)] {
        let after = explain::Task { priority: Some(after), ..task(300) };
        let window = Script::default()
            .at(900_000, OWN, Kind::Switch { previous: task(OWN), next: before.clone() })
            .timer(1_002_000, 300, USER)
            .at(6_000_000, 300, Kind::Switch { previous: after, next: task(OWN) })
            .window(6_001_000);
        let found = main_cause(&window);
        assert_eq!((found.0, found.1.as_str()), (class, "hog [300]"));
        assert!(found.2 < Certainty::Sure, "no event says when its priority changed");
    }
}

#[test]
fn a_rival_whose_switch_is_missing_is_known_by_its_waking_and_one_of_unknown_priority_is_not_accused() {
    let described = Kind::Waking(task(300));
    for (first, class) in [(described, Class::Rival), (Kind::Other, Class::Unknown)] {
        let window = Script::default()
            .switch(900_000, OWN, 0)
            .at(900_100, 0, first)
            .at(999_000, 300, Kind::Other)
            .timer(1_002_000, 300, USER)
            .at(6_000_000, 300, Kind::Switch { previous: explain::Task::default(), next: task(OWN) })
            .window(6_001_000);
        assert_eq!(main_cause(&window).0, class);
    }
}

#[test]
fn nobody_is_accused_of_the_time_before_the_first_event() {
    let window = Script::default()
        .at(2_900_000, OTHER, Kind::Other)
        .timer(3_000_000, OTHER, PRINTING)
        .switch(3_002_000, OTHER, OWN)
        .window(3_003_000);
    let account = account(&window, Some(&USUAL));
    assert!(matches!(account.pieces[0].activity, Activity::Unknown { .. }), "{:#?}", account.pieces);
    assert_eq!((account.causes[0].class, account.causes[0].length), (Class::Unknown, Nanos(1_900_000)));
}

#[test]
fn a_tick_that_takes_milliseconds_is_not_the_kernels_work() {
    let tick = Frame::Timer("tick_nohz_handler".to_owned(), 9);
    let vector = Frame::Vector("local_timer".to_owned());
    for (length, class) in [(12_000_000, Class::Host), (100_000, Class::Timer)] {
        let end = 1_000_500 + length;
        let window = Script::default()
            .switch(900_000, OWN, OTHER)
            .enter(999_000, OTHER, vector.clone())
            .enter(999_500, OTHER, tick.clone())
            .leave(end, OTHER, tick.clone())
            .leave(end + 100, OTHER, vector.clone())
            .timer(end + 200, OTHER, USER)
            .switch(end + 1_500, OTHER, OWN)
            .window(end + 2_000);
        assert_eq!(main_cause(&window).0, class);
    }
}

#[test]
fn a_thread_that_gave_way_before_the_interrupt_did_not_hold_it_off() {
    let window = Script::default()
        .switch(900_000, OWN, OTHER)
        .switch(3_000_000, OTHER, 0)
        .timer(3_100_000, 0, "hrtimer_wakeup asm_sysvec_apic_timer_interrupt native_safe_halt do_idle")
        .switch(3_102_000, 0, OWN)
        .window(3_103_000);
    let (class, culprit, certainty, share) = main_cause(&window);
    assert_eq!(
        (class, culprit.as_str(), certainty),
        (Class::Host, "the timer's interrupt", Certainty::Likely)
    );
    assert!(share >= 90);
}

#[test]
fn a_timer_that_came_due_while_a_thread_gave_way_waited_for_the_scheduler() {
    let window = Script::default()
        .switch(900_000, OWN, OTHER)
        .switch(1_002_500, OTHER, 0)
        .timer(1_003_000, 0, IDLE)
        .switch(1_004_500, 0, OWN)
        .window(1_005_000);
    let (class, culprit, certainty, share) = main_cause_of(&window, &USUAL_OF_SHORT);
    assert_eq!(
        (class, culprit.as_str(), certainty),
        (Class::InterruptsOff, "__schedule in stress [200]", Certainty::Likely)
    );
    assert_eq!(share, 50);
}

#[test]
fn a_system_call_that_ran_to_its_end_is_named_as_a_whole() {
    let woken =
        "hrtimer_wakeup asm_sysvec_apic_timer_interrupt ktime_get bpf_prog_run __x64_sys_bpf do_syscall_64";
    let gave_way = "__schedule schedule exit_to_user_mode_prepare syscall_exit_to_user_mode do_syscall_64";
    let window = Script::default()
        .switch(900_000, OWN, OTHER)
        .timer(1_002_000, OTHER, woken)
        .switch(4_000_000, OTHER, OWN)
        .stack(4_000_400, OTHER, gave_way)
        .window(4_001_000);
    let (class, culprit, ..) = main_cause(&window);
    assert_eq!((class, culprit.as_str()), (Class::NoPreemption, "__x64_sys_bpf in stress [200]"));
}

#[test]
fn a_call_is_charged_to_who_sent_it_here_and_not_to_who_sent_elsewhere_later() {
    let vector = || Frame::Vector("call_function_single".to_owned());
    let mut window = Script::default()
        .switch(900_000, OWN, OTHER)
        .timer(1_002_000, OTHER, "")
        .enter(1_002_800, OTHER, vector())
        .leave(3_000_000, OTHER, vector())
        .switch(3_001_000, OTHER, OWN)
        .window(3_002_000);
    let sent = |at, task, to| explain::Event {
        is_wanted: None,
        at: Nanos(at),
        cpu: CpuId(1),
        task,
        kind: Kind::Ipi {
            to: CpuList::from_iter([CpuId(to)]),
            from: "on_each_cpu".to_owned(),
            function: String::new(),
        },
    };
    window.events.insert(CpuId(1), vec![sent(1_002_700, 300, 0), sent(1_002_750, 400, 2)]);
    let account = account(&window, Some(&USUAL));
    let call = account.causes.iter().find(|cause| cause.class == Class::Call).unwrap();
    assert!(call.witness.contains("[300] on CPU 1 in on_each_cpu"), "{call:?}");
}

/// The interrupt for it has the same function whatever is called.
#[test]
fn a_function_that_another_cpu_calls_is_charged_to_who_queued_it() {
    let call = || Frame::Call("perf_event_read".to_owned());
    let mut window = Script::default()
        .switch(900_000, OWN, OTHER)
        .timer(1_002_000, OTHER, "")
        .enter(1_002_800, OTHER, call())
        .leave(3_000_000, OTHER, call())
        .switch(3_001_000, OTHER, OWN)
        .window(3_002_000);
    let on_1 = |at, task, kind| explain::Event { at: Nanos(at), cpu: CpuId(1), task, is_wanted: None, kind };
    let queued = |cpu, function: &str| Kind::Queue {
        cpu: CpuId(cpu),
        from: "generic_exec_single".to_owned(),
        function: function.to_owned(),
    };
    let sent = Kind::Ipi {
        to: CpuList::from_iter([CpuId(0)]),
        from: "generic_exec_single".to_owned(),
        function: "generic_smp_call_function_single_interrupt".to_owned(),
    };
    window.events.insert(
        CpuId(1),
        vec![
            on_1(1_002_600, 300, queued(0, "perf_event_read")),
            on_1(1_002_650, 300, sent),
            on_1(1_002_700, 400, queued(2, "perf_event_read")),
            on_1(1_002_750, 400, queued(0, "flush_tlb_func")),
        ],
    );
    let account = account(&window, Some(&USUAL));
    let call = account.causes.iter().find(|cause| cause.class == Class::Call).unwrap();
    assert!(call.witness.contains("[300] on CPU 1 in generic_exec_single"), "{call:?}");
}
