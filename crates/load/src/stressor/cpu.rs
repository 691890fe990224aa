//! `stress -c`: square roots of random numbers.

use std::hint::black_box;

use serde::{Deserialize, Serialize};

use super::about::About;
use super::worker::{BuiltIn, Worker};

/// How many square roots go into one addition on the board.
const BATCH: u64 = 1024;

/// Square roots: `stress -c`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cpu {}

impl BuiltIn for Cpu {
    fn about(&self) -> About {
        About::new("cpu", "square roots", "square roots of random numbers")
    }

    fn run(&self, worker: &mut Worker<'_>) -> String {
        worker.started();
        loop {
            for _ in 0..BATCH {
                black_box((worker.random.next_u64() as f64).sqrt());
            }
            worker.count(BATCH);
        }
    }
}
