//! Words that must not come back: private ones, where the field has its own.

use super::{Finding, Tree};

/// Each with the field's word. Split, so that this file does not break its own rule.
const WORDS: [(&str, &str); 16] = [
    (concat!("cr", "ew"), "worker set"),
    (concat!("to", "ld"), "listed, reported, known, distinguished"),
    (concat!("wi", "sh"), "request"),
    (concat!("wi", "shes"), "requests"),
    (concat!("strange", "rs"), "unpinned threads"),
    (concat!("boot", " line"), "kernel command line"),
    (concat!("boot", " words"), "kernel parameters"),
    (concat!("boot", " word"), "kernel parameter"),
    (concat!("by", " lot"), "random"),
    (concat!("by", " halves"), "in part"),
    (concat!("cour", "se"), "run, timeline, session"),
    (concat!("strange", "r"), "another user, another thread"),
    (concat!("tells", " of"), "lists, reports"),
    (concat!("tell", " of"), "list, report"),
    (concat!("goes on", " to hold"), "stays"),
    (concat!("none", " such"), "say what is there"),
];

/// What others wrote, and names that old files use.
const OTHERS: [&str; 5] = ["/fixtures/", "/corpus/", "tests/debian/", "tests/records/", "tests/cmd/"];

/// Lines that may hold such a word.
const EXCEPTIONS: [(&str, &str); 3] = [
    ("crates/worstcase/src/commands/tune/trial/plan.rs", "a name in files of former versions"),
    ("crates/audit/src/recipe/", "words of pages that are judged"),
    ("crates/audit/tests/", "words of pages that are judged"),
];

/// Private words in names, comments and texts.
pub fn private(tree: &Tree) -> Vec<Finding> {
    let ours = |path: &str| {
        !OTHERS.iter().any(|other| path.contains(other))
            && !EXCEPTIONS.iter().any(|(exception, _)| path.starts_with(exception))
    };
    let read = tree.sources.iter().filter(|source| {
        ours(&source.path) && [".rs", ".md", ".toml", ".html"].iter().any(|end| source.path.ends_with(end))
    });
    read.flat_map(|source| source.text.lines().zip(1..).map(|(line, number)| (&source.path, line, number)))
        .flat_map(|(path, line, number)| {
            let line = line.to_lowercase();
            WORDS.iter().filter(move |(word, _)| stands_in(&line, word)).map(move |(word, better)| {
                Finding::new(path.clone(), number, format!("\"{word}\": write {better}"))
            })
        })
        .collect()
}

/// Whether `word` stands in `line` as a word of its own, or as a part of a name that `_` divides.
fn stands_in(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(place, _)| {
        let before = line[..place].chars().next_back();
        let behind = line[place + word.len()..].chars().next();
        !before.is_some_and(char::is_alphanumeric) && !behind.is_some_and(char::is_alphanumeric)
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::tree;
    use super::*;

    #[test]
    fn private_words_are_found_in_names_and_comments_and_not_in_others_files() {
        let word = WORDS[0].0;
        let text = format!("// the {word}\nlet {word}_of = 1;\nlet s{word} = 2;\n");
        let files =
            [("crates/load/src/a.rs", text.as_str()), ("crates/load/tests/fixtures/b.md", text.as_str())];
        let found: Vec<usize> = private(&tree(&files)).iter().map(|finding| finding.line).collect();
        assert_eq!(found, [1, 2]);
    }
}
