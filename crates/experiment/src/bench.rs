//! What measures blocks: this machine, guests, or a script.

use failure::Error;

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
