//! Any lines are answered: each is an event, lost ones or nothing, and what a field says stands in its line.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trace::{Item, Symbols, text};

fuzz_target!(|lines: &str| {
    for line in lines.lines() {
        match text::parse(line) {
            Some(Item::Event(event)) => {
                assert!(event.comm.is_none_or(|comm| line.contains(comm)));
                for field in ["comm", "pid", "next_comm", "function", "id", "buf", "é"] {
                    assert!(event.text(field).is_none_or(|text| line.contains(text.as_ref())));
                    let _ =
                        (event.value(field), event.cpus(field), event.function(field, &Symbols::default()));
                }
            }
            Some(Item::Lost(lost)) => assert!(lost.cpu.is_some() || lost.events > Some(0)),
            None => {}
        }
    }
});
