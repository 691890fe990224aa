//! Any text is answered, and a length of time that parses prints as one that parses to the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use units::Nanos;

fuzz_target!(|text: &str| {
    let Ok(nanos) = text.parse::<Nanos>() else { return };
    assert!(nanos <= Nanos::MAX);
    assert_eq!(nanos.to_string().parse(), Ok(nanos));
    let _ = nanos.rounded();
});
