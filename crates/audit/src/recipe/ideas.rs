//! Mistaken ideas that show in several places of a recipe at once.

use super::known::KNOWN;
use super::{Remark, RemarkId, Target};
use crate::Severity;
use units::KernelVersion;

/// One remark an idea, at the line that says the last of its texts.
pub fn remarks(text: &str, target: Target) -> Vec<Remark> {
    let is_of = |since: &String| {
        since
            .parse::<KernelVersion>()
            .ok()
            .zip(target.version)
            .is_none_or(|(since, version)| version >= since)
    };
    let lower = stemmed(&text.to_lowercase());
    KNOWN
        .idea
        .iter()
        .filter(|idea| idea.since.as_ref().is_none_or(is_of))
        .filter(|idea| idea.unless.as_ref().is_none_or(|unless| !text.contains(unless.as_str())))
        .filter(|idea| idea.claims.is_empty() || idea.claims.iter().any(|claim| claims(&lower, claim)))
        .filter_map(|idea| {
            let lines: Option<Vec<usize>> = idea.texts.iter().map(|wanted| line_of(text, wanted)).collect();
            let (line, excerpt) = (lines?.into_iter().max()?, idea.texts.last()?);
            Some(
                Remark::new(
                    line,
                    RemarkId::MistakenIdea,
                    idea.severity.unwrap_or(Severity::Note),
                    excerpt,
                    &*idea.text,
                )
                .perhaps_instead(idea.instead.as_deref()),
            )
        })
        .collect()
}

/// Words in small letters without the ends of plurals and of verbs: what stays and what stay, cores and core are the same.
pub fn stemmed(lower: &str) -> String {
    let mut stemmed = String::with_capacity(lower.len());
    for word in lower.split_inclusive(|c: char| !c.is_alphanumeric()) {
        let bare = word.trim_end_matches(|c: char| !c.is_alphanumeric());
        let stem = bare.strip_suffix('s').filter(|stem| stem.len() > 2 && !stem.ends_with(['s', 'u', 'i']));
        stemmed.push_str(stem.unwrap_or(bare));
        stemmed.push_str(&word[bare.len()..]);
    }
    stemmed
}

/// Whether a text, stemmed, says so in a sentence that denies nothing before it; ` .. ` in a phrase stands for some words.
pub fn claims(text: &str, claim: &str) -> bool {
    let is_cut = claim.ends_with('s');
    let claim = stemmed(claim);
    let mut parts = claim.split(" .. ");
    let first = parts.next().unwrap_or_default();
    let rest: Vec<&str> = parts.collect();
    text.match_indices(first).any(|(at, _)| {
        let before = &text[..at];
        // Not within a longer word: `sles` is none of `sleeps`.
        let is_letter = |c: char| c.is_alphanumeric();
        let ends = text[at + first.len()..].starts_with(is_letter) && is_cut && rest.is_empty();
        if before.ends_with(is_letter) || ends {
            return false;
        }
        let start = before.rfind(['.', ':', ';', '\n']).map_or(0, |place| place + 1);
        let sentence = format!(" {}", &before[start..]);
        let behind = &text[at + first.len()..];
        let behind = behind.split(". ").next().unwrap_or(behind);
        let goes_on = rest.iter().try_fold(behind, |behind, part| {
            let at = behind.find(part).filter(|at| *at < 60)?;
            Some(&behind[at + part.len()..])
        });
        let is_denied =
            [" not ", "n't ", " never ", " nor ", " cannot "].iter().any(|denial| sentence.contains(denial));
        goes_on.is_some() && !is_denied
    })
}

fn line_of(text: &str, wanted: &str) -> Option<usize> {
    text.lines().position(|line| line.contains(wanted)).map(|index| index + 1)
}
