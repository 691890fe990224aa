//! The tree that facts are read from: `/` itself, a directory that holds a captured or made-up `/proc` and `/sys`, or a
//! [`Tree`] in memory.
//!
//! Every file is read through [`SysRoot`] and becomes a [`Fact`]: its value, absent, or unreadable with the errno.
//! A root that remembers makes a snapshot, from which `privacy` keeps secrets out.
//!
//! ```
//! use record::Fact;
//! use sysroot::{SysRoot, Tree};
//!
//! let root = SysRoot::of(Tree::whole([("/proc/sys/vm/swappiness".to_owned(), b"60\n".to_vec())]));
//! assert_eq!(root.number("/proc/sys/vm/swappiness"), Fact::Value(60));
//! assert_eq!(root.read("/proc/sys/vm/stat_interval"), Fact::Absent);
//! ```

mod archive;
pub mod efi_variable;
#[cfg(any(test, feature = "fake"))]
mod fake;
mod privacy;
#[cfg(test)]
mod tests;
mod text;
mod tree;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use record::Fact;
use rustix::fs::OFlags;
use rustix::io::Errno;
use units::CpuList;

pub use archive::ArchiveError;
#[cfg(any(test, feature = "fake"))]
pub use fake::FakeTree;
pub use privacy::{masked_words, without_machine_ids};
pub use text::ListError;
pub use tree::{Name, Tree};

/// No file that is read here is longer: /proc/cpuinfo has about 1.5 KiB a CPU.
const LONGEST_FILE: u64 = 16 << 20;

/// The two bytes that gzip begins with.
pub const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The longest snapshot that is read, in bytes.
const LONGEST_SNAPSHOT: u64 = 64 << 20;

/// Why something is not a tree to read facts from.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// It could not be read.
    #[error("read {path}: {error}")]
    Io {
        /// The file or directory given.
        path: PathBuf,
        /// What the kernel answered.
        error: io::Error,
    },
    /// It is larger than any snapshot.
    #[error("read {0}: it is larger than 64 MiB")]
    TooLarge(PathBuf),
    /// Compressed, and not a snapshot.
    #[error("{path} is not a snapshot: {error}")]
    Archive {
        /// The file or directory given.
        path: PathBuf,
        /// What is wrong.
        error: ArchiveError,
    },
    /// A text, and not a snapshot.
    #[error("{path} is not a snapshot: {error}")]
    Text {
        /// The file or directory given.
        path: PathBuf,
        /// What is wrong.
        error: ListError,
    },
    /// Neither.
    #[error("{0} is not a snapshot: it is neither compressed nor a text with `=== ` lines")]
    Other(PathBuf),
}

impl From<TreeError> for failure::Error {
    fn from(error: TreeError) -> Self {
        let hint = "name a file that worstcase snapshot wrote, or a directory with a copy of /proc and /sys";
        Self::new(&error, hint).caused_by(error)
    }
}

/// Where `/` is.
///
/// In a tree that is not live, paths are joined to the tree's directory; a symbolic link in it is followed as that
/// system would follow it, and never out of the tree.
#[derive(Clone, Debug)]
pub struct SysRoot {
    place: Place,
    memory: Option<Arc<Mutex<Tree>>>,
    is_open_ended: bool,
}

#[derive(Clone, Debug)]
enum Place {
    Live,
    Directory(PathBuf),
    Memory(Arc<Tree>),
}

impl SysRoot {
    fn in_place(place: Place) -> Self {
        Self { place, memory: None, is_open_ended: false }
    }

    /// The running system.
    pub fn live() -> Self {
        Self::in_place(Place::Live)
    }

