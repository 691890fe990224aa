//! What takes the CPU from a core's thread, of made-up events.

use explain::guard::{Activation, Charges, Limits, Owner, Taking, Takings, What};
use proptest::prelude::*;
use trace::{Item, Symbols, text};
use units::{CpuId, Nanos};

/// Of thread 7 on CPU 1; a line has its time in us, who runs, and what happens.
fn takings(lines: &[(u64, &str, &str)]) -> (Vec<(String, u64, u64)>, u64) {
    taken_until(None, lines)
}

/// Of a guard that begins at 1.000000 and ends at a time, when thread 7 is off the CPU.
fn taken_until(end: Option<u64>, lines: &[(u64, &str, &str)]) -> (Vec<(String, u64, u64)>, u64) {
    let mut takings = Takings::of(&[7]);
    takings.begin(Nanos(1_000_000_000));
    for (at, task, what) in lines {
        if *what == "LOST" {
            takings.lose(Some(CpuId(1)));
            continue;
        }
        let line = format!("  {task} [001] d 1.{at:06}: {what}");
        let Some(Item::Event(event)) = text::parse(&line) else { panic!("{line}") };
        takings.see(&event, &Symbols::default());
    }
    if let Some(end) = end {
        takings.finish(Nanos(1_000_000_000 + 1_000 * end), |tid| tid == 7);
    }
    let all = takings.take();
    let words = |taking: &Taking| {
        (takings.name(&taking.what), (taking.to.0 - taking.from.0) / 1_000, taking.own.0 / 1_000)
    };
    (all.iter().map(words).collect(), takings.unseen())
}

fn named(lines: &[(u64, &str, &str)]) -> Vec<(String, u64, u64)> {
    takings(lines).0
}

fn row(name: &str, all: u64, own: u64) -> (String, u64, u64) {
    (name.to_owned(), all, own)
}

const OUT: &str = "sched_switch: prev_comm=core prev_pid=7 prev_prio=49 prev_state=R+ ==> next_comm=hog next_pid=9 next_prio=0";
const SLEEPS: &str = "sched_switch: prev_comm=core prev_pid=7 prev_prio=49 prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120";
const BACK: &str = "sched_switch: prev_comm=hog prev_pid=9 prev_prio=0 prev_state=S ==> next_comm=core next_pid=7 next_prio=49";
const FROM_IDLE: &str = "sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=core next_pid=7 next_prio=49";
const WOKEN: &str = "sched_waking: comm=core pid=7 prio=49 target_cpu=001";

#[test]
fn another_thread_is_named_and_what_interrupts_it_is_its_own_time() {
    let lines = [
        (0, "core-7", OUT),
        (100, "hog-9", "local_timer_entry: vector=236"),
        (110, "hog-9", "local_timer_exit: vector=236"),
        (5_000, "hog-9", BACK),
    ];
    assert_eq!(named(&lines), [row("thread hog [9]", 5_000, 5_000)]);
}

#[test]
fn a_system_call_has_its_length_without_the_interrupt_on_top_of_it() {
    let lines = [
        (0, "core-7", "sys_enter: NR 0 (1, 2)"),
        (100, "core-7", "call_function_single_entry: vector=251"),
        (101, "core-7", "csd_function_entry: func=flush_tlb_func csd=0000000043e69194"),
        (130, "core-7", "call_function_single_exit: vector=251"),
        (900, "core-7", "sys_exit: NR 0 = 8"),
    ];
    let call = row("interrupt call_function_single (flush_tlb_func)", 30, 30);
    assert_eq!(named(&lines), [call, row("system call 0", 900, 870)]);
}

