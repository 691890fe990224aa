//! The narrow door through which ordinary files of a system are changed: each call is one change.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, fchown, symlink};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use sysroot::SysRoot;

/// No file that is changed is longer, in bytes: they are configurations and scripts.
const LONGEST: u64 = 64 << 20;

/// What a file is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Contents {
    /// A regular file.
    Bytes(Vec<u8>),
    /// A symbolic link, and where it points.
    Link(String),
}

impl From<&str> for Contents {
    fn from(text: &str) -> Self {
        Self::Bytes(text.as_bytes().to_vec())
    }
}

/// Who may do what with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attributes {
    /// The bits of chmod(2).
    pub mode: u32,
    /// User and group; none for whoever makes it.
    pub owner: Option<(u32, u32)>,
}

/// A file that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// What it is.
    pub contents: Contents,
    /// Whose.
    pub attributes: Attributes,
}

/// The files of a system. Paths are those of the system, whatever directory it lies in.
pub trait Disk {
    /// The file at a path; none where nothing is.
    ///
    /// # Errors
    /// What the kernel answered; `EINVAL` for what is neither a regular file nor a link.
    fn read(&self, path: &str) -> io::Result<Option<Found>>;

    /// Whether there is a directory at a path.
    fn is_directory(&self, path: &str) -> bool;

    /// The names in a directory; none where there is no directory.
    ///
    /// # Errors
    /// What the kernel answered.
    fn names(&self, path: &str) -> io::Result<Vec<String>>;

    /// Makes a file where none is. All of it is on the disk when this returns, but not yet its name.
    ///
    /// # Errors
    /// What the kernel answered.
    fn create(&mut self, path: &str, contents: &Contents, attributes: Attributes) -> io::Result<()>;

    /// Puts a file in the place of another, or of none. Where a name holds more than a name (FAT's has the length and the
    /// place of the contents), that is on the disk when this returns.
    ///
    /// # Errors
    /// What the kernel answered.
    fn rename(&mut self, from: &str, to: &str) -> io::Result<()>;

    /// Takes a file away, if there is one.
    ///
    /// # Errors
    /// What the kernel answered.
    fn remove(&mut self, path: &str) -> io::Result<()>;

    /// Makes a directory in one that is there.
    ///
    /// # Errors
    /// What the kernel answered.
    fn make_directory(&mut self, path: &str, mode: u32) -> io::Result<()>;

    /// Takes an empty directory away, if there is one.
    ///
    /// # Errors
    /// What the kernel answered: `ENOTEMPTY` where something is in it.
    fn remove_directory(&mut self, path: &str) -> io::Result<()>;

    /// Returns when the names in a directory are on the disk.
    ///
    /// # Errors
    /// What the kernel answered.
    fn sync(&mut self, directory: &str) -> io::Result<()>;
}

/// The running system, or one that lies in a directory.
#[derive(Clone, Debug)]
pub struct Live {
    root: PathBuf,
}

impl Live {
    /// Of the system whose `/` is at `root`.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Where a path of the system is. Links on the way are followed, but never out of the system.
    ///
    /// # Errors
    /// `EXDEV` where one leads out of it.
    pub fn inside(&self, path: &str) -> io::Result<PathBuf> {
        self.path(path)
    }

    fn path(&self, path: &str) -> io::Result<PathBuf> {
        let path = SysRoot::at(&self.root).path(path);
        let mut directory = path.parent().filter(|_| path != self.root).unwrap_or(&self.root);
        while fs::symlink_metadata(directory).is_err_and(|error| error.kind() == ErrorKind::NotFound) {
            directory = directory.parent().unwrap_or(&self.root);
        }
        match directory.canonicalize()?.starts_with(self.root.canonicalize()?) {
            true => Ok(path),
            false => Err(Errno::XDEV.into()),
        }
    }
}

/// No error where there is nothing.
fn unless_absent(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// Gives a new file what another had. A file system without owners and modes has given it those of all its files already,
/// and refuses to change them: no matter for a file that was not there before.
fn give(file: &File, wanted: Attributes) -> io::Result<()> {
    let now = file.metadata()?;
    if let Some((owner, group)) = wanted.owner.filter(|&owner| owner != (now.uid(), now.gid())) {
        fchown(file, Some(owner), Some(group))?;
    }
    if file.metadata()?.mode() & 0o7777 == wanted.mode {
        return Ok(());
    }
    match file.set_permissions(Permissions::from_mode(wanted.mode)) {
        Err(error) if wanted.owner.is_none() && error.kind() == ErrorKind::PermissionDenied => Ok(()),
        result => result,
    }
}

fn write_whole(path: &Path, bytes: &[u8], attributes: Attributes) -> io::Result<()> {
    let mut file = files::create_new(path, files::PRIVATE)?;
    file.write_all(bytes)?;
    give(&file, attributes)?;
    file.sync_all()
}

impl Disk for Live {
    fn read(&self, path: &str) -> io::Result<Option<Found>> {
        let path = self.path(path)?;
        let kind = match fs::symlink_metadata(&path) {
            Ok(kind) => kind,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let contents = match kind.file_type() {
            file if file.is_file() => Contents::Bytes(files::read(&path, LONGEST)?),
            link if link.is_symlink() => Contents::Link(fs::read_link(&path)?.to_string_lossy().into_owned()),
            _ => return Err(Errno::INVAL.into()),
        };
        let attributes = Attributes { mode: kind.mode() & 0o7777, owner: Some((kind.uid(), kind.gid())) };
        Ok(Some(Found { contents, attributes }))
    }

    fn is_directory(&self, path: &str) -> bool {
        self.path(path).is_ok_and(|path| path.is_dir())
    }

    fn names(&self, path: &str) -> io::Result<Vec<String>> {
        match fs::read_dir(self.path(path)?) {
            Ok(entries) => {
                entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    fn create(&mut self, path: &str, contents: &Contents, attributes: Attributes) -> io::Result<()> {
        let path = self.path(path)?;
        match contents {
            Contents::Bytes(bytes) => write_whole(&path, bytes, attributes),
            Contents::Link(target) => symlink(target, &path),
        }
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        let to = self.path(to)?;
        fs::rename(self.path(from)?, &to)?;
        // FAT gives the new name no contents until the file itself is written back, whatever became of the old name's:
        // after a power cut the file was empty.
        match fs::symlink_metadata(&to)?.is_symlink() {
            true => Ok(()),
            false => File::open(&to)?.sync_all(),
        }
    }

    fn remove(&mut self, path: &str) -> io::Result<()> {
        unless_absent(fs::remove_file(self.path(path)?))
    }

    fn make_directory(&mut self, path: &str, mode: u32) -> io::Result<()> {
        DirBuilder::new().mode(mode).create(self.path(path)?)
    }

    fn remove_directory(&mut self, path: &str) -> io::Result<()> {
        unless_absent(fs::remove_dir(self.path(path)?))
    }

    fn sync(&mut self, directory: &str) -> io::Result<()> {
        File::open(self.path(directory)?)?.sync_all()
    }
}
