//! `cargo xtask faults`: what the tests are worth. One fault after another is put into a copy of the sources, and the tests
//! that must find it are run. The same tests pass without it, which is asked first.

mod list;
mod tree;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::arguments::Arguments;
use crate::command::{self, Outcome};
use crate::tally::Tally;
use crate::workspace;
use tree::Tree;

/// A fault, and who must find it.
pub struct Fault {
    /// What a program with it does.
    pub name: &'static str,
    /// Which file it is put into, from the workspace's directory.
    pub file: &'static str,
    /// What stands there, once.
    pub is: &'static str,
    /// What it becomes.
    pub becomes: &'static str,
    /// The tests that must find it.
    pub found_by: Tests,
}

/// Some tests of one executable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tests {
    /// The crate.
    pub package: &'static str,
    /// The integration test; none for the unit tests.
    pub executable: Option<&'static str>,
    /// What the tests' paths contain.
    pub tests: &'static str,
}

impl Tests {
    fn are_built_with(&self, other: Self) -> bool {
        (self.package, self.executable) == (other.package, other.executable)
    }
}

impl fmt::Display for Tests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let executable = self.executable.unwrap_or("unit tests");
        write!(f, "{} {executable} {}", self.package, self.tests)
    }
}

/// Tests that do not end by then have found something too.
const LIMIT: Duration = Duration::from_secs(15 * 60);

/// What came of some tests.
enum Answer {
    Passed,
    Failed,
    Skipped(String),
    NotBuilt(String),
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Passed => "passes",
            Self::Failed => "FAILS",
            Self::Skipped(_) => "is skipped",
            Self::NotBuilt(_) => "does not compile",
        })
    }
}

/// `faults [NAME]`
pub fn run(mut arguments: Arguments) -> Result<bool> {
    let name = arguments.word().unwrap_or_default();
    arguments.finish()?;
    let tally = find(&name)?;
    println!("{} found, {} not found, {} skipped", tally.passed, tally.failed, tally.skipped.len());
    Ok(tally.failed == 0)
}

/// All of them, as a part of the long tests.
pub fn stage() -> Result<Tally> {
    find("")
}

fn find(begin: &str) -> Result<Tally> {
    let mut faults: Vec<&Fault> = list::ALL.iter().filter(|fault| fault.name.starts_with(begin)).collect();
    ensure!(!faults.is_empty(), "no fault `{begin}`: xtask/src/faults/list.rs has the list");
    let tree = Tree::copied()?;
    // A run that was interrupted may have left the build of a fault.
    faults.iter().try_for_each(|fault| tree.renew(fault.file))?;
    // Unit tests first: they build what is below them once. The longest name is that of the tests with the most below them.
    faults.sort_by_key(|fault| fault.found_by.executable.map_or(0, str::len));
    let all: BTreeSet<Tests> = faults.iter().map(|fault| fault.found_by).collect();
    let mut clean = BTreeMap::new();
    let mut tally = Tally::default();
    for fault in faults {
        if !clean.contains_key(&fault.found_by) {
            // All of an executable before its first fault: it is not built again when that is taken out.
            for tests in all.iter().filter(|tests| tests.are_built_with(fault.found_by)) {
                clean.insert(*tests, without_a_fault(&tree, *tests)?);
            }
        }
        let begun = Instant::now();
        let (line, one) = match &clean[&fault.found_by] {
            Answer::Passed => with(&tree, fault)?,
            Answer::Failed => (format!("{} fails without a fault", fault.found_by), Tally::of(false)),
            Answer::Skipped(why) => (format!("skipped: {why}"), Tally::skip(fault.name, why.clone())),
            Answer::NotBuilt(why) => (why.clone(), Tally::of(false)),
        };
        println!("  {}: {line}, {} s", fault.name, begun.elapsed().as_secs());
        tally.add(one);
    }
    Ok(tally)
}

fn without_a_fault(tree: &Tree, tests: Tests) -> Result<Answer> {
    let begun = Instant::now();
    let answer = ask(tree, tests)?;
    println!("  without a fault, {tests} {answer}, {} s", begun.elapsed().as_secs());
    Ok(answer)
}

