//! Writes that reach the device: past the page cache where the file system allows that, and flushed one by one.

use std::fs::File;
use std::os::unix::fs::FileExt;

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use units::Bytes;

use super::about::About;
use super::files::Place;
use super::worker::{BuiltIn, Worker};

/// O_DIRECT writes from memory that begins at a multiple of the device's block, which is no larger: open(2).
const ALIGNMENT: usize = 4096;

/// Writes through to the device, piece by piece.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Disk {
    /// Size of the file.
    pub bytes: Bytes,
    /// Size of a write.
    pub block: Bytes,
}

impl BuiltIn for Disk {
    fn about(&self) -> About {
        let Self { bytes, block } = self;
        let does = format!(
            "writes a file of {bytes} over and over, {block} at a time past the page cache (O_DIRECT), each write flushed \
             to the device (fdatasync)"
        );
        let about = About::new("disk", "bytes written", does);
        About { writes: true, needs_device: true, waits: true, memory: *block, ..about }
    }

    fn run(&self, worker: &mut Worker<'_>) -> String {
        let Some(mut place) = Place::of(worker, self.bytes) else {
            return "no directory to write to".to_owned();
        };
        let Ok(length) = usize::try_from(self.block.0) else { return format!("no buffer of {}", self.block) };
        let memory: Vec<u8> = (0..length + ALIGNMENT).map(|_| worker.random.next_u64() as u8).collect();
        let start = memory.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        let piece = &memory[start..start + length];
        worker.started();
        loop {
            if let Err(error) = write_file(worker, &mut place, piece, self.bytes.0) {
                place.failed(worker, &error);
            }
        }
    }
}

/// Goes over one file until a write fails.
fn write_file(
    worker: &mut Worker<'_>,
    place: &mut Place<'_>,
    piece: &[u8],
    bytes: u64,
) -> std::io::Result<()> {
    place.wait_for_room(worker);
    let mut file = place.new_file()?;
    bypass_cache(&mut file, piece)?;
    for offset in (0..bytes.max(1)).step_by(piece.len().max(1)).cycle() {
        place.wait_for_room(worker);
        file.write_all_at(piece, offset)?;
        file.sync_data()?;
        worker.count(piece.len() as u64);
    }
    Ok(())
}

/// Turns the page cache off for `file`, where its file system can write without: found out by a write.
fn bypass_cache(file: &mut File, piece: &[u8]) -> std::io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(&*file)?;
    let direct = rustix::fs::fcntl_setfl(&*file, flags | OFlags::DIRECT).is_ok();
    if direct && file.write_all_at(piece, 0).is_err() {
        rustix::fs::fcntl_setfl(&*file, flags)?;
    }
    Ok(())
}
