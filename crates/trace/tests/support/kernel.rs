//! What must be so on any kernel, as root, where tracefs is.

use std::fs;
use std::io::Write;
use std::time::Duration;

use sys::clock::Clock;
use sysroot::SysRoot;
use trace::live::{Form, Instance, clear, place};
use trace::{Item, Losses, Symbols, text};
use units::{Bytes, CpuList};

use super::{EventText, assert_same, shown};

pub fn instance(size: u64) -> Instance {
    Instance::make(Some(Bytes(size))).unwrap()
}

/// Events that a thread that sleeps and wakes makes, as far as the kernel has them, and only those of this thread.
const EVENTS: [(&str, &str); 7] = [
    ("sched/sched_switch", "prev_pid == ME || next_pid == ME"),
    ("sched/sched_waking", "pid == ME"),
    ("timer/hrtimer_expire_entry", "common_pid >= 0"),
    ("raw_syscalls/sys_enter", "common_pid == ME"),
    ("irq/softirq_entry", "common_pid >= 0"),
    ("irq/irq_handler_entry", "common_pid >= 0"),
    ("workqueue/workqueue_execute_start", "common_pid >= 0"),
];

/// Records some of everything, and stops.
pub fn recorded() -> Instance {
    let mut instance = instance(1 << 20);
    let me = rustix::thread::gettid().as_raw_nonzero().to_string();
    for (event, filter) in EVENTS {
        instance.enable(event, Some(&filter.replace("ME", &me))).unwrap();
    }
    for number in 0..5 {
        instance.write("trace_marker", &format!("number {number}")).unwrap();
        std::thread::sleep(Duration::from_millis(10));
    }
    instance.write("tracing_on", "0").unwrap();
    instance
}

pub fn texts(instance: &Instance) -> Vec<EventText> {
    let all = instance.read("trace");
    let events = all.value().unwrap().lines().filter_map(text::parse);
    events
        .map(|item| match item {
            Item::Event(event) => shown(&event, &Symbols::default()),
            Item::Lost(lost) => panic!("{lost:?}"),
        })
        .collect()
}

pub fn records(instance: &mut Instance, symbols: &Symbols) -> Vec<EventText> {
    let mut all = Vec::new();
    instance
        .each(&mut |item| match item {
            Item::Event(event) => all.push(shown(event, symbols)),
            Item::Lost(lost) => panic!("{lost:?}"),
        })
        .unwrap();
    all
}

/// A marker's time lies between two readings of `CLOCK_MONOTONIC` around it, in both forms.
pub fn the_trace_clock_is_clock_monotonic() {
    for form in [Form::Binary, Form::Text] {
        let mut instance = instance(1 << 16);
        assert!(instance.read("trace_clock").value().unwrap().contains("[mono]"));
        instance.open(form).unwrap();
        let mut expected = Vec::new();
        for number in 0..50 {
            let before = Clock::Monotonic.now();
            instance.write("trace_marker", &number.to_string()).unwrap();
            expected.push((before, Clock::Monotonic.now()));
        }
        let mut times = Vec::new();
        let me = rustix::thread::gettid().as_raw_nonzero().get();
        let own = fs::read_to_string("/proc/thread-self/comm").unwrap();
        let see = &mut |item: &Item<'_>| match item {
            Item::Event(event) => {
                assert_eq!((event.name(), event.task), ("print", me));
                // The kernel's text may have the name of an earlier thread with this id: no switch is recorded here.
                assert!(form == Form::Text || event.comm == Some(own.trim()), "{event:?}");
                assert_eq!(event.text("buf").unwrap().trim(), times.len().to_string());
                times.push(event.time.0);
            }
            Item::Lost(lost) => panic!("{lost:?}"),
        };
        instance.each(see).unwrap();
        assert_eq!(times.len(), expected.len());
        // Text has microseconds, rounded.
        let slack = if form == Form::Text { 500 } else { 0 };
        for (time, (before, after)) in times.into_iter().zip(expected) {
            assert!(before <= time + slack && time <= after + slack, "{before} {time} {after}");
        }
    }
}

/// What is read from the pages is what the kernel prints.
pub fn binary_and_text_agree() {
    let symbols = Symbols::live(&SysRoot::live()).unwrap();
    assert!(!symbols.is_empty(), "root sees the kernel's addresses");
    let mut instance = recorded();
    let texts = texts(&instance);
    instance.open(Form::Binary).unwrap();
    let records = records(&mut instance, &symbols);
    for name in ["sched_switch", "sched_waking", "hrtimer_expire_entry", "sys_enter", "print"] {
        assert!(records.iter().filter(|shown| shown.name == name).count() >= 5, "{name}: {records:#?}");
    }
    println!(
        "{} events, of which {} are printed in full",
        records.len(),
        records.iter().filter(|shown| !shown.fields.is_empty()).count()
    );
    assert_same(&records, &texts);
}

