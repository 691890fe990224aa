//! Ladders: rungs in their order, each compared with the one before.
//!
//! Rung `n` is the arm with the first `n` steps made. Rungs are not put in random order: each guest boots by itself, and
//! seed after seed leaves a ladder that is cut short with as many guests of every rung.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Arm, Block, FIRST_SEED};

/// Somebody else's figures of a rung.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Published {
    /// Where they stand: `Enea, table A.2`.
    pub source: String,
    /// In what latencies are: `us`.
    #[serde(default)]
    pub unit: String,
    /// For each load its minimum, average and maximum.
    #[serde(default)]
    pub latencies: BTreeMap<String, [u64; 3]>,
    /// For operations by their names how many times as long one takes as in the rung that this one is compared with.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub operations: BTreeMap<String, f64>,
}

/// The blocks of so many rungs: seed after seed, rung after rung.
pub fn blocks(rungs: usize, seeds: u32) -> Vec<Block> {
    let round = |round| (0..rungs).map(move |rung| Block::of(Arm::all(rung), 1, round, FIRST_SEED));
    (1..=seeds).flat_map(round).collect()
}

/// The rungs that are compared, the earlier one first: each that has one in `bases` with that. Where none has, each with the
/// one before, and the last with the first where there are more than two.
pub fn steps(bases: &[Option<usize>]) -> Vec<(usize, usize)> {
    let rungs = bases.len();
    if bases.iter().any(Option::is_some) {
        return bases.iter().enumerate().filter_map(|(to, from)| Some(((*from)?, to))).collect();
    }
    let whole = (rungs > 2).then(|| (0, rungs - 1));
    (1..rungs).map(|to| (to - 1, to)).chain(whole).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rung_has_a_guest_of_a_seed_before_any_has_one_of_the_next() {
        let order: Vec<(usize, u64)> =
            blocks(2, 2).iter().map(|block| (block.arm.count(), block.seed.0)).collect();
        assert_eq!(order, [(0, 1), (1, 1), (0, 2), (1, 2)]);
    }

    #[test]
    fn each_rung_is_compared_with_the_one_before_and_the_last_with_the_first() {
        assert_eq!(steps(&[None; 2]), [(0, 1)]);
        assert_eq!(steps(&[None; 4]), [(0, 1), (1, 2), (2, 3), (0, 3)]);
    }

    #[test]
    fn a_rung_with_a_base_is_compared_with_that_alone() {
        assert_eq!(steps(&[None, Some(0), None, Some(2), Some(0)]), [(0, 1), (2, 3), (0, 4)]);
    }
}
