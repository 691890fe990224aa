//! `cargo xtask tidy`: what the house demands of the source, each demand one function in a table.

mod circles;
mod code;
mod dependencies;
mod executables;
mod heads;
mod layers;
mod scrub;
mod size;
pub mod source;
mod words;

use std::fmt;
use std::process::Command;

use anyhow::{Result, ensure};

use crate::arguments::Arguments;
use crate::command;
use crate::tally::Tally;
use crate::workspace::{self, Package};
use source::Source;

/// What is looked at.
pub struct Tree {
    /// Text files under version control, or about to be.
    pub sources: Vec<Source>,
    /// Crates of the workspace.
    pub packages: Vec<Package>,
    /// Names of the crates that the shipped binary is built from and with.
    pub shipped: Vec<String>,
}

/// A breach.
#[derive(Debug, PartialEq, Eq)]
pub struct Finding {
    /// The file, from the workspace's root.
    pub path: String,
    /// The line, from 1; 0 for the file as a whole.
    pub line: usize,
    /// What is wrong.
    pub what: String,
}

impl Finding {
    fn new(path: impl Into<String>, line: usize, what: impl Into<String>) -> Self {
        Self { path: path.into(), line, what: what.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.what)
    }
}

/// One demand.
struct Demand {
    name: &'static str,
    check: fn(&Tree) -> Vec<Finding>,
}

const DEMANDS: &[Demand] = &[
    Demand { name: "unsafe code stays in sys", check: code::unsafe_outside_sys },
    Demand { name: "libraries do not print", check: code::printing },
    Demand { name: "few crates name kernel files", check: code::kernel_paths },
    Demand { name: "files are opened for writing by control and files", check: code::writers },
    Demand { name: "files are read by files and sysroot", check: code::readers },
    Demand { name: "what is shown goes through output", check: code::showing },
    Demand { name: "no path of one machine", check: code::machine_paths },
    Demand { name: "no merge is left half done", check: code::conflicts },
    Demand { name: "the field's words", check: words::private },
    Demand { name: "files are short", check: size::files },
    Demand { name: "functions are short", check: size::functions },
    Demand { name: "crates know those that the table in layers.rs allows them", check: layers::edges },
    Demand { name: "files do not use each other in a circle", check: circles::files },
    Demand { name: "tests are linked into few executables", check: executables::of_tests },
    Demand { name: "a crate shows how it is used", check: heads::without_example },
    Demand { name: "code is not compiled again for each type", check: code::many_times_over },
    Demand { name: "third-party notices are those of the programs", check: dependencies::notices },
    Demand { name: "no C in the binary's tree", check: dependencies::foreign_code },
    Demand { name: "every dependency says what it is for", check: dependencies::unexplained },
];

/// Breaches of one demand that are printed.
const SHOWN: usize = 20;

/// `tidy`
pub fn run(arguments: Arguments) -> Result<bool> {
    arguments.finish()?;
    Ok(stage()?.failed == 0)
}

/// Checks every demand; prints the breaches.
pub fn stage() -> Result<Tally> {
    let tree = Tree::read()?;
    let mut tally = Tally::default();
    for demand in DEMANDS {
        let findings = (demand.check)(&tree);
        if !findings.is_empty() {
            println!("  {}:", demand.name);
            findings.iter().take(SHOWN).for_each(|finding| println!("    {finding}"));
            let more = findings.len().saturating_sub(SHOWN);
            (more > 0).then(|| println!("    and {more} more"));
        }
        tally.add(Tally::of(findings.is_empty()));
    }
    Ok(tally)
}

impl Tree {
    fn read() -> Result<Self> {
        let sources = files()?.into_iter().filter_map(read).collect();
        Ok(Self { sources, packages: workspace::packages()?, shipped: shipped()? })
    }
}

/// Files under version control and those that could be added.
fn files() -> Result<Vec<String>> {
    let list = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let text = command::output(Command::new("git").args(list).current_dir(workspace::root()))?;
    let files: Vec<String> = text.split_terminator('\0').map(str::to_owned).collect();
    ensure!(!files.is_empty(), "git lists no file in {}", workspace::root().display());
    Ok(files)
}

/// None for what is not text, or was deleted and is still listed.
fn read(path: String) -> Option<Source> {
    let text = std::fs::read_to_string(workspace::root().join(&path)).ok()?;
    Some(Source::new(path, text))
}

/// Crates in the binary's tree on any target, build tools included, tests not.
fn shipped() -> Result<Vec<String>> {
    let query =
        ["tree", "--package", "worstcase", "--edges", "normal,build", "--prefix", "none", "--target", "all"];
    let text = command::output(workspace::cargo().args(query))?;
    let mut names: Vec<String> =
        text.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect();
    names.sort_unstable();
    names.dedup();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree of these files alone.
    pub fn tree(files: &[(&str, &str)]) -> Tree {
        let sources = files.iter().map(|&(path, text)| Source::new(path, text)).collect();
        Tree { sources, packages: Vec::new(), shipped: Vec::new() }
    }

    #[test]
    fn this_tree_is_tidy() {
        let tree = Tree::read().unwrap();
        assert!(tree.shipped.contains(&"worstcase".to_owned()));
        for demand in DEMANDS {
            let findings: Vec<String> = (demand.check)(&tree).iter().map(Finding::to_string).collect();
            assert!(findings.is_empty(), "{}:\n{}", demand.name, findings.join("\n"));
        }
    }

    #[test]
    fn an_empty_tree_breaks_nothing() {
        assert!(DEMANDS.iter().all(|demand| (demand.check)(&tree(&[])).is_empty()));
    }
}
