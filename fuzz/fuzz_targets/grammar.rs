//! Any kernel command line and any value for a file of the kernel is judged, and judging twice says the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use machine::CommandLine;
use machine::grammar::{files, judge, together};

fuzz_target!(|text: &str| {
    let line = CommandLine::parse(text);
    for word in &line.words {
        let judged = || judge(&word.name, word.value.as_deref(), None);
        assert_eq!(judged(), judged());
    }
    let _ = together(&line, None);
    let (path, value) = text.split_once('\n').unwrap_or((text, text));
    assert_eq!(files::judge(path, value, None), files::judge(path, value, None));
});
