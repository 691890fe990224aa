//! `stress -i`: sync(2).

use serde::{Deserialize, Serialize};

use super::about::About;
use super::worker::{BuiltIn, Worker};

/// sync(2): `stress -i`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Io {}

impl BuiltIn for Io {
    /// One call may take longer than a slot, all of it in the kernel's hands.
    fn about(&self) -> About {
        About { waits: true, ..About::new("io", "syncs", "sync(2), one after the other") }
    }

    fn run(&self, worker: &mut Worker<'_>) -> String {
        worker.started();
        loop {
            rustix::fs::sync();
            worker.count(1);
        }
    }
}