    /// A tree below `directory`: what would be `/proc/stat` is `directory/proc/stat`.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self::in_place(Place::Directory(directory.into()))
    }

    /// What a machine answered once.
    pub fn of(tree: Tree) -> Self {
        Self::in_place(Place::Memory(Arc::new(tree)))
    }

    /// A directory, or a snapshot in an archive or in one text.
    ///
    /// # Errors
    /// [`TreeError`] for what is none of them.
    pub fn open_tree(path: &Path) -> Result<Self, TreeError> {
        let failed = |error| TreeError::Io { path: path.to_owned(), error };
        if std::fs::metadata(path).map_err(failed)?.is_dir() {
            return Ok(Self::at(path));
        }
        let mut bytes = Vec::new();
        let file = files::open(path).map_err(|error| failed(error.source))?;
        file.take(LONGEST_SNAPSHOT + 1).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 > LONGEST_SNAPSHOT {
            return Err(TreeError::TooLarge(path.to_owned()));
        }
        let tree = if bytes.starts_with(&GZIP) || archive::is_tar(&bytes) {
            Tree::of_archive(&bytes).map_err(|error| TreeError::Archive { path: path.to_owned(), error })?
        } else if bytes.contains(&0) {
            return Err(TreeError::Other(path.to_owned()));
        } else {
            let text = String::from_utf8_lossy(&bytes);
            if !text.starts_with(text::MARK) && !text.contains(&format!("\n{}", text::MARK)) {
                return Err(TreeError::Other(path.to_owned()));
            }
            let tree =
                Tree::of_text(&text).map_err(|error| TreeError::Text { path: path.to_owned(), error })?;
            return Ok(Self { is_open_ended: !text::has_end(&text), ..Self::of(tree) });
        };
        Ok(Self::of(tree))
    }

    /// The same root, which reads everything at most once and remembers it; [`SysRoot::remembered`] gives it all.
    /// A root that does so already shares what it remembers.
    pub fn remembering(&self) -> Self {
        let memory = self.memory.clone().unwrap_or_else(|| Arc::new(Mutex::new(Tree::captured())));
        Self { place: self.place.clone(), memory: Some(memory), is_open_ended: self.is_open_ended }
    }

    /// Everything that was read so far; nothing for a root that does not remember.
    pub fn remembered(&self) -> Tree {
        let tree = self.memory.as_ref().map_or_else(Tree::captured, |memory| lock(memory).clone());
        tree.renamed(without_machine_ids)
    }

    /// Whether it was read from a text without the mark of its end, so that nobody can say whether a part of it is missing.
    pub fn is_open_ended(&self) -> bool {
        self.is_open_ended
    }

    /// Whether this is the running system, so that system calls may answer in a file's place.
    pub fn is_live(&self) -> bool {
        matches!(self.place, Place::Live)
    }

    /// Where the file is that the system calls `path`. `..` is left out: nothing above the tree is reached by it.
    pub fn path(&self, path: &str) -> PathBuf {
        let base = match &self.place {
            Place::Directory(base) => base.as_path(),
            Place::Live | Place::Memory(_) => Path::new("/"),
        };
        base.join(plain(path))
    }

    /// Where the file is that the system calls `path`, with every link followed as that system would: an absolute one
    /// begins at its own root, and `..` ends there.
    fn inside(&self, path: &str) -> io::Result<PathBuf> {
        match &self.place {
            Place::Directory(base) => inside(base, path),
            Place::Live | Place::Memory(_) => Ok(self.path(path)),
        }
    }

    /// The text of a file without the white space and NULs around it. Bytes that are not UTF-8 are replaced.
    ///
    /// No such file is [`Fact::Absent`]; what else the kernel answers is [`Fact::Unreadable`], a file above 16 MiB
    /// too (EFBIG).
    pub fn read(&self, path: &str) -> Fact<String> {
        self.bytes(path).map(|bytes| trimmed(&String::from_utf8_lossy(&bytes)).to_owned())
    }

    /// The bytes of a file, with the limits of [`SysRoot::read`].
    pub fn bytes(&self, path: &str) -> Fact<Vec<u8>> {
        self.bytes_or(path, || self.whole(path))
    }

    /// The bytes that stand for a file which is not read as others are: what `read` gives on a system with files, what
    /// was remembered of it elsewhere.
    pub fn bytes_or(&self, path: &str, read: impl FnOnce() -> Fact<Vec<u8>>) -> Fact<Vec<u8>> {
        let read = || match &self.place {
            Place::Memory(tree) => tree.file(&key(path)),
            Place::Live | Place::Directory(_) => read(),
        };
        if self.memory.is_none() {
            return read();
        }
        let kept = || read().map(|bytes| privacy::kept(&key(path), bytes));
        self.once(path, kept, |tree| &mut tree.files)
    }

    /// Whether there is something at a path.
    pub fn exists(&self, path: &str) -> Fact<()> {
        let read = || match &self.place {
            Place::Memory(tree) => tree.presence(&key(path)),
            Place::Live | Place::Directory(_) => {
                fact(self.inside(path).and_then(std::fs::metadata).map(drop))
            }
        };
        self.once(path, read, |tree| &mut tree.present)
    }

    fn whole(&self, path: &str) -> Fact<Vec<u8>> {
        match self.beginning(path, LONGEST_FILE + 1) {
            Fact::Value(bytes) if bytes.len() as u64 > LONGEST_FILE => {
                Fact::Unreadable(Errno::FBIG.raw_os_error())
            }
            fact => fact,
        }
    }

    /// At most `length` bytes of a file. Not remembered.
    pub fn beginning(&self, path: &str, length: u64) -> Fact<Vec<u8>> {
        // Room from the first read on: tracefs gives `events/header_page` to one read, and nothing to the next.
        let mut bytes = Vec::with_capacity(4096);
        fact(self.open(path).and_then(|file| file.take(length).read_to_end(&mut bytes)).map(|_| bytes))
    }

    /// Exactly `N` bytes of a file from `offset` on: for device files whose offset has a meaning. Not remembered.
    pub fn bytes_at<const N: usize>(&self, path: &str, offset: u64) -> Fact<[u8; N]> {
        let mut bytes = [0; N];
        fact(self.open(path).and_then(|file| file.read_exact_at(&mut bytes, offset)).map(|()| bytes))
    }

    /// A file opened for reading that never blocks. There is none in memory; in a directory it is a regular file: a device there
    /// would be this machine's, not the captured one's (EOPNOTSUPP).
    pub fn open(&self, path: &str) -> io::Result<File> {
        if matches!(self.place, Place::Memory(_)) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let path = self.inside(path)?;
        let mut flags = OFlags::NONBLOCK;
        if !self.is_live() {
            is_regular(&std::fs::symlink_metadata(&path)?)?;
            flags |= OFlags::NOFOLLOW;
        }
        let file = OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path)?;
        if !self.is_live() {
            is_regular(&file.metadata()?)?;
        }
        Ok(file)
    }

    /// A number, or any type that parses from the file's text. A text that does not parse is unreadable (EBADMSG).
    pub fn number<T: FromStr>(&self, path: &str) -> Fact<T> {
        self.read(path).and_then(|text| parsed(text.parse()))
    }

    /// A CPU list. The kernel says `(null)` for one that it never made (nohz_full, up to 5.x): no CPU.
    pub fn cpu_list(&self, path: &str) -> Fact<CpuList> {
        self.read(path)
            .and_then(|text| parsed(if text == "(null)" { Ok(CpuList::new()) } else { text.parse() }))
    }

    /// The names in a directory, sorted.
    pub fn list(&self, directory: &str) -> Fact<Vec<String>> {
        self.entries(directory).map(|names| names.into_iter().map(|name| name.text).collect())
    }

    /// The names of the directories in a directory, sorted; links are not followed.
    pub fn directories(&self, directory: &str) -> Fact<Vec<String>> {
        let directories = |names: Vec<Name>| names.into_iter().filter(|name| name.is_directory);
        self.entries(directory).map(|names| directories(names).map(|name| name.text).collect())
    }

    fn entries(&self, directory: &str) -> Fact<Vec<Name>> {
        let read = || match &self.place {
            Place::Memory(tree) => tree.directory(&key(directory)),
            Place::Live | Place::Directory(_) => {
                fact(self.inside(directory).and_then(|directory| listed(&directory)))
            }
        };
        self.once(directory, read, |tree| &mut tree.directories)
    }

    /// Where a symbolic link points, as it stands there: `../../../bus/pci/drivers/igb`.
    pub fn link(&self, path: &str) -> Fact<String> {
        let target = || {
            let (directory, name) = path.rsplit_once('/').unwrap_or_default();
            std::fs::read_link(self.inside(directory)?.join(plain(name)))
        };
        let read = || match &self.place {
            Place::Memory(tree) => tree.link(&key(path)),
            Place::Live | Place::Directory(_) => {
                fact(target().map(|target| target.to_string_lossy().into_owned()))
            }
        };
        self.once(path, read, |tree| &mut tree.links)
    }

    /// What is remembered of a path, else what `read` gives, which is then remembered.
    fn once<T: Clone>(
        &self,
        path: &str,
        read: impl FnOnce() -> Fact<T>,
        kind: fn(&mut Tree) -> &mut BTreeMap<String, Fact<T>>,
    ) -> Fact<T> {
        let Some(memory) = &self.memory else { return read() };
        let key = key(path);
        if let Some(known) = kind(&mut lock(memory)).get(&key) {
            return known.clone();
        }
        let fact = read();
        kind(&mut lock(memory)).insert(key, fact.clone());
        fact
    }

    /// The numbers N of entries named `prefixN`, ascending: `state` gives the idle states in a cpuidle directory.
    pub fn numbered(&self, directory: &str, prefix: &str) -> Vec<u32> {
        let names = self.list(directory).value().cloned().unwrap_or_default();
        let mut numbers: Vec<u32> =
            names.iter().filter_map(|name| name.strip_prefix(prefix)?.parse().ok()).collect();
        numbers.sort_unstable();
        numbers
    }
}

