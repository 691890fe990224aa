//! Any text is refused or is a format, which reads any record: what a field holds stands in the record, and never beyond.
//! The record follows the text after an empty line and a NUL.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trace::format::Format;
use trace::page::Layout;
use trace::{Order, Value};

fuzz_target!(|bytes: &[u8]| {
    let place = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let (text, data) = bytes.split_at(place);
    let text = String::from_utf8_lossy(text);
    if let Ok(layout) = Layout::parse(&text, Order::Little) {
        let _ = layout.entries(data).count();
    }
    let Ok(format) = Format::parse(&text) else { return };
    for field in format.fields() {
        assert!(format.field(&field.name).is_some());
        for order in [Order::Little, Order::Big] {
            match field.value(order, data) {
                Some(Value::Bytes(bytes)) => assert!(bytes.len() <= data.len()),
                Some(Value::Text(text)) => assert!(!text.contains('\0')),
                _ => {}
            }
        }
        for number in 0..4 {
            let label = format.label(&field.name, number);
            assert!(label.is_none_or(|label| text.contains(label)));
        }
    }
});
