//! What a kernel recorded is read as it prints it.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod support;

use support::fixture::Fixture;
use support::{EventText, assert_same, shown};
use trace::{Item, Losses, Symbols, text};

const KERNELS: [(&str, &str); 3] = [
    ("6.1", include_str!("fixtures/6.1.txt")),
    ("6.1-rt", include_str!("fixtures/6.1-rt.txt")),
    ("6.18", include_str!("fixtures/6.18.txt")),
];

#[test]
fn pages_are_read_as_the_kernel_prints_them() {
    for (kernel, fixture) in KERNELS {
        let fixture = Fixture::parse(fixture);
        let events = fixture.trace.lines().filter_map(text::parse);
        let texts: Vec<EventText> = events
            .map(|item| match item {
                Item::Event(event) => shown(&event, &Symbols::default()),
                Item::Lost(lost) => panic!("{kernel}: {lost:?}"),
            })
            .collect();
        let mut records = Vec::new();
        fixture.each("page", |item| match item {
            // Text shows a stack in lines of its own.
            Item::Event(event) if event.name() == "kernel_stack" => {}
            Item::Event(event) => records.push(shown(event, &fixture.symbols)),
            Item::Lost(lost) => panic!("{kernel}: {lost:?}"),
        });
        assert!(records.len() > 20, "{kernel}: {}", records.len());
        assert_same(&records, &texts);
    }
}

#[test]
fn stacks_begin_in_the_waking_of_the_thread() {
    for (kernel, fixture) in KERNELS {
        let fixture = Fixture::parse(fixture);
        let mut stacks = Vec::new();
        fixture.each("page", |item| {
            let Item::Event(event) = item else { return };
            let callers = event.addresses("caller");
            assert_eq!(callers.is_empty(), event.name() != "kernel_stack", "{kernel}");
            if event.name() == "kernel_stack" {
                assert_eq!(event.signed("size"), Some(callers.len() as i64), "{kernel}");
                let names = callers.iter().filter_map(|address| Some(fixture.symbols.function(*address)?.0));
                stacks.push(names.collect::<Vec<_>>());
            }
        });
        assert!(stacks.len() >= 3, "{kernel}");
        assert!(stacks.iter().all(|names| names.contains(&"hrtimer_wakeup")), "{kernel}: {stacks:?}");
    }
}

#[test]
fn numbers_have_the_names_that_the_kernel_prints() {
    for (kernel, fixture) in KERNELS {
        let fixture = Fixture::parse(fixture);
        let label = |name: &str, field: &str, number| {
            let format = fixture.formats.named(name).next().unwrap();
            format.label(field, number).map(str::to_owned)
        };
        assert_eq!(label("softirq_entry", "vec", 1).as_deref(), Some("TIMER"), "{kernel}");
        assert_eq!(label("tick_stop", "dependency", 4).as_deref(), Some("SCHED"), "{kernel}");
        assert_eq!(label("tick_stop", "success", 1), None, "{kernel}");
    }
}

#[test]
fn lost_events_are_in_the_first_page_that_was_not_overwritten() {
    for (kernel, fixture) in KERNELS {
        let fixture = Fixture::parse(fixture);
        let (mut losses, mut first) = (Losses::default(), None);
        fixture.each("lossy", |item| match item {
            Item::Event(event) => {
                let number =
                    event.text("buf").unwrap().trim().strip_prefix("number ").unwrap().parse::<u64>();
                first.get_or_insert(number.unwrap());
            }
            Item::Lost(lost) => losses.add(lost),
        });
        // Markers are numbered, and one thread wrote them: on one CPU, or nearly so.
        assert!(losses.at_least() > 0 && losses.at_least() <= first.unwrap(), "{kernel}: {losses} {first:?}");
    }
}
