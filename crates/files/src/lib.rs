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

mod directory;

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, makedev, openat};
use rustix::io::Errno;

use directory::{Links, Place};

pub use directory::Directory;

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
        Self::new(&error, hint(&error.source))
    }
}

/// What to do about what the kernel answered; empty where the answer says it all.
pub fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "run as root, or name a place that you may use",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "make room there, or name another place",
        io::ErrorKind::ReadOnlyFilesystem => "name a place that can be written",
        _ => "",
    }
}

fn failed<'a>(operation: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> Error + use<'a> {
    move |source| Error { operation, path: path.to_owned(), source }
}

/// The mode of a file that anybody may read, less the umask.
pub const READABLE: u32 = 0o644;

/// The mode of a file that is nobody else's business.
pub const PRIVATE: u32 = 0o600;

/// Writes beside `path` under a name that nobody has, to the disk, and takes its place: whole, or not at all. A link or a
/// special file there is replaced, never written to.
///
/// # Errors
/// There is no room, it may not be written there, or a link of another user is on the way.
pub fn write_whole(path: &Path, content: &[u8]) -> Result<()> {
    let written = Place::of_file(path, Links::Stay)
        .and_then(|place| directory::replace(&place.parent, &place.name, content));
    written.map_err(failed("write", path))
}

/// As [`write_whole`] for a path that the user has named: a pipe, a device or /dev/stdout there is written to and stays
/// what it is, unless another user put it there.
///
/// # Errors
/// As for [`write_whole`].
pub fn write_named(path: &Path, content: &[u8]) -> Result<()> {
    match named_special(path).map_err(failed("write", path))? {
        Some(mut file) => file.write_all(content).map_err(failed("write", path)),
        None => write_whole(path, content),
    }
}

/// What is no regular file at a path that the user has named, opened to be written. A link there is trusted as the user is,
/// where nobody else can lay another one in its place.
fn named_special(path: &Path) -> io::Result<Option<File>> {
    let place = Place::of_file(path, Links::Stay)?;
    let Ok(there) = place.open(OFlags::PATH) else { return Ok(None) };
    let kind = fstat(&there)?;
    let written = match FileType::from_raw_mode(kind.st_mode) {
        FileType::RegularFile => return Ok(None),
        FileType::Directory => return Err(Errno::ISDIR.into()),
        _ if !place.is_trusted(&kind)? => return Ok(None),
        FileType::Symlink => OpenOptions::new().write(true).truncate(true).open(path)?,
        // The very file that was looked at: a name can be swapped meanwhile.
        _ => OpenOptions::new().write(true).open(format!("/proc/self/fd/{}", there.as_raw_fd()))?,
    };
    Ok(Some(written))
}

/// Makes a file where none is, to be appended to.
///
/// # Errors
/// There is something already, or no file may be made there.
pub fn create_new(path: &Path, mode: u32) -> Result<File> {
    let made =
        Place::of_file(path, Links::Stay).and_then(|place| directory::new(&place.parent, &place.name, mode));
    made.map_err(failed("create", path))
}

/// As [`create_new`], and its name is on the disk: what is brought to the disk of it later is found after a power cut.
///
/// # Errors
/// As for [`create_new`].
pub fn begin_new(path: &Path, mode: u32) -> Result<File> {
    let made = Place::of_file(path, Links::Stay)
        .and_then(|place| directory::begun(&place.parent, &place.name, mode));
    made.map_err(failed("create", path))
}

/// Opens a file that is there, to be appended to.
///
/// # Errors
/// There is none, it is a link or no regular file, or it may not be written.
pub fn append(path: &Path) -> Result<File> {
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NONBLOCK;
    let opened = Place::of_file(path, Links::Stay).and_then(|place| regular(place.open(flags)?));
    opened.map_err(failed("open", path))
}

