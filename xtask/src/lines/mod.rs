//! `cargo xtask lines`: how much code does what, today and at another commit.
//!
//! A line counts that is code of the product: neither blank nor a comment, and not of a test, an example or a benchmark. Tables
//! in other files (rules, loads, lists of names) are data and do not count.

mod capabilities;

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use anyhow::{Result, ensure};

use crate::arguments::Arguments;
use crate::command;
use crate::tidy::source::Source;
use crate::workspace;
use capabilities::{CAPABILITIES, Capability};

/// Crates of which the product has nothing.
const ONLY_TESTS: [&str; 3] = ["crates/gpio-wire/", "crates/guest-tests/", "fuzz/"];

/// `lines [--since COMMIT] [--crates]`
pub fn run(mut arguments: Arguments) -> Result<bool> {
    let since: Option<String> = arguments.value("--since")?;
    let by_crate = arguments.flag("--crates");
    arguments.finish()?;
    let today = counted(&today()?);
    let before = since.as_deref().map(at).transpose()?.map(|sources| counted(&sources));
    let name = |path: &str| if by_crate { package(path) } else { named(capability(path), &today) };
    print(&summed(&today, name), before.map(|before| summed(&before, name)).as_ref());
    Ok(true)
}

/// Lines of code by what they are summed under.
type Sums = BTreeMap<String, usize>;

/// Sorted by today's size, as a table that Markdown takes too; what is gone stands last.
fn print(today: &Sums, before: Option<&Sums>) {
    let mut names: Vec<&String> = today.keys().chain(before.into_iter().flat_map(Sums::keys)).collect();
    names.sort_by_key(|name| (std::cmp::Reverse(today.get(*name)), *name));
    names.dedup();
    println!("| what | lines |{}", if before.is_some() { " before | more |" } else { "" });
    println!("| --- | ---: |{}", if before.is_some() { " ---: | ---: |" } else { "" });
    for name in names {
        row(name, lines(today, name), before.map(|before| lines(before, name)));
    }
    row("all", today.values().sum(), before.map(|before| before.values().sum()));
}

fn lines(sums: &Sums, name: &str) -> usize {
    sums.get(name).copied().unwrap_or_default()
}

fn row(name: &str, today: usize, before: Option<usize>) {
    let more = before.map(|before| format!(" {before} | {:+} |", today as i64 - before as i64));
    println!("| {name} | {today} |{}", more.unwrap_or_default());
}

/// The capability of the longest path that `path` begins with.
fn capability(path: &str) -> &'static Capability {
    let fit = |capability: &Capability| {
        let begins = capability.paths.iter().filter(|start| path.starts_with(**start));
        begins.map(|start| start.len()).max().unwrap_or_default()
    };
    CAPABILITIES.iter().rev().max_by_key(|capability| fit(capability)).unwrap_or(&CAPABILITIES[0])
}

/// Its name, and the crates in which it has files.
fn named(capability: &Capability, files: &Sums) -> String {
    let is_there = |start: &&&str| files.keys().any(|path| path.starts_with(**start));
    let mut crates: Vec<String> = Vec::new();
    for name in capability.paths.iter().filter(is_there).map(|start| package(start)) {
        if !crates.contains(&name) {
            crates.push(name);
        }
    }
    format!("{} (`{}`)", capability.name, crates.join("`, `"))
}

fn package(path: &str) -> String {
    path.strip_prefix("crates/").unwrap_or(path).split('/').next().unwrap_or_default().to_owned()
}

fn summed(files: &Sums, name: impl Fn(&str) -> String) -> Sums {
    let mut sums = Sums::new();
    for (path, lines) in files {
        *sums.entry(name(path)).or_default() += lines;
    }
    sums
}

/// The product's lines of each file.
fn counted(sources: &[Source]) -> Sums {
    let tests: BTreeSet<String> = sources.iter().flat_map(Source::test_modules).collect();
    let is_test = |source: &Source| {
        ONLY_TESTS.iter().any(|start| source.path.starts_with(start)) || tests.contains(&source.path)
    };
    let counts = sources.iter().filter(|source| !is_test(source)).map(|source| {
        (source.path.clone(), source.code().filter(|(_, line)| !line.trim().is_empty()).count())
    });
    counts.filter(|(_, lines)| *lines > 0).collect()
}

fn today() -> Result<Vec<Source>> {
    let paths = rust_files(&["ls-files", "-z", "--cached", "--others", "--exclude-standard"])?;
    let read =
        |path: String| Some(Source::new(&path, std::fs::read_to_string(workspace::root().join(&path)).ok()?));
    Ok(paths.into_iter().filter_map(read).collect())
}

/// The sources of another commit, out of the repository.
fn at(commit: &str) -> Result<Vec<Source>> {
    let paths = rust_files(&["ls-tree", "-r", "-z", "--name-only", "--full-tree", commit])?;
    let show = |path: String| Ok(Source::new(&path, git(&["show", &format!("{commit}:{path}")])?));
    paths.into_iter().map(show).collect()
}

fn rust_files(list: &[&str]) -> Result<Vec<String>> {
    let text = git(list)?;
    let files: Vec<String> =
        text.split_terminator('\0').filter(|path| path.ends_with(".rs")).map(str::to_owned).collect();
    ensure!(!files.is_empty(), "git {} lists no source", list.join(" "));
    Ok(files)
}

fn git(words: &[&str]) -> Result<String> {
    command::output(Command::new("git").args(words).current_dir(workspace::root()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_comments_and_blank_lines_do_not_count() {
        let sources = [
            Source::new(
                "crates/a/src/lib.rs",
                "//! What.\n\nfn a() {} // one\n\n#[cfg(test)]\nmod scripted;\n#[cfg(test)]\nmod tests {\n    fn x() {}\n}\n",
            ),
            Source::new("crates/a/src/scripted.rs", "fn made_up() {}\n"),
            Source::new("crates/a/tests/integration/main.rs", "fn test() {}\n"),
            Source::new("crates/guest-tests/src/lib.rs", "fn help() {}\n"),
            Source::new("crates/b/src/deep/mod.rs", "fn b() {\n    let quote = \"// no comment\";\n}\n"),
        ];
        let counted = counted(&sources);
        let expected = [("crates/a/src/lib.rs".to_owned(), 1), ("crates/b/src/deep/mod.rs".to_owned(), 3)];
        assert_eq!(counted.into_iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn the_longest_path_says_what_a_file_is_for() {
        assert_eq!(capability("crates/probe/src/noise/engine.rs").name, "noise");
        assert_ne!(capability("crates/probe/src/timer/engine.rs").name, "noise");
    }

    #[test]
    fn every_source_and_every_path_of_the_table_belongs_to_something() {
        let files = counted(&today().unwrap());
        for path in files.keys() {
            let fits = CAPABILITIES.iter().any(|one| one.paths.iter().any(|start| path.starts_with(start)));
            assert!(fits, "{path}: no capability in xtask/src/lines/capabilities.rs names it");
        }
    }
}
