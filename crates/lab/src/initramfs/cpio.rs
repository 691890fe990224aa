//! An archive in the kernel's form, `newc` (Documentation/driver-api/early-userspace/buffer-format.rst): the same
//! entries make the same bytes. One owner (root), one time (0), sorted by path.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What stands under a path.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Entry {
    Directory { mode: u32 },
    File { mode: u32, bytes: Vec<u8> },
    Link(PathBuf),
    Device { major: u32, minor: u32 },
}

/// Files of a guest's root, by absolute path.
#[derive(Clone, Debug, Default)]
pub struct Archive(BTreeMap<PathBuf, Entry>);

const DIRECTORY: u32 = 0o040_000;
const OPEN: Entry = Entry::Directory { mode: 0o755 };
const FILE: u32 = 0o100_000;
const LINK: u32 = 0o120_777;
const CHARACTER_DEVICE: u32 = 0o020_600;

impl Archive {
    /// An empty directory.
    pub fn directory(&mut self, path: impl Into<PathBuf>) {
        self.put(path.into(), OPEN);
    }

    /// A directory with permissions of its own.
    pub fn directory_with_mode(&mut self, path: impl Into<PathBuf>, mode: u32) {
        self.put(path.into(), Entry::Directory { mode: mode & 0o7777 });
    }

    /// A file with permissions of its own.
    pub fn file_with_mode(&mut self, path: impl Into<PathBuf>, mode: u32, bytes: Vec<u8>) {
        self.put(path.into(), Entry::File { mode: mode & 0o7777, bytes });
    }

    /// A file that is read, 0644.
    pub fn file(&mut self, path: impl Into<PathBuf>, bytes: Vec<u8>) {
        self.put(path.into(), Entry::File { mode: 0o644, bytes });
    }

    /// A file that is run, 0755.
    pub fn program(&mut self, path: impl Into<PathBuf>, bytes: Vec<u8>) {
        self.put(path.into(), Entry::File { mode: 0o755, bytes });
    }

    /// A symbolic link to `target`.
    pub fn link(&mut self, path: impl Into<PathBuf>, target: impl Into<PathBuf>) {
        self.put(path.into(), Entry::Link(target.into()));
    }

    /// A character device.
    pub fn device(&mut self, path: impl Into<PathBuf>, major: u32, minor: u32) {
        self.put(path.into(), Entry::Device { major, minor });
    }

    /// Whether something stands under `path`.
    pub fn contains(&self, path: &Path) -> bool {
        self.0.contains_key(&self.behind_links(path))
    }

    fn put(&mut self, path: PathBuf, entry: Entry) {
        let path = self.behind_links(&path);
        let above = path.ancestors().skip(1).filter(|above| above.parent().is_some());
        for above in above {
            self.0.entry(above.to_path_buf()).or_insert(OPEN);
        }
        self.0.insert(path, entry);
    }

    /// The path as it is where a directory on the way is a link that is in here: `/bin/sh` may be `/usr/bin/sh`.
    fn behind_links(&self, path: &Path) -> PathBuf {
        let Some((above, name)) = path.parent().zip(path.file_name()) else { return path.to_path_buf() };
        let above = self.behind_links(above);
        match self.0.get(&above) {
            Some(Entry::Link(target)) => above.with_file_name("").join(target).join(name),
            _ => above.join(name),
        }
    }

    /// The archive's bytes.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (number, (path, entry)) in (1..).zip(&self.0) {
            let name = path.strip_prefix("/").unwrap_or(path).as_os_str().as_bytes();
            match entry {
                Entry::Directory { mode } => {
                    append(&mut bytes, number, DIRECTORY | mode, (0, 0), name, &[]);
                }
                Entry::File { mode, bytes: content } => {
                    append(&mut bytes, number, FILE | mode, (0, 0), name, content);
                }
                Entry::Link(target) => {
                    append(&mut bytes, number, LINK, (0, 0), name, target.as_os_str().as_bytes());
                }
                Entry::Device { major, minor } => {
                    append(&mut bytes, number, CHARACTER_DEVICE, (*major, *minor), name, &[]);
                }
            }
        }
        append(&mut bytes, 0, 0, (0, 0), b"TRAILER!!!", &[]);
        bytes
    }
}

/// Fourteen hexadecimal fields, the name with a zero byte, the content, each part filled up to a multiple of 4.
fn append(to: &mut Vec<u8>, number: u32, mode: u32, device: (u32, u32), name: &[u8], content: &[u8]) {
    let (size, name_size) = (content.len() as u32, name.len() as u32 + 1);
    let links = if mode & DIRECTORY == DIRECTORY { 2 } else { 1 };
    let fields = [number, mode, 0, 0, links, 0, size, 0, 0, device.0, device.1, name_size, 0];
    to.extend_from_slice(b"070701");
    for field in fields {
        to.extend_from_slice(format!("{field:08x}").as_bytes());
    }
    to.extend_from_slice(name);
    to.push(0);
    fill(to);
    to.extend_from_slice(content);
    fill(to);
}

fn fill(to: &mut Vec<u8>) {
    to.resize(to.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::process::{Command, Stdio};

    fn sample() -> Archive {
        let mut archive = Archive::default();
        archive.program("/bin/hello", b"#!/bin/sh\necho hello\n".to_vec());
        archive.file("/etc/odd", b"12345".to_vec());
        archive.link("/init", "bin/hello");
        archive.device("/dev/console", 5, 1);
        archive.directory("/proc");
        archive
    }

    #[test]
    fn the_same_entries_make_the_same_bytes_in_any_order() {
        let mut other = Archive::default();
        other.directory("/proc");
        other.device("/dev/console", 5, 1);
        other.file("/etc/odd", b"12345".to_vec());
        other.link("/init", "bin/hello");
        other.program("/bin/hello", b"#!/bin/sh\necho hello\n".to_vec());
        assert_eq!(sample().bytes(), other.bytes());
    }

    #[test]
    fn what_lies_behind_a_link_is_put_where_the_link_points() {
        let mut archive = sample();
        archive.directory_with_mode("/usr/bin", 0o700);
        archive.link("/sbin", "usr/bin");
        archive.program("/sbin/init", b"x".to_vec());
        assert!(archive.contains(Path::new("/usr/bin/init")) && archive.contains(Path::new("/sbin/init")));
        let text = String::from_utf8_lossy(&archive.bytes()).into_owned();
        assert!(text.contains("usr/bin/init") && !text.contains("sbin/init"));
        assert!(text.contains("000041c0"), "a directory keeps its permissions");
    }

    /// Another reader of the form, where there is one.
    #[test]
    fn cpio_lists_what_was_put_in() {
        let mut cpio = Command::new("cpio");
        cpio.args(["-t", "-v", "--quiet", "--numeric-uid-gid"]).env("TZ", "UTC");
        let Ok(mut child) = cpio.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn() else {
            println!("skipped: needs package cpio");
            return;
        };
        child.stdin.take().unwrap().write_all(&sample().bytes()).unwrap();
        let listed = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
        let names: Vec<&str> = listed.lines().map(|line| line.split_once("1970 ").unwrap().1).collect();
        let expected =
            ["bin", "bin/hello", "dev", "dev/console", "etc", "etc/odd", "init -> bin/hello", "proc"];
        assert_eq!(names, expected);
        assert!(listed.lines().nth(3).unwrap().starts_with("crw-------"), "{listed}");
        assert!(listed.lines().nth(1).unwrap().starts_with("-rwxr-xr-x"), "{listed}");
    }
}
