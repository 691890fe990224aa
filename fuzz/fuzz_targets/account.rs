//! Any lines of a trace, in any order, around any wake-up: pieces and causes sum to its latency. The first line says when it was
//! due, how late it was, which thread it was, whether the machine is a guest, which threads record the trace, and the timer's slack.
#![no_main]

use std::collections::BTreeMap;

use explain::{Event, Window, account};
use libfuzzer_sys::fuzz_target;
use trace::{Item, Symbols, text};
use units::{CpuId, Nanos};

fuzz_target!(|lines: &str| {
    let mut lines = lines.lines();
    let mut numbers =
        lines.next().unwrap_or_default().split(' ').map(|word| word.parse::<u64>().unwrap_or_default());
    let mut next = || numbers.next().unwrap_or_default();
    let (due, latency, tid, guest) = (next(), next(), next(), next());
    let (reader, recorder, slack) = (next(), next(), next());
    let mut events: BTreeMap<CpuId, Vec<Event>> = BTreeMap::new();
    for line in lines {
        if let Some(Item::Event(event)) = text::parse(line) {
            events.entry(event.cpu).or_default().push(Event::of(&event, &Symbols::default()));
        }
    }
    let cpu = events.keys().next().copied().unwrap_or_default();
    let (due, woke) = (Nanos(due), Nanos(due.saturating_add(latency)));
    let thread = |number: u64| i32::try_from(number).unwrap_or_default();
    let (tid, reader) = (thread(tid), Some(thread(reader)));
    let recorders = [thread(recorder)].into();
    let slack_until = Some(Nanos(due.0.saturating_add(slack)));
    let (is_guest, shows_steal, priority) = (guest & 1 != 0, guest & 2 != 0, Some(1));
    let window =
        Window { cpu, tid, priority, due, woke, slack_until, is_guest, shows_steal, recorders, reader, events };
    let account = account(&window, None);
    let sum = |lengths: &mut dyn Iterator<Item = Nanos>| lengths.fold(0_u64, |sum, length| sum + length.0);
    assert_eq!(sum(&mut account.pieces.iter().map(|piece| piece.length)), window.latency().0);
    assert_eq!(sum(&mut account.causes.iter().map(|cause| cause.length)), window.latency().0);
});
