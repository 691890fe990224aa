//! The trace of a wake-up beside its instructions.

use super::*;
use microscope::{Comparison, compare};
use record::{Activity, Cause, Certainty, Hit, Piece};
use units::{CpuId, Nanos};

const RECORDING: u64 = OUTER + 0x800;

/// [`spike`] with a long section without preemption, in which the trace is recorded for 500 instructions.
fn long_spike() -> Vec<At> {
    let mut records = spike();
    let held = records.iter().position(|at| at.length == 400).unwrap();
    records[held].length = 4_000;
    let recording = At { preempt: 1, ..at(RECORDING, 0x90, 500) };
    records.insert(held + 1, recording);
    records
}

/// Its latency: 38 instructions and 7 before the interrupt, 50 in it, 4,590 until the switch, 15 after it.
const LATENCY: u64 = 4_700;

fn thread(name: &str) -> Activity {
    Activity::Thread { tid: 7, name: name.to_owned(), priority: Some(120), work: None }
}

fn interrupt() -> Activity {
    Activity::Interrupt { name: "local_timer".to_owned() }
}

fn hit(pieces: &[(u64, Activity)], class: Class, culprit: &str) -> Hit {
    let piece = |(length, activity): &(u64, Activity)| Piece {
        length: Nanos(*length),
        stage: Stage::Runnable,
        activity: activity.clone(),
    };
    let latency = Nanos(pieces.iter().map(|(length, _)| length).sum());
    let cause = Cause {
        class,
        culprit: culprit.to_owned(),
        length: latency,
        certainty: Certainty::Sure,
        witness: String::new(),
    };
    Hit {
        cpu: CpuId(0),
        tid: 1,
        activation: 0,
        due: Nanos::ZERO,
        latency,
        pieces: pieces.iter().map(piece).collect(),
        causes: vec![cause],
        waking_stack: Vec::new(),
        switch_stack: Vec::new(),
        events: Vec::new(),
        left_out: 0,
    }
}

fn beside(hit: &Hit) -> Comparison {
    let symbols = format!("{SYMBOLS}ffffffff81000800 T trace_event_raw_event_sched_waking\n");
    let stream = Stream::parse(&bytes(&stream(&long_spike(), LATENCY))).unwrap();
    compare(&stream, &stream.windows[0], &Symbols::parse(&symbols).unwrap(), hit)
}

fn right() -> Vec<(u64, Activity)> {
    vec![(45, thread("dd")), (50, interrupt()), (4_590, thread("dd")), (15, thread("probe"))]
}

#[test]
fn a_trace_that_names_what_ran_is_confirmed() {
    let found = beside(&hit(&right(), Class::PreemptionOff, "inner in dd [7]"));
    let times = [found.same, found.edges, found.recording, found.unknown, found.other].map(|time| time.0);
    assert_eq!(times, [4_200, 0, 500, 0, 0]);
    assert!(found.agrees, "{found:?}");
    assert_eq!((found.pieces, found.contradicted.len()), (1, 0));
    assert_eq!(found.above(Nanos(4_000)), Nanos(200), "without what recorded the trace");
    assert_eq!(found.named_above(Nanos(4_000)), Nanos(200));
}

#[test]
fn a_thread_that_did_not_run_is_a_contradiction() {
    let mut pieces = right();
    pieces[2].1 = thread("cat");
    let found = beside(&hit(&pieces, Class::Rival, "cat [8]"));
    assert!(!found.agrees);
    assert_eq!(found.other, Nanos(4_090));
    let [one] = &found.contradicted[..] else { panic!("{found:?}") };
    assert_eq!((one.at, one.length), (Nanos(95), Nanos(4_590)));
    assert!(one.by_trace.starts_with("cat") && one.by_instructions == "inner in dd", "{one:?}");
    assert_eq!(found.named_above(Nanos(100)), Nanos(10));
    assert_eq!(
        found.named_above(Nanos(4_000)),
        Nanos::ZERO,
        "all that is not named counts as above the median"
    );
}

