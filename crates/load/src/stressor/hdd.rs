//! `stress -d`: files written and dropped. They have no name, so that nothing is left whatever happens.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use units::Bytes;

use super::Worker;

/// Bytes in one write(2): as much as `stress` writes at a time, less one.
const BLOCK: u64 = 1 << 20;
/// How often the free space is looked at.
const LOOK: Duration = Duration::from_millis(100);
/// How long a worker waits where there is no space.
const NO_SPACE: Duration = Duration::from_secs(1);

/// Whether `directory`'s file system has files without a name: O_TMPFILE, open(2), Linux 3.11.
pub(crate) fn has_unnamed_files(directory: &Path) -> bool {
    unnamed(directory).is_ok()
}

fn unnamed(directory: &Path) -> std::io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(directory, flags, Mode::RUSR | Mode::WUSR)?.into())
}

/// Writes files of `bytes` for ever. Below the floor of free space it waits, and says so.
pub(super) fn write_and_drop(worker: &mut Worker<'_>, bytes: Bytes) -> String {
    let Some(place) = Place::of(worker, bytes) else { return "no directory to write to".to_owned() };
    let block: Vec<u8> = (0..BLOCK.min(bytes.0)).map(|_| worker.random.next_u64() as u8).collect();
    let mut looked: Option<Instant> = None;
    worker.started();
    loop {
        if looked.is_none_or(|looked| looked.elapsed() >= LOOK) {
            looked = Some(Instant::now());
            if let Err(text) = place.has_room() {
                worker.failed(&text);
                looked = None;
                std::thread::sleep(NO_SPACE);
                continue;
            }
        }
        if let Err(error) = write_one(worker, &place, &block, bytes.0) {
            worker.failed(&format!("writing below {}: {error}", place.directory.display()));
            std::thread::sleep(NO_SPACE);
        }
    }
}

fn write_one(worker: &Worker<'_>, place: &Place, block: &[u8], bytes: u64) -> std::io::Result<()> {
    let mut file = place.new_file()?;
    let mut left = bytes;
    while left > 0 {
        let length = left.min(block.len() as u64);
        file.write_all(&block[..length as usize])?;
        worker.counter(0).add(length);
        left -= length;
    }
    Ok(())
}

/// Where files are made, and how much must stay free there.
struct Place {
    directory: PathBuf,
    /// The file's name, where it must have one for a moment.
    name: Option<PathBuf>,
    needed: u64,
    floor: Bytes,
}

impl Place {
    fn of(worker: &Worker<'_>, bytes: Bytes) -> Option<Self> {
        let plan = &worker.shop.plan;
        let name = format!("{}-{}", worker.seat.stressor, worker.seat.worker);
        let all = worker.shop.board.workers(worker.seat.stressor) as u64;
        Some(Self {
            directory: PathBuf::from(&plan.directory.as_ref()?.path),
            name: worker.shop.scratch.as_ref().map(|scratch| scratch.join(name)),
            needed: bytes.0.saturating_mul(all),
            floor: plan.limits.disk_floor,
        })
    }

    /// A file without a name, or one whose name is gone as soon as it is open.
    fn new_file(&self) -> std::io::Result<File> {
        let Some(name) = &self.name else { return unnamed(&self.directory) };
        let file = File::create(name)?;
        std::fs::remove_file(name)?;
        Ok(file)
    }

    /// Whether the files of all workers fit above the floor. statvfs(3).
    fn has_room(&self) -> Result<(), String> {
        let shown = self.directory.display();
        let answer = rustix::fs::statvfs(&self.directory);
        let system = answer.map_err(|errno| format!("statvfs {shown}: {}", std::io::Error::from(errno)))?;
        let free = system.f_bavail.saturating_mul(system.f_frsize);
        if free >= self.needed.saturating_add(self.floor.0) {
            return Ok(());
        }
        let needed = Bytes(self.needed);
        let (floor, free) = (self.floor, free >> 20);
        Err(format!(
            "refused to write {needed} to {shown}: {free} MiB are free there and {floor} are to stay free; free some \
             space, or name another directory with --load-dir"
        ))
    }
}
