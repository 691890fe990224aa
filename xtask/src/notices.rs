//! `cargo xtask notices`: the licences of what is in the programs, in a file that is delivered with them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::arguments::Arguments;
use crate::command;
use crate::dist::targets;
use crate::workspace;

/// Where they are committed.
pub const FILE: &str = "THIRD-PARTY.md";

const HEAD: &str = "\
# Third-party notices
Written by `cargo xtask notices` from Cargo.lock; `cargo xtask tidy` checks that it is current.

The programs `worstcase` and `worstcase-agent` contain the crates below, of each the part that they use. Where a crate leaves
the choice of a licence, it is used under the MIT licence.

They contain parts of the Rust standard library too (MIT or Apache-2.0, https://www.rust-lang.org), and, where they are linked
statically, of the C library of the target: of the GNU C Library (LGPL-2.1-or-later, https://www.gnu.org/software/libc), or
of musl (MIT, https://musl.libc.org). Whoever wants to link them with another version of it builds them from the source:
`cargo xtask dist`.
";

/// `notices`
pub fn run(arguments: Arguments) -> Result<bool> {
    arguments.finish()?;
    let path = workspace::root().join(FILE);
    fs::write(&path, text()?).with_context(|| format!("writing {}", path.display()))?;
    Ok(true)
}

/// A crate in the programs.
struct Crate {
    name: String,
    version: String,
    licence: String,
    home: String,
    /// What its licence file says, blanks at the ends of lines left out.
    text: String,
}

/// What is to stand in the file.
pub fn text() -> Result<String> {
    let crates = crates()?;
    let mut text =
        format!("{HEAD}\n## Crates\n| crate | version | licence | source |\n| --- | --- | --- | --- |\n");
    for Crate { name, version, licence, home, .. } in &crates {
        text += &format!("| {name} | {version} | {licence} | {home} |\n");
    }
    let mut by_text: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for one in &crates {
        by_text.entry(&one.text).or_default().push(&one.name);
    }
    let mut texts: Vec<_> = by_text.into_iter().collect();
    texts.sort_by(|a, b| a.1.cmp(&b.1));
    text += "\n## Licences\n";
    for (licence, names) in texts {
        text += &format!("### {}\n```text\n{licence}\n```\n\n", names.join(", "));
    }
    Ok(text.trim_end().to_owned() + "\n")
}

/// Crates of others that are linked into the programs on any target that is delivered.
fn crates() -> Result<Vec<Crate>> {
    let names = linked()?;
    let text = command::output(workspace::cargo().args(["metadata", "--locked", "--format-version", "1"]))?;
    let metadata: Value = serde_json::from_str(&text).context("reading `cargo metadata`")?;
    let packages = metadata["packages"].as_array().context("`cargo metadata` lists no packages")?;
    let foreign = packages.iter().filter(|package| !package["source"].is_null());
    let linked = foreign.filter(|package| names.contains(&(word(package, "name"), word(package, "version"))));
    let mut crates = linked.map(read).collect::<Result<Vec<_>>>()?;
    crates.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
    Ok(crates)
}

/// Names and versions. Macros and build scripts are in no program.
fn linked() -> Result<BTreeSet<(String, String)>> {
    let mut names = BTreeSet::new();
    for target in &targets::ALL {
        let query = ["tree", "--locked", "--package", "worstcase", "--edges", "normal,no-proc-macro"];
        let mut cargo = workspace::cargo();
        cargo.args(query).args(["--prefix", "none", "--target", target.triple]);
        let text = command::output(&mut cargo)?;
        let pair = |line: &str| {
            let (name, rest) = line.split_once(" v")?;
            Some((name.to_owned(), rest.split(' ').next()?.to_owned()))
        };
        names.extend(text.lines().filter_map(pair));
    }
    Ok(names)
}

fn read(package: &Value) -> Result<Crate> {
    let name = word(package, "name");
    let manifest = word(package, "manifest_path");
    let directory = Path::new(&manifest).parent().context("a manifest is in a directory")?;
    let text = licence(directory).with_context(|| format!("the licence of {name}"))?;
    let (version, licence, home) =
        (word(package, "version"), word(package, "license"), word(package, "repository"));
    ensure!(!licence.is_empty(), "{name} names no licence");
    Ok(Crate { name, version, licence, home, text })
}

fn word(package: &Value, key: &str) -> String {
    package[key].as_str().unwrap_or_default().to_owned()
}

/// The MIT licence where there is one, else the only one there is.
fn licence(directory: &Path) -> Result<String> {
    let list = fs::read_dir(directory).with_context(|| format!("listing {}", directory.display()))?;
    let mut names: Vec<String> =
        list.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    let is_licence = |name: &&String| name.to_uppercase().starts_with("LICENSE");
    let licences: Vec<&String> = names.iter().filter(is_licence).collect();
    let mit = licences.iter().find(|name| name.to_uppercase().contains("MIT"));
    let only = || if licences.len() == 1 { licences.first() } else { None };
    let chosen = mit.or_else(only).with_context(|| format!("in {}: which?", directory.display()))?;
    let text = fs::read_to_string(directory.join(chosen)).with_context(|| format!("reading {chosen}"))?;
    Ok(text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim_matches('\n').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_without_a_licence_file_is_no_crate_that_can_be_delivered() {
        let directory = tempfile::tempdir().unwrap();
        assert!(licence(directory.path()).is_err());
        fs::write(directory.path().join("LICENSE-APACHE"), "apache").unwrap();
        assert_eq!(licence(directory.path()).unwrap(), "apache");
        fs::write(directory.path().join("LICENSE-MIT"), "\nmit \nend\n").unwrap();
        assert_eq!(licence(directory.path()).unwrap(), "mit\nend");
    }

    #[test]
    fn macros_and_crates_of_the_house_are_not_listed() {
        let crates = crates().unwrap();
        let has = |name: &str| crates.iter().any(|one| one.name == name);
        assert!(has("serde_json") && has("rustix"));
        assert!(!has("serde_derive") && !has("record") && !has("windows-sys"));
    }
}
