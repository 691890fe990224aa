//! What the trace does not have: switches, the time in which it stood still, whether a CPU slept.

use explain::{Frame, Kind, Window, account};
use record::{Activity, Certainty, Class, Stage};
use units::{CpuId, InOrder, Nanos};

use crate::made_up::{IDLE, OTHER, OWN, Script, USER, USUAL, main_cause};

#[test]
fn a_switch_that_the_trace_does_not_have_makes_its_time_unknown() {
    let window = Script::default()
        .switch(900_000, OWN, OTHER)
        // Another thread is seen where nobody switched to it.
        .at(3_000_000, 77, Kind::Other)
        .timer(3_000_100, 77, USER)
        .switch(3_002_000, 77, OWN)
        .window(3_003_000);
    let account = account(&window, Some(&USUAL));
    assert_eq!(account.hidden, 1);
    assert!(matches!(account.pieces[0].activity, Activity::Unknown { .. }), "{:#?}", account.pieces);
    assert_eq!(account.causes[0].class, Class::Unknown);
}

#[test]
fn a_thread_that_was_seen_to_run_was_preempted_then_and_did_not_wait_for_itself() {
    let window = Script::default()
        .switch(900_000, OWN, 0)
        .timer(1_001_000, 0, IDLE)
        // The switch from idle is not in the trace.
        .at(1_200_000, OWN, Kind::Other)
        .switch(1_600_000, OWN, 300)
        .switch(4_600_000, 300, OWN)
        .window(4_601_000);
    let account = account(&window, Some(&USUAL));
    assert_eq!(account.stages.switch, Some(Nanos(1_200_000)));
    let (class, culprit, certainty, _) = main_cause(&window);
    assert_eq!((class, certainty), (Class::Rival, Certainty::Sure), "{culprit}");
    let own_waits = account.pieces.iter().any(|piece| {
        let is_own = matches!(piece.activity, Activity::Thread { tid: OWN, .. });
        is_own && piece.stage == Stage::Runnable
    });
    assert!(!own_waits, "{:#?}", account.pieces);
}

/// What ran from `due` on, where the kernel had stood still shortly before and `task` is in the first event behind.
fn first_after(gap: Kind, script: impl FnOnce(Script) -> Script) -> (Activity, u64) {
    let begun = Script::default().switch(900_000, OWN, OTHER).at(990_000, 0, gap);
    let account = account(&script(begun).switch(1_009_000, 77, OWN).window(1_010_000), Some(&USUAL));
    (account.pieces[0].activity.clone(), account.hidden)
}

#[test]
fn who_is_first_seen_after_the_kernel_stood_still_ran_since() {
    let of_another = |script: Script| script.timer(1_005_000, 77, USER);
    let (first, hidden) = first_after(Kind::Resumed, of_another);
    assert!(matches!(first, Activity::Thread { tid: 77, .. }), "{first:?}");
    assert_eq!(hidden, 0);
    let (first, _) = first_after(Kind::Lost, of_another);
    assert!(matches!(first, Activity::Unknown { .. }), "a switch may be lost: {first:?}");
}

#[test]
fn what_ends_first_after_the_kernel_stood_still_is_not_the_threads_time() {
    let softirq = Frame::Softirq("RCU".to_owned());
    let (first, _) =
        first_after(Kind::Resumed, |script| script.leave(1_002_000, 77, softirq).timer(1_005_000, 77, USER));
    assert!(matches!(first, Activity::Unknown { .. }), "{first:?}");
}

#[test]
fn an_idle_cpu_of_which_no_event_was_seen_yet_is_not_taken_to_be_awake() {
    let idle = |script: Script| script.timer(1_005_000, 0, USER).switch(1_008_000, 0, 77);
    let (first, _) = first_after(Kind::Resumed, idle);
    assert!(matches!(first, Activity::Unknown { .. }), "{first:?}");
}

/// A call of `function` that is queued on CPU 1 for CPU 0, in these nanoseconds.
fn queued(at: u64, function: &str) -> explain::Event {
    let function = function.to_owned();
    let kind = Kind::Queue { cpu: CpuId(0), from: "generic_exec_single".to_owned(), function };
    explain::Event { at: Nanos(at), cpu: CpuId(1), task: 300, is_wanted: None, kind }
}

