//! Which block is measured when.

use units::Seed;

use crate::{Arm, Design};

/// The first seed of guests where nobody asks for another.
pub const FIRST_SEED: Seed = Seed(1);

/// One stretch of measuring.
#[derive(Clone, Debug, PartialEq, Eq)]
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

impl Block {
    /// Round `n` has the seed `first + n - 1`.
    pub fn of(arm: Arm, phase: u32, round: u32, first: Seed) -> Self {
        Self { phase, round, arm, seed: Seed(first.0.wrapping_add(u64::from(round - 1))) }
    }
}

/// So many rounds. Each has one block of each of `arms`, in random order: in every pair of arms either one comes first as
/// likely as the other, and all have equal exposure. `skipped` is added to the seeds.
pub fn rounds(design: &Design, phase: u32, skipped: u32, count: u32, arms: &[Arm]) -> Vec<Block> {
    let mut order = design.seed.stream(&format!("order of phase {phase}"));
    let first = Seed(design.seed.0.wrapping_add(u64::from(skipped)));
    let mut blocks = Vec::new();
    for round in 1..=count {
        let mut arms = arms.to_vec();
        order.shuffle(&mut arms);
        blocks.extend(arms.into_iter().map(|arm| Block::of(arm, phase, round, first)));
    }
    blocks
}