#[test]
fn a_sleep_is_the_call_that_slept_until_somebody_else_is_in_the_way() {
    let lines = [
        (0, "core-7", "sys_enter: NR 230 (1, 2)"),
        (3, "core-7", SLEEPS),
        (5_000, "<idle>-0", WOKEN),
        (5_002, "<idle>-0", FROM_IDLE),
        (5_005, "core-7", "sys_exit: NR 230 = 0"),
    ];
    assert_eq!(named(&lines), [row("system call 230, slept", 5_005, 5_005)]);
    let lines = [
        (0, "core-7", "sys_enter: NR 230 (1, 2)"),
        (3, "core-7", SLEEPS),
        (
            1_000,
            "<idle>-0",
            "sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=hog next_pid=9 next_prio=0",
        ),
        (2_000, "hog-9", WOKEN),
        (5_000, "hog-9", BACK),
        (5_005, "core-7", "sys_exit: NR 230 = 0"),
    ];
    assert_eq!(
        named(&lines),
        [row("thread hog [9]", 3_000, 3_000), row("system call 230, slept", 5_005, 2_005)]
    );
}

#[test]
fn softirqs_interrupts_of_devices_and_faults_are_named() {
    let lines = [
        (0, "core-7", "irq_handler_entry: irq=42 name=eth0-rx"),
        (10, "core-7", "irq_handler_exit: irq=42 ret=handled"),
        (11, "core-7", "softirq_entry: vec=3 [action=NET_RX]"),
        (51, "core-7", "softirq_exit: vec=3 [action=NET_RX]"),
        (60, "core-7", "page_fault_user: address=0x1 ip=0x2 error_code=0x4"),
    ];
    let rows = [row("interrupt eth0-rx 42", 10, 10), row("softirq NET_RX", 40, 40), row("page fault", 0, 0)];
    assert_eq!(named(&lines), rows);
    // A fault that waits for a disk: its sleep is known.
    let sleeping = [lines[4], (61, "core-7", SLEEPS), (900, "<idle>-0", FROM_IDLE)];
    assert_eq!(named(&sleeping), [row("page fault", 0, 0), row("page fault", 840, 840)]);
}

#[test]
fn a_thread_that_is_ready_and_has_no_rival_was_throttled() {
    let out = OUT.replace("next_comm=hog next_pid=9", "next_comm=swapper/1 next_pid=0");
    let lines = [(0, "core-7", out.as_str()), (50_000, "<idle>-0", FROM_IDLE)];
    assert_eq!(named(&lines), [row("nothing ran: throttled", 50_000, 50_000)]);
}

#[test]
fn what_began_before_and_what_does_not_end_is_counted() {
    let until = |lines: &[(u64, &str, &str)]| taken_until(Some(10_000), lines).0;
    assert_eq!(until(&[]), [row("off the CPU since before the guard", 10_000, 10_000)]);
    let back = [(4_000, "hog-9", BACK)];
    assert_eq!(until(&back), [row("off the CPU since before the guard", 4_000, 4_000)]);
    let asleep = [(1_000, "core-7", "sys_enter: NR 0 (1, 2)"), (1_010, "core-7", SLEEPS)];
    assert_eq!(until(&asleep), [row("system call 0, slept", 9_000, 9_000)]);
    let out = [(1_000, "core-7", "sys_enter: NR 0 (1, 2)"), (1_010, "core-7", OUT)];
    assert_eq!(until(&out), [row("thread hog [9]", 8_990, 8_990), row("system call 0", 9_000, 10)]);
    // It ran, and what happens to it says so.
    assert_eq!(until(&[(5, "core-7", "sys_exit: NR 0 = 8")]), []);
}

#[test]
fn another_thread_has_the_name_with_which_it_gives_way() {
    let renamed = BACK.replace("prev_comm=hog", "prev_comm=rival");
    assert_eq!(
        named(&[(0, "core-7", OUT), (5_000, "hog-9", &renamed)]),
        [row("thread rival [9]", 5_000, 5_000)]
    );
}

