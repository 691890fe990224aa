//! Mounted file systems, from /proc/self/mountinfo (Documentation/filesystems/proc.rst, section 3.5).

use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use record::{DeviceWrites, Fact, LoadDirectory};
use sysroot::SysRoot;

/// One mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// The directory of the file system that is mounted, `/` for all of it.
    pub root: PathBuf,
    /// The directory that it is mounted on.
    pub point: PathBuf,
    /// The numbers of the device, `254:0`; `0:25` where the file system has no device of its own.
    pub number: String,
    /// Type of the file system.
    pub file_system: String,
    /// The device or what stands for it.
    pub device: String,
    /// Options of the file system: controllers for a cgroup v1 hierarchy.
    pub options: Vec<String>,
}

/// The mounts that this process sees, in the order in which they were made; none if they cannot be read.
pub fn mounts(root: &SysRoot) -> Vec<Mount> {
    root.read("/proc/self/mountinfo").value().map(|text| parse(text)).unwrap_or_default()
}

/// Parses mountinfo; lines that are not of its form are left out.
pub fn parse(text: &str) -> Vec<Mount> {
    text.lines().filter_map(parse_line).collect()
}

/// `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue`
fn parse_line(line: &str) -> Option<Mount> {
    let (place, system) = line.split_once(" - ")?;
    let mut place = place.split(' ').skip(2);
    let number = place.next()?.to_owned();
    let (root, point) = (unescaped(place.next()?), unescaped(place.next()?));
    let mut system = system.split(' ');
    Some(Mount {
        root: root.into(),
        point: point.into(),
        number,
        file_system: system.next()?.to_owned(),
        device: unescaped(system.next()?).to_string_lossy().into_owned(),
        options: system.next().unwrap_or_default().split(',').map(str::to_owned).collect(),
    })
}

/// With the kernel's `\040` and the like turned back: three octal digits after a backslash.
fn unescaped(text: &str) -> std::ffi::OsString {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let octal = after.get(..3).filter(|_| first == b'\\').and_then(octal_byte);
        bytes.push(octal.unwrap_or(first));
        rest = if octal.is_some() { &after[3..] } else { after };
    }
    std::ffi::OsString::from_vec(bytes)
}

fn octal_byte(digits: &[u8]) -> Option<u8> {
    u8::from_str_radix(std::str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'))?, 8).ok()
}

/// What a directory is on: the mount with the longest point above it, the latest of equals.
///
/// The path is made absolute and free of links first; none if it does not exist or no mount is known.
pub fn directory_of(root: &SysRoot, directory: &Path) -> Option<LoadDirectory> {
    let path = if root.is_live() { directory.canonicalize().ok()? } else { directory.to_owned() };
    let mounts = mounts(root);
    let mount = mount_of(&mounts, &path)?;
    Some(LoadDirectory {
        path: path.to_string_lossy().into_owned(),
        file_system: mount.file_system.clone(),
        device: mount.device.clone(),
    })
}

/// What has been written since boot, by anybody, to the device below `directory`, a path without links; none where that
/// is on no known mount. A file system that spans devices or has none (btrfs, overlay, NFS, tmpfs) has no such figure.
pub fn device_writes(root: &SysRoot, directory: &Path) -> Option<DeviceWrites> {
    let mounts = mounts(root);
    let number = mount_of(&mounts, directory)?.number.clone();
    // Sectors of 512 bytes written are the seventh figure: Documentation/block/stat.rst.
    let text = root.read(&format!("/sys/dev/block/{number}/stat"));
    let written = text.and_then(|text| {
        let sectors = text.split_whitespace().nth(6).and_then(|word| word.parse::<u64>().ok());
        sectors.map_or(Fact::Unsupported, |sectors| Fact::Value(sectors.saturating_mul(512)))
    });
    Some(DeviceWrites { number, written })
}

fn mount_of<'a>(mounts: &'a [Mount], path: &Path) -> Option<&'a Mount> {
    let above = mounts.iter().filter(|mount| path.starts_with(&mount.point));
    above.max_by_key(|mount| mount.point.components().count())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &str = "22 27 0:21 / /proc rw,relatime - proc proc rw\n\
        27 1 254:0 / / rw,relatime shared:1 master:2 - ext4 /dev/vda rw,discard\n\
        28 27 0:25 /sub /mnt/with\\040space\\134 ro - tmpfs none ro,size=4k\n\
        31 23 0:28 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
        40 27 0:30 / /mnt/with\\040space\\134 rw - xfs /dev/vdb rw\n\
        not a mount\n";

    #[test]
    fn mounts_parse_with_and_without_optional_fields() {
        let mounts = parse(TEXT);
        assert_eq!(mounts.len(), 5);
        assert_eq!(mounts[1].device, "/dev/vda");
        assert_eq!(mounts[1].number, "254:0");
        assert_eq!(mounts[2].root, Path::new("/sub"));
        assert_eq!(mounts[2].point, Path::new("/mnt/with space\\"));
        assert_eq!(mounts[3].options, ["rw", "cpu", "cpuacct"]);
    }

    #[test]
    fn bytes_that_reached_a_device_are_those_of_its_written_sectors() {
        let tree = sysroot::FakeTree::empty();
        tree.write("/proc/self/mountinfo", TEXT);
        tree.write("/sys/dev/block/254:0/stat", "1 2 3 4 5 6 1000 8 9 10 11\n");
        let writes = device_writes(&tree.root, Path::new("/home/user")).unwrap();
        assert_eq!((&*writes.number, writes.written), ("254:0", Fact::Value(512_000)));
        let without = device_writes(&tree.root, Path::new("/mnt/with space\\/data")).unwrap();
        assert_eq!(without.written, Fact::Absent, "unknown is not 0");
    }

    #[test]
    fn the_nearest_and_latest_mount_holds_a_path() {
        let mounts = parse(TEXT);
        let system = |path: &str| mount_of(&mounts, Path::new(path)).unwrap().file_system.as_str();
        assert_eq!(system("/home/user"), "ext4");
        assert_eq!(system("/mnt/with space\\/data"), "xfs");
        assert_eq!(system("/mnt/with space\\er"), "ext4");
        assert_eq!(system("/"), "ext4");
    }

    #[test]
    fn a_directory_of_this_machine_has_a_file_system() {
        let directory = directory_of(&SysRoot::live(), Path::new(".")).unwrap();
        assert!(Path::new(&directory.path).is_absolute());
        assert!(!directory.file_system.is_empty());
        assert_eq!(directory_of(&SysRoot::live(), Path::new("/no/such/directory")), None);
    }

    proptest! {
        #[test]
        fn any_text_is_answered_without_a_panic(text in "([0-9:]{1,3} ?|/|\\\\[0-9+]{0,4}| - |\n){0,20}|.{0,60}") {
            let _ = mount_of(&parse(&text), Path::new("/a"));
            let _ = unescaped(&text);
        }
    }
}
