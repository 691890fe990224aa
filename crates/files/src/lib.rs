//! Files of our own: records, pages, histograms, caches, journals, state. The one place where they are opened for writing,
//! and where what others may have put in their place is refused.
//!
//! ```
//! let directory = tempfile::tempdir().unwrap();
//! let path = directory.path().join("state");
//! files::write_whole(&path, b"on").unwrap();
//! assert_eq!(files::read(&path, 1024).unwrap(), b"on");
//! assert_eq!(files::read(&path, 1).unwrap_err().to_string(), format!("read {}: it is longer than 1 bytes", path.display()));
//! ```

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::OFlags;
use rustix::io::Errno;

/// What was tried, on which path, and what the answer was.
#[derive(Debug, thiserror::Error)]
#[error("{operation} {}: {source}", .path.display())]
pub struct Error {
    /// What was tried: `write`.
    pub operation: &'static str,
    /// On which path.
    pub path: PathBuf,
    /// What the kernel answered, or what is wrong with the file.
    pub source: io::Error,
}

/// [`std::result::Result`] with an [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        error.source
    }
}

impl From<Error> for failure::Error {
    fn from(error: Error) -> Self {
        let hint = match error.operation {
            "read" => "",
            _ => "is there room, and may you write there?",
        };
        Self::new(&error, hint)
    }
}

fn failed<'a>(operation: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> Error + use<'a> {
    move |source| Error { operation, path: path.to_owned(), source }
}

/// How a new file's mode is asked for where anybody may read it, less the umask.
pub const READABLE: u32 = 0o666;

/// The mode of a file that is nobody else's business.
pub const PRIVATE: u32 = 0o600;

/// Writes beside `path` under a name that nobody has, to the disk, and takes its place: whole, or not at all. A link or a
/// special file there is replaced, never written to.
///
/// # Errors
/// There is no room, or it may not be written there.
pub fn write_whole(path: &Path, content: &[u8]) -> Result<()> {
    let (draft, mut file) = draft(path).map_err(failed("write", path))?;
    let written = file
        .write_all(content)
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&draft, path))
        .and_then(|()| sync_directory(path));
    if written.is_err() {
        // After the rename there is none.
        let _ = fs::remove_file(&draft);
    }
    written.map_err(failed("write", path))
}

/// As [`write_whole`] for a path that the user has named: a pipe, a device or /dev/stdout there is written to and stays
/// what it is.
///
/// # Errors
/// As for [`write_whole`].
pub fn write_named(path: &Path, content: &[u8]) -> Result<()> {
    if !fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return write_whole(path, content);
    }
    let file = OpenOptions::new().write(true).open(path);
    file.and_then(|mut file| file.write_all(content)).map_err(failed("write", path))
}

/// A new file beside `path`, which no other process and no other thread writes.
fn draft(path: &Path) -> io::Result<(PathBuf, File)> {
    static DRAFTS: AtomicU32 = AtomicU32::new(0);
    /// So many may be left by processes with this one's number that were killed.
    const TRIES: usize = 1000;
    let name = path.file_name().ok_or(ErrorKind::InvalidInput)?;
    for _ in 0..TRIES {
        let number = DRAFTS.fetch_add(1, Ordering::Relaxed);
        let mut own = name.to_owned();
        own.push(format!(".{}-{number}.part", std::process::id()));
        let own = path.with_file_name(own);
        match new(&own, READABLE) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            file => return Ok((own, file?)),
        }
    }
    Err(ErrorKind::AlreadyExists.into())
}

/// Returns when the name is on the disk. Not every file system can say so.
fn sync_directory(path: &Path) -> io::Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match File::open(directory)?.sync_all() {
        Err(error) if error.kind() == ErrorKind::InvalidInput => Ok(()),
        synced => synced,
    }
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.custom_flags(flags(OFlags::NOFOLLOW));
    options
}

fn flags(flags: OFlags) -> i32 {
    flags.bits() as i32
}

fn new(path: &Path, mode: u32) -> io::Result<File> {
    options().append(true).create_new(true).mode(mode).open(path)
}

/// Makes a file where none is, to be appended to.
///
/// # Errors
/// There is something already, or no file may be made there.
pub fn create_new(path: &Path, mode: u32) -> Result<File> {
    new(path, mode).map_err(failed("create", path))
}

/// Opens a file that is there, to be appended to.
///
/// # Errors
/// There is none, it is a link, or it may not be written.
pub fn append(path: &Path) -> Result<File> {
    options().append(true).open(path).map_err(failed("open", path))
}

/// Opens a file that is locked and never read, and makes it where none is.
///
/// # Errors
/// It is a link, or may not be made or written.
pub fn open_lock(path: &Path, mode: u32) -> Result<File> {
    let file = options().write(true).create(true).truncate(false).mode(mode).open(path);
    file.map_err(failed("open", path))
}

/// Opens a regular file for reading. Links are followed: whoever names a file may name it by one.
///
/// # Errors
/// There is none, it may not be read, or it is a pipe, a device or a directory, which could go on for ever.
pub fn open(path: &Path) -> Result<File> {
    let opened = || {
        // Opening a pipe without a writer would wait for one.
        let file = OpenOptions::new().read(true).custom_flags(flags(OFlags::NONBLOCK)).open(path)?;
        let kind = file.metadata()?.file_type();
        if kind.is_dir() {
            return Err(Errno::ISDIR.into());
        }
        if kind.is_file() { Ok(file) } else { Err(wrong("it is not a regular file")) }
    };
    opened().map_err(failed("read", path))
}

