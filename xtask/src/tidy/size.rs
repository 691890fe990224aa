//! How long files and functions may be.

use super::{Finding, Tree};

/// Lines of a file.
const FILE: usize = 600;

/// Lines of a function.
const FUNCTION: usize = 80;

/// Files that may be longer, each a table or a test that reads as one.
const LONG_FILES: [&str; 0] = [];

pub fn files(tree: &Tree) -> Vec<Finding> {
    let rust = tree.sources.iter().filter(|source| source.path.ends_with(".rs") && !source.is_test_file());
    rust.filter(|source| !LONG_FILES.contains(&source.path.as_str()))
        .map(|source| (source, source.text.lines().count()))
        .filter(|(_, lines)| *lines > FILE)
        .map(|(source, lines)| Finding::new(&source.path, 0, format!("{lines} lines, at most {FILE}")))
        .collect()
}

pub fn functions(tree: &Tree) -> Vec<Finding> {
    let all =
        tree.sources.iter().flat_map(|source| source.functions().map(move |function| (source, function)));
    all.filter(|(_, function)| function.length > FUNCTION)
        .map(|(source, function)| {
            let what = format!("{} has {} lines, at most {FUNCTION}", function.name, function.length);
            Finding::new(&source.path, function.line, what)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::tree;
    use super::*;

    #[test]
    fn long_files_and_functions_are_found_and_tests_may_be_long() {
        let lines = |count| format!("fn long() {{\n{}}}\n", "    x();\n".repeat(count));
        let (just, over, file) = (lines(FUNCTION - 2), lines(FUNCTION - 1), "// x\n".repeat(FILE + 1));
        let tree = tree(&[
            ("crates/a/src/just.rs", &just),
            ("crates/a/src/over.rs", &over),
            ("crates/a/src/file.rs", &file),
            ("crates/a/tests/file.rs", &file),
        ]);
        assert_eq!(functions(&tree).len(), 1);
        assert_eq!(functions(&tree)[0].path, "crates/a/src/over.rs");
        assert_eq!(files(&tree), [Finding::new("crates/a/src/file.rs", 0, "601 lines, at most 600")]);
    }
}