/// The thread is woken on an idle CPU, whose idle thread then runs what was queued before the interrupt for it comes.
fn idle_that_runs_a_call(script: Script) -> Window {
    let call = || Frame::Vector("call_function_single".to_owned());
    let window = script
        .switch(900_000, OWN, 0)
        .timer(1_019_000, 0, "")
        .enter(4_052_000, 0, call())
        .leave(4_053_000, 0, call())
        .enter(4_064_000, 0, Frame::Vector("local_timer".to_owned()))
        .leave(4_090_000, 0, Frame::Vector("local_timer".to_owned()))
        .switch(4_110_000, 0, OWN)
        .window(4_112_000);
    Window {
        is_guest: true,
        events: [
            (CpuId(0), window.of(CpuId(0)).to_vec()),
            (CpuId(1), vec![queued(1_019_600, "perf_event_read")]),
        ]
        .into(),
        ..window
    }
}

#[test]
fn a_call_that_the_idle_thread_runs_out_of_sight_is_named_by_who_queued_it() {
    let (class, culprit, certainty, share) = main_cause(&idle_that_runs_a_call(Script::default()));
    assert_eq!((class, culprit.as_str(), certainty), (Class::Call, "perf_event_read", Certainty::Likely));
    assert!(share >= 95, "{share} %");
}

#[test]
fn a_waking_that_is_queued_takes_no_time() {
    let mut window = idle_that_runs_a_call(Script::default());
    window.events.insert(CpuId(1), vec![queued(1_019_600, "sched_ttwu_pending")]);
    assert_ne!(main_cause(&window).0, Class::Call);
}

#[test]
fn an_idle_cpu_that_takes_the_thread_after_the_next_interrupt_did_not_pass_it_by() {
    let mut window = idle_that_runs_a_call(Script::default());
    window.events.remove(&CpuId(1));
    let (class, culprit, ..) = main_cause(&window);
    assert_ne!(class, Class::Throttling, "{culprit}");
}

#[test]
fn what_is_queued_is_no_cause_where_it_is_seen_to_run_or_the_idle_thread_is_seen() {
    let sleeps = Script::default().at(800_000, 0, Kind::Sleep(true)).at(810_000, 0, Kind::Sleep(false));
    assert_ne!(main_cause(&idle_that_runs_a_call(sleeps)).0, Class::Call);
    let call = || Frame::Call("perf_event_read".to_owned());
    let runs = |script: Script| script.enter(4_052_100, 0, call()).leave(4_052_900, 0, call());
    let mut window = idle_that_runs_a_call(Script::default());
    let seen = runs(Script::default()).window(4_112_000);
    let here = window.events.get_mut(&CpuId(0)).unwrap();
    here.extend(seen.of(CpuId(0)).to_vec());
    here.order_by_key(|event| event.at);
    assert_ne!(main_cause(&window).0, Class::Call);
}

/// A device interrupts OTHER at 3 ms, and the timer that was due at 1 ms at 5 ms; of OTHER's time `stolen` is not in its run time.
fn interrupted_before(stolen: u64) -> Window {
    let device = || Frame::Handler("eth0".to_owned(), 24);
    let charged = Kind::Runtime { tid: OTHER, length: Nanos(5_000_600 - 900_000 - 500 - 600 - stolen) };
    let script = Script::default()
        .switch(900_000, OWN, OTHER)
        .enter(3_000_000, OTHER, device())
        .leave(3_000_500, OTHER, device())
        .timer(5_000_000, OTHER, USER)
        .at(5_000_600, OTHER, charged)
        .switch(5_002_500, OTHER, OWN);
    Window { is_guest: true, ..script.window(5_003_000) }
}

#[test]
fn what_was_stolen_is_found_in_one_piece_alone() {
    let causes = account(&interrupted_before(2_000_000), Some(&USUAL)).causes;
    let sure = causes.iter().filter(|one| (one.class, one.certainty) == (Class::Host, Certainty::Sure));
    assert_eq!(sure.map(|one| one.length.0).sum::<u64>(), 2_000_000, "{causes:#?}");
}

