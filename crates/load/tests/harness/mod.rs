//! Runs tests one after the other and prints what libtest prints: for binaries whose `main` must be their own.

use std::process::ExitCode;
use std::time::Instant;

/// A test and its name.
pub type Test = (&'static str, fn());

/// Runs those whose names contain `filter`, which may also be an option and then selects all.
pub fn run(tests: &[Test], filter: Option<&str>) -> ExitCode {
    let filter = filter.filter(|word| !word.starts_with("--"));
    let (mut passed, mut failed) = (0, 0);
    for (name, test) in tests.iter().filter(|(name, _)| filter.is_none_or(|filter| name.contains(filter))) {
        let started = Instant::now();
        let ok = std::panic::catch_unwind(test).is_ok();
        (passed, failed) = (passed + u32::from(ok), failed + u32::from(!ok));
        println!("test {name} ... {} ({:.1?})", if ok { "ok" } else { "FAILED" }, started.elapsed());
    }
    // The closing line of libtest, which is what adds tests up.
    let word = if failed == 0 { "ok" } else { "FAILED" };
    println!("test result: {word}. {passed} passed; {failed} failed; 0 ignored; 0 measured; 0 filtered out");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
