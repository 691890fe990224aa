//! Sums over all events of a stream.
#![allow(clippy::unwrap_used)]

use explain::{Event, Frame, Kind, Watching};
use proptest::prelude::*;
use record::{HandlerKind, Overview, PathPart};
use units::{CpuId, Nanos};

use crate::made_up::{OTHER, OWN, Script, task};

fn overview(script: Script) -> Overview {
    let mut watching = Watching::default();
    for event in script.window(0).of(CpuId(0)) {
        watching.see(event, |tid, _| tid == OWN);
    }
    watching.overview()
}

fn arm(script: Script, at: u64, due: u64) -> Script {
    script.at(at, OWN, Kind::Arm { timer: 7, due: Nanos(due), latest: Nanos(due) })
}

fn worst(overview: &Overview, name: PathPart) -> u64 {
    let part = overview.parts.iter().find(|part| part.name == name).unwrap();
    part.lengths.summary().maximum().unwrap().0
}

#[test]
fn an_activation_is_cut_into_parts_that_sum_to_it() {
    let script = arm(Script::default(), 10, 1_000).switch(20, OWN, 0);
    let script = script.timer(1_300, 0, "").switch(2_500, 0, OWN);
    let overview = overview(arm(script, 3_100, 9_000));
    assert_eq!((overview.activations, overview.others), (1, 0));
    let parts = PathPart::ALL.map(|name| worst(&overview, name));
    // Due at 1000; interrupt at 1300, its timer 200 later, the waking 300 later; it ends 200 after that.
    assert_eq!(parts, [300, 200, 300, 200, 500, 600]);
    assert_eq!(overview.end_to_end(), Some(Nanos(3_100 - 1_000)));
}

#[test]
fn the_worst_parts_of_several_activations_are_laid_end_to_end() {
    let script =
        arm(Script::default(), 10, 1_000).switch(20, OWN, 0).timer(1_300, 0, "").switch(2_500, 0, OWN);
    let script = arm(script, 3_100, 9_000).switch(3_200, OWN, 0).timer(9_900, 0, "").switch(10_700, 0, OWN);
    let overview = overview(arm(script, 10_800, 20_000));
    assert_eq!(overview.activations, 2);
    // The timer of the second was late, the switch of the first.
    assert_eq!((worst(&overview, PathPart::TimerLate), worst(&overview, PathPart::Scheduling)), (900, 500));
    assert_eq!(overview.end_to_end(), Some(Nanos(900 + 200 + 300 + 200 + 500 + 600)));
}

/// The mark of a wake-up stops the trace: the next timer of its thread is in no event.
#[test]
fn a_late_wake_up_ends_at_its_mark_and_its_parts_sum_to_its_latency() {
    for saw_the_arming in [true, false] {
        let script = if saw_the_arming { arm(Script::default(), 10, 1_000) } else { Script::default() };
        let script = script.switch(20, OWN, 0).timer(1_300, 0, "").switch(2_500, 0, OWN);
        let script = script.at(3_200, OWN, Kind::Mark(String::new()));
        let mut watching = Watching::default();
        for event in script.window(0).of(CpuId(0)) {
            watching.see(event, |tid, _| tid == OWN);
        }
        let late = record::LateWakeUp {
            tid: OWN,
            cpu: CpuId(0),
            activation: 3,
            due: Nanos(1_000),
            woke: Nanos(3_100),
            interval: Nanos(1_000),
            slack_until: None,
        };
        watching.late(&late);
        watching.lose(None);
        let overview = watching.overview();
        assert_eq!((overview.activations, overview.others), (1, 0), "arming seen: {saw_the_arming}");
        assert_eq!(overview.end_to_end(), Some(late.latency()));
        assert_eq!(worst(&overview, PathPart::TimerLate), 300);
    }
}

#[test]
fn parts_before_a_switch_that_the_trace_lacks_are_counted_all_the_same() {
    let script = arm(Script::default(), 10, 1_000).switch(20, OWN, 0).timer(5_300, 0, "");
    let overview = overview(arm(script, 7_100, 9_000));
    assert_eq!((overview.activations, overview.others), (0, 1));
    let counts: Vec<u64> = overview.parts.iter().map(|part| part.lengths.summary().count).collect();
    assert_eq!(counts, [1, 1, 1, 1, 0, 0]);
    assert_eq!(worst(&overview, PathPart::TimerLate), 4_300);
    assert_eq!(overview.end_to_end(), None, "of the last parts nothing is known");
}

#[test]
fn what_another_thread_woke_has_no_parts_and_is_counted() {
    let script = arm(Script::default(), 10, 1_000).switch(20, OWN, OTHER);
    let script = script.at(1_500, OTHER, Kind::Waking(task(OWN))).switch(1_600, OTHER, OWN);
    let overview = overview(arm(script, 1_700, 9_000));
    assert_eq!((overview.activations, overview.others), (0, 1));
    assert_eq!(overview.end_to_end(), None);
}

