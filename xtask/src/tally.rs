//! What test stages add up to.

use std::collections::BTreeMap;

/// Passed, failed, skipped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many passed.
    pub passed: u64,
    /// How many failed.
    pub failed: u64,
    /// What was not run, and why.
    pub skipped: Vec<Skip>,
}

/// Something that was not tested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skip {
    /// The test.
    pub what: String,
    /// The reason it gave.
    pub why: String,
}

/// Words in a reason that say that no package and no privilege would have helped. What prints a fixture is no test: it
/// stands among the tests because it needs their guests.
const UNAVOIDABLE: [&str; 9] = [
    "long",
    "kernel",
    "hardware",
    "virtual machine",
    "target ",
    "nightly",
    "cpu",
    "prints a fixture",
    "--within",
];

impl Skip {
    /// Whether a machine that tests for the project could have provided what was missing: a package, privileges.
    pub fn is_avoidable(&self) -> bool {
        let why = self.why.to_lowercase();
        !UNAVOIDABLE.iter().any(|word| why.contains(word))
    }
}

impl Tally {
    /// One thing that passed or failed.
    pub fn of(passed: bool) -> Self {
        Self { passed: u64::from(passed), failed: u64::from(!passed), skipped: Vec::new() }
    }

    /// One thing that was skipped.
    pub fn skip(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self { skipped: vec![Skip { what: what.into(), why: why.into() }], ..Self::default() }
    }

    /// Takes in another's sums.
    pub fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped.extend(other.skipped);
    }

    /// Counts avoidable skips as failures; returns them.
    pub fn refuse_avoidable(&mut self) -> Vec<Skip> {
        let (refused, kept) = std::mem::take(&mut self.skipped).into_iter().partition(Skip::is_avoidable);
        self.skipped = kept;
        self.failed += Vec::len(&refused) as u64;
        refused
    }

    /// Reads what `cargo test -- --show-output` printed. A test that printed a line `skipped: why` and returned
    /// counts as skipped, though the test harness calls it passed.
    pub fn from_cargo_test(text: &str, success: bool) -> Self {
        let mut reader = Reader::default();
        text.lines().for_each(|line| reader.line(line));
        reader.close();
        let mut tally = reader.tally;
        if !success && tally.failed == 0 {
            tally.failed = 1; // it did not compile, or crashed
        }
        tally
    }
}

/// Where in the output of `cargo test` we are.
#[derive(Default)]
struct Reader {
    tally: Tally,
    /// The test whose output is being shown.
    section: Option<String>,
    /// Reasons found in the output of tests that passed, by test.
    reasons: BTreeMap<String, String>,
    /// Whether the output shown belongs to tests that failed.
    failures: bool,
}

impl Reader {
    fn line(&mut self, line: &str) {
        if let Some(result) = line.strip_prefix("test result: ") {
            return self.result(result);
        }
        match line {
            "successes:" | "failures:" => {
                self.section = None;
                self.failures = line == "failures:";
            }
            _ => self.inner(line),
        }
    }

    fn inner(&mut self, line: &str) {
        let shown = line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----"));
        if let Some(test) = shown {
            self.section = Some(test.to_owned());
        } else if let Some((test, why)) = ignored(line) {
            self.tally.add(Tally::skip(test, why));
        } else if let Some(why) = line.trim_start().strip_prefix("skipped: ") {
            self.reason(why);
        }
    }

    fn reason(&mut self, why: &str) {
        match &self.section {
            Some(_) if self.failures => {}
            Some(test) => _ = self.reasons.entry(test.clone()).or_insert_with(|| why.to_owned()),
            None => self.tally.add(Tally::skip("", why)),
        }
    }

    /// `ok. 18 passed; 0 failed; 2 ignored; ...`
    fn result(&mut self, result: &str) {
        let count = |word: &str| {
            let part = result.split([';', '.']).map(str::trim).find_map(|part| part.strip_suffix(word));
            part.and_then(|number| number.trim().parse::<u64>().ok()).unwrap_or(0)
        };
        self.tally.passed += count("passed");
        self.tally.failed += count("failed");
        self.close();
    }

    /// Moves the tests that said why they did nothing from passed to skipped.
    fn close(&mut self) {
        let reasons = std::mem::take(&mut self.reasons);
        self.tally.passed = self.tally.passed.saturating_sub(reasons.len() as u64);
        self.tally.skipped.extend(reasons.into_iter().map(|(what, why)| Skip { what, why }));
        self.section = None;
        self.failures = false;
    }
}

/// `test NAME ... ignored, WHY`
fn ignored(line: &str) -> Option<(&str, &str)> {
    let (test, why) = line.strip_prefix("test ")?.split_once(" ... ignored")?;
    Some((test, why.strip_prefix(", ").unwrap_or("ignored")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
running 4 tests
test plain ... ok
test unprivileged ... ok
test hours ... ignored, long
test broken ... FAILED

successes:

---- plain stdout ----
looked at 3 things, skipped: none

---- unprivileged stdout ----
skipped: needs root
skipped: needs root

successes:
    plain
    unprivileged

failures:

---- broken stdout ----
skipped: not the point

failures:
    broken

test result: FAILED. 2 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s

running 2 tests
test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s
";

    #[test]
    fn a_test_that_says_skipped_is_not_passed() {
        let tally = Tally::from_cargo_test(OUTPUT, false);
        assert_eq!((tally.passed, tally.failed), (3, 1));
        let skipped: Vec<_> =
            tally.skipped.iter().map(|skip| (skip.what.as_str(), skip.why.as_str())).collect();
        assert_eq!(skipped, [("hours", "long"), ("unprivileged", "needs root")]);
    }

    #[test]
    fn a_build_that_fails_is_one_failure() {
        assert_eq!(Tally::from_cargo_test("error: could not compile", false), Tally::of(false));
        assert_eq!(Tally::from_cargo_test("", true), Tally::default());
    }

    #[test]
    fn only_what_could_have_been_provided_counts_against_the_tests() {
        let mut tally = Tally::skip("a", "needs root");
        tally.add(Tally::skip("b", "this kernel has no SCHED_DEADLINE"));
        tally.add(Tally::skip("c", "target riscv64gc-unknown-linux-gnu: std not installed"));
        tally.add(Tally::skip("d", "prints a fixture: tests/fixtures/README.md"));
        let refused = tally.refuse_avoidable();
        assert_eq!(refused, Tally::skip("a", "needs root").skipped);
        assert_eq!((tally.failed, tally.skipped.len()), (1, 3));
    }
}