/// Whether a fault is found, in words too.
fn with(tree: &Tree, fault: &Fault) -> Result<(String, Tally)> {
    let former = tree.put_in(fault)?;
    let answer = ask(tree, fault.found_by);
    former.put_back(is_in_its_unit_tests_alone(fault))?;
    Ok(match answer? {
        Answer::Failed => (format!("found by {}", fault.found_by), Tally::of(true)),
        Answer::Passed | Answer::Skipped(_) => (format!("NOT FOUND by {}", fault.found_by), Tally::of(false)),
        Answer::NotBuilt(why) => (why, Tally::of(false)),
    })
}

/// Then its crate's library was not built with it: with the file's former time, what is built on it stays as it is.
fn is_in_its_unit_tests_alone(fault: &Fault) -> bool {
    let Tests { package, executable, .. } = fault.found_by;
    executable.is_none() && fault.file.starts_with(&format!("crates/{package}/src/"))
}

fn ask(tree: &Tree, tests: Tests) -> Result<Answer> {
    let mut cargo = workspace::cargo();
    tree.aim(&mut cargo);
    cargo.args(["test", "--package", tests.package, "--all-features"]);
    match tests.executable {
        Some(executable) => cargo.args(["--test", executable]),
        None => cargo.arg("--lib"),
    };
    cargo.args(["--", "--show-output", "--test-threads=1", tests.tests]);
    let outcome = command::logged_within(LIMIT, &mut cargo, &workspace::logs().join("faults.log"))?;
    Ok(answer(&outcome))
}

/// What a failing build is: no answer of the tests.
fn answer(outcome: &Outcome) -> Answer {
    let tally = Tally::from_cargo_test(&outcome.text, outcome.success);
    let has_run = outcome.text.contains("\nrunning ");
    match tally {
        _ if !has_run => Answer::NotBuilt(format!("it does not compile\n{}", outcome.tail())),
        tally if tally.failed > 0 => Answer::Failed,
        tally if tally.passed > 0 => Answer::Passed,
        tally => {
            Answer::Skipped(tally.skipped.first().map_or("no such test".into(), |skip| skip.why.clone()))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::parts::LATER;

    #[test]
    fn every_fault_can_be_put_in_and_has_a_name_of_its_own() {
        let names: BTreeSet<&str> = list::ALL.iter().map(|fault| fault.name).collect();
        assert!(names.len() == list::ALL.len() && names.len() >= 30, "{}", names.len());
        for fault in list::ALL {
            let text = fs::read_to_string(workspace::root().join(fault.file)).unwrap();
            assert_eq!(text.matches(fault.is).count(), 1, "{}: {}", fault.name, fault.is);
            assert_ne!(fault.is, fault.becomes, "{}", fault.name);
        }
    }

    /// Those of the test command, not ones that wait for `--later`.
    #[test]
    fn every_fault_is_sought_by_the_test_command() {
        for Fault { name, found_by: Tests { executable, tests, .. }, .. } in list::ALL {
            let waits = |(of, begin): &(&str, &str)| {
                *executable == Some(*of) && (begin.contains(tests) || tests.starts_with(begin))
            };
            let waiting: Vec<_> = LATER.iter().filter(|later| waits(later)).collect();
            assert!(waiting.is_empty(), "{name} is found by {waiting:?}");
        }
    }

    #[test]
    fn faults_lie_in_every_layer() {
        let crates: BTreeSet<&str> =
            list::ALL.iter().filter_map(|fault| fault.file.split('/').nth(1)).collect();
        assert!(crates.len() >= 20, "{crates:?}");
    }

    #[test]
    fn a_build_that_fails_is_no_test_that_found_something() {
        let of = |text: &str, success| answer(&Outcome { success, text: text.to_owned(), log: "log".into() });
        assert!(matches!(of("error[E0308]: mismatched types\n", false), Answer::NotBuilt(_)));
        let failed =
            "\nrunning 1 test\ntest a ... FAILED\n\ntest result: FAILED. 0 passed; 1 failed; 0 ignored\n";
        assert!(matches!(of(failed, false), Answer::Failed));
        let passed = "\nrunning 1 test\ntest a ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored\n";
        assert!(matches!(of(passed, true), Answer::Passed));
        let none = "\nrunning 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored\n";
        assert!(matches!(of(none, true), Answer::Skipped(_)));
    }
}
