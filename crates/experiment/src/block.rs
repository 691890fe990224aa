//! Which block is measured when.

use serde::Serialize;
use units::Seed;

use crate::{Arm, Design};

/// One stretch of measuring.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Block {
    /// Which comparison it belongs to, from 1: blocks of different phases are never set against each other.
    pub phase: u32,
    /// Which round of the phase, from 1.
    pub round: u32,
    /// What is on.
    pub arm: Arm,
    /// What the load does and when activations are due is drawn from it; the same for all blocks of a round.
    pub seed: Seed,
}

/// So many rounds. Each has one block of each of `arms`, in random order: in every pair of arms either one comes first as
/// likely as the other, and all have equal exposure. `first` is added to the seeds.
pub fn rounds(design: &Design, phase: u32, first: u32, count: u32, arms: &[Arm]) -> Vec<Block> {
    let mut order = design.seed.stream(&format!("order of phase {phase}"));
    let mut blocks = Vec::new();
    for round in 1..=count {
        let mut arms = arms.to_vec();
        order.shuffle(&mut arms);
        let seed = Seed(design.seed.0.wrapping_add(u64::from(first + round - 1)));
        blocks.extend(arms.into_iter().map(|arm| Block { phase, round, arm, seed }));
    }
    blocks
}
