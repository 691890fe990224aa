//! What tracing adds to the counts of `machine::activity`: names of functions and system calls behind interrupts, work
//! and timers.

use std::borrow::Cow;

use machine::activity::{Kind, Tally};
use units::{CpuId, CpuList};

use crate::{Event, Symbols};

/// An event that is traced: its system and name, which of its fields says where it counts, and since when it is there.
#[derive(Clone, Copy, Debug)]
pub struct Traced {
    /// `system/name`, its directory.
    pub event: &'static str,
    /// Which kernels have it.
    pub since: &'static str,
    place: Place,
}

/// How an event says which CPU it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// It happens there.
    Here,
    /// It happens there, and counts unless it was a success.
    HereFailed,
    /// It is sent there from elsewhere.
    To,
    /// It is sent to several, for which there is no filter before Linux 6.6.
    ToSeveral,
}

/// All that are traced.
pub const EVENTS: [Traced; 9] = [
    Traced::new("raw_syscalls/sys_enter", "with CONFIG_FTRACE_SYSCALLS", Place::Here),
    Traced::new("sched/sched_switch", "", Place::Here),
    Traced::new("workqueue/workqueue_execute_start", "", Place::Here),
    Traced::new("timer/timer_expire_entry", "", Place::Here),
    Traced::new("timer/hrtimer_expire_entry", "", Place::Here),
    Traced::new("timer/tick_stop", "with nohz_full", Place::HereFailed),
    Traced::new("csd/csd_queue_cpu", "Linux 6.5", Place::To),
    Traced::new("ipi/ipi_send_cpu", "Linux 6.4", Place::To),
    Traced::new("ipi/ipi_send_cpumask", "Linux 6.4", Place::ToSeveral),
];

impl Traced {
    const fn new(event: &'static str, since: &'static str, place: Place) -> Self {
        Self { event, since, place }
    }

    /// How the kernel is to count it itself, where it comes too fast to be read one by one (Documentation/trace/
    /// histogram.rst); [`add_histogram`] reads what it counted.
    pub fn histogram(&self, cpus: &CpuList) -> Option<String> {
        const KEYS: &str = "hist:keys=common_cpu,common_pid.execname,id.syscall:size=4096";
        let filter = self.filter(cpus).filter(|_| self.event == "raw_syscalls/sys_enter")?;
        Some(format!("{KEYS} if {filter}"))
    }

    /// What the kernel is to keep of it for `cpus`; nothing where it keeps all.
    pub fn filter(&self, cpus: &CpuList) -> Option<String> {
        let field = match self.place {
            Place::Here | Place::HereFailed => "CPU",
            Place::To => "cpu",
            Place::ToSeveral => return None,
        };
        let any: Vec<String> = cpus.iter().map(|cpu| format!("{field} == {cpu}")).collect();
        let any = any.join(" || ");
        Some(if self.place == Place::HereFailed { format!("({any}) && success == 0") } else { any })
    }
}

/// What an event counts as.
struct Count<'a> {
    cpus: CpuList,
    kind: Kind,
    name: Cow<'a, str>,
    words: String,
}

/// Adds what an event says.
pub fn add(tally: &mut Tally, event: &Event<'_>, symbols: &Symbols) {
    let Some(count) = count(event, symbols) else { return };
    for cpu in count.cpus.iter() {
        tally.add_events(cpu, count.kind, &count.name, &count.words, 1);
    }
}

/// Adds the system calls that a histogram has; how many it had no room for.
pub fn add_histogram(tally: &mut Tally, text: &str) -> u64 {
    for row in text.lines().filter_map(Row::parse) {
        let words = format!("{} call {}", row.tid, row.call);
        tally.add_events(row.cpu, Kind::SystemCall, row.thread, &words, row.hits);
    }
    let dropped = text.lines().find_map(|line| line.trim().strip_prefix("Dropped:"));
    dropped.and_then(|number| number.trim().parse().ok()).unwrap_or_default()
}

/// A row of the histogram of system calls.
#[derive(Debug, PartialEq, Eq)]
struct Row<'a> {
    cpu: CpuId,
    thread: &'a str,
    tid: i32,
    call: String,
    hits: u64,
}

