//! Any pasted text is looked through, and looking twice says the same.
#![no_main]

use audit::recipe::{Target, examine};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let target = Target { processors: Some(8), ..Target::default() };
    assert_eq!(examine(text, target), examine(text, target));
});