fn lock(memory: &Mutex<Tree>) -> std::sync::MutexGuard<'_, Tree> {
    memory.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Nothing else than a regular file or a directory, whose error is the reader's.
fn is_regular(found: &Metadata) -> io::Result<()> {
    if found.is_file() || found.is_dir() { Ok(()) } else { Err(Errno::OPNOTSUPP.into()) }
}

/// As many links as the kernel follows for one path: path_resolution(7).
const MOST_LINKS: usize = 40;

fn inside(base: &Path, path: &str) -> io::Result<PathBuf> {
    let mut left: Vec<_> = plain(path).iter().rev().map(OsStr::to_owned).collect();
    let (mut found, mut links) = (base.to_owned(), 0);
    while let Some(name) = left.pop() {
        if name == ".." {
            if found != base {
                found.pop();
            }
            continue;
        }
        let next = found.join(&name);
        let Ok(target) = std::fs::read_link(&next) else {
            found = next;
            continue;
        };
        links += 1;
        if links > MOST_LINKS {
            return Err(Errno::LOOP.into());
        }
        if target.is_absolute() {
            found = base.to_owned();
        }
        let names = target.components().rev().filter_map(|part| match part {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some("..".into()),
            _ => None,
        });
        left.extend(names);
    }
    Ok(found)
}

