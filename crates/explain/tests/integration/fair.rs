//! Threads of the fair scheduler, and groups with a quota.

use explain::{Frame, Usual, Window, account};
use record::{Certainty, Class};
use units::Nanos;

use crate::made_up::{IDLE, OTHER, OWN, Script, TO_USER, USER, USUAL, main_cause, main_cause_of};

/// A thread of the fair scheduler, ready at 1.002 ms, that gets the CPU at `end` from OTHER.
fn fair(end: u64, between: impl FnOnce(Script) -> Script, stack: &str) -> Window {
    let begun = Script::default().switch(900_000, OWN, OTHER).timer(1_002_000, OTHER, USER);
    let script = between(begun).switch(end, OTHER, OWN).stack(end + 400, OTHER, stack);
    Window { priority: Some(115), is_guest: true, ..script.window(end + 1_000) }
}

#[test]
fn threads_of_the_fair_scheduler_take_turns_and_none_holds_the_cpu_against_its_rules() {
    for stack in
        [TO_USER, "__schedule schedule do_nanosleep", "schedule irqentry_exit_to_user_mode asm_sysvec_x"]
    {
        let (class, culprit, certainty, share) = main_cause(&fair(4_000_000, |script| script, stack));
        assert_eq!((class, certainty), (Class::Rival, Certainty::Sure), "{stack}");
        assert!(culprit.starts_with("stress") && share > 90, "{culprit} {share}");
    }
    let turns = |script: Script| {
        script.switch(2_000_000, OTHER, 400).switch(3_000_000, 400, 401).switch(3_500_000, 401, OTHER)
    };
    let causes = account(&fair(4_000_000, turns, TO_USER), Some(&USUAL)).causes;
    let not_theirs = causes.iter().any(|cause| matches!(cause.class, Class::Throttling | Class::Host));
    assert!(!not_theirs, "{causes:#?}");
}

#[test]
fn a_thread_of_the_fair_scheduler_that_loses_the_cpu_on_its_way_to_user_space_waits_for_a_share() {
    let script =
        Script::default().switch(900_000, OWN, 0).timer(1_002_000, 0, IDLE).switch(1_004_000, 0, OWN);
    let script = script.switch(1_006_000, OWN, OTHER).switch(4_006_000, OTHER, OWN);
    let window = Window { priority: Some(115), ..script.window(4_007_000) };
    let (class, culprit, certainty, share) = main_cause(&window);
    assert_eq!((class, certainty), (Class::Rival, Certainty::Sure), "{culprit}");
    assert!(culprit.starts_with("stress") && share > 90, "{culprit} {share}");
}

/// Ready on an idle CPU, which a timer's interrupt of another kind woke up meanwhile.
fn ready_beside_an_idle_cpu(timer: &str, priority: i32) -> Window {
    let vector = || Frame::Vector("local_timer".to_owned());
    let timer = || Frame::Timer(timer.to_owned(), 9);
    let script = Script::default()
        .switch(900_000, OWN, 0)
        .timer(1_001_000, 0, IDLE)
        .enter(9_000_000, 0, vector())
        .enter(9_000_100, 0, timer())
        .leave(9_000_800, 0, timer())
        .leave(9_001_000, 0, vector());
    let script = script.switch(9_002_000, 0, OWN);
    Window { priority: Some(priority), is_guest: true, ..script.window(9_003_000) }
}

#[test]
fn a_quota_of_a_group_is_named_by_the_timer_that_ends_it() {
    let (class, _, certainty, _) = main_cause(&ready_beside_an_idle_cpu("sched_cfs_period_timer", 120));
    assert_eq!((class, certainty), (Class::Throttling, Certainty::Sure));
    // That timer gives no real-time thread anything.
    let (_, _, certainty, _) = main_cause(&ready_beside_an_idle_cpu("sched_cfs_period_timer", 1));
    assert_ne!(certainty, Certainty::Sure);
}

#[test]
fn a_ready_thread_that_an_idle_cpu_does_not_take_is_never_usual() {
    let usual = Usual { runnable: Nanos(10_000_000), ..USUAL };
    let vector = || Frame::Vector("local_timer".to_owned());
    let script = Script::default()
        .switch(900_000, OWN, 0)
        .timer(1_001_000, 0, IDLE)
        .enter(5_000_000, 0, vector())
        .leave(5_001_000, 0, vector())
        .switch(9_002_000, 0, OWN);
    let window = Window { priority: Some(120), is_guest: true, ..script.window(9_003_000) };
    let (class, _, certainty, _) = main_cause_of(&window, &usual);
    assert_eq!((class, certainty), (Class::Throttling, Certainty::Likely));
}
