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

/// The one of `names` that `name` surely was to be: the same but for signs and case, two slips away, or shortened.
pub fn nearest_of<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() < 5 || name.len() > LONGEST_NAME || !name.is_ascii() {
        return None;
    }
    let wanted = skeleton(name);
    let most = if wanted.len() < 8 { 1 } else { 2 };
    let distance = |candidate: &str| {
        let other = skeleton(candidate);
        match () {
            () if other == wanted => 0,
            () if is_shortened(&wanted, &other) || is_shortened(&other, &wanted) => {
                slips(wanted.as_bytes(), other.as_bytes()).min(most)
            }
            () => slips(wanted.as_bytes(), other.as_bytes()),
        }
    };
    let near = names.map(|candidate| (distance(candidate), candidate)).filter(|(slips, _)| *slips <= most);
    near.min_by_key(|(slips, _)| *slips).map(|(_, candidate)| candidate)
}

/// Whether `short` is `long` with letters left out behind a common beginning.
fn is_shortened(short: &str, long: &str) -> bool {
    let mut letters = long.chars();
    let is_part = short.chars().all(|c| letters.any(|other| other == c));
    let common = short.bytes().zip(long.bytes()).take_while(|(a, b)| a == b).count();
    is_part && common >= 5 && short.len() < long.len() && short.len() * 3 >= long.len() * 2
}

/// Letters that were added, left out or exchanged (Levenshtein's distance).
fn slips(a: &[u8], b: &[u8]) -> usize {
    if a.len().abs_diff(b.len()) > 2 {
        return usize::MAX;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let best = (diagonal + usize::from(x != y)).min(row[j] + 1).min(row[j + 1] + 1);
            diagonal = std::mem::replace(&mut row[j + 1], best);
        }
    }
    row[b.len()]
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