/// The bytes of a regular file that has at most `limit` of them.
///
/// # Errors
/// As for [`open`], and it is longer.
pub fn read(path: &Path, limit: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = open(path)?;
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(failed("read", path))?;
    if bytes.len() as u64 > limit {
        return Err(failed("read", path)(wrong(&format!("it is longer than {limit} bytes"))));
    }
    Ok(bytes)
}

/// As [`read`], of a file that is text.
///
/// # Errors
/// As for [`read`], and it is not UTF-8.
pub fn read_text(path: &Path, limit: u64) -> Result<String> {
    let bytes = read(path, limit)?;
    String::from_utf8(bytes).map_err(|_| failed("read", path)(wrong("it is not UTF-8")))
}

fn wrong(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    struct Place(tempfile::TempDir);

    impl Place {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn at(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(self.0.path()).unwrap();
            let mut names: Vec<String> =
                entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            names.sort_unstable();
            names
        }
    }

    #[test]
    fn a_file_is_replaced_and_nothing_is_left_beside_it() {
        let place = Place::new();
        let file = place.at("file");
        write_whole(&file, b"some").unwrap();
        write_whole(&file, b"other words").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"other words");
        assert_eq!(place.names(), ["file"]);
        let error = write_whole(place.0.path(), b"words").unwrap_err();
        assert!(error.to_string().starts_with(&format!("write {}: ", place.0.path().display())), "{error}");
        assert!(write_whole(&place.at("no/such"), b"words").is_err());
        assert_eq!(place.names(), ["file"]);
    }

    #[test]
    fn nothing_is_written_through_a_link() {
        let place = Place::new();
        let (link, other) = (place.at("link"), place.at("other"));
        fs::write(&other, "theirs").unwrap();
        symlink(&other, &link).unwrap();
        for result in [create_new(&link, PRIVATE), append(&link), open_lock(&link, PRIVATE)] {
            assert!(result.is_err());
        }
        write_whole(&link, b"ours").unwrap();
        assert_eq!((fs::read(&other).unwrap(), fs::read(&link).unwrap()), (b"theirs".into(), b"ours".into()));
    }

    #[test]
    fn a_draft_that_was_left_or_laid_there_is_not_written_to() {
        let place = Place::new();
        let (other, (first, file)) = (place.at("other"), draft(&place.at("file")).unwrap());
        drop(file);
        fs::write(&other, "theirs").unwrap();
        let name = first.to_str().unwrap().replace(".part", "");
        let (stem, number) = name.rsplit_once('-').unwrap();
        // Other tests draw numbers too.
        for next in 1..100 {
            let path = format!("{stem}-{}.part", number.parse::<u32>().unwrap() + next);
            symlink(&other, path).unwrap();
        }
        write_whole(&place.at("file"), b"ours").unwrap();
        assert_eq!(fs::read(&other).unwrap(), b"theirs");
        assert_eq!(fs::read(place.at("file")).unwrap(), b"ours");
    }

    #[test]
    fn what_the_user_names_is_written_to_whatever_it_is() {
        let place = Place::new();
        let (null, file) = (place.at("null"), place.at("file"));
        symlink("/dev/null", &null).unwrap();
        write_named(&null, b"words").unwrap();
        assert!(fs::symlink_metadata(&null).unwrap().is_symlink());
        write_named(&file, b"words").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"words");
        assert!(write_named(place.0.path(), b"words").is_err());
    }

    #[test]
    fn only_regular_files_are_read_and_none_without_end() {
        let place = Place::new();
        let (zero, pipe, file) = (place.at("zero"), place.at("pipe"), place.at("file"));
        symlink("/dev/zero", &zero).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).unwrap();
        fs::write(&file, "12345").unwrap();
        for path in [&zero, &pipe] {
            assert!(read(path, 10).unwrap_err().to_string().ends_with("it is not a regular file"));
        }
        assert_eq!(read(place.0.path(), 10).unwrap_err().source.kind(), ErrorKind::IsADirectory);
        assert_eq!(read(&file, 5).unwrap(), b"12345");
        assert!(read(&file, 4).unwrap_err().to_string().ends_with("longer than 4 bytes"));
        assert_eq!(read(&place.at("none"), 5).unwrap_err().source.kind(), ErrorKind::NotFound);
        fs::write(&file, b"\xff").unwrap();
        assert!(read_text(&file, 5).unwrap_err().to_string().ends_with("not UTF-8"));
    }

    #[test]
    fn a_new_file_is_new_and_what_is_appended_comes_after() {
        let place = Place::new();
        let file = place.at("file");
        create_new(&file, PRIVATE).unwrap().write_all(b"one ").unwrap();
        assert_eq!(create_new(&file, PRIVATE).unwrap_err().source.kind(), ErrorKind::AlreadyExists);
        append(&file).unwrap().write_all(b"two").unwrap();
        open_lock(&file, PRIVATE).unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"one two");
    }

    #[test]
    fn threads_that_write_one_file_leave_one_of_their_texts() {
        let place = Place::new();
        let file = place.at("file");
        std::thread::scope(|scope| {
            for text in [[b'a'; 4096], [b'b'; 4096]] {
                let file = &file;
                scope.spawn(move || (0..20).for_each(|_| write_whole(file, &text).unwrap()));
            }
        });
        let text = fs::read(&file).unwrap();
        assert!(text.len() == 4096 && text.iter().all(|&byte| byte == text[0]));
        assert_eq!(place.names(), ["file"]);
    }
}
