//! What the tests with a kernel and those with what a kernel once said have in common.
#![allow(clippy::unwrap_used, clippy::print_stdout, dead_code)]

pub mod fixture;
pub mod kernel;
pub mod tracers;

use trace::{Event, Symbols};

/// An event in words that a record and its text must share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventText {
    /// In microseconds, which is what text has.
    pub micros: u64,
    pub cpu: u32,
    pub task: i32,
    pub name: String,
    pub fields: Vec<String>,
}

#[derive(Clone, Copy)]
enum Form {
    Number,
    Text,
    Function,
}

use Form::{Function, Number, Text};

/// Fields that the kernel prints as they are.
const FIELDS: [(&str, &[(&str, Form)]); 8] = [
    (
        "sched_switch",
        &[
            ("prev_comm", Text),
            ("prev_pid", Number),
            ("prev_prio", Number),
            ("next_comm", Text),
            ("next_pid", Number),
            ("next_prio", Number),
        ],
    ),
    ("sched_waking", &[("comm", Text), ("pid", Number), ("prio", Number), ("target_cpu", Number)]),
    ("irq_handler_entry", &[("irq", Number), ("name", Text)]),
    ("softirq_entry", &[("vec", Number)]),
    ("hrtimer_expire_entry", &[("function", Function), ("now", Number)]),
    ("workqueue_execute_start", &[("function", Function)]),
    ("sys_enter", &[("id", Number)]),
    ("print", &[("buf", Text)]),
];

/// What both forms of an event say.
pub fn shown(event: &Event<'_>, symbols: &Symbols) -> EventText {
    let fields = FIELDS.iter().find(|(name, _)| *name == event.name()).map_or(&[][..], |(_, fields)| fields);
    let value = |(field, form): &(&str, Form)| {
        let value = match form {
            Number => event.signed(field).map(|number| number.to_string()),
            Text => event.text(field).map(|text| text.trim_end().to_owned()),
            Function => event.function(field, symbols).map(|name| name.into_owned()),
        };
        format!("{field}={}", value.unwrap_or_else(|| panic!("{} has no {field}: {event:?}", event.name())))
    };
    EventText {
        // The kernel rounds.
        micros: (event.time.0 + 500) / 1000,
        cpu: event.cpu.0,
        task: event.task,
        name: event.name().to_owned(),
        fields: fields.iter().map(value).collect(),
    }
}

/// Fails at the first event that two readings do not share.
pub fn assert_same(left: &[EventText], right: &[EventText]) {
    for (place, (left, right)) in left.iter().zip(right).enumerate() {
        assert_eq!(left, right, "event {place}");
    }
    assert_eq!(left.len(), right.len());
}
