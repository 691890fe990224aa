//! What a misspelt kernel parameter was meant to be.

use std::sync::LazyLock;

use machine::parameters;

use super::known::{KNOWN, WordKind};

/// The documented name that is surely meant: the same but for `_`, `-` and `.`, or a slip away.
pub fn nearest(name: &str) -> Option<&'static str> {
    let wanted = skeleton(name);
    if wanted.len() < 6 || name.len() > LONGEST_NAME || !name.is_ascii() {
        return None;
    }
    let known = |candidate: &&(String, &'static str)| parameters::same(candidate.1, name);
    if CANDIDATES.iter().any(|candidate| known(&candidate)) {
        return None;
    }
    let same = CANDIDATES.iter().find(|(skeleton, _)| *skeleton == wanted);
    let slip = || {
        CANDIDATES.iter().find(|(_, candidate)| {
            candidate.contains('.') == name.contains('.') && is_one_slip(name, candidate)
        })
    };
    same.or_else(slip).map(|(_, candidate)| *candidate)
}

/// No name in the documents is longer.
const LONGEST_NAME: usize = 64;

/// All names that work somewhere, each with its [`skeleton`].
static CANDIDATES: LazyLock<Vec<(String, &'static str)>> = LazyLock::new(|| {
    let works =
        |word: &&'static super::known::Word| matches!(word.kind, WordKind::Known | WordKind::Elsewhere);
    let elsewhere = KNOWN.word.iter().filter(works).map(|word| word.name.as_str());
    elsewhere.chain(parameters::names()).map(|name| (skeleton(name), name)).collect()
});

/// Letters and digits alone.
fn skeleton(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase()
}

/// One letter more, less or other, or two neighbours in the wrong order.
fn is_one_slip(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let prefix = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let (rest_a, rest_b) = (&a[prefix..], &b[prefix..]);
    match (rest_a, rest_b) {
        ([x, y, end @ ..], [v, w, other @ ..]) if x == w && y == v && end == other => true,
        ([_, end @ ..], [_, other @ ..]) if end == other => true,
        ([_, end @ ..], other) if end == other => true,
        (end, [_, other @ ..]) => end == other,
        _ => false,
    }
}
