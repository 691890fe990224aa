//! What measures blocks: this machine, guests, or a script.

use crate::{Block, Figures, Planned};

/// Measures blocks.
pub trait Bench {
    /// Measures `blocks`, those of one machine in their order, and gives back the figures of each. None where it was told
    /// to stop.
    ///
    /// # Errors
    /// Where a block cannot be measured to its end.
    fn measure(&mut self, blocks: &[Block]) -> Result<Option<Vec<Figures>>, Error>;

    /// Hears what a search is going to measure, before it does.
    fn planned(&mut self, _: &Planned) {}
}

/// An error that says what was tried, and a hint where there is one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// What was tried, and what came of it.
    pub message: String,
    /// What to do about it; may be empty.
    pub hint: String,
}

impl Error {
    /// With a hint.
    pub fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { message: message.into(), hint: hint.into() }
    }
}
