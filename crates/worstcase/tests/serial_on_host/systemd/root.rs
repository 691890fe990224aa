//! The root of a small system with systemd, from what is installed here: the files of its package and the libraries
//! that its programs need. No package is fetched, and nothing of it runs here.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Programs of other packages that units of systemd call.
const PROGRAMS: [&str; 2] = ["/bin/mount", "/bin/umount"];

/// Files that a distribution's other packages bring. There is no terminal to log in on.
const FILES: [(&str, &str); 4] = [
    ("etc/passwd", "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n"),
    ("etc/group", "root:x:0:\nadm:x:4:\ntty:x:5:\nutmp:x:43:\nsystemd-journal:x:101:\nnogroup:x:65534:\n"),
    ("etc/os-release", "ID=test\n"),
    ("etc/machine-id", "0123456789abcdef0123456789abcdef\n"),
];

const LINKS: [(&str, &str); 2] =
    [("sbin/init", "/lib/systemd/systemd"), ("etc/systemd/system/getty.target", "/dev/null")];

/// Documents and other languages.
const LEFT_OUT: &str = "/usr/share/";

/// Makes it at `root`, with `program` as its `/usr/bin/worstcase`; none where systemd's package is not installed.
pub fn make(root: &Path, program: &Path) -> Option<()> {
    let listed = Command::new("dpkg").args(["-L", "systemd"]).output().ok()?;
    let listed = String::from_utf8(listed.stdout).unwrap();
    let wanted = listed.lines().filter(|path| !path.starts_with(LEFT_OUT)).chain(PROGRAMS);
    let mut found: Vec<PathBuf> = wanted.map(PathBuf::from).collect();
    found.iter().find(|path| path.ends_with("systemd/systemd"))?;
    let libraries: Vec<PathBuf> = found.iter().flat_map(|path| libraries(path)).collect();
    found.extend(libraries);
    found.iter().for_each(|path| put(root, path));
    for (path, text) in FILES {
        write(root, path, text);
    }
    for (path, target) in LINKS {
        fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
        symlink(target, root.join(path)).unwrap();
    }
    let own = root.join("usr/bin/worstcase");
    fs::copy(program, &own).unwrap();
    fs::set_permissions(own, fs::Permissions::from_mode(0o755)).unwrap();
    Some(())
}

/// A file with this text.
pub fn write(root: &Path, path: &str, text: impl AsRef<[u8]>) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// What a program needs; nothing for what is none.
fn libraries(path: &Path) -> Vec<PathBuf> {
    if !fs::metadata(path).is_ok_and(|kind| kind.is_file() && kind.permissions().mode() & 0o111 != 0) {
        return Vec::new();
    }
    let listed = Command::new("ldd").arg(path).output().map(|output| output.stdout).unwrap_or_default();
    let listed = String::from_utf8_lossy(&listed).into_owned();
    let words = listed.split_whitespace().filter(|word| word.starts_with('/'));
    words.map(|word| PathBuf::from(word.trim_end_matches(':'))).collect()
}

/// Directories are made, links of a package stay links, all else is copied. A library is what its name points to.
fn put(root: &Path, path: &Path) {
    let to = root.join(path.strip_prefix("/").unwrap());
    if path.is_dir() {
        return fs::create_dir_all(to).unwrap();
    }
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    let is_library = path.to_string_lossy().contains(".so");
    match fs::read_link(path) {
        _ if fs::symlink_metadata(&to).is_ok() => {}
        Ok(target) if !is_library => symlink(target, to).unwrap(),
        _ if path.is_file() => drop(fs::copy(path, to).unwrap()),
        _ => {}
    }
}
