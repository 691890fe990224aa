//! Files that stressors write to. They have no name, so that nothing is left whatever happens; and space stays free.
//!
//! The directory is held open: another user who may write there cannot put a link in its place, or in a file's.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, Dir, Mode, OFlags, mkdirat, openat, unlinkat};
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

/// A directory for files that cannot be without a name. Nobody else may write into it.
#[derive(Debug)]
pub(crate) struct Scratch {
    pub name: String,
    descriptor: OwnedFd,
}

impl Scratch {
    /// Makes it in `directory`.
    pub fn make(directory: &impl AsFd, name: String) -> std::io::Result<Self> {
        mkdirat(directory, &name, Mode::RWXU)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let descriptor = openat(directory, &name, flags, Mode::empty())?;
        let kind = rustix::fs::fstat(&descriptor)?;
        // Whoever may write above it can have put another one there since.
        if kind.st_uid != rustix::process::geteuid().as_raw() || kind.st_mode & 0o077 != 0 {
            return Err(rustix::io::Errno::PERM.into());
        }
        Ok(Self { name, descriptor })
    }

    /// Takes it away with what workers that were killed left in it.
    pub fn remove(&self, directory: &impl AsFd) -> std::io::Result<()> {
        for entry in Dir::read_from(&self.descriptor)? {
            let name = entry?.file_name().to_owned();
            if ![&b"."[..], b".."].contains(&name.to_bytes()) {
                unlinkat(&self.descriptor, &name, AtFlags::empty())?;
            }
        }
        Ok(unlinkat(directory, &self.name, AtFlags::REMOVEDIR)?)
    }

    /// Gives it to the user that files are made by.
    pub fn give_to(&self, user: u32, group: u32) -> std::io::Result<()> {
        let (user, group) = (rustix::fs::Uid::from_raw(user), rustix::fs::Gid::from_raw(group));
        Ok(rustix::fs::fchown(&self.descriptor, Some(user), Some(group))?)
    }

    fn file(&self, name: &OsStr) -> std::io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&self.descriptor, name, flags, Mode::RUSR | Mode::WUSR)?;
        unlinkat(&self.descriptor, name, AtFlags::empty())?;
        Ok(file.into())
    }
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use files::Directory;

    use super::*;

    #[test]
    fn files_are_made_in_the_directory_that_was_opened_and_through_no_link() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        fs::create_dir(at("theirs")).unwrap();
        let directory = Directory::make(&at("named")).unwrap();
        let scratch = Scratch::make(&directory, "scratch".into()).unwrap();
        // Whoever may write there puts links in the place of either directory and of the file.
        fs::rename(at("named/scratch"), at("named/moved")).unwrap();
        symlink(at("theirs"), at("named/scratch")).unwrap();
        fs::rename(at("named"), at("moved")).unwrap();
        symlink(at("theirs"), at("named")).unwrap();
        scratch.file("one".as_ref()).unwrap();
        symlink(at("theirs/file"), at("moved/moved/two")).unwrap();
        assert!(scratch.file("two".as_ref()).is_err());
        assert_eq!(fs::read_dir(at("theirs")).unwrap().count(), 0);
        assert!(Scratch::make(&directory, "scratch".into()).is_err());
        assert!(scratch.remove(&directory).is_err(), "what is at its name now is no directory");
    }
}
