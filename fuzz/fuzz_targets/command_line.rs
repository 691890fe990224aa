//! Any kernel command line is answered: each word has a value, none of those for init has, and the last of a name wins.
#![no_main]

use libfuzzer_sys::fuzz_target;
use machine::CommandLine;

fuzz_target!(|text: &str| {
    let line = CommandLine::parse(text);
    for word in &line.words {
        assert!(line.value(&word.name).is_some());
        assert!(line.get(&word.name).is_some_and(|last| line.all(&word.name).last() == Some(last)));
    }
    assert!(line.overridden().len() < line.words.len().max(1));
});
