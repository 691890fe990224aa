//! `stress -m`: memory mapped, touched and given back.

use serde::{Deserialize, Serialize};
use sys::mapping::Mapping;
use units::Bytes;

use super::about::About;
use super::worker::{BuiltIn, Worker};

/// Maps memory, touches a byte of every 4096, unmaps: `stress -m`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vm {
    /// How much at a time.
    pub bytes: Bytes,
}

impl BuiltIn for Vm {
    fn about(&self) -> About {
        let does = format!("maps {}, touches a byte of every 4096, unmaps", self.bytes);
        About { memory: self.bytes, ..About::new("vm", "pages touched", does) }
    }

    fn run(&self, worker: &mut Worker<'_>) -> String {
        const STRIDE: usize = 4096;
        let Ok(length) = usize::try_from(self.bytes.0) else {
            return format!("{} do not fit into this machine", self.bytes);
        };
        loop {
            match Mapping::new(length) {
                Ok(mut mapping) => worker.count(mapping.touch(STRIDE)),
                Err(error) => {
                    return format!("mapping memory within the ceiling of {}: {error}", worker.ceiling);
                }
            };
            worker.started();
        }
    }
}
