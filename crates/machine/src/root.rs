//! The tree that facts are read from: `/` itself, or a directory that holds a captured or made-up `/proc` and `/sys`.

use std::fs::{DirEntry, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

use record::Fact;
use rustix::fs::OFlags;
use rustix::io::Errno;
use units::CpuList;

/// No file that is read here is longer: /proc/cpuinfo has about 1.5 KiB a CPU.
const LONGEST_FILE: u64 = 16 << 20;

/// Where `/` is.
///
/// In a tree that is not live, paths are joined to the tree's directory; a symbolic link in it is followed as the
/// kernel follows it, so that a captured tree should hold relative ones, as sysfs does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SysRoot {
    base: PathBuf,
    live: bool,
}

impl SysRoot {
    /// The running system.
    pub fn live() -> Self {
        Self { base: PathBuf::from("/"), live: true }
    }

    /// A tree below `directory`: what would be `/proc/stat` is `directory/proc/stat`.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self { base: directory.into(), live: false }
    }

    /// Whether this is the running system, so that system calls may answer in a file's place.
    pub fn is_live(&self) -> bool {
        self.live
    }

    /// Where the file is that the system calls `path`. `..` is left out: nothing above the tree is reached by it.
    pub fn path(&self, path: &str) -> PathBuf {
        let inside = Path::new(path).components().filter(|part| matches!(part, Component::Normal(_)));
        self.base.join(inside.collect::<PathBuf>())
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
        let read = || -> io::Result<Vec<u8>> {
            let mut bytes = Vec::new();
            self.open(path)?.take(LONGEST_FILE + 1).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        match read() {
            Ok(bytes) if bytes.len() as u64 > LONGEST_FILE => Fact::Unreadable(Errno::FBIG.raw_os_error()),
            result => fact(result),
        }
    }

    /// Exactly `N` bytes of a file from `offset` on: for device files whose offset has a meaning.
    pub(crate) fn bytes_at<const N: usize>(&self, path: &str, offset: u64) -> Fact<[u8; N]> {
        let mut bytes = [0; N];
        fact(self.open(path).and_then(|file| file.read_exact_at(&mut bytes, offset)).map(|()| bytes))
    }

    /// A file opened for reading that never blocks.
    pub(crate) fn open(&self, path: &str) -> io::Result<File> {
        OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(self.path(path))
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
        self.entries(directory, |_| true)
    }

    /// The names of the directories in a directory, sorted; links are not followed.
    pub fn directories(&self, directory: &str) -> Fact<Vec<String>> {
        self.entries(directory, |entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
    }

    fn entries(&self, directory: &str, wanted: impl Fn(&DirEntry) -> bool) -> Fact<Vec<String>> {
        let listed = std::fs::read_dir(self.path(directory)).map(|entries| {
            let wanted = entries.filter_map(Result::ok).filter(wanted);
            let mut names: Vec<_> =
                wanted.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
            names.sort_unstable();
            names
        });
        fact(listed)
    }

    /// The numbers N of entries named `prefixN`, ascending: `state` gives the idle states in a cpuidle directory.
    pub(crate) fn numbered(&self, directory: &str, prefix: &str) -> Vec<u32> {
        let names = self.list(directory).value().cloned().unwrap_or_default();
        let mut numbers: Vec<u32> =
            names.iter().filter_map(|name| name.strip_prefix(prefix)?.parse().ok()).collect();
        numbers.sort_unstable();
        numbers
    }
}

/// Without the white space and NULs at both ends: texts of a device tree end in a NUL.
fn trimmed(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || c == '\0')
}

/// What a result says of the thing that was read.
pub(crate) fn fact<T>(result: io::Result<T>) -> Fact<T> {
    result.map_or_else(|error| absent_or_unreadable(&error), Fact::Value)
}

/// The thing is not there, or the kernel will not tell.
pub(crate) fn absent_or_unreadable<T>(error: &io::Error) -> Fact<T> {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Fact::Absent,
        _ => Fact::Unreadable(error.raw_os_error().unwrap_or(Errno::IO.raw_os_error())),
    }
}

/// A value that was read as text; EBADMSG for a text that is not one.
pub(crate) fn parsed<T, E>(result: Result<T, E>) -> Fact<T> {
    result.map_or(Fact::Unreadable(Errno::BADMSG.raw_os_error()), Fact::Value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::FakeTree;

    #[test]
    fn a_file_is_read_without_its_newline_and_nuls() {
        let tree = FakeTree::new::<&[u8]>(&[
            ("/sys/a", b" 42 \n"),
            ("/sys/model", b"P2041 RDB\0"),
            ("/sys/b", b"a\xffb"),
        ]);
        let root = &tree.root;
        assert_eq!(root.read("/sys/a"), Fact::Value("42".into()));
        assert_eq!(root.read("/sys/model"), Fact::Value("P2041 RDB".into()));
        assert_eq!(root.read("/sys/b"), Fact::Value("a\u{fffd}b".into()));
        assert_eq!(root.number("/sys/a"), Fact::Value(42_u32));
    }

    #[test]
    fn absent_is_told_from_unreadable() {
        let tree = FakeTree::new::<&[u8]>(&[("/sys/a", b"n/a")]);
        let root = &tree.root;
        assert_eq!(root.read("/sys/none"), Fact::Absent);
        assert_eq!(root.read("/sys/a/below-a-file"), Fact::Absent);
        assert_eq!(root.read("/sys"), Fact::Unreadable(Errno::ISDIR.raw_os_error()));
        assert_eq!(root.number::<u32>("/sys/a"), Fact::Unreadable(Errno::BADMSG.raw_os_error()));
        assert_eq!(root.list("/none"), Fact::Absent);
    }

    #[test]
    fn an_endless_file_is_refused() {
        let tree = FakeTree::empty();
        let root = &tree.root;
        std::os::unix::fs::symlink("/dev/zero", root.path("/endless")).unwrap();
        assert_eq!(root.read("/endless"), Fact::Unreadable(Errno::FBIG.raw_os_error()));
    }

    #[test]
    fn a_cpu_list_that_the_kernel_never_made_is_empty() {
        let tree =
            FakeTree::new::<&[u8]>(&[("/null", b"  (null)\n"), ("/empty", b"\n"), ("/some", b"2-3\n")]);
        let root = &tree.root;
        assert_eq!(root.cpu_list("/null"), Fact::Value(CpuList::new()));
        assert_eq!(root.cpu_list("/empty"), Fact::Value(CpuList::new()));
        assert_eq!(root.cpu_list("/some"), Fact::Value([2_u32, 3].into_iter().collect()));
    }

    #[test]
    fn nothing_above_the_tree_is_reached() {
        let root = SysRoot::at("/tree");
        assert_eq!(root.path("/../../etc/passwd"), Path::new("/tree/etc/passwd"));
        assert_eq!(SysRoot::live().path("/proc/stat"), Path::new("/proc/stat"));
    }

    #[test]
    fn names_come_in_order() {
        let tree =
            FakeTree::new::<&[u8]>(&[("/c/state10/name", b""), ("/c/state2/name", b""), ("/c/other", b"")]);
        let root = &tree.root;
        assert_eq!(root.list("/c"), Fact::Value(vec!["other".into(), "state10".into(), "state2".into()]));
        assert_eq!(root.directories("/c"), Fact::Value(vec!["state10".into(), "state2".into()]));
        assert_eq!(root.numbered("/c", "state"), [2, 10]);
    }
}