/// A path below the root, without `..` and `.`.
fn plain(path: &str) -> PathBuf {
    Path::new(path).components().filter(|part| matches!(part, Component::Normal(_))).collect()
}

/// What a path is called in a [`Tree`].
fn key(path: &str) -> String {
    format!("/{}", plain(path).to_string_lossy())
}

fn listed(directory: &Path) -> io::Result<Vec<Name>> {
    let entries = std::fs::read_dir(directory)?.filter_map(Result::ok);
    let mut names: Vec<Name> = entries
        .map(|entry| Name {
            text: entry.file_name().to_string_lossy().into_owned(),
            is_directory: entry.file_type().is_ok_and(|kind| kind.is_dir()),
        })
        .collect();
    names.sort_unstable();
    Ok(names)
}

/// Without the white space and NULs at both ends: texts of a device tree end in a NUL.
fn trimmed(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || c == '\0')
}

/// What a result says of the thing that was read.
pub fn fact<T>(result: io::Result<T>) -> Fact<T> {
    result.map_or_else(|error| absent_or_unreadable(&error), Fact::Value)
}

/// The thing is not there, or the kernel will not tell.
pub fn absent_or_unreadable<T>(error: &io::Error) -> Fact<T> {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Fact::Absent,
        _ => Fact::Unreadable(error.raw_os_error().unwrap_or(Errno::IO.raw_os_error())),
    }
}

/// A value that was read as text; EBADMSG for a text that is not one.
pub fn parsed<T, E>(result: Result<T, E>) -> Fact<T> {
    result.map_or(Fact::Unreadable(Errno::BADMSG.raw_os_error()), Fact::Value)
}
