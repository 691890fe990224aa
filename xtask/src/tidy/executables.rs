//! What test executables a crate has: each is linked with all that it tests.

use super::{Finding, Tree};
use crate::parts::SERIAL;
use crate::workspace::Package;

/// Beside its unit tests.
const MOST: usize = 3;

/// Crates with more of them, or with one that no stage knows by its name.
pub fn of_tests(tree: &Tree) -> Vec<Finding> {
    tree.packages.iter().flat_map(of).collect()
}

fn of(package: &Package) -> Vec<Finding> {
    let finding = |what: String| Finding::new(format!("crates/{}/tests", package.name), 0, what);
    let is_known = |name: &String| name == "integration" || name.starts_with(SERIAL);
    let unknown = package.tests.iter().filter(|name| !is_known(name)).map(|name| {
        finding(format!(
            "{name}: make it a module of `integration`, or of a `{SERIAL}*` that runs one test at a time"
        ))
    });
    let count = package.tests.len();
    let many = (count > MOST)
        .then(|| finding(format!("{count} test executables, at most {MOST}: make modules of them")));
    unknown.chain(many).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(tests: &[&str]) -> Package {
        let tests = tests.iter().map(|&name| name.to_owned()).collect();
        Package { name: "a".to_owned(), inner: Vec::new(), tests }
    }

    #[test]
    fn an_executable_of_its_own_kind_and_a_fourth_one_are_found() {
        let found = |tests: &[&str]| of(&package(tests)).len();
        assert_eq!(found(&["integration", "serial_on_host", "serial_in_guests"]), 0);
        assert_eq!(found(&["integration", "fixtures"]), 1);
        assert_eq!(found(&["integration", "serial_a", "serial_b", "serial_c"]), 1);
    }
}