#[test]
fn that_another_interrupt_came_before_the_timers_does_not_say_why() {
    let causes = account(&interrupted_before(0), Some(&USUAL)).causes;
    let before = causes.iter().find(|one| one.witness.contains("another interrupt came first"));
    assert!(
        before.is_some_and(|one| (one.class, one.length.0) == (Class::Unknown, 2_000_000)),
        "{causes:#?}"
    );
}

#[test]
fn what_may_have_been_stolen_before_the_timer_was_due_is_not_sure() {
    let mut window = interrupted_before(2_000_000);
    // The thread runs since 4 ms before: all of it can have been taken then.
    let events = window.events.get_mut(&CpuId(0)).unwrap();
    for event in events.iter_mut().skip(1) {
        event.at += Nanos(4_000_000);
        if let Kind::Runtime { length, .. } = &mut event.kind {
            *length += Nanos(4_000_000);
        }
    }
    let causes =
        account(&Window { due: Nanos(5_000_000), woke: Nanos(9_003_000), ..window }, Some(&USUAL)).causes;
    let host: Vec<_> = causes.iter().filter(|one| one.class == Class::Host).collect();
    assert!(!host.is_empty() && host.iter().all(|one| one.certainty == Certainty::Likely), "{causes:#?}");
}

/// Each takes a little time that is in none of its events, and the threads' clock may leave that out.
#[test]
fn many_short_interrupts_are_no_steal() {
    let vector = || Frame::Vector("irq_work".to_owned());
    let begun = Script::default().switch(900_000, OWN, OTHER);
    let script = (0..40_u64).fold(begun, |script, number| {
        let at = 910_000 + number * 2_000;
        script.enter(at, OTHER, vector()).leave(at + 300, OTHER, vector())
    });
    let charged = Kind::Runtime { tid: OTHER, length: Nanos(1_020_600 - 900_000 - 40 * 800 - 700) };
    let window = script
        .timer(1_020_000, OTHER, USER)
        .at(1_020_800, OTHER, charged)
        .switch(1_022_500, OTHER, OWN)
        .window(1_023_000);
    let window = Window { is_guest: true, ..window };
    let causes = account(&window, Some(&USUAL)).causes;
    assert!(causes.iter().all(|one| !one.witness.contains("of steal")), "{causes:#?}");
}

#[test]
fn a_clock_that_is_not_read_again_after_the_waking_shows_no_steal() {
    // Interrupts are off until 4 ms, and then the thread is not preempted until 8 ms.
    let stack = "try_to_wake_up hrtimer_wakeup asm_sysvec_apic_timer_interrupt _raw_spin_unlock_irqrestore console_unlock";
    let charged = Kind::Runtime { tid: OTHER, length: Nanos(4_000_500 - 900_000) };
    let window = Script::default()
        .switch(900_000, OWN, OTHER)
        .timer(4_000_000, OTHER, stack)
        .at(8_000_000, OTHER, charged)
        .switch(8_001_000, OTHER, OWN)
        .window(8_001_500);
    let causes = account(&Window { is_guest: true, ..window }, Some(&USUAL)).causes;
    assert!(causes.iter().all(|one| one.class != Class::Host), "{causes:#?}");
}

#[test]
fn a_softirq_in_which_a_guests_interrupt_came_late_is_not_the_cause_for_sure() {
    let softirq = || Frame::Softirq("TIMER".to_owned());
    let window = Script::default()
        .switch(900_000, OWN, OTHER)
        .enter(950_000, OTHER, softirq())
        .timer(9_000_000, OTHER, "")
        .leave(9_001_000, OTHER, softirq())
        .switch(9_002_000, OTHER, OWN)
        .window(9_002_500);
    let found = |is_guest| main_cause(&Window { is_guest, ..window.clone() });
    assert_eq!((found(true).0, found(true).1.as_str()), (Class::Unknown, "TIMER"));
    assert_eq!(found(false).0, Class::Softirq);
}