impl<'a> Row<'a> {
    /// Reads `{ common_cpu: 1, common_pid: yes [ 158], id: sys_write [ 1] } hitcount: 3`.
    fn parse(line: &'a str) -> Option<Self> {
        let rest = line.trim().strip_prefix("{ common_cpu:")?;
        let (cpu, rest) = rest.split_once(", common_pid:")?;
        let (thread, rest) = rest.rsplit_once(", id:")?;
        let (call, hits) = rest.rsplit_once("} hitcount:")?;
        let numbered = |text: &'a str| {
            let (name, number) = text.trim().strip_suffix(']')?.rsplit_once('[')?;
            Some((name.trim(), number.trim()))
        };
        let ((thread, tid), (name, number)) = (numbered(thread)?, numbered(call)?);
        Some(Self {
            cpu: CpuId(cpu.trim().parse().ok()?),
            thread,
            tid: tid.parse().ok()?,
            call: format!("{number} {}", name.trim_start_matches("sys_")),
            hits: hits.trim().parse().ok()?,
        })
    }
}

fn count<'a>(event: &Event<'a>, symbols: &'a Symbols) -> Option<Count<'a>> {
    let here = CpuList::from_iter([event.cpu]);
    let function = |field: &str| event.function(field, symbols);
    let call = |cpus, name| {
        let words = format!("by {}", function("callsite")?);
        Some(Count { cpus, kind: Kind::Call, name, words })
    };
    let one = || Some(CpuList::from_iter([CpuId(event.unsigned("cpu")?.try_into().ok()?)]));
    let simple = |kind, name| Count { cpus: here.clone(), kind, name, words: String::new() };
    Some(match event.name() {
        "sys_enter" => {
            let words = format!("{} call {}", event.task, event.signed("id")?);
            Count { words, ..simple(Kind::SystemCall, event.comm.unwrap_or("<...>").into()) }
        }
        "sched_switch" => match event.signed("next_pid")? {
            0 => return None,
            tid => Count { words: tid.to_string(), ..simple(Kind::Passing, event.text("next_comm")?) },
        },
        "workqueue_execute_start" => simple(Kind::Work, function("function")?),
        "timer_expire_entry" | "hrtimer_expire_entry" => simple(Kind::Timer, function("function")?),
        "tick_stop" => {
            let number = || event.unsigned("dependency").map(|number| number.to_string().into());
            simple(Kind::Tick, event.label("dependency").map(Cow::Borrowed).or_else(number)?)
        }
        "csd_queue_cpu" => call(one()?, function("func")?)?,
        "ipi_send_cpu" => call(one()?, sent(function("callback")?)?)?,
        "ipi_send_cpumask" => call(event.cpus("cpumask")?, sent(function("callback")?)?)?,
        _ => return None,
    })
}

