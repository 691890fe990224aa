//! What the test harness of the standard distribution prints, read back.

use std::collections::BTreeMap;
use std::fmt::Write;

/// What came of the tests in a guest.
#[derive(Debug, Default)]
pub struct Report {
    /// Whether each test passed.
    passed: BTreeMap<String, bool>,
    /// What each test printed.
    printed: BTreeMap<String, String>,
    /// The whole output, for a test that the guest did not report.
    all: String,
}

impl Report {
    /// Reads what `--show-output` printed.
    pub fn of_output(output: &str, errors: &str) -> Self {
        let mut report = Self { all: format!("{output}{errors}"), ..Self::default() };
        // Whether what is listed passed, and whose output this is. The lists stand after all tests have ended, so that
        // nothing that their children print gets in between.
        let (mut passed, mut section) = (None, None);
        for line in output.lines() {
            if let Some(name) = heading(line) {
                section = Some(name.to_owned());
            } else if let "successes:" | "failures:" = line {
                (passed, section) = (Some(line == "successes:"), None);
            } else if let Some(name) = &section {
                let _ = writeln!(report.printed.entry(String::clone(name)).or_default(), "{line}");
            } else if let (Some(passed), Some(name)) = (passed, line.strip_prefix("    ")) {
                report.passed.insert(name.to_owned(), passed);
            }
        }
        report
    }

    /// What a test printed, if it passed; else that, or all that the guest said.
    pub fn of(&self, name: &str) -> Result<&str, String> {
        let printed = self.printed.get(name).map(String::as_str).unwrap_or_default();
        match self.passed.get(name) {
            Some(true) => Ok(printed),
            Some(false) => Err(printed.to_owned()),
            None => Err(format!("the guest tells nothing of {name}:\n{}", self.all)),
        }
    }
}

/// `---- NAME stdout ----`
fn heading(line: &str) -> Option<&str> {
    line.strip_prefix("---- ")?.strip_suffix(" stdout ----")
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "
running 3 tests
test a ... what a child prints
ok
test b ... FAILED
test c ... ok

successes:

---- a stdout ----
skipped: needs a fan

successes:
    a
    c

failures:

---- b stdout ----
a line

thread 'b' panicked at x.rs:1:1:
no

failures:
    b

test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
";

    #[test]
    fn each_test_gets_its_own_result_and_output() {
        let report = Report::of_output(OUTPUT, "");
        assert_eq!(report.of("a").unwrap().trim(), "skipped: needs a fan");
        assert_eq!(report.of("c"), Ok(""));
        assert!(report.of("b").unwrap_err().contains("panicked at x.rs:1:1:\nno"));
    }

    #[test]
    fn a_test_that_the_guest_tells_nothing_of_has_failed() {
        let cut = Report::of_output("running 2 tests\ntest a ... ok\ntest b ... ", "it hangs\n");
        assert!(cut.of("b").unwrap_err().contains("it hangs"), "no result is no success");
        assert!(Report::of_output(OUTPUT, "").of("d").is_err());
    }
}
