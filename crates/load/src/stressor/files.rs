//! Files that stressors write to. They have no name, so that nothing is left whatever happens; and space stays free.
//!
//! The directory is held open: another user who may write there cannot put a link in its place, or in a file's.

use std::fs::File;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, openat};
use units::Bytes;

use super::worker::{Space, Worker};

/// How often the free space is looked at.
const LOOK: Duration = Duration::from_millis(100);
/// How long a worker waits where there is no space.
const NO_SPACE: Duration = Duration::from_secs(1);

/// Whether `directory`'s file system has files without a name: O_TMPFILE, open(2), Linux 3.11.
pub(crate) fn has_unnamed_files(directory: &impl AsFd) -> bool {
    unnamed(directory).is_ok()
}

fn unnamed(directory: &impl AsFd) -> std::io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    Ok(openat(directory, ".", flags, Mode::RUSR | Mode::WUSR)?.into())
}

/// Where files are made, and how much is written there.
pub(super) struct Place<'a> {
    space: Space<'a>,
    needed: u64,
    looked: Option<Instant>,
}

impl<'a> Place<'a> {
    pub fn of(worker: &Worker<'a>, bytes: Bytes) -> Option<Self> {
        let space = worker.space.clone()?;
        Some(Self { needed: bytes.0.saturating_mul(space.workers), space, looked: None })
    }

    /// A file without a name, or one whose name is gone as soon as it is open.
    pub fn new_file(&self) -> std::io::Result<File> {
        match self.space.scratch {
            Some(scratch) => scratch.file(self.space.name.as_ref()),
            None => unnamed(&self.space.directory),
        }
    }

    /// Waits until there is space above the floor, and says so where there is none. Looks ten times a second.
    pub fn wait_for_room(&mut self, worker: &Worker<'_>) {
        while self.looked.is_none_or(|looked| looked.elapsed() >= LOOK) {
            self.looked = Some(Instant::now());
            if let Err(text) = self.has_room() {
                worker.failed(&text);
                self.looked = None;
                std::thread::sleep(NO_SPACE);
            }
        }
    }

    /// Says what went wrong, and waits before the next attempt.
    pub fn failed(&self, worker: &Worker<'_>, error: &std::io::Error) {
        worker.failed(&format!("writing below {}: {error}", self.space.shown));
        std::thread::sleep(NO_SPACE);
    }

    /// Whether the files of all workers fit above the floor. statvfs(3).
    fn has_room(&self) -> Result<(), String> {
        let shown = self.space.shown;
        let answer = rustix::fs::fstatvfs(self.space.directory);
        let system = answer.map_err(|errno| format!("statvfs {shown}: {}", std::io::Error::from(errno)))?;
        let free = system.f_bavail.saturating_mul(system.f_frsize);
        if free >= self.needed.saturating_add(self.space.floor.0) {
            return Ok(());
        }
        let needed = Bytes(self.needed);
        let (floor, free) = (self.space.floor, free >> 20);
        Err(format!(
            "refused to write {needed} to {shown}: {free} MiB are free there and {floor} are to stay free; free some \
             space, or name another directory with --load-dir"
        ))
    }
}
