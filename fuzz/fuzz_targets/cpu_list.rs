//! Any text is answered, and a list that parses prints as one that parses to the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use units::{CpuId, CpuList, MAX_CPUS};

fuzz_target!(|text: &str| {
    let Ok(list) = text.parse::<CpuList>() else { return };
    assert!(list.iter().all(|CpuId(cpu)| cpu < MAX_CPUS));
    assert_eq!(list.to_string().parse(), Ok(list));
});
