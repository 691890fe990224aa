//! A directory for files that must have a name for a moment.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, Dir, Mode, OFlags, mkdirat, openat, unlinkat};

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

    /// Makes a file in it that has no name when this returns.
    pub fn file(&self, name: &OsStr) -> std::io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&self.descriptor, name, flags, Mode::RUSR | Mode::WUSR)?;
        unlinkat(&self.descriptor, name, AtFlags::empty())?;
        Ok(file.into())
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
