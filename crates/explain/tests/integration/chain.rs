//! Threads that must run before the late one is woken.

use explain::{Event, Frame, Kind, Task, Window, account};
use record::{Certainty, Class, ThreadState};
use units::{CpuId, Nanos};

use crate::made_up::{OTHER, OWN, Script, main_cause, task};

/// The thread of softirqs, and one that goes before it and after the late one.
const KTIMERS: i32 = 15;
const HOG: i32 = 90;

fn one(tid: i32) -> Task {
    let (name, priority) = match tid {
        KTIMERS => ("ktimers/0", 98),
        HOG => ("hog", 49),
        _ => return task(tid),
    };
    Task { tid, name: name.to_owned(), priority: Some(priority), state: None }
}

/// A thread preempts another, or gets the CPU from one that sleeps.
fn switch(at: u64, from: i32, bits: u64, to: i32) -> Event {
    let previous = Task { state: Some(ThreadState::of_bits(bits)), ..one(from) };
    event(at, from, Kind::Switch { previous, next: one(to) })
}

fn event(at: u64, task: i32, kind: Kind) -> Event {
    Event { at: Nanos(at), cpu: CpuId(0), task, is_wanted: None, kind }
}

const PREEMPTED: u64 = ThreadState::PREEMPTED as u64;

/// The late thread's timer is due at 1 ms, `runner` runs then; KTIMERS is woken at `woken`, runs when that gives way at 6 ms, and wakes
/// the thread.
fn late(woken: u64, runner: i32, bits: u64) -> Window {
    let vector = || Frame::Vector("local_timer".to_owned());
    let events = vec![
        switch(800_000, OWN, 1, runner),
        event(woken - 100, runner, Kind::Enter(vector())),
        event(woken - 50, runner, Kind::Leave(vector())),
        event(woken, runner, Kind::Waking(one(KTIMERS))),
        switch(6_000_000, runner, bits, KTIMERS),
        event(6_000_100, KTIMERS, Kind::Enter(Frame::Softirq("HRTIMER".to_owned()))),
        event(6_000_300, KTIMERS, Kind::Waking(one(OWN))),
        switch(6_000_900, KTIMERS, PREEMPTED, OWN),
        event(
            6_000_950,
            KTIMERS,
            Kind::Stack(vec!["__schedule".into(), "preempt_schedule".into(), "timerfd_tmrproc".into()]),
        ),
    ];
    Window { events: [(CpuId(0), events)].into(), ..Script::default().window(6_001_300) }
}

#[test]
fn who_keeps_the_softirqs_thread_from_its_cpu_is_the_rival_of_that() {
    let rival = (Class::Rival, "hog [90]".to_owned(), Certainty::Sure);
    // It may have been woken for another timer before, and kept waiting since.
    for woken in [1_000_200, 950_000] {
        let (class, culprit, certainty, share) = main_cause(&late(woken, HOG, 1));
        assert_eq!((class, culprit, certainty), rival, "{woken}");
        assert!(share >= 99, "{share}");
    }
}

#[test]
fn a_thread_that_the_softirqs_thread_goes_before_is_no_rival_of_it() {
    let found = main_cause(&late(1_000_200, OTHER, PREEMPTED));
    // No stack of the switch to it says why it had to wait.
    assert_eq!((found.0, found.2), (Class::Unknown, Certainty::Unknown), "{found:?}");
}

/// ksoftirqd is of the fair scheduler, as most threads.
#[test]
fn of_two_threads_of_the_fair_scheduler_one_has_its_share_first() {
    let mut window = late(1_000_200, OTHER, 1);
    for event in window.events.values_mut().flatten() {
        if let Kind::Waking(woken) = &mut event.kind {
            woken.priority = woken.priority.map(|priority| if woken.tid == KTIMERS { 110 } else { priority });
        }
    }
    let found = main_cause(&window);
    assert_eq!((found.0, found.1.as_str(), found.2), (Class::Rival, "stress [200]", Certainty::Sure));
}

#[test]
fn a_waking_before_is_none_of_this_wake_up_where_its_thread_has_slept_since() {
    let mut window = late(950_000, HOG, 1);
    let events = window.events.get_mut(&CpuId(0)).unwrap();
    let place = events.iter().position(|event| event.at.0 == 6_000_000).unwrap();
    events.insert(place, switch(960_000, HOG, PREEMPTED, KTIMERS));
    events.insert(place + 1, switch(970_000, KTIMERS, 1, HOG));
    let found = main_cause(&window);
    assert_ne!((found.0, found.2), (Class::Rival, Certainty::Sure), "{found:?}");
}

#[test]
fn a_thread_that_runs_on_and_wakes_this_one_had_been_woken_for_something_else() {
    let events = vec![
        event(900_000, 0, Kind::Waking(one(HOG))),
        switch(901_000, 0, 0, HOG),
        event(1_000_000, HOG, Kind::Waking(one(OWN))),
        switch(1_900_000, HOG, PREEMPTED, OWN),
    ];
    let window = Window { events: [(CpuId(0), events)].into(), ..Script::default().window(1_901_000) };
    assert_eq!(account(&window, None).stages.waking, Some(Nanos(1_000_000)));
}
