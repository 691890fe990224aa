//! Any text is answered, and what is read from it is written as what reads as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use machine::kernel_config::{KernelConfig, dropped, line_of};

fuzz_target!(|text: &str| {
    let config = KernelConfig::parse(text);
    assert!(config.complaints.iter().all(|complaint| (1..=text.lines().count()).contains(&complaint.line)));
    let written: String =
        config.settings().map(|(symbol, setting)| line_of(symbol, setting) + "\n").collect();
    let read = KernelConfig::parse(&written);
    assert!(read.complaints.is_empty() && read.settings().eq(config.settings()));
    assert!(dropped(&config, &read).is_empty());
});
