//! Directories, reached without following links that another user laid, and held open: whoever swaps a name on the way
//! afterwards changes nothing.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FileType, IFlags, Mode, OFlags, Stat, fstat, ioctl_getflags, ioctl_setflags, mkdirat,
    openat, readlinkat, renameat, unlinkat,
};
use rustix::io::Errno;

use crate::{READABLE, Result, failed};

/// As many links as the kernel follows for one path: path_resolution(7).
const MOST_LINKS: usize = 40;

/// Descriptors that only name: open(2).
const NAMES: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Descriptors of directories that can be listed.
const LISTS: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A directory that is open. What is made in it is made there, whatever its path has come to mean.
#[derive(Debug)]
pub struct Directory {
    descriptor: OwnedFd,
    path: PathBuf,
}

impl Directory {
    /// Opens one that is there.
    ///
    /// # Errors
    /// There is none, or a link of another user is on the way.
    pub fn open(path: &Path) -> Result<Self> {
        let opened = Place::of(path, Links::Follow, Missing::Refuse).and_then(|place| place.directory());
        let descriptor = opened.map_err(failed("open", path))?;
        Ok(Self { descriptor, path: path.to_owned() })
    }

    /// Opens one whose files are obeyed: no other user may have written them, or put another directory in its place.
    ///
    /// # Errors
    /// There is none, it is another user's, or others may write into it or into a directory on the way to it.
    pub fn open_obeyed(path: &Path) -> Result<Self> {
        let place = Place::found(path, Links::Follow, Missing::Refuse, Way::Ours);
        let descriptor = place.and_then(|place| place.directory()).map_err(failed("open", path))?;
        let directory = Self { descriptor, path: path.to_owned() };
        if directory.is_ours_alone()? { Ok(directory) } else { Err(failed("open", path)(not_ours())) }
    }

    /// Opens it, after making what is missing on the way to it: for all to read, less the umask.
    ///
    /// # Errors
    /// It cannot be made, or a link of another user is on the way.
    pub fn make(path: &Path) -> Result<Self> {
        Self::make_with(path, Missing::Make(0o755))
    }

    /// As [`Directory::make`], for this user alone to read.
    ///
    /// # Errors
    /// As for [`Directory::make`].
    pub fn make_private(path: &Path) -> Result<Self> {
        Self::make_with(path, Missing::Make(0o700))
    }

    fn make_with(path: &Path, missing: Missing) -> Result<Self> {
        let opened = Place::of(path, Links::Follow, missing).and_then(|place| place.directory());
        let descriptor = opened.map_err(failed("create directory", path))?;
        Ok(Self { descriptor, path: path.to_owned() })
    }

    /// As it was named.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is this user's.
    ///
    /// # Errors
    /// It cannot be looked at.
    pub fn is_ours(&self) -> Result<bool> {
        Ok(self.kind()?.st_uid == rustix::process::geteuid().as_raw())
    }

    /// Whether what is at a path now is this directory.
    pub fn is(&self, path: &Path) -> bool {
        let same = |found: Stat, own: Stat| (found.st_dev, found.st_ino) == (own.st_dev, own.st_ino);
        rustix::fs::stat(path).is_ok_and(|found| self.kind().is_ok_and(|own| same(found, own)))
    }

    /// Whether it is this user's and nobody else may write into it: what is in it can be obeyed.
    ///
    /// # Errors
    /// It cannot be looked at.
    pub fn is_ours_alone(&self) -> Result<bool> {
        Ok(self.is_ours()? && !others_may_write(&self.kind()?))
    }

    fn kind(&self) -> Result<Stat> {
        fstat(&self.descriptor).map_err(|errno| failed("look at", &self.path)(errno.into()))
    }

    /// Makes a directory in it that this user alone may use, under a name that nobody knows before: `prefix` begins it.
    ///
    /// # Errors
    /// No directory may be made there, or whoever may write there puts something else in its place each time.
    pub fn make_own(&self, prefix: &str) -> Result<(String, Self)> {
        const TRIES: usize = 20;
        let mut tried = self.try_to_make_own(prefix);
        for _ in 1..TRIES {
            match &tried {
                Err(refused) if may_be_swapped(&refused.source) => tried = self.try_to_make_own(prefix),
                _ => break,
            }
        }
        tried
    }