#[test]
fn a_thread_that_is_moved_waits_for_who_runs_where_it_goes() {
    let mut takings = Takings::of(&[7]);
    let events = [
        (0, "core-7", 1, OUT.replace("next_comm=hog next_pid=9", "next_comm=migration/1 next_pid=20")),
        (1, "cat-11", 2, "sched_switch: prev_comm=a prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=cat next_pid=11 next_prio=120".to_owned()),
        (10, "migration/1-20", 1, "sched_migrate_task: comm=core pid=7 prio=49 orig_cpu=1 dest_cpu=2".to_owned()),
        // Where it was, nobody runs: it is not throttled.
        (20, "migration/1-20", 1, SLEEPS.replace("prev_comm=core prev_pid=7", "prev_comm=migration/1 prev_pid=20")),
        (300, "cat-11", 2, BACK.replace("prev_comm=hog prev_pid=9", "prev_comm=cat prev_pid=11")),
    ];
    for (at, task, cpu, what) in &events {
        let line = format!("  {task} [{cpu:03}] d 1.{at:06}: {what}");
        let Some(Item::Event(event)) = text::parse(&line) else { panic!("{line}") };
        takings.see(&event, &Symbols::default());
    }
    let all = takings.take();
    let words = |taking: &Taking| (takings.name(&taking.what), taking.own.0 / 1_000);
    let rows: Vec<_> = all.iter().map(words).collect();
    assert_eq!(rows, [("thread migration/1 [20]".to_owned(), 10), ("thread cat [11]".to_owned(), 290)]);
    assert_eq!(takings.cpu(0), Some(CpuId(2)));
}

#[test]
fn what_was_under_way_when_events_were_lost_is_nobodys() {
    let lines = [
        (0, "core-7", "sys_enter: NR 0 (1, 2)"),
        (10, "", "LOST"),
        (900, "core-7", "sys_exit: NR 0 = 8"),
        (910, "core-7", "local_timer_entry: vector=236"),
        (912, "core-7", "local_timer_exit: vector=236"),
    ];
    assert_eq!(named(&lines), [row("interrupt local_timer", 2, 2)]);
}

/// Some kernels withhold events of the idle thread: the switch back is missing.
#[test]
fn a_switch_that_is_missing_is_healed_by_who_runs() {
    let lines = [
        (0, "core-7", "sys_enter: NR 230 (1, 2)"),
        (3, "core-7", SLEEPS),
        (5_005, "core-7", "sys_exit: NR 230 = 0"),
        (6_000, "hog-9", "local_timer_entry: vector=236"),
        (7_000, "core-7", "sys_enter: NR 1 (1, 2)"),
    ];
    let (rows, unseen) = takings(&lines);
    assert_eq!(rows, [row("system call 230, slept", 5_005, 5_005), row("not in the trace", 1_000, 1_000)]);
    assert_eq!(unseen, 3);
}

fn activation(sent: u64, begin: u64, end: u64, object: u32) -> Activation {
    let sent = (sent > 0).then_some(Nanos(sent));
    Activation { sent, begin: Nanos(begin), end: Nanos(end), object: Some(object), queue: object }
}

fn taking(from: u64, to: u64, name: &str) -> Taking {
    let what = What::Thread(name.to_owned(), 1);
    Taking { core: 0, from: Nanos(from), to: Nanos(to), own: Nanos(to - from), what }
}

fn limits(budget: u64, deadline: u64) -> Limits {
    Limits { budget: Some(Nanos(budget)), deadline: Some(Nanos(deadline)), bound: None }
}

#[test]
fn each_taking_is_charged_to_what_ran() {
    let mut charges = Charges::of(1);
    charges.ran(0, activation(0, 100, 200, 0));
    charges.ran(0, activation(0, 300, 400, 1));
    for (from, to) in [(120, 130), (190, 200), (250, 260), (310, 390), (450, 470)] {
        charges.taken(taking(from, to, "hog"));
    }
    charges.settle(0, Nanos(460));
    let rows = |charges: &Charges| -> Vec<(Owner, u64, u64)> {
        charges.rows().iter().map(|((_, owner, _), row)| (*owner, row.number, row.time.0)).collect()
    };
    assert_eq!(
        rows(&charges),
        [(Owner::Object(0), 2, 20), (Owner::Object(1), 1, 80), (Owner::Between, 1, 10)]
    );
    // What runs now began at 440, and is not known before its end.
    charges.ran(0, activation(0, 440, 500, 1));
    charges.settle(0, Nanos(600));
    assert_eq!(rows(&charges)[1], (Owner::Object(1), 2, 100));
}

