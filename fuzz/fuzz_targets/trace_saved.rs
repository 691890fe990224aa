//! Any bytes are refused as a file of trace-cmd, or read to their end.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trace::Item;
use trace::saved::Saved;

fuzz_target!(|bytes: &[u8]| {
    let Ok(saved) = Saved::of_bytes(bytes.to_vec()) else { return };
    let _ = saved.symbols();
    for buffer in saved.buffers() {
        let Ok(mut events) = saved.events(buffer) else { continue };
        let mut losses = 0;
        while let Some(item) = events.next_item().expect("memory is read") {
            match item {
                Item::Event(event) => drop(event.fields().count()),
                Item::Lost(_) => losses += 1,
            }
        }
        // A page gives one loss by its head and one by its damage, at most.
        assert!(losses <= 2 * bytes.len());
    }
});
