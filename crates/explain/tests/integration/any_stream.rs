//! Whatever the events are: pieces and causes sum to the latency, and nothing panics.

use explain::{Event, Frame, Kind, Task, Usual, Window, account};
use proptest::prelude::*;
use units::{CpuId, Nanos};

fn frame() -> impl Strategy<Value = Frame> {
    prop_oneof![
        Just(Frame::Vector("local_timer".to_owned())),
        Just(Frame::Vector("reschedule".to_owned())),
        (0..3i64).prop_map(|number| Frame::Handler("eth0".to_owned(), number)),
        Just(Frame::Softirq("NET_RX".to_owned())),
        (0..3u64).prop_map(|address| Frame::Timer("hrtimer_wakeup".to_owned(), address)),
        Just(Frame::Call("flush_tlb_func".to_owned())),
    ]
}

fn task() -> impl Strategy<Value = Task> {
    (0..5i32, proptest::option::of(0..140i32)).prop_map(|(tid, priority)| Task {
        tid,
        name: format!("t{tid}"),
        priority,
        state: None,
    })
}

fn callers() -> impl Strategy<Value = Vec<String>> {
    const NAMES: [&str; 6] =
        ["asm_sysvec_x", "__cond_resched", "preempt_schedule", "schedule", "f", "exit_to_user_mode_loop"];
    proptest::collection::vec(proptest::sample::select(&NAMES[..]).prop_map(str::to_owned), 0..6)
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        (task(), task()).prop_map(|(previous, next)| Kind::Switch { previous, next }),
        task().prop_map(Kind::Waking),
        (0..5i32, 0..3u32, 0..3u32).prop_map(|(tid, from, to)| Kind::Migrate {
            tid,
            from: CpuId(from),
            to: CpuId(to)
        }),
        (0..5i32, any::<u64>()).prop_map(|(tid, length)| Kind::Runtime { tid, length: Nanos(length) }),
        frame().prop_map(Kind::Enter),
        frame().prop_map(Kind::Leave),
        any::<u64>().prop_map(|length| Kind::Nmi { handler: "n".to_owned(), length: Nanos(length) }),
        proptest::option::of(Just("work".to_owned())).prop_map(Kind::Work),
        any::<bool>().prop_map(Kind::Sleep),
        callers().prop_map(Kind::Stack),
        Just(Kind::Mark(String::new())),
        any::<(u64, u64)>().prop_map(|(due, latest)| Kind::Arm {
            timer: 1,
            due: Nanos(due),
            latest: Nanos(latest)
        }),
        Just(Kind::PageFault),
        Just(Kind::Lost),
        Just(Kind::Resumed),
        Just(Kind::Other),
    ]
}

/// Events of a CPU, in order of time or not.
fn events(cpu: u32) -> impl Strategy<Value = Vec<Event>> {
    let event = (0..3_000u64, 0..5i32, kind());
    let events = proptest::collection::vec(event, 0..60);
    (events, any::<bool>()).prop_map(move |(mut events, in_order)| {
        if in_order {
            events.sort_by_key(|(at, _, _)| *at);
        }
        let event = |(at, task, kind)| Event { at: Nanos(at), cpu: CpuId(cpu), task, is_wanted: None, kind };
        events.into_iter().map(event).collect()
    })
}

fn usual() -> impl Strategy<Value = Option<Usual>> {
    proptest::option::of(Just(Usual {
        before_interrupt: Nanos(10),
        in_interrupt: Nanos(10),
        runnable: Nanos(10),
        scheduling: Nanos(10),
        running: Nanos(10),
    }))
}

proptest! {
    #[test]
    fn pieces_and_causes_sum_to_the_latency(
        first in events(0), second in events(1), usual in usual(), due in 0..3_000u64, latency in 0..3_000u64,
        is_guest in any::<bool>(), shows_steal in any::<bool>(), slack_until in proptest::option::of(0..7_000u64)
    ) {
        let window = Window {
            cpu: CpuId(0),
            tid: 1,
            priority: Some(1),
            due: Nanos(due),
            woke: Nanos(due + latency),
            is_guest,
            shows_steal,
            slack_until: slack_until.map(Nanos),
            events: [(CpuId(0), first), (CpuId(1), second)].into(),
            ..Window::default()
        };
        let account = account(&window, usual.as_ref());
        let pieces: u64 = account.pieces.iter().map(|piece| piece.length.0).sum();
        let causes: u64 = account.causes.iter().map(|cause| cause.length.0).sum();
        prop_assert_eq!((pieces, causes), (latency, latency));
        prop_assert!(account.pieces.iter().all(|piece| piece.length > Nanos::ZERO));
    }
}
