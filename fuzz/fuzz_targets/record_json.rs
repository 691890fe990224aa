//! Any bytes are answered; a record that parses can be summed up, exported, and saved so that it loads the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use record::Record;

fuzz_target!(|bytes: &[u8]| {
    let Ok(record) = serde_json::from_slice::<Record>(bytes) else { return };
    let _ = (record.worst(), record.all_warnings().count());
    for scenario in &record.scenarios {
        let _ = (
            formats::cyclictest::histogram(&scenario.series, Some(50)),
            formats::osadl::plot(&scenario.series),
        );
    }
    let saved = serde_json::to_string(&record).expect("a record can be saved");
    assert_eq!(serde_json::from_str::<Record>(&saved).expect("what was saved can be loaded"), record);
});
