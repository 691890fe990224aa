//! `stress -d`: files written and dropped, into the page cache.

use std::io::Write;

use units::Bytes;

use super::files::Place;
use super::{About, Worker};

/// Bytes in one write(2): as much as `stress` writes at a time, less one.
const BLOCK: u64 = 1 << 20;

/// A file that is dropped before the kernel writes it back never reaches the device.
pub(super) fn about(bytes: Bytes) -> About {
    let does = format!("writes a file of {bytes}, then drops it");
    About { writes: true, waits: true, ..About::new("hdd", "bytes written", does) }
}

/// Writes files of `bytes` for ever.
pub(super) fn write_and_drop(worker: &mut Worker<'_>, bytes: Bytes) -> String {
    let Some(mut place) = Place::of(worker, bytes) else { return "no directory to write to".to_owned() };
    let block: Vec<u8> = (0..BLOCK.min(bytes.0)).map(|_| worker.random.next_u64() as u8).collect();
    worker.started();
    loop {
        place.wait_for_room(worker);
        if let Err(error) = write_one(worker, &place, &block, bytes.0) {
            place.failed(worker, &error);
        }
    }
}

fn write_one(worker: &Worker<'_>, place: &Place, block: &[u8], bytes: u64) -> std::io::Result<()> {
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
