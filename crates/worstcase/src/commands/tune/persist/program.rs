//! The program that a service starts: root runs it at each boot, so that it must lie where it is there early, stays, and
//! nobody else can replace it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use crate::output;
use failure::{Error, Result};

/// Where programs are installed.
const PLACES: [&str; 4] = ["/usr", "/opt", "/bin", "/sbin"];

/// Where one is looked for in the root of another system.
const USUAL: [&str; 4] =
    ["/usr/bin/worstcase", "/usr/local/bin/worstcase", "/usr/sbin/worstcase", "/bin/worstcase"];

/// File systems by what statfs(2) calls them that are in memory, or not there early at boot. linux/magic.h.
const FLEETING: [(u32, &str); 10] = [
    (0x0102_1994, "in memory (tmpfs)"),
    (0x8584_58f6, "in memory (ramfs)"),
    (0x6969, "on another machine (NFS)"),
    (0x517b, "on another machine (SMB)"),
    (0xff53_4d42, "on another machine (CIFS)"),
    (0xfe53_4d42, "on another machine (SMB)"),
    (0x0102_1997, "on another machine (9P)"),
    (0x5346_414f, "on another machine (AFS)"),
    (0x00c3_6400, "on another machine (Ceph)"),
    (0x6573_5546, "behind a program (FUSE)"),
];

const HINT: &str =
    "install it first, as with: install -m 0755 worstcase /usr/local/bin; or name one with --binary";

/// For a look at what would be written, which changes nothing: a program that is not installed yet stands where HINT has it
/// installed.
pub fn once_installed(root: Option<&Path>) -> String {
    choose(None, root).unwrap_or_else(|error| {
        output::words(&format!("{}; shown as if it were {INSTALLED}", error.message));
        INSTALLED.to_owned()
    })
}

/// Where HINT has it installed.
const INSTALLED: &str = "/usr/local/bin/worstcase";

/// The program as the service is to call it: the one that is named, else this one; in the root of another system the one
/// that lies there.
pub fn choose(named: Option<&Path>, root: Option<&Path>) -> Result<String> {
    let own = || std::env::current_exe().ok();
    let path = match (named, root) {
        (Some(named), _) => Some(named.to_path_buf()),
        (None, None) => own(),
        (None, Some(root)) => {
            let usual = USUAL.into_iter().map(PathBuf::from);
            own().into_iter().chain(usual).find(|path| is_placed(path) && below(root, path).is_file())
        }
    };
    let path = path.ok_or_else(|| Error::new("there is no worstcase in that root", HINT))?;
    let refused = |why: String| Error::new(format!("start {} at boot: {why}", path.display()), HINT);
    let path = checked(&path, root).map_err(refused)?;
    Ok(path.display().to_string())
}

fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

fn is_placed(path: &Path) -> bool {
    PLACES.iter().any(|place| path.starts_with(place))
        && path.components().all(|part| part != Component::ParentDir)
}

/// The program's own path, without links: whoever owns a link could point it elsewhere before the next boot.
fn checked(path: &Path, root: Option<&Path>) -> std::result::Result<PathBuf, String> {
    if !is_placed(path) {
        return Err(format!("programs are installed below {}", PLACES.join(", ")));
    }
    if let Some(root) = root {
        return placed_in(path, &below(root, path));
    }
    let real = fs::canonicalize(path).map_err(|error| error.to_string())?;
    if !is_placed(&real) {
        return Err(format!("it is a link to {}", real.display()));
    }
    let real = placed_in(&real, &real)?;
    if let Some(where_it_is) = fleeting(&real) {
        return Err(format!("its file system is {where_it_is}"));
    }
    real.ancestors().try_for_each(is_safe)?;
    Ok(real)
}

/// The path as a unit may name it, if the program at `there` can be run.
fn placed_in(path: &Path, there: &Path) -> std::result::Result<PathBuf, String> {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "/._+-".contains(character);
    if !path.to_str().is_some_and(|text| text.chars().all(is_plain)) {
        return Err("its name has characters that units and scripts take for something else".to_owned());
    }
    let kind = fs::metadata(there).map_err(|error| error.to_string())?;
    if !kind.is_file() || kind.mode() & 0o111 == 0 {
        return Err("it is no program that can be run".to_owned());
    }
    Ok(path.to_owned())
}

/// Where a file lies that is not there early at each boot, in words.
pub fn fleeting(path: &Path) -> Option<&'static str> {
    let kind = rustix::fs::statfs(path).ok()?.f_type as u32;
    FLEETING.iter().find(|(magic, _)| *magic == kind).map(|(_, words)| *words)
}

/// A program that others can replace would give them root.
fn is_safe(path: &Path) -> std::result::Result<(), String> {
    let kind = fs::metadata(path).map_err(|error| error.to_string())?;
    match kind.uid() == 0 && kind.mode() & 0o022 == 0 {
        true => Ok(()),
        false => Err(format!("others than root may change {}", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn why_not(path: &str) -> String {
        choose(Some(Path::new(path)), None).unwrap_err().message
    }

    #[test]
    fn a_program_that_may_be_gone_or_replaced_at_the_next_boot_is_refused() {
        assert!(
            why_not("/home/me/worstcase").contains("installed below"),
            "{}",
            why_not("/home/me/worstcase")
        );
        assert!(why_not("/tmp/worstcase").contains("installed below"));
        assert!(why_not("/usr/../tmp/worstcase").contains("installed below"));
        assert!(why_not("worstcase").contains("installed below"));
        assert!(why_not("/usr/bin").contains("no program"));
        assert!(why_not("/usr/bin/nosuch").contains("No such file"));
        assert_eq!(choose(Some(Path::new("/usr/bin/env")), None).unwrap(), "/usr/bin/env");
        assert_eq!(
            checked(Path::new("/usr/bin/a b"), Some(Path::new("/"))).unwrap_err(),
            "its name has characters that units and scripts take for something else"
        );
    }

    #[test]
    fn a_unit_names_the_program_itself_and_no_link_to_it() {
        let directory = tempfile::tempdir_in("/usr/local");
        let Ok(directory) = directory.map_err(skipped) else { return };
        let (program, link) = (directory.path().join("program"), directory.path().join("link"));
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        fs::copy("/usr/bin/env", &program).unwrap();
        std::os::unix::fs::symlink(&program, &link).unwrap();
        match choose(Some(&link), None) {
            Ok(named) => assert_eq!(Path::new(&named), fs::canonicalize(&program).unwrap()),
            Err(error) => assert!(error.message.contains("others than root may change"), "{error:?}"),
        }
    }

    #[allow(clippy::print_stderr)]
    fn skipped(error: std::io::Error) {
        eprintln!("skipped: a program is installed by root: {error}");
    }

    #[test]
    fn in_another_root_the_program_that_lies_there_is_taken() {
        let root = tempfile::tempdir().unwrap();
        let none = choose(None, Some(root.path())).unwrap_err();
        assert_eq!(none.message, "there is no worstcase in that root");
        fs::create_dir_all(root.path().join("usr/local/bin")).unwrap();
        let program = root.path().join("usr/local/bin/worstcase");
        fs::write(&program, "").unwrap();
        assert!(choose(None, Some(root.path())).unwrap_err().message.contains("no program that can be run"));
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(choose(None, Some(root.path())).unwrap(), "/usr/local/bin/worstcase");
    }

    #[test]
    fn memory_is_known_for_what_it_is() {
        assert_eq!(fleeting(Path::new("/dev/shm")), Some("in memory (tmpfs)"));
    }
}