#[test]
fn an_event_that_comes_a_little_late_moves_an_edge_and_is_no_contradiction() {
    for (late, edges, other) in [(40, 40, 0), (1_100, 1_100, 0), (2_100, 1_950, 150)] {
        let mut pieces = right();
        // The interrupt's end was recorded so much later.
        pieces[1].0 += late;
        pieces[2].0 -= late;
        let found = beside(&hit(&pieces, Class::PreemptionOff, "inner in dd [7]"));
        assert_eq!((found.edges, found.other), (Nanos(edges), Nanos(other)), "{found:?}");
        assert_eq!(found.contradicted, vec![]);
    }
}

#[test]
fn the_right_thread_with_another_function_or_class_is_not_the_same_cause() {
    for (class, culprit) in [
        (Class::PreemptionOff, "handler in dd [7]"),
        (Class::PreemptionOff, "inner in cat [7]"),
        (Class::InterruptsOff, "inner in dd [7]"),
        (Class::Rival, "dd [7]"),
        (Class::Host, ""),
        (Class::Unknown, "dd [7]"),
    ] {
        assert!(!beside(&hit(&right(), class, culprit)).agrees, "{class:?} {culprit}");
    }
}

#[test]
fn code_that_is_not_preempted_anyway_may_have_the_count_against_it_too() {
    assert!(beside(&hit(&right(), Class::NoPreemption, "inner in dd [7]")).agrees);
}

#[test]
fn what_no_event_tells_apart_is_one_cause_beside_a_softirq_that_is_larger_than_each_part() {
    let mut records = spike();
    let held = records.iter().position(|at| at.length == 400).unwrap();
    records[held].length = 2_000;
    let interrupts_off = At { flags: 0, preempt: 0, ..at(INNER + 8, 0x60, 2_000) };
    let softirq = At { preempt: 0x100, ..at(HANDLER, 0xa0, 3_000) };
    records.splice(held + 1..held + 1, [interrupts_off, softirq]);
    let stream = Stream::parse(&bytes(&stream(&records, 7_200))).unwrap();
    let symbols = Symbols::parse(SYMBOLS).unwrap();
    let seen =
        |class| compare(&stream, &stream.windows[0], &symbols, &hit(&right(), class, "inner in dd [7]"));
    let not_preempted = seen(Class::NoPreemption);
    assert!(
        not_preempted.agrees && not_preempted.by_instructions.culprit == "inner in dd",
        "{not_preempted:?}"
    );
    let off = seen(Class::PreemptionOff);
    assert!(!off.agrees && off.by_instructions.class == Class::Softirq, "{off:?}");
}

#[test]
fn a_system_call_is_one_only_where_one_was_made() {
    assert!(beside(&hit(&right(), Class::PreemptionOff, "the kernel in dd [7]")).agrees);
    assert!(!beside(&hit(&right(), Class::PreemptionOff, "a system call in dd [7]")).agrees);
}

#[test]
fn what_the_trace_does_not_know_is_neither_right_nor_wrong() {
    let mut pieces = right();
    pieces[2].1 = Activity::Unknown { why: "no event says who ran".to_owned() };
    let found = beside(&hit(&pieces, Class::Unknown, ""));
    assert_eq!((found.unknown, found.other, found.pieces), (Nanos(4_090), Nanos::ZERO, 0));
    assert_eq!(found.named_above(Nanos(100)), Nanos(10));
}

proptest! {
    #[test]
    fn the_parts_of_a_comparison_sum_to_the_latency_for_any_stream_and_any_pieces(
        changes in proptest::collection::vec((0..220_usize, any::<u64>(), 0..4_u8), 0..6),
        lengths in proptest::collection::vec(prop_oneof![0..3_000_u64, any::<u64>()], 0..6),
    ) {
        let mut words = stream(&long_spike(), LATENCY);
        damage(&mut words, changes);
        let one = hit(&right(), Class::Usual, "");
        let pieces = lengths.into_iter().map(|length| Piece { length: Nanos(length), ..one.pieces[0].clone() });
        let one = Hit { pieces: pieces.collect(), ..one };
        if let Ok(stream) = Stream::parse(&bytes(&words)) {
            for window in &stream.windows {
                let found = compare(&stream, window, &Symbols::parse(SYMBOLS).unwrap(), &one);
                let parts = [found.same, found.edges, found.recording, found.unknown, found.other];
                let sum = parts.iter().fold(0_u64, |sum, part| sum.saturating_add(part.0));
                prop_assert_eq!(sum, window.latency.0);
            }
        }
    }
}
