//! Runs tests one after the other and prints what libtest prints: for binaries whose `main` must be their own.

use std::process::ExitCode;
use std::time::Instant;

/// A test and its name.
pub type Test = (&'static str, fn());

/// Runs the tests that `arguments` select by a part of their names, with `--exact` by the whole name; with `--list` names
/// them only. libtest's other options are passed over: these tests always run one after the other and show what they print.
pub fn run(tests: &[Test], arguments: &[String]) -> ExitCode {
    let has = |option: &str| arguments.iter().any(|argument| argument == option);
    let filters: Vec<&String> = arguments.iter().filter(|word| !word.starts_with("--")).collect();
    let fits = |name: &str, filter: &str| if has("--exact") { name == filter } else { name.contains(filter) };
    let is_chosen = |name: &str| filters.is_empty() || filters.iter().any(|filter| fits(name, filter));
    let chosen: Vec<Test> = tests.iter().copied().filter(|(name, _)| is_chosen(name)).collect();
    if has("--list") {
        chosen.iter().for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    let (mut passed, mut failed) = (0, 0);
    for (name, test) in chosen {
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