/// Opens a file that is locked and never read, and makes it where none is.
///
/// # Errors
/// It is a link or no regular file, or may not be made or written.
pub fn open_lock(path: &Path, mode: u32) -> Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let opened = Place::of_file(path, Links::Stay)
        .and_then(|place| regular(openat(&place.parent, &place.name, flags, Mode::from_raw_mode(mode))?));
    opened.map_err(failed("open", path))
}

/// Opens a regular file for reading. Links are followed, for whoever names a file may name it by one; for root only those
/// that no other user could have laid.
///
/// # Errors
/// There is none, it may not be read, or it is a pipe, a device or a directory, which could go on for ever.
pub fn open(path: &Path) -> Result<File> {
    // Opening a pipe without a writer would wait for one.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK;
    let opened = if rustix::process::geteuid().is_root() {
        Place::of_file(path, Links::Follow).and_then(|place| regular(place.open(flags)?))
    } else {
        let opened = openat(CWD, path, flags | OFlags::CLOEXEC, Mode::empty());
        opened.map_err(io::Error::from).and_then(regular)
    };
    opened.map_err(failed("read", path))
}

fn regular(file: OwnedFd) -> io::Result<File> {
    let kind = fstat(&file)?;
    match FileType::from_raw_mode(kind.st_mode) {
        FileType::RegularFile => Ok(file.into()),
        // /dev/null, by which people name nothing: null(4).
        FileType::CharacterDevice if kind.st_rdev == makedev(1, 3) => Ok(file.into()),
        FileType::Directory => Err(Errno::ISDIR.into()),
        _ => Err(wrong("it is not a regular file")),
    }
}

/// The bytes of a regular file that has at most `limit` of them.
///
/// # Errors
/// As for [`open`], and it is longer.
pub fn read(path: &Path, limit: u64) -> Result<Vec<u8>> {
    let too_long = || failed("read", path)(wrong(&format!("it is longer than {limit} bytes")));
    let mut bytes = Vec::new();
    let file = open(path)?;
    // Holes cost nothing to make, and as much to read as anything else. Some file systems say 0 of all that they have.
    if file.metadata().is_ok_and(|of| of.len() > limit) {
        return Err(too_long());
    }
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(failed("read", path))?;
    if bytes.len() as u64 > limit { Err(too_long()) } else { Ok(bytes) }
}

/// As [`read`], of a file that is text.
///
/// # Errors
/// As for [`read`], and it is not UTF-8.
pub fn read_text(path: &Path, limit: u64) -> Result<String> {
    let bytes = read(path, limit)?;
    String::from_utf8(bytes).map_err(|_| failed("read", path)(wrong("it is not UTF-8")))
}

/// Checks that only root or this user can have written a file and put it where it is: what it says may be run.
///
/// # Errors
/// There is none, or another user owns it, may write it or may put another one in its place.
pub fn check_obeyed(path: &Path) -> Result<()> {
    Place::of_obeyed(path).map_err(failed("use", path))
}