/// Each marker that was written is an event or lost, and the pages say as many lost ones as the kernel counts.
pub fn what_is_recorded_and_what_is_lost_is_what_was_written() {
    const WRITTEN: u64 = 5_000;
    for form in [Form::Binary, Form::Text] {
        let mut instance = instance(8 << 10);
        instance.open(form).unwrap();
        let (mut events, mut losses) = (0, Losses::default());
        for number in 1..=WRITTEN {
            instance.write("trace_marker", &format!("number {number}")).unwrap();
            // Once while it is written, and once at the end.
            if number == WRITTEN / 3 || number == WRITTEN {
                let see = &mut |item: &Item<'_>| match item {
                    Item::Event(_) => events += 1,
                    Item::Lost(lost) => {
                        assert!(lost.events.is_some() && lost.cpu.is_some(), "{lost:?}");
                        losses.add(lost);
                    }
                };
                instance.each(see).unwrap();
            }
        }
        let counted: u64 = instance.cpus().into_iter().map(|cpu| instance.stats(cpu).unwrap().lost()).sum();
        println!("{form:?}: {events} events, lost {losses}");
        assert!(events > 0 && losses.at_least() > WRITTEN / 10, "{events} {losses}");
        assert_eq!(losses.at_least(), counted);
        assert_eq!(events + losses.at_least(), WRITTEN);
    }
}

/// Threads on all CPUs write while this reads: nothing is missing, and each reading is in order of time.
pub fn events_of_all_cpus_come_in_order() {
    const WRITTEN: usize = 2_000;
    let mut instance = instance(1 << 20);
    instance.open(Form::Binary).unwrap();
    let marker = format!("{}/trace_marker", instance.directory());
    let cpus = sys::schedule::affinity(0).unwrap();
    let writer = |cpu| {
        let marker = marker.clone();
        std::thread::spawn(move || {
            sys::schedule::set_affinity(0, &CpuList::from_iter([cpu])).unwrap();
            let mut file = fs::OpenOptions::new().write(true).open(marker).unwrap();
            (0..WRITTEN).for_each(|_| file.write_all(format!("{cpu}").as_bytes()).unwrap());
        })
    };
    let writers: Vec<_> = cpus.iter().map(writer).collect();
    let (mut all, mut is_last) = (0, false);
    loop {
        is_last = is_last || writers.iter().all(std::thread::JoinHandle::is_finished);
        let mut times = Vec::new();
        let see = &mut |item: &Item<'_>| match item {
            Item::Event(event) => {
                assert_eq!(event.text("buf").unwrap().trim(), event.cpu.to_string());
                times.push(event.time);
            }
            Item::Lost(lost) => panic!("{lost:?}"),
        };
        instance.each(see).unwrap();
        assert!(times.is_sorted());
        all += times.len();
        if is_last {
            break;
        }
        is_last = writers.iter().all(std::thread::JoinHandle::is_finished);
    }
    assert_eq!(all, WRITTEN * cpus.len());
}

/// Whole pages are handed over, and nothing is missing in the file.
pub fn pages_are_moved_into_a_file() {
    const WRITTEN: usize = 1_000;
    let mut instance = instance(1 << 20);
    for number in 0..WRITTEN {
        instance.write("trace_marker", &format!("number {number}")).unwrap();
    }
    let layout = *instance.formats().layout();
    let (mut moved, mut found) = (0, 0);
    for cpu in instance.cpus() {
        let path = std::env::temp_dir().join(format!("worstcase-spool-{}-{cpu}", std::process::id()));
        let spooled = instance.spool(cpu, &fs::File::create(&path).unwrap()).unwrap();
        let bytes = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        println!("CPU {cpu}: {spooled:?}");
        assert_eq!(bytes.len() as u64, spooled.spliced.0 + spooled.copied.0);
        assert!(spooled.copied.0 <= layout.size as u64, "whole pages are not copied: {spooled:?}");
        moved += spooled.spliced.0;
        found += bytes.chunks(layout.size).flat_map(|page| layout.entries(page)).map(Result::unwrap).count();
    }
    assert!(moved > 0);
    assert_eq!(found, WRITTEN);
}

/// An instance goes with its owner, and one whose owner was killed goes with the next.
pub fn nothing_is_left_behind() {
    let directory = instance(1 << 16).directory().to_owned();
    assert!(!fs::exists(&directory).unwrap());
    let mut child = std::process::Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    let left = format!("{}/instances/worstcase-{}-0", place(&SysRoot::live()).unwrap(), child.id());
    fs::create_dir(&left).unwrap();
    let ours = instance(1 << 16);
    let cleared = clear();
    assert!(cleared.contains(&(left.clone(), Ok(()))), "{cleared:?}");
    assert!(!fs::exists(&left).unwrap() && fs::exists(ours.directory()).unwrap());
}
