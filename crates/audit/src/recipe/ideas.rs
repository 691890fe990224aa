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
    let lower = text.to_lowercase();
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

/// Whether a text, in small letters, says so in a sentence that denies nothing before it.
pub fn claims(lower: &str, claim: &str) -> bool {
    lower.match_indices(claim).any(|(at, _)| {
        let before = &lower[..at];
        let start = before.rfind(['.', ':', ';', '\n']).map_or(0, |place| place + 1);
        let sentence = format!(" {}", &before[start..]);
        ![" not ", "n't ", " never ", " nor ", " cannot "].iter().any(|denial| sentence.contains(denial))
    })
}

fn line_of(text: &str, wanted: &str) -> Option<usize> {
    text.lines().position(|line| line.contains(wanted)).map(|index| index + 1)
}
