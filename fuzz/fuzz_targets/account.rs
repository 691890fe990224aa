//! Any lines of a trace, in any order, around any wake-up: pieces and causes sum to its latency. The first line says when it was
//! due, how late it was and which thread it was.
#![no_main]

use std::collections::BTreeMap;

use explain::{Event, Window, account};
use libfuzzer_sys::fuzz_target;
use trace::{Item, Symbols, text};
use units::{CpuId, Nanos};

fuzz_target!(|lines: &str| {
    let mut lines = lines.lines();
    let mut numbers = lines.next().unwrap_or_default().split(' ').map(|word| word.parse::<u64>().unwrap_or_default());
    let mut next = || numbers.next().unwrap_or_default();
    let (due, latency, tid) = (next(), next(), next());
    let mut events: BTreeMap<CpuId, Vec<Event>> = BTreeMap::new();
    for line in lines {
        if let Some(Item::Event(event)) = text::parse(line) {
            events.entry(event.cpu).or_default().push(Event::of(&event, &Symbols::default()));
        }
    }
    let cpu = events.keys().next().copied().unwrap_or_default();
    let (due, woke) = (Nanos(due), Nanos(due.saturating_add(latency)));
    let tid = i32::try_from(tid).unwrap_or_default();
    let window = Window { cpu, tid, priority: Some(1), due, woke, is_guest: false, events };
    let account = account(&window, None);
    let sum = |lengths: &mut dyn Iterator<Item = Nanos>| lengths.fold(0_u64, |sum, length| sum + length.0);
    assert_eq!(sum(&mut account.pieces.iter().map(|piece| piece.length)), window.latency().0);
    assert_eq!(sum(&mut account.causes.iter().map(|cause| cause.length)), window.latency().0);
});