fn wrong(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown, symlink};

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
    fn drafts_of_one_file_have_names_that_cannot_be_guessed() {
        let place = Place::new();
        let found = super::Place::of_file(&place.at("file"), Links::Stay).unwrap();
        let drafts: Vec<_> = (0..3)
            .map(|_| directory::draft(&found.parent, &found.name).unwrap().0.into_string().unwrap())
            .collect();
        assert!(drafts.iter().all(|name| name.len() == "file..part".len() + 16), "{drafts:?}");
        let mut sorted = drafts.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), 3);
        assert_eq!(place.names(), sorted);
    }

    /// A user that is neither root nor the one who runs the tests.
    const OTHER_USER: u32 = 54_321;

    /// A directory into which another user may write, and a link in it that is theirs.
    fn other_users_links(target: &Path) -> Option<(Place, PathBuf)> {
        let place = Place::new();
        fs::set_permissions(place.0.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let link = place.at("link");
        symlink(target, &link).unwrap();
        if lchown(&link, Some(OTHER_USER), None).is_err() {
            skipped("another user's link takes root to make");
            return None;
        }
        Some((place, link))
    }

    #[allow(clippy::print_stderr)]
    fn skipped(why: &str) {
        eprintln!("skipped: {why}");
    }

    #[test]
    fn links_of_other_users_are_not_followed() {
        let ours = Place::new();
        fs::write(ours.at("file"), "ours").unwrap();
        let Some((_place, link)) = other_users_links(ours.0.path()) else { return };
        let through = link.join("file");
        let refused =
            |error: Error| assert!(error.to_string().contains("another user laid a link"), "{error}");
        refused(write_whole(&through, b"theirs").unwrap_err());
        refused(write_named(&through, b"theirs").unwrap_err());
        refused(create_new(&link.join("new"), PRIVATE).unwrap_err());
        refused(append(&through).unwrap_err());
        refused(open_lock(&link.join("lock"), PRIVATE).unwrap_err());
        refused(read(&through, 10).unwrap_err());
        refused(Directory::open(&link).unwrap_err());
        refused(Directory::make(&link.join("new")).unwrap_err());
        assert_eq!(ours.names(), ["file"]);
        assert_eq!(fs::read(ours.at("file")).unwrap(), b"ours");
        // Where nobody else may write, whoever wrote there is trusted.
        fs::set_permissions(link.parent().unwrap(), fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(read(&through, 10).unwrap(), b"ours");
    }

    #[test]
    fn a_file_that_another_user_laid_as_a_link_or_a_pipe_is_replaced() {
        let ours = Place::new();
        let file = ours.at("file");
        fs::write(&file, "ours").unwrap();
        let Some((place, link)) = other_users_links(&file) else { return };
        let pipe = place.at("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).unwrap();
        lchown(&pipe, Some(OTHER_USER), None).unwrap();
        assert!(read(&link, 10).unwrap_err().to_string().contains("another user laid a link"));
        for path in [&link, &pipe] {
            write_named(path, b"new").unwrap();
            assert!(fs::symlink_metadata(path).unwrap().is_file());
        }
        assert_eq!(fs::read(&file).unwrap(), b"ours");
    }

    #[test]
    fn a_link_that_the_user_names_leads_to_the_file_that_is_written() {
        let place = Place::new();
        let (link, file) = (place.at("stdout"), place.at("file"));
        fs::write(&file, "something longer").unwrap();
        symlink(&file, &link).unwrap();
        write_named(&link, b"words").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink(), "as /dev/stdout is");
        assert_eq!(fs::read(&file).unwrap(), b"words");
    }

    #[test]
    fn an_open_directory_stays_the_one_that_was_opened() {
        let place = Place::new();
        let directory = Directory::make(&place.at("one/two")).unwrap();
        fs::rename(place.at("one"), place.at("moved")).unwrap();
        symlink("/", place.at("one")).unwrap();
        directory.write_whole("file", b"words").unwrap();
        directory.create_new("new", PRIVATE).unwrap();
        assert!(directory.create_new("new", PRIVATE).unwrap_err().path.ends_with("one/two/new"));
        assert_eq!(fs::read(place.at("moved/two/file")).unwrap(), b"words");
        assert!(directory.is_ours_alone().unwrap());
        fs::set_permissions(place.at("moved/two"), fs::Permissions::from_mode(0o777)).unwrap();
        assert!(!directory.is_ours_alone().unwrap(), "others may write");
        assert!(directory.is_ours().unwrap());
    }

    #[test]
    fn a_directory_is_obeyed_if_nobody_else_can_have_written_there() {
        let place = Place::new();
        let (above, below) = (place.at("above"), place.at("above/below"));
        Directory::make_private(&below).unwrap();
        assert_eq!(fs::metadata(&below).unwrap().mode() & 0o7777, 0o700);
        let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        let is_obeyed = || match Directory::open_obeyed(&below) {
            Ok(_) => true,
            Err(error) => {
                assert!(error.to_string().contains("another user"), "{error}");
                false
            }
        };
        assert!(is_obeyed());
        for (of_above, of_below, expected) in
            [(0o777, 0o700, false), (0o1777, 0o700, true), (0o755, 0o777, false), (0o755, 0o755, true)]
        {
            set(&above, of_above);
            set(&below, of_below);
            assert_eq!(is_obeyed(), expected, "{of_above:o} {of_below:o}");
        }
        for path in [&above, &below] {
            if lchown(path, Some(OTHER_USER), None).is_err() {
                return skipped("another user's directory takes root to make");
            }
            assert!(!is_obeyed(), "{}", path.display());
            lchown(path, Some(0), None).unwrap();
        }
    }

    #[test]
    fn links_that_go_round_end() {
        let place = Place::new();
        symlink("round", place.at("round")).unwrap();
        for path in [place.at("round/file"), place.at("round")] {
            assert!(read(&path, 10).is_err());
        }
        assert_eq!(
            Directory::open(&place.at("round")).unwrap_err().source.raw_os_error(),
            Some(Errno::LOOP.raw_os_error())
        );
        assert_eq!(Directory::open(&place.at("./../.")).unwrap().path(), place.at("./../."));
    }

    #[test]
    fn no_file_is_made_that_others_may_write() {
        let place = Place::new();
        write_whole(&place.at("file"), b"").unwrap();
        assert_eq!(fs::metadata(place.at("file")).unwrap().mode() & 0o022, 0);
        assert_eq!(READABLE & 0o022, 0, "whatever the umask is");
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
        let hole = place.at("hole");
        File::create(&hole).unwrap().set_len(1 << 40).unwrap();
        let begun = std::time::Instant::now();
        assert!(read(&hole, 1 << 36).unwrap_err().to_string().ends_with("longer than 68719476736 bytes"));
        assert!(begun.elapsed().as_secs() < 10, "nothing of it is read");
        assert_eq!(read(Path::new("/dev/null"), 5).unwrap(), b"", "so people name nothing");
        assert!(read(&file, 4).unwrap_err().to_string().ends_with("longer than 4 bytes"));
        assert_eq!(read(&place.at("none"), 5).unwrap_err().source.kind(), ErrorKind::NotFound);
        fs::write(&file, b"\xff").unwrap();
        assert!(read_text(&file, 5).unwrap_err().to_string().ends_with("not UTF-8"));
    }

    #[test]
    fn what_is_done_below_an_open_directory_follows_no_link() {
        let place = Place::new();
        let [own, others, moved] = ["own", "others", "moved"].map(|name| place.at(name));
        fs::create_dir_all(others.join("below")).unwrap();
        fs::write(others.join("below/file"), "theirs").unwrap();
        let directory = Directory::make(&own).unwrap();
        assert!(directory.is_empty().unwrap());
        directory.make_below(Path::new("a/b")).unwrap().write_whole("file", b"ours").unwrap();
        for link in ["link", "a/link"] {
            symlink(&others, own.join(link)).unwrap();
            assert!(directory.make_below(&Path::new(link).join("below")).is_err(), "{link}");
        }
        for path in ["..", "/", "a/../../others"] {
            assert!(directory.make_below(Path::new(path)).is_err(), "{path}");
        }
        // Its name is another's from here on.
        fs::rename(&own, &moved).unwrap();
        symlink(&others, &own).unwrap();
        directory.make_below(Path::new("below")).unwrap().write_whole("file", b"ours").unwrap();
        directory.remove("link".as_ref()).unwrap();
        directory.remove("a".as_ref()).unwrap();
        directory.remove("none".as_ref()).unwrap();
        directory.rename("below".as_ref(), "there".as_ref()).unwrap();
        let names: Vec<_> = fs::read_dir(&moved).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!((names, directory.is_empty().unwrap()), (vec!["there".into()], false));
        assert_eq!(fs::read(others.join("below/file")).unwrap(), b"theirs");
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
