//! A file as the rules see it.

use std::ops::Range;

use super::scrub::{Scrubbed, scrub};

/// One text file of the project.
#[derive(Debug)]
pub struct Source {
    /// From the project's root, with `/`.
    pub path: String,
    /// As it is.
    pub text: String,
    /// Without comments and literals; empty for what is not Rust.
    pub scrubbed: Scrubbed,
    /// Lines (from 0) that belong to tests.
    tests: Vec<Range<usize>>,
}

/// A function.
#[derive(Debug, PartialEq, Eq)]
pub struct Function<'a> {
    /// The identifier behind `fn`.
    pub name: &'a str,
    /// The line that it begins on, from 1.
    pub line: usize,
    /// From `fn` to the closing brace.
    pub length: usize,
}

impl Source {
    /// Reads `text` as the file at `path`.
    pub fn new(path: impl Into<String>, text: impl Into<String>) -> Self {
        let (path, text) = (path.into(), text.into());
        let scrubbed = if path.ends_with(".rs") { scrub(&text) } else { Scrubbed::default() };
        let tests = test_regions(&scrubbed.code);
        Self { path, text, scrubbed, tests }
    }

    /// The crate that the file belongs to: the directory below `crates/`, or `xtask`, `fuzz`, ...
    pub fn package(&self) -> &str {
        let below = self.path.strip_prefix("crates/").unwrap_or(&self.path);
        below.split('/').next().unwrap_or_default()
    }

    /// Whether the whole file is a test, a benchmark or an example.
    pub fn is_test_file(&self) -> bool {
        let of_a_kind = |kind: &str| {
            self.path.contains(&format!("/{kind}/")) || self.path.starts_with(&format!("{kind}/"))
        };
        ["tests", "benches", "examples"].into_iter().any(of_a_kind) || self.path.ends_with("/tests.rs")
    }

    /// Whether line `number` (from 1) belongs to a test.
    pub fn is_test(&self, number: usize) -> bool {
        self.is_test_file() || self.tests.iter().any(|region| region.contains(&(number - 1)))
    }

    /// Files that only tests have, as `crates/a/src/scripted.rs` by `mod scripted;` behind `#[cfg(test)]` in `crates/a/src/lib.rs`.
    pub fn test_modules(&self) -> Vec<String> {
        let lines: Vec<&str> = self.scrubbed.code.lines().collect();
        let within = self.tests.iter().flat_map(|region| &lines[region.start..region.end.min(lines.len())]);
        let names = within.filter_map(|line| line.trim().strip_prefix("mod ")?.strip_suffix(';'));
        names.map(|name| format!("{}/{name}.rs", self.directory_of_modules())).collect()
    }

    /// Where the files of its modules are.
    fn directory_of_modules(&self) -> &str {
        let (parent, file) = self.path.rsplit_once('/').unwrap_or_default();
        let is_root = ["lib.rs", "main.rs", "mod.rs"].contains(&file);
        if is_root { parent } else { self.path.trim_end_matches(".rs") }
    }

    /// Lines of code that do not belong to tests, with their numbers from 1.
    pub fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        self.all_code().filter(|(number, _)| !self.is_test(*number))
    }

    /// Lines of code with their numbers from 1.
    pub fn all_code(&self) -> impl Iterator<Item = (usize, &str)> {
        self.scrubbed.code.lines().enumerate().map(|(index, line)| (index + 1, line))
    }

    /// Functions that are not tests.
    pub fn functions(&self) -> impl Iterator<Item = Function<'_>> {
        functions(&self.scrubbed.code).filter(|function| !self.is_test(function.line))
    }
}

/// Lines from each `#[cfg(test)]` to the end of what it stands before.
fn test_regions(code: &str) -> Vec<Range<usize>> {
    let begins = code.match_indices("#[cfg(test)]").map(|(place, _)| place);
    begins.map(|begin| line_of(code, begin)..line_of(code, end_of_item(code, begin)) + 1).collect()
}

fn line_of(code: &str, place: usize) -> usize {
    code[..place].matches('\n').count()
}

/// Where the item that begins at `begin` ends: at its closing brace, or at a semicolon before any brace.
fn end_of_item(code: &str, begin: usize) -> usize {
    let (mut braces, mut brackets) = (0_usize, 0_usize);
    for (place, character) in code[begin..].char_indices() {
        match character {
            '(' | '[' => brackets += 1,
            ')' | ']' => brackets = brackets.saturating_sub(1),
            '{' => braces += 1,
            '}' => braces = braces.saturating_sub(1),
            ';' if braces == 0 && brackets == 0 => return begin + place,
            _ => continue,
        }
        if character == '}' && braces == 0 {
            return begin + place;
        }
    }
    code.len()
}

fn functions(code: &str) -> impl Iterator<Item = Function<'_>> {
    code.match_indices("fn ").filter_map(move |(place, _)| {
        let joined = code[..place].ends_with(|before: char| before.is_alphanumeric() || before == '_');
        let rest = &code[place + 3..];
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_')?;
        let first = line_of(code, place);
        let length = line_of(code, end_of_item(code, place)) - first + 1;
        (!joined && end > 0).then(|| Function { name: &rest[..end], line: first + 1, length })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "\
fn long(x: [u8; 4])
where
    X: Y,
{
    if x { y } // }
}

fn next() {}
trait T { fn declared(&self) -> Z; }
type F = fn (u8);

#[cfg(test)]
mod tests {
    fn helper() {
    }
}
fn after() {}
";

    #[test]
    fn functions_are_measured_and_tests_left_out() {
        let source = Source::new("crates/a/src/lib.rs", SOURCE);
        let found: Vec<_> =
            source.functions().map(|function| (function.name, function.line, function.length)).collect();
        assert_eq!(found, [("long", 1, 6), ("next", 8, 1), ("declared", 9, 1), ("after", 17, 1)]);
        assert!(source.is_test(13) && !source.is_test(17));
    }

    #[test]
    fn a_file_knows_its_crate_and_whether_it_is_a_test() {
        assert_eq!(Source::new("crates/sys/src/a/b.rs", "").package(), "sys");
        assert_eq!(Source::new("xtask/src/main.rs", "").package(), "xtask");
        assert!(Source::new("crates/load/tests/serial_x.rs", "").is_test_file());
        assert!(!Source::new("crates/load/src/latests.rs", "").is_test_file());
    }
}
