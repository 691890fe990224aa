use crate::Value;
use proptest::prelude::*;

use super::*;

const LINE: &str = "   kworker/1:2 [a]-47      [001] d..2.    12.345678: workqueue_execute_start: work struct 00000000c0: function vmstat_update";

fn read(line: &str) -> Event<'_> {
    match parse(line) {
        Some(Item::Event(event)) => event,
        other => panic!("{line}: {other:?}"),
    }
}

fn read_lost(line: &str) -> Option<(Option<u32>, Option<u64>)> {
    match parse(line) {
        Some(Item::Lost(lost)) => Some((lost.cpu.map(|cpu| cpu.0), lost.events)),
        _ => None,
    }
}

#[test]
fn a_line_is_an_event_of_a_thread_on_a_cpu_at_a_time() {
    let event = read(LINE);
    assert_eq!((event.comm, event.task, event.cpu), (Some("kworker/1:2 [a]"), 47, CpuId(1)));
    assert_eq!(
        (event.name(), event.text("function").as_deref()),
        ("workqueue_execute_start", Some("vmstat_update"))
    );
    assert_eq!((event.time, event.id()), (Nanos(12_345_678_000), None));
    let line = "          <idle>-0       [000] d.h1.     3.100000: timer_expire_entry: timer=0x1f function=tick now=-4";
    let event = read(line);
    assert_eq!((event.task, event.comm), (0, Some("<idle>")));
    assert_eq!((event.text("function").as_deref(), event.signed("now")), (Some("tick"), Some(-4)));
    assert_eq!((event.value("timer"), event.value("imer")), (Some(Value::Unsigned(0x1f)), None));
    assert_eq!(event.unsigned("now"), None);
}

#[test]
fn forms_that_options_and_tools_make_are_read_too() {
    let noted = read("  yes-70 (     70) [001] ..... 3.1: sys_enter: NR 1 (1, 2)");
    assert_eq!((noted.signed("id"), noted.time), (Some(1), Nanos(3_100_000_000)));
    let unnamed = read("           <...>-70      [001]   3.000000001: sched_waking: comm=x pid=9");
    assert_eq!((unnamed.comm, unnamed.time), (None, Nanos(3_000_000_001)));
    let marked = read("  sh-7 [000] ..... 1.000001: tracing_mark_write: a: b=1 c");
    assert_eq!((marked.name(), marked.text("buf").as_deref()), ("print", Some("a: b=1 c")));
}

#[test]
fn a_name_with_blanks_ends_at_the_next_field() {
    let event = read(
        "  a-1 [000] d.. 1.0: sched_switch: prev_comm=tmux: server prev_pid=7 ==> next_comm=a b next_pid=9",
    );
    let texts = ["prev_comm", "prev_pid", "next_comm", "next_pid"].map(|field| event.text(field).unwrap());
    assert_eq!(texts, ["tmux: server", "7", "a b", "9"]);
    let vector = read("  a-1 [000] d.. 1.0: softirq_entry: vec=1 [action=TIMER]");
    assert_eq!((vector.unsigned("vec"), vector.text("vec").as_deref()), (Some(1), Some("1 [action=TIMER]")));
}

#[test]
fn what_is_no_event_is_none() {
    for line in
        ["", "# tracer: nop", "x-1 [z] y", " [001] d: 1: a: b", " => some_function", "a-1 [001] d.. 77: a: b"]
    {
        assert!(parse(line).is_none(), "{line}");
    }
}

#[test]
fn lost_events_are_counted_by_cpu() {
    assert_eq!(read_lost("CPU:1 [LOST 45 EVENTS]"), Some((Some(1), Some(45))));
    assert_eq!(read_lost("CPU:0 [LOST EVENTS]"), Some((Some(0), None)));
    assert_eq!(read_lost("# entries-in-buffer/entries-written: 100/145   #P:2"), Some((None, Some(45))));
    assert_eq!(read_lost("# entries-in-buffer/entries-written: 145/145   #P:2"), None);
    assert_eq!((read_lost("CPU:x [LOST 1 EVENTS]"), read_lost(LINE)), (None, None));
}

proptest! {
    #[test]
    fn what_the_kernel_prints_is_read(
        comm in "[a-z/:][a-z0-9 /:\\[\\]()-]{0,13}[a-z0-9]", task in 1..100_000_i32, cpu in 0..9999_u32,
        micros in 0..10_u64.pow(13), name in "[a-z_]{1,20}", value in "[a-z0-9:]( ?[a-z0-9:/])*", flags in "[d.][.N]{2}[0-9.]{1,2}",
    ) {
        let (seconds, rest) = (micros / 1_000_000, micros % 1_000_000);
        let line = format!("{comm:>16}-{task:<7} [{cpu:03}] {flags} {seconds:5}.{rest:06}: {name}: comm={value} pid=7");
        let event = read(&line);
        prop_assert_eq!((event.comm, event.task, event.cpu.0), (Some(comm.as_str()), task, cpu), "{}", line);
        prop_assert_eq!((event.time.0, event.name()), (micros * 1_000, name.as_str()));
        prop_assert_eq!(event.text("comm").unwrap(), value);
        prop_assert_eq!(event.signed("pid"), Some(7));
    }

    #[test]
    fn any_line_is_answered_without_a_panic(line in "(-[0-9]{0,3}|\\[[0-9]{0,3}\\] |CPU:|\\[LOST |: |1\\.[0-9]|[a-z=é ]{0,5}|\\(){0,12}") {
        if let Some(Item::Event(event)) = parse(&line) {
            let _ = (event.text("a"), event.value("é"), event.cpus("a"), event.label("b"));
        }
    }
}
