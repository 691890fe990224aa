//! What the binary is built from.

use super::{Finding, Tree};
use crate::notices;

/// Crates that compile or look for C.
const BUILDERS: [&str; 6] = ["cc", "cmake", "bindgen", "pkg-config", "vcpkg", "autotools"];

/// Crates named `-sys` that hold declarations alone, no C and no library to link beyond the system's own.
const DECLARATIONS: [&str; 2] = ["linux-raw-sys", "windows-sys"];

/// Crates in the shipped binary's tree that bring C.
pub fn foreign_code(tree: &Tree) -> Vec<Finding> {
    let foreign = |name: &&String| {
        let name = name.as_str();
        BUILDERS.contains(&name) || (name.ends_with("-sys") && !DECLARATIONS.contains(&name))
    };
    let named =
        |name: &String| Finding::new("Cargo.lock", 0, format!("{name} brings C into the binary's tree"));
    tree.shipped.iter().filter(foreign).map(named).collect()
}

/// Lines of the workspace's table of dependencies that no comment explains: its own paragraph has none above it.
pub fn unexplained(tree: &Tree) -> Vec<Finding> {
    let manifest = tree.sources.iter().find(|source| source.path == "Cargo.toml");
    manifest.map_or_else(Vec::new, |manifest| bare(&manifest.text))
}

/// The committed notices against those of the crates that are built in.
pub fn notices(tree: &Tree) -> Vec<Finding> {
    let Some(committed) = tree.sources.iter().find(|source| source.path == notices::FILE) else {
        return Vec::new();
    };
    let what = match notices::text() {
        Ok(text) if text == committed.text => return Vec::new(),
        Ok(_) => "not those of Cargo.lock: cargo xtask notices".to_owned(),
        Err(error) => format!("{error:#}"),
    };
    vec![Finding::new(notices::FILE, 0, what)]
}

fn bare(text: &str) -> Vec<Finding> {
    let (mut inside, mut explained) = (false, false);
    let mut findings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        match line.trim() {
            header if header.starts_with('[') => inside = header == "[workspace.dependencies]",
            "" => explained = false,
            comment if comment.starts_with('#') => explained = true,
            // A crate of the house explains itself in its own manifest.
            own if own.contains("path = ") => {}
            line if inside && !explained => {
                let name = line.split(['=', ' ', '.']).next().unwrap_or(line);
                findings.push(Finding::new(
                    "Cargo.toml",
                    index + 1,
                    format!("{name}: what for? a comment above it says"),
                ));
            }
            _ => {}
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::tests::tree;
    use super::*;

    #[test]
    fn c_in_the_tree_is_found_and_pure_declarations_are_not() {
        let shipped = ["cc", "libz-sys", "linux-raw-sys", "sys", "serde"].map(str::to_owned).to_vec();
        let found = foreign_code(&Tree { shipped, ..tree(&[]) });
        assert_eq!(found.len(), 2);
        assert!(found[0].what.starts_with("cc ") && found[1].what.starts_with("libz-sys "));
    }

    #[test]
    fn a_dependency_without_a_word_is_found() {
        let text = "[workspace.dependencies]\n# system calls\nlibc = \"1\"\n\nserde = \"1\"\nunits = { path = \"x\" }\n\n[profile.dev]\nopt-level = 1\n";
        let found = unexplained(&tree(&[("Cargo.toml", text)]));
        assert_eq!(found.iter().map(|finding| finding.line).collect::<Vec<_>>(), [5]);
    }
}