fn longest(overview: &Overview, kind: HandlerKind, name: &str) -> (u64, u64, u64) {
    let is_it = |one: &&record::Handler| (one.kind, one.name.as_str()) == (kind, name);
    let one = overview.handlers.iter().find(is_it).unwrap_or_else(|| panic!("{:?}", overview.handlers));
    (one.count, one.longest.0, one.time.0)
}

#[test]
fn a_softirq_is_as_long_as_it_ran_without_what_interrupted_it() {
    let (softirq, device) = (Frame::Softirq("NET_RX".into()), Frame::Handler("eth0".into(), 24));
    let script = Script::default().enter(1_000, OTHER, softirq.clone());
    let script = script.enter(2_000, OTHER, device.clone()).leave(2_500, OTHER, device);
    let overview = overview(
        script
            .leave(4_000, OTHER, softirq.clone())
            .enter(5_000, OTHER, softirq.clone())
            .leave(5_200, OTHER, softirq),
    );
    assert_eq!(longest(&overview, HandlerKind::Softirq, "NET_RX"), (2, 2_500, 2_700));
    assert_eq!(longest(&overview, HandlerKind::Interrupt, "eth0"), (1, 500, 500));
    assert_eq!(overview.handlers[0].name, "NET_RX", "the longest stands first");
    assert_eq!(overview.watched, Nanos(4_200));
}

#[test]
fn a_work_item_is_as_long_as_its_thread_had_the_cpu() {
    let script = Script::default().at(1_000, OTHER, Kind::Work(Some("flush_to_ldisc".into())));
    let script = script.switch(1_400, OTHER, 300).switch(9_000, 300, OTHER);
    let overview = overview(script.at(9_100, OTHER, Kind::Work(None)));
    assert_eq!(longest(&overview, HandlerKind::Work, "flush_to_ldisc"), (1, 500, 500));
}

#[test]
fn what_was_under_way_when_events_were_lost_is_not_counted() {
    let call = || Frame::Call("ipi_mb".into());
    let script = Script::default().enter(1_000, 0, call()).at(1_500, 0, Kind::Lost);
    let overview =
        overview(script.leave(90_000, 0, call()).enter(91_000, 0, call()).leave(91_300, 0, call()));
    assert_eq!(longest(&overview, HandlerKind::Call, "ipi_mb"), (1, 300, 300));
}

fn kind() -> impl Strategy<Value = Kind> {
    let frame = || {
        prop_oneof![
            Just(Frame::Vector("local_timer".into())),
            Just(Frame::Handler("eth0".into(), 3)),
            Just(Frame::Softirq("TIMER".into())),
            Just(Frame::Timer("hrtimer_wakeup".into(), 7)),
            Just(Frame::Call("f".into())),
        ]
    };
    let thread = || prop_oneof![Just(0), Just(OWN), Just(OTHER)];
    prop_oneof![
        frame().prop_map(Kind::Enter),
        frame().prop_map(Kind::Leave),
        (thread(), thread()).prop_map(|(one, two)| Kind::Switch { previous: task(one), next: task(two) }),
        Just(Kind::Waking(task(OWN))),
        (0..3_000_u64).prop_map(|due| Kind::Arm { timer: 7, due: Nanos(due), latest: Nanos(due) }),
        Just(Kind::Work(Some("w".into()))),
        Just(Kind::Work(None)),
        Just(Kind::Mark(String::new())),
        Just(Kind::Lost),
        Just(Kind::Resumed),
    ]
}

proptest! {
    /// Whatever the events are: no handler ran longer than all CPUs were watched, and parts have one length an activation, those
    /// before the switch also one of each that lacks it.
    #[test]
    fn no_stream_makes_more_time_than_there_was(
        events in prop::collection::vec((0..50_u64, 0..2_u32, prop_oneof![Just(0), Just(OWN), Just(OTHER)], kind()), 0..200)
    ) {
        let mut watching = Watching::default();
        let mut at = 0;
        for (step, cpu, task, kind) in events {
            at += step;
            watching.see(&Event { at: Nanos(at), cpu: CpuId(cpu), task, is_wanted: None, kind }, |tid, _| tid == OWN);
        }
        let overview = watching.overview();
        let sum: u64 = overview.handlers.iter().map(|handler| handler.time.0).sum();
        prop_assert!(sum <= overview.watched.0, "{overview:?}");
        let counts: Vec<u64> = overview.parts.iter().map(|part| part.lengths.summary().count).collect();
        if let [up_to_the_switch @ .., scheduling, end] = &counts[..] {
            prop_assert_eq!((*scheduling, *end), (overview.activations, overview.activations));
            let without_switch = up_to_the_switch[0].checked_sub(overview.activations);
            prop_assert!(without_switch.is_some_and(|count| count <= overview.others), "{:?}", overview);
            prop_assert!(up_to_the_switch.iter().all(|count| *count == up_to_the_switch[0]));
        }
    }
}
