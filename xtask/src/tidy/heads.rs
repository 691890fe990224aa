//! What stands at the head of a crate.

use super::{Finding, Tree};

/// What stands behind the fence of a block that `cargo test --doc` compiles.
const COMPILED: &[&str] = &["", "rust", "no_run", "should_panic"];

/// Crates whose head shows nobody how they are used.
pub fn without_example(tree: &Tree) -> Vec<Finding> {
    let heads = tree.sources.iter().filter(|source| is_head(&source.path));
    heads
        .filter(|source| !has_example(&source.text))
        .map(|source| {
            let what = "the crate's head has no example that is compiled: begin a block with ```, or with ```no_run \
                        where it needs root or a device";
            Finding::new(&source.path, 0, what)
        })
        .collect()
}

/// Whether `path` is `crates/NAME/src/lib.rs`.
fn is_head(path: &str) -> bool {
    let name = path.strip_prefix("crates/").and_then(|path| path.strip_suffix("/src/lib.rs"));
    name.is_some_and(|name| !name.contains('/'))
}

/// Whether a block of the comment that `text` begins with is compiled.
fn has_example(text: &str) -> bool {
    let head = text.lines().map_while(|line| line.strip_prefix("//!"));
    let mut fences = head.filter_map(|line| line.trim().strip_prefix("```"));
    // Every other fence ends a block.
    std::iter::from_fn(|| {
        let begin = fences.next();
        fences.next();
        begin
    })
    .any(|begin| COMPILED.contains(&begin))
}

#[cfg(test)]
mod tests {
    use super::super::tests::tree;
    use super::*;

    #[test]
    fn a_crate_whose_head_has_no_compiled_example_is_found() {
        let head = |begin: &str| format!("//! A crate.\n//!\n//! {begin}\n//! one();\n//! ```\n\nmod one;\n");
        let (run, compiled, drawn, foreign) = (head("```"), head("```no_run"), head("```text"), head("```c"));
        let both = head("```text").replace("\n\nmod", "\n//! ```\n//! two();\n//! ```\n\nmod");
        let tree = tree(&[
            ("crates/run/src/lib.rs", &run),
            ("crates/compiled/src/lib.rs", &compiled),
            ("crates/both/src/lib.rs", &both),
            ("crates/drawn/src/lib.rs", &drawn),
            ("crates/foreign/src/lib.rs", &foreign),
            ("crates/bare/src/lib.rs", "//! A crate.\n\n/// ```\n/// one();\n/// ```\npub mod one;\n"),
            ("crates/bare/src/other.rs", "//! A module.\n"),
        ]);
        let found: Vec<_> = without_example(&tree).into_iter().map(|finding| finding.path).collect();
        assert_eq!(found, ["crates/drawn/src/lib.rs", "crates/foreign/src/lib.rs", "crates/bare/src/lib.rs"]);
    }
}