/// What an interrupt is sent for. Without a function to call it is only to look whether another thread is to run. One that
/// empties the queue of calls is left out: its calls were counted as they were queued, each under its own name, and several
/// may share an interrupt (`send_call_function_single_ipi` in kernel/smp.c).
fn sent(function: Cow<'_, str>) -> Option<Cow<'_, str>> {
    const QUEUE: &str = "generic_smp_call_function_single_interrupt";
    let is_nothing = function.trim_start_matches("0x").trim_matches('0').is_empty();
    if is_nothing { Some("reschedule".into()) } else { (function != QUEUE).then_some(function) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Item, text};
    use proptest::prelude::*;

    fn tally(lines: &[&str]) -> Vec<(Kind, String, String, u64)> {
        let mut tally = Tally::new("1".parse().unwrap());
        for line in lines {
            let line = format!("  some-7 [{line}");
            let Some(Item::Event(event)) = text::parse(&line) else { panic!("{line}") };
            add(&mut tally, &event, &Symbols::default());
        }
        let all = tally.residues().into_iter();
        all.inspect(|residue| assert_eq!(residue.cpu, CpuId(1)))
            .map(|residue| (residue.kind, residue.name, residue.words, residue.events))
            .collect()
    }

    fn one(line: &str) -> Option<(Kind, String, String)> {
        tally(&[line]).pop().map(|(kind, name, words, _)| (kind, name, words))
    }

    #[test]
    fn events_are_counted_by_what_they_say() {
        let is = |line: &str, kind, name: &str, words: &str| {
            assert_eq!(one(line), Some((kind, name.to_owned(), words.to_owned())), "{line}");
        };
        is("001] d 1.0: sys_enter: NR 230 (1, 2)", Kind::SystemCall, "some", "7 call 230");
        is(
            "001] d 1.0: sched_switch: prev_comm=a prev_pid=1 ==> next_comm=gone by next_pid=9 next_prio=120",
            Kind::Passing,
            "gone by",
            "9",
        );
        is("001] d 1.0: workqueue_execute_start: work struct 0x1: function f", Kind::Work, "f", "");
        is("001] d 1.0: timer_expire_entry: timer=0x1 function=g now=1", Kind::Timer, "g", "");
        is("001] d 1.0: tick_stop: success=0 dependency=SCHED", Kind::Tick, "SCHED", "");
        let sent = "000] d 1.0: ipi_send_cpu: cpu=1 callsite=a+0x2/0x4 callback=0x0";
        is(sent, Kind::Call, "reschedule", "by a");
        let sent = "000] d 1.0: ipi_send_cpumask: cpumask=0-1 callsite=a+0x2 callback=flush_tlb_func+0x0";
        is(sent, Kind::Call, "flush_tlb_func", "by a");
        let sent = "000] d 1.0: ipi_send_cpumask: cpumask=1 callsite=a+0x2 callback=f+0x0";
        is(sent, Kind::Call, "f", "by a");
    }

    /// Since Linux 6.5 the interrupt names no function: all calls of one sender were one thing.
    #[test]
    fn calls_are_named_by_the_function_that_is_queued_and_not_by_the_interrupt() {
        let (sender, other) = ("smp_call_function_single+0x6", "smp_call_function_many_cond+0x9");
        let queued = |function: &str| {
            format!("000] d 1.0: csd_queue_cpu: cpu=1 callsite={sender} func={function} csd=0000000043e69194")
        };
        let interrupt = "callback=generic_smp_call_function_single_interrupt+0x0/0x10";
        let lines = [
            queued("__bpf_prog_test_run_raw_tp"),
            format!("000] d 1.0: ipi_send_cpu: cpu=1 callsite={sender} {interrupt}"),
            queued("rcu_exp_handler"),
            format!("000] d 1.0: ipi_send_cpumask: cpumask=0-1 callsite={other} {interrupt}"),
        ];
        let all = tally(&lines.each_ref().map(String::as_str));
        let names: Vec<_> =
            all.iter().map(|(kind, name, words, events)| (*kind, &**name, &**words, *events)).collect();
        let by = "by smp_call_function_single";
        assert_eq!(
            names,
            [(Kind::Call, "__bpf_prog_test_run_raw_tp", by, 1), (Kind::Call, "rcu_exp_handler", by, 1)]
        );
    }

    #[test]
    fn what_is_elsewhere_or_idle_does_not_count() {
        assert_eq!(one("000] d 1.0: sys_enter: NR 230 (1, 2)"), None);
        assert_eq!(one("001] d 1.0: sched_switch: next_comm=swapper/1 next_pid=0"), None);
        assert_eq!(one("001] d 1.0: ipi_send_cpu: cpu=0 callsite=a callback=b"), None);
        assert_eq!(one("001] d 1.0: nobody_asked: x=1"), None);
    }

    #[test]
    fn a_histogram_has_system_calls_by_name_and_what_it_had_no_room_for() {
        let text = "# event histogram\n#\n\n\
            { common_cpu:          1, common_pid: a [x], id  [       158], id: sys_write                     [  1] } hitcount:     301\n\
            { common_cpu:          0, common_pid: b          [       159], id: sys_read                      [  0] } hitcount:       3\n\
            \nTotals:\n    Hits: 304\n    Entries: 2\n    Dropped: 7\n";
        let mut tally = Tally::new("1".parse().unwrap());
        assert_eq!(add_histogram(&mut tally, text), 7);
        let all = tally.residues();
        assert_eq!(all.len(), 1);
        assert_eq!(
            (all[0].name.as_str(), all[0].words.as_str(), all[0].events),
            ("a [x], id", "158 call 1 write", 301)
        );
    }

    proptest! {
        #[test]
        fn any_histogram_is_answered_without_a_panic(text in "(\\{ common_cpu:|, common_pid:|, id:|\\} hitcount:|Dropped:|[0-9 é\\[\\]\n]{0,4}){0,12}") {
            let _ = add_histogram(&mut Tally::new(CpuList::new()), &text);
        }
    }

    #[test]
    fn filters_name_the_cpus() {
        let filter = |event: &str| {
            let traced = EVENTS.iter().find(|traced| traced.event == event).unwrap();
            traced.filter(&"1,3".parse().unwrap())
        };
        assert_eq!(filter("sched/sched_switch").as_deref(), Some("CPU == 1 || CPU == 3"));
        assert_eq!(filter("timer/tick_stop").as_deref(), Some("(CPU == 1 || CPU == 3) && success == 0"));
        assert_eq!(filter("ipi/ipi_send_cpu").as_deref(), Some("cpu == 1 || cpu == 3"));
        assert_eq!(filter("csd/csd_queue_cpu").as_deref(), Some("cpu == 1 || cpu == 3"));
        assert_eq!(filter("ipi/ipi_send_cpumask"), None);
    }
}