    fn try_to_make_own(&self, prefix: &str) -> Result<(String, Self)> {
        let name = format!("{prefix}-{:016x}", random());
        let path = self.path.join(&name);
        mkdirat(&self.descriptor, &name, Mode::RWXU)
            .map_err(|errno| failed("create directory", &path)(errno.into()))?;
        let opened = openat(&self.descriptor, &name, LISTS, Mode::empty());
        let descriptor = opened.map_err(|errno| failed("create directory", &path)(swapped(errno)))?;
        let own = Self { descriptor, path: path.clone() };
        let is_own = own.is_ours()? && own.kind()?.st_mode & 0o077 == 0;
        if is_own { Ok((name, own)) } else { Err(failed("create directory", &path)(not_ours())) }
    }

    /// Opens what `path` names below it, after making what is missing on the way, for all to read, less the umask. No link is
    /// followed, whoever laid it.
    ///
    /// # Errors
    /// The path leads out of the directory or through a link, or it cannot be made.
    pub fn make_below(&self, path: &Path) -> Result<Self> {
        let below = self.path.join(path);
        let descriptor = self.opened_below(path).map_err(failed("create directory", &below))?;
        Ok(Self { descriptor, path: below })
    }

    fn opened_below(&self, path: &Path) -> io::Result<OwnedFd> {
        let mut place = openat(&self.descriptor, ".", LISTS, Mode::empty())?;
        for name in path.components() {
            let Component::Normal(name) = name else {
                return Err(io::Error::new(ErrorKind::InvalidInput, "it leads out of its directory"));
            };
            // What is there may be a link, whose descriptor is no directory.
            place = openat(&made(&place, name, 0o755)?, ".", LISTS, Mode::empty())?;
        }
        Ok(place)
    }

    /// Takes away what has that name in it, with all below it, if there is anything. A link goes, and not what it leads to.
    ///
    /// # Errors
    /// It may not be taken away.
    pub fn remove(&self, name: &OsStr) -> Result<()> {
        match std::fs::remove_dir_all(self.named(name)) {
            Err(error) if error.kind() == ErrorKind::NotADirectory => {
                unlinkat(&self.descriptor, name, AtFlags::empty()).map_err(Into::into)
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
        .map_err(failed("remove", &self.path.join(name)))
    }

    /// Gives what is in it another name, in place of what has that name.
    ///
    /// # Errors
    /// It is not there, or a directory of that name holds something.
    pub fn rename(&self, from: &OsStr, to: &OsStr) -> Result<()> {
        let renamed = renameat(&self.descriptor, from, &self.descriptor, to);
        renamed.map_err(|errno| failed("move", &self.path.join(from))(errno.into()))
    }

    /// Whether there is nothing in it.
    ///
    /// # Errors
    /// It may not be listed.
    pub fn is_empty(&self) -> Result<bool> {
        let entries = std::fs::read_dir(self.named(OsStr::new(".")));
        Ok(entries.map_err(failed("read", &self.path))?.next().is_none())
    }

    /// A path that stays this directory's, whatever its own has come to mean: proc_pid_fd(5).
    fn named(&self, name: &OsStr) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.descriptor.as_raw_fd())).join(name)
    }

    /// Takes an empty directory away that is in it.
    ///
    /// # Errors
    /// It is not empty, not there, or may not be taken away.
    pub fn remove_empty(&self, name: &str) -> Result<()> {
        let removed = unlinkat(&self.descriptor, name, AtFlags::REMOVEDIR);
        removed.map_err(|errno| failed("remove", &self.path.join(name))(errno.into()))
    }

    /// Makes it the working directory of this process, whatever its path has come to mean.
    ///
    /// # Errors
    /// It may not be searched.
    pub fn enter(&self) -> Result<()> {
        rustix::process::fchdir(&self.descriptor).map_err(|errno| failed("enter", &self.path)(errno.into()))
    }

    /// Asks the file system to put each directory that is made in it into a place of its own, as ext4 does with those of the
    /// attribute T. Others put them where they like.
    pub fn spread(&self) {
        if let Ok(flags) = ioctl_getflags(&self.descriptor) {
            let _ = ioctl_setflags(&self.descriptor, flags | IFlags::TOPDIR);
        }
    }

    /// Makes a file in it where none is, to be appended to, and brings its name to the disk.
    ///
    /// # Errors
    /// There is something of that name already, or no file may be made there.
    pub fn create_new(&self, name: &str, mode: u32) -> Result<File> {
        let made = begun(&self.descriptor, OsStr::new(name), mode);
        made.map_err(|error| failed("create", &self.path.join(name))(error))
    }

    /// Returns when the names in it are on the disk.
    ///
    /// # Errors
    /// What the disk answered.
    pub fn sync(&self) -> Result<()> {
        synced(&self.descriptor).map_err(failed("write to the disk", &self.path))
    }

    /// Writes a file in it, to the disk: whole, or not at all.
    ///
    /// # Errors
    /// There is no room, or it may not be written there.
    pub fn write_whole(&self, name: impl AsRef<OsStr>, content: &[u8]) -> Result<()> {
        let written = replace(&self.descriptor, name.as_ref(), content);
        written.map_err(|error| failed("write", &self.path.join(name.as_ref()))(error))
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// What becomes of a link that a path ends in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Links {
    Follow,
    Stay,
}