#[test]
fn what_ran_while_entries_were_overwritten_is_unknown() {
    let mut charges = Charges::of(1);
    charges.ran(0, activation(0, 100, 200, 0));
    charges.overwritten(0, Nanos(400));
    charges.ran(0, activation(0, 400, 500, 0));
    charges.taken(taking(250, 260, "hog"));
    charges.settle(0, Nanos(600));
    assert_eq!(charges.rows().keys().map(|(_, owner, _)| *owner).collect::<Vec<_>>(), [Owner::Unknown]);
}

#[test]
fn an_excess_is_named_with_what_made_it() {
    let mut charges = Charges::of(1);
    charges.promise(vec![limits(50, 1_000), limits(500, 120)]);
    charges.ran(0, activation(0, 100, 300, 0));
    charges.ran(0, activation(150, 310, 330, 1));
    charges.taken(taking(110, 280, "hog"));
    charges.taken(taking(301, 306, "dog"));
    charges.settle(0, Nanos(400));
    let (excesses, more) = charges.excesses();
    assert_eq!((excesses.len(), more), (2, 0));
    let [run, response] = excesses else { panic!("{excesses:?}") };
    assert_eq!((run.is_response, run.took.0, run.allowed.0, run.is_partial), (false, 200, 50, false));
    assert_eq!(run.taken, [(What::Thread("hog".to_owned(), 1), Nanos(170))]);
    // It waited for the other object, of whose time the hog had a part: nothing counts twice.
    assert_eq!((response.is_response, response.took.0, response.allowed.0), (true, 180, 120));
    let names: Vec<_> = response.taken.iter().map(|(_, time)| time.0).collect();
    assert_eq!((names, response.before.clone()), (vec![130, 5], vec![(0, Nanos(20))]));
}

/// A look that comes between the end of a receive and the rest of the trace.
#[test]
fn an_excess_waits_until_all_of_it_is_known() {
    let mut charges = Charges::of(1);
    charges.promise(vec![limits(50, 1_000)]);
    charges.ran(0, activation(0, 100, 300, 0));
    charges.settle(0, Nanos(299));
    assert!(charges.excesses().0.is_empty());
    charges.taken(taking(110, 280, "hog"));
    charges.settle(0, Nanos(400));
    assert_eq!(charges.excesses().0[0].taken[0].1, Nanos(170));
}

#[test]
fn an_excess_beside_lost_events_says_so() {
    let mut charges = Charges::of(1);
    charges.promise(vec![limits(50, 1_000)]);
    charges.missing(0, Nanos(250), Nanos(260));
    charges.ran(0, activation(0, 100, 300, 0));
    charges.settle(0, Nanos(400));
    assert!(charges.excesses().0[0].is_partial);
}

proptest! {
    /// Whatever the events are: nothing panics, and what is a core's own never sums to more than the time that went by.
    #[test]
    fn own_times_fit_into_the_time(
        events in prop::collection::vec((0_u64..50, 0_usize..12, prop::bool::ANY), 0..120),
    ) {
        let kinds = [
            OUT, SLEEPS, BACK, FROM_IDLE, WOKEN, "sys_enter: NR 0 (1)", "sys_exit: NR 0 = 0",
            "local_timer_entry: vector=236", "local_timer_exit: vector=236", "softirq_entry: vec=3 [action=NET_RX]",
            "softirq_exit: vec=3 [action=NET_RX]", "page_fault_user: address=0x1 ip=0x2 error_code=0x4",
        ];
        let mut at = 0;
        let mut takings = Takings::of(&[7]);
        takings.begin(Nanos(1_000_000_000));
        for (gap, kind, is_own) in events {
            at += gap;
            let task = if is_own { "core-7" } else { "hog-9" };
            let line = format!("  {task} [001] d 1.{at:06}: {}", kinds[kind]);
            let Some(Item::Event(event)) = text::parse(&line) else { panic!("{line}") };
            takings.see(&event, &Symbols::default());
        }
        takings.finish(Nanos(1_000_000_000 + at * 1_000), |_| true);
        let own: u64 = takings.take().iter().map(|taking| taking.own.0).sum();
        prop_assert!(own <= at * 1_000, "{own} of {at} us");
    }
}
