//! What stands out of a run, and what to do next: the first section below the key figures.

use record::Record;

use super::view::{Block, Section};

/// None where nothing was measured.
pub(crate) fn section(record: &Record) -> Option<Section> {
    let sentences = crate::patterns::sentences(record);
    // Who reads the page may have another machine: no trial is offered.
    let steps = crate::next::run::steps(record, &|_| false);
    let mut blocks: Vec<_> = sentences.into_iter().map(Block::Paragraph).collect();
    if !steps.is_empty() {
        blocks.extend([Block::Heading("Next".into()), Block::Commands(steps)]);
    }
    (!blocks.is_empty()).then(|| Section::new("outstanding", "What stands out", "", blocks))
}