/// What becomes of a directory that is missing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    Refuse,
    Make(u32),
}

/// Whose the directories on the way to a file may be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Any,
    Ours,
}

/// A name in a directory that is open.
pub(crate) struct Place {
    pub parent: OwnedFd,
    pub name: OsString,
}

impl Place {
    /// Where a file is, or would be.
    pub fn of_file(path: &Path, links: Links) -> io::Result<Self> {
        if links == Links::Stay && path.file_name().is_none() {
            return Err(Errno::ISDIR.into());
        }
        Self::of(path, links, Missing::Refuse)
    }

    /// Whether nobody else can have written a file, nor another one in its place.
    pub fn of_obeyed(path: &Path) -> io::Result<()> {
        let kind = fstat(&Self::found(path, Links::Follow, Missing::Refuse, Way::Ours)?.open(OFlags::PATH)?)?;
        if is_trusted(&kind)? && !others_may_write(&kind) { Ok(()) } else { Err(not_ours()) }
    }

    /// Goes from directory to directory, and follows no link but those of users who are trusted. What a path ends in
    /// need not be there.
    fn of(path: &Path, links: Links, missing: Missing) -> io::Result<Self> {
        Self::found(path, links, missing, Way::Any)
    }

    fn found(path: &Path, links: Links, missing: Missing, way: Way) -> io::Result<Self> {
        let mut names = reversed(path);
        // Whoever names an absolute path need not be able to use the working directory.
        let start = if path.is_absolute() { "/" } else { "." };
        let mut parent = openat(CWD, start, NAMES, Mode::empty())?;
        let mut followed = 0;
        while let Some(name) = names.pop() {
            let is_last = names.is_empty();
            if way == Way::Ours && !keeps_entries(&fstat(&parent)?)? {
                return Err(not_ours());
            }
            if is_last && links == Links::Stay {
                return Ok(Self { parent, name });
            }
            let next = match openat(&parent, &name, NAMES, Mode::empty()) {
                Err(Errno::NOENT) => match missing {
                    Missing::Make(mode) => made(&parent, &name, mode)?,
                    Missing::Refuse if is_last => return Ok(Self { parent, name }),
                    Missing::Refuse => return Err(Errno::NOENT.into()),
                },
                next => next?,
            };
            let kind = fstat(&next)?;
            if FileType::from_raw_mode(kind.st_mode) != FileType::Symlink {
                if is_last {
                    return Ok(Self { parent, name });
                }
                parent = next;
                continue;
            }
            followed += 1;
            if followed > MOST_LINKS {
                return Err(Errno::LOOP.into());
            }
            if !is_trusted(&kind)? && !is_safe(&fstat(&parent)?)? {
                return Err(io::Error::new(ErrorKind::PermissionDenied, "another user laid a link there"));
            }
            let target = readlinkat(&next, "", Vec::new())?;
            names.extend(reversed(Path::new(&OsString::from_vec(target.into_bytes()))));
        }
        Ok(Self { parent, name: ".".into() })
    }

