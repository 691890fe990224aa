//! `stress -d`: files written and dropped, into the page cache.

use std::io::Write;

use serde::{Deserialize, Serialize};
use units::Bytes;

use super::about::About;
use super::files::Place;
use super::worker::{BuiltIn, Worker};

/// Bytes in one write(2): as much as `stress` writes at a time, less one.
const BLOCK: u64 = 1 << 20;

/// Writes a file without a name and drops it: `stress -d`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hdd {
    /// Size of the file.
    pub bytes: Bytes,
}

impl BuiltIn for Hdd {
    /// A file that is dropped before the kernel writes it back never reaches the device.
    fn about(&self) -> About {
        let does = format!("writes a file of {}, then drops it", self.bytes);
        About { writes: true, waits: true, ..About::new("hdd", "bytes written", does) }
    }

    fn run(&self, worker: &mut Worker<'_>) -> String {
        let Some(mut place) = Place::of(worker, self.bytes) else {
            return "no directory to write to".to_owned();
        };
        let block: Vec<u8> = (0..BLOCK.min(self.bytes.0)).map(|_| worker.random.next_u64() as u8).collect();
        worker.started();
        loop {
            place.wait_for_room(worker);
            if let Err(error) = write_one(worker, &place, &block, self.bytes.0) {
                place.failed(worker, &error);
            }
        }
    }
}

fn write_one(worker: &mut Worker<'_>, place: &Place<'_>, block: &[u8], bytes: u64) -> std::io::Result<()> {
    let mut file = place.new_file()?;
    let mut left = bytes;
    while left > 0 {
        let length = left.min(block.len() as u64);
        file.write_all(&block[..length as usize])?;
        worker.count(length);
        left -= length;
    }
    Ok(())
}
