//! The greatest latencies of blocks of consecutive activations.

use serde::{Deserialize, Serialize};

/// The greatest latency of each block of consecutive activations, in the order of time: 1024 to 2048 blocks in a run
/// that is long enough, however long it is. Missed activations count with the latency that they would have had.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BlockMaxima {
    /// Activations in a block, the last one excepted, which may be shorter; a power of two. 0 where nothing is known.
    pub activations: u64,
    /// The greatest latency of each block, in nanoseconds.
    pub maxima: Vec<u64>,
}