    /// What is there, not through a link.
    pub fn open(&self, flags: OFlags) -> io::Result<OwnedFd> {
        Ok(openat(&self.parent, &self.name, flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?)
    }

    /// A directory may be one that can be written and not listed.
    fn directory(&self) -> io::Result<OwnedFd> {
        self.open(OFlags::RDONLY | OFlags::DIRECTORY).or_else(|_| self.open(OFlags::PATH | OFlags::DIRECTORY))
    }

    /// Whether what is at it was put there by somebody who is trusted.
    pub fn is_trusted(&self, kind: &Stat) -> io::Result<bool> {
        Ok(is_trusted(kind)? || is_safe(&fstat(&self.parent)?)?)
    }
}

fn made(parent: &OwnedFd, name: &OsStr, mode: u32) -> rustix::io::Result<OwnedFd> {
    match mkdirat(parent, name, Mode::from_raw_mode(mode)) {
        Ok(()) => synced(parent).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?,
        Err(Errno::EXIST) => {}
        Err(errno) => return Err(errno),
    }
    openat(parent, name, NAMES, Mode::empty())
}

/// The names of a path, the last one first.
fn reversed(path: &Path) -> Vec<OsString> {
    let names = path.components().filter(|component| *component != Component::CurDir);
    let mut names: Vec<OsString> = names.map(|component| component.as_os_str().to_owned()).collect();
    names.reverse();
    names
}

/// Whether a file is this user's or root's: whoever has `/` counts as root, who has another number in a namespace of
/// users.
fn is_trusted(kind: &Stat) -> io::Result<bool> {
    let own = rustix::process::geteuid().as_raw();
    Ok([0, own].contains(&kind.st_uid) || kind.st_uid == rustix::fs::stat("/")?.st_uid)
}

/// Whether nobody else may put something into a directory.
fn is_safe(directory: &Stat) -> io::Result<bool> {
    Ok(is_trusted(directory)? && !others_may_write(directory))
}

/// Whether nobody else may take something of ours out of a directory: as it is for `/tmp`, by its sticky bit.
fn keeps_entries(directory: &Stat) -> io::Result<bool> {
    let is_sticky = directory.st_mode & 0o1000 != 0;
    Ok(is_trusted(directory)? && (is_sticky || !others_may_write(directory)))
}

/// Whether other users than the owner may write. A group of the owner's number is his own, as most distributions have it.
fn others_may_write(kind: &Stat) -> bool {
    let by_group = kind.st_mode & 0o020 != 0 && kind.st_gid != kind.st_uid;
    by_group || kind.st_mode & 0o002 != 0
}

/// Whoever may write into a directory can swap what was just made in it.
fn swapped(errno: Errno) -> io::Error {
    match errno {
        Errno::NOTDIR | Errno::NOENT | Errno::LOOP => not_ours(),
        other => other.into(),
    }
}

fn may_be_swapped(error: &io::Error) -> bool {
    error.kind() == ErrorKind::PermissionDenied && error.raw_os_error().is_none()
}

fn not_ours() -> io::Error {
    let message = "another user owns it, or may write into it or a directory above it";
    io::Error::new(ErrorKind::PermissionDenied, message)
}

/// A new file whose name is on the disk.
pub(crate) fn begun(parent: &OwnedFd, name: &OsStr, mode: u32) -> io::Result<File> {
    let file = new(parent, name, mode)?;
    synced(parent)?;
    Ok(file)
}

pub(crate) fn new(parent: &OwnedFd, name: &OsStr, mode: u32) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::EXCL;
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(parent, name, flags, Mode::from_raw_mode(mode))?.into())
}

/// Writes under a name that nobody has, and takes the name's place.
pub(crate) fn replace(parent: &OwnedFd, name: &OsStr, content: &[u8]) -> io::Result<()> {
    let (draft, mut file) = draft(parent, name)?;
    let written = file
        .write_all(content)
        .and_then(|()| file.sync_all())
        .and_then(|()| Ok(renameat(parent, &draft, parent, name)?));
    if written.is_err() {
        // Another user may have taken it away where he may.
        let _ = unlinkat(parent, &draft, AtFlags::empty());
    }
    written.and_then(|()| synced(parent))
}

/// A new file beside `name`. Nobody can guess its name, and lay something there first.
pub(crate) fn draft(parent: &OwnedFd, name: &OsStr) -> io::Result<(OsString, File)> {
    const TRIES: usize = 100;
    for _ in 0..TRIES {
        let mut own = name.to_owned();
        own.push(format!(".{:016x}.part", random()));
        match new(parent, &own, READABLE) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            file => return Ok((own, file?)),
        }
    }
    Err(ErrorKind::AlreadyExists.into())
}

/// A number that nobody else knows: the standard library's hash tables have keys of the kernel's.
fn random() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}

/// Returns when the names in a directory are on the disk. Not every file system can say so, and not everyone may ask.
fn synced(directory: &OwnedFd) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(listed) = openat(directory, ".", flags, Mode::empty()) else { return Ok(()) };
    match rustix::fs::fsync(&listed) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => Ok(()),
        synced => Ok(synced?),
    }
}
