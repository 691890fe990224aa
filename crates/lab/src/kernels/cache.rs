//! The directory that holds the kernels, one directory each, and how one gets there.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, FlockOperation, RenameFlags, flock, renameat_with};
use rustix::io::Errno;

use super::{Kernel, Progress, Wanted};
use crate::{Error, hash};

/// Describes the kernel in whose directory it stands; its paths are relative to that.
const DESCRIPTION: &str = "kernel.json";

/// No kernel's configuration is longer, in bytes: those of distributions have some 300 KiB.
pub(super) const LONGEST_CONFIG: u64 = 16 << 20;

/// No description is longer, in bytes.
const LONGEST_DESCRIPTION: u64 = 1 << 20;

/// The image as it is unpacked, written by the first boot. It goes away with the directory that the image is in.
const UNPACKED: &str = "unpacked";

/// With the version in front a release fits into `uname -r`, which has 64 bytes.
const LONGEST_NAME: usize = 40;

/// The kernels of this user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    directory: PathBuf,
}

/// A directory in the cache: a kernel, or why it is none.
#[derive(Debug)]
pub struct Entry {
    /// The directory's name, which is the kernel's: `debian-6.1-amd64`.
    pub name: String,
    /// What is in it.
    pub kernel: Result<Kernel, Error>,
}

impl Cache {
    /// In `$WORSTCASE_CACHE`, else `$XDG_CACHE_HOME/worstcase/kernels`, else `~/.cache/worstcase/kernels`.
    pub fn of_user() -> Result<Self, Error> {
        Self::named_by(|name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from))
    }

    fn named_by(variable: impl Fn(&str) -> Option<PathBuf>) -> Result<Self, Error> {
        if let Some(own) = variable("WORSTCASE_CACHE") {
            return Self::at(own);
        }
        // The XDG base directory specification has a relative path ignored.
        let shared = variable("XDG_CACHE_HOME").filter(|path| path.is_absolute());
        let caches = shared.or_else(|| Some(variable("HOME")?.join(".cache"))).ok_or_else(|| {
            Error::new("neither WORSTCASE_CACHE, XDG_CACHE_HOME nor HOME is set")
                .hint("WORSTCASE_CACHE names the directory that kernels are kept in")
        })?;
        Self::at(caches.join("worstcase/kernels"))
    }

    /// In `directory`, which need not be there yet.
    pub fn at(directory: impl AsRef<Path>) -> Result<Self, Error> {
        let given = directory.as_ref();
        let directory = std::path::absolute(given).map_err(|error| failed("find", given, &error))?;
        Ok(Self { directory })
    }

    /// Where it is.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Refuses a cache that another user could have filled: what is in it is booted, and apt obeys it.
    fn check_owner(&self) -> Result<(), Error> {
        let hint = "WORSTCASE_CACHE names another directory for kernels; sudo without -E takes root's own";
        match files::Directory::open_obeyed(&self.directory) {
            Err(error) if error.source.kind() == ErrorKind::NotFound => Ok(()),
            opened => {
                let refused = |error: files::Error| failed("use", &self.directory, &error.source).hint(hint);
                opened.map(drop).map_err(refused)
            }
        }
    }

    /// All directories of kernels, by name.
    pub fn entries(&self) -> Result<Vec<Entry>, Error> {
        self.check_owner()?;
        let listed = match fs::read_dir(&self.directory) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            listed => listed.map_err(|error| failed("list", &self.directory, &error))?,
        };
        let names = listed.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut names: Vec<String> = names.filter(|name| check_name(name).is_ok()).collect();
        names.sort_unstable();
        let entry = |name: String| Entry { kernel: self.read(&name), name };
        Ok(names.into_iter().map(entry).collect())
    }

    /// All kernels that can be read, by name.
    pub fn kernels(&self) -> Result<Vec<Kernel>, Error> {
        Ok(self.entries()?.into_iter().filter_map(|entry| entry.kernel.ok()).collect())
    }

    /// The kernel of that name.
    pub fn kernel(&self, name: &str) -> Result<Kernel, Error> {
        check_name(name)?;
        match self.directory.join(name).symlink_metadata() {
            Ok(_) => self.read(name),
            Err(_) => Err(self.unknown(name)),
        }
    }

    /// The kernel of that name if it can be booted; whatever else there is is no matter.
    pub(super) fn present(&self, name: &str) -> Option<Kernel> {
        self.read(name).ok()
    }

    fn read(&self, name: &str) -> Result<Kernel, Error> {
        self.check_owner()?;
        let directory = self.directory.join(name);
        let path = directory.join(DESCRIPTION);
        let broken =
            |error: Error| error.hint("take the directory away, then fetch, add or build the kernel anew");
        let text = files::read(&path, LONGEST_DESCRIPTION);
        let text = text.map_err(|error| broken(failed(error.operation, &path, &error.source)))?;
        let mut kernel: Kernel = record::json::read(&text)
            .map_err(|error| broken(Error::new(format!("{}: {error}", path.display()))))?;
        let named = [Some(&kernel.image), kernel.modules.as_ref(), kernel.config.as_ref()];
        if let Some(outside) = named.into_iter().flatten().find(|path| !is_below(path)) {
            let message =
                format!("{}: {} is not in the kernel's directory", path.display(), outside.display());
            return Err(broken(Error::new(message)));
        }
        name.clone_into(&mut kernel.name);
        kernel.image = directory.join(&kernel.image);
        kernel.unpacked = Some(directory.join(UNPACKED));
        kernel.modules = kernel.modules.map(|modules| directory.join(modules));
        kernel.config = kernel.config.map(|config| directory.join(config));
        files::open(&kernel.image).map_err(|error| broken(failed("open", &kernel.image, &error.source)))?;
        Ok(kernel)
    }

    fn unknown(&self, name: &str) -> Error {
        let known: Vec<String> =
            self.kernels().unwrap_or_default().into_iter().map(|kernel| kernel.name).collect();
        let error = Error::new(format!("there is no kernel {name} in {}", self.directory.display()));
        let near = known.iter().filter(|known| strsim::damerau_levenshtein(known, name) <= 3).cloned();
        let near: Vec<String> = near.collect();
        if near.is_empty() && name.starts_with("xen") {
            return error.hint("worstcase lab kernels fetch xen");
        }
        match (near.as_slice(), name.parse::<Wanted>()) {
            (_, Ok(wanted)) => error.hint(format!("worstcase lab kernels fetch {}", wanted.arguments())),
            ([], _) if known.is_empty() => {
                error.hint("the cache is empty: worstcase lab kernels fetch debian --flavour rt")
            }
            ([], _) => error.hint(format!("there are {}", known.join(", "))),
            (near, _) => error.hint(format!("did you mean {}?", near.join(" or "))),
        }
    }

    /// Holds `what` in the cache for itself until the lock is dropped, by whatever end of this process too.
    pub(super) fn lock(&self, what: &str, progress: &mut Progress<'_>) -> Result<Lock, Error> {
        check_name(what)?;
        let locks = self.make(".locks")?;
        let path = locks.join(what);
        let file = files::open_lock(&path, files::READABLE);
        let file = file.map_err(|error| failed(error.operation, &path, &error.source))?;
        let taken = flock(&file, FlockOperation::NonBlockingLockExclusive).or_else(|_| {
            progress(&format!("waiting: another process holds {what}"));
            flock(&file, FlockOperation::LockExclusive)
        });
        taken.map_err(|errno| failed("lock", &path, &errno.into()))?;
        Ok(Lock(file))
    }

    /// A directory of the cache's own, made where it is missing.
    pub(super) fn make(&self, own: &str) -> Result<PathBuf, Error> {
        self.check_owner()?;
        let path = self.directory.join(own);
        files::Directory::make(&path).map_err(|error| failed("create", &path, &error.source))?;
        self.check_owner()?;
        Ok(path)
    }

    /// An empty directory to make `name` in. Whoever holds the name's lock is the only one who has a draft of it, so
    /// that one which is there was left by a process that did not live to its end.
    pub(super) fn draft<'a>(&'a self, name: &str, lock: &'a Lock) -> Result<Draft<'a>, Error> {
        check_name(name)?;
        let path = self.directory.join(format!(".new-{name}"));
        self.check_owner()?;
        remove(&path)?;
        files::Directory::make(&path).map_err(|error| failed("create", &path, &error.source))?;
        Ok(Draft { cache: self, name: name.to_owned(), path, _lock: lock })
    }
}

/// A name in the cache that no other process uses meanwhile.
#[derive(Debug)]
pub(super) struct Lock(File);

impl Lock {
    /// Another descriptor of the same lock: it is held until the last one is closed.
    pub fn share(&self) -> Result<OwnedFd, Error> {
        self.0
            .try_clone()
            .map(OwnedFd::from)
            .map_err(|error| Error::new(format!("duplicate a lock: {error}")))
    }
}

/// A kernel that is not in the cache yet; taken away if it never gets there.
#[derive(Debug)]
pub(super) struct Draft<'a> {
    cache: &'a Cache,
    name: String,
    path: PathBuf,
    _lock: &'a Lock,
}

impl Draft<'_> {
    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Puts it into the cache with its image's hash, in place of one of the same name. Paths in `kernel` are relative to
    /// the directory.
    pub fn publish(self, kernel: &Kernel) -> Result<Kernel, Error> {
        let sha256 = hash::of_file(&self.path.join(&kernel.image))?;
        let kernel = Kernel { sha256: Some(sha256), ..kernel.clone() };
        let description = self.path.join(DESCRIPTION);
        let text =
            serde_json::to_vec_pretty(&kernel).map_err(|error| Error::new(format!("kernel: {error}")))?;
        write(&description, &text)?;
        let place = self.cache.directory.join(&self.name);
        put(&self.path, &place).map_err(|error| failed("put a kernel at", &place, &error))?;
        self.cache.read(&self.name)
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        // What is left here is found and removed by the next draft of the name.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Puts a directory in its place, all of it on the disk before its name is: tools and copies have left it to the kernel when
/// to write it.
fn put(path: &Path, place: &Path) -> io::Result<()> {
    rustix::fs::syncfs(files::Directory::open(path)?)?;
    moved(path, place)?;
    Ok(files::Directory::open(place.parent().unwrap_or(Path::new(".")))?.sync()?)
}

/// Moves a directory to a place where there may be one already: the two are exchanged at once where the file system can.
fn moved(path: &Path, place: &Path) -> io::Result<()> {
    if place.symlink_metadata().is_err() {
        return fs::rename(path, place);
    }
    match renameat_with(CWD, path, CWD, place, RenameFlags::EXCHANGE) {
        Err(Errno::INVAL | Errno::NOSYS) => {
            fs::remove_dir_all(place)?;
            fs::rename(path, place)
        }
        exchanged => Ok(exchanged?),
    }
}

/// Writes a file of the cache.
pub(super) fn write(path: &Path, content: &[u8]) -> Result<(), Error> {
    files::write_whole(path, content).map_err(|error| failed(error.operation, path, &error.source))
}

/// Removes a directory if it is there.
pub(super) fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(failed("remove", path, &error)),
        _ => Ok(()),
    }
}

/// Whether a path leads nowhere but down.
fn is_below(path: &Path) -> bool {
    path.components().all(|component| matches!(component, Component::Normal(_)))
}

/// A kernel's name is a directory's, and an end of `uname -r`.
pub(super) fn check_name(name: &str) -> Result<(), Error> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"+-._~".contains(&byte);
    let begins = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    if begins && name.len() <= LONGEST_NAME && name.bytes().all(plain) {
        return Ok(());
    }
    Err(Error::new(format!("{name:?} is no name for a kernel"))
        .hint(format!("at most {LONGEST_NAME} of a-z, A-Z, 0-9 and +-._~, beginning with a letter or digit")))
}

/// What helps on a full disk. While a package is unpacked, the archive and all of its files are there.
pub(super) const NO_ROOM: &str =
    "a kernel with its modules takes up to 600 MB: make room, or name another directory by WORSTCASE_CACHE";

/// An operation on a path that failed.
pub(super) fn failed(operation: &str, path: &Path, error: &io::Error) -> Error {
    let failure = Error::new(format!("{operation} {}: {error}", path.display()));
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => failure.hint(NO_ROOM),
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            failure.hint("WORSTCASE_CACHE names another directory for kernels")
        }
        _ => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Architecture;
    use super::*;

    fn kernel(name: &str, release: &str) -> Kernel {
        Kernel {
            name: name.to_owned(),
            architecture: Architecture::Amd64,
            release: release.to_owned(),
            image: "image".into(),
            sha256: None,
            unpacked: None,
            modules: None,
            config: None,
            origin: "a test".to_owned(),
            hypervisor: false,
        }
    }

    fn put_in(cache: &Cache, name: &str, release: &str) -> Kernel {
        let lock = cache.lock(name, &mut |_| ()).unwrap();
        let draft = cache.draft(name, &lock).unwrap();
        fs::write(draft.path().join("image"), release).unwrap();
        draft.publish(&kernel(name, release)).unwrap()
    }

    fn empty() -> (tempfile::TempDir, Cache) {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::at(directory.path().join("kernels")).unwrap();
        (directory, cache)
    }

    #[test]
    fn the_directory_is_the_first_that_is_named() {
        let all = [("WORSTCASE_CACHE", "/own"), ("XDG_CACHE_HOME", "/shared"), ("HOME", "/me")];
        let found = |from: usize| {
            let named = &all[from..];
            let named =
                |name: &str| named.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into());
            Cache::named_by(named).map(|cache| cache.directory)
        };
        assert_eq!(found(0).unwrap(), Path::new("/own"));
        assert_eq!(found(1).unwrap(), Path::new("/shared/worstcase/kernels"));
        assert_eq!(found(2).unwrap(), Path::new("/me/.cache/worstcase/kernels"));
        assert!(found(3).unwrap_err().hint.unwrap().contains("WORSTCASE_CACHE"));
        let relative = |name: &str| (name != "WORSTCASE_CACHE").then(|| PathBuf::from("relative"));
        assert!(Cache::named_by(relative).unwrap().directory.ends_with("relative/.cache/worstcase/kernels"));
    }

    #[test]
    fn what_is_published_is_found_and_replaced_as_a_whole() {
        let (_directory, cache) = empty();
        assert_eq!(cache.kernels().unwrap(), []);
        let first = put_in(&cache, "mine", "6.1");
        assert_eq!(first.image, cache.directory.join("mine/image"));
        assert_eq!(cache.kernel("mine").unwrap(), first);
        let second = put_in(&cache, "mine", "6.12");
        assert_eq!(cache.kernels().unwrap(), [second]);
        assert_eq!(fs::read(first.image).unwrap(), b"6.12");
        let left: Vec<_> =
            fs::read_dir(&cache.directory).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left.len(), 2, "{left:?}: the kernel and the locks");
    }

    #[test]
    fn a_description_names_files_of_its_own_directory_only() {
        let (_directory, cache) = empty();
        for (number, path) in ["/etc/shadow", "../other/image", "./../image"].into_iter().enumerate() {
            let name = format!("mine{number}");
            put_in(&cache, &name, "6.1");
            for field in ["image", "modules", "config"] {
                let file = cache.directory.join(&name).join(DESCRIPTION);
                let mut text: serde_json::Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
                let before = std::mem::replace(&mut text[field], path.into());
                fs::write(&file, text.to_string()).unwrap();
                let error = cache.kernel(&name).unwrap_err();
                assert!(error.message.contains("is not in the kernel's directory"), "{error}");
                text[field] = before;
                fs::write(&file, text.to_string()).unwrap();
            }
            cache.kernel(&name).unwrap();
        }
    }

    #[test]
    fn a_cache_into_which_others_may_write_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let (_directory, cache) = empty();
        put_in(&cache, "mine", "6.1");
        fs::set_permissions(&cache.directory, fs::Permissions::from_mode(0o777)).unwrap();
        let refused = |error: Error| {
            assert!(error.message.contains("another user"), "{error}");
            assert!(error.hint.unwrap().contains("WORSTCASE_CACHE"));
        };
        refused(cache.kernel("mine").unwrap_err());
        refused(cache.entries().map(drop).unwrap_err());
        refused(cache.lock("mine", &mut |_| ()).map(drop).unwrap_err());
    }

    #[test]
    fn a_draft_that_is_given_up_or_was_left_leaves_nothing() {
        let (_directory, cache) = empty();
        let lock = cache.lock("mine", &mut |_| ()).unwrap();
        let path = cache.draft("mine", &lock).unwrap().path().to_owned();
        assert!(!path.exists());
        fs::create_dir_all(path.join("left")).unwrap();
        let draft = cache.draft("mine", &lock).unwrap();
        assert_eq!(fs::read_dir(draft.path()).unwrap().count(), 0);
        assert_eq!(cache.entries().unwrap().len(), 0, "a draft is no kernel");
    }

    #[test]
    fn a_broken_directory_is_reported_and_spoils_no_other() {
        let (_directory, cache) = empty();
        put_in(&cache, "good", "6.1");
        put_in(&cache, "no-image", "6.1");
        fs::remove_file(cache.directory.join("no-image/image")).unwrap();
        fs::create_dir(cache.directory.join("empty")).unwrap();
        fs::create_dir(cache.directory.join("garbage")).unwrap();
        fs::write(cache.directory.join("garbage").join(DESCRIPTION), b"{\"name\": \xff").unwrap();
        let names: Vec<_> = cache.kernels().unwrap().into_iter().map(|kernel| kernel.name).collect();
        assert_eq!(names, ["good"]);
        for name in ["no-image", "empty", "garbage"] {
            let error = cache.kernel(name).unwrap_err();
            assert!(error.message.contains(name) && error.hint.unwrap().contains("take the directory away"));
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_what_helps() {
        let (_directory, cache) = empty();
        let hint = |name: &str| cache.kernel(name).unwrap_err().hint.unwrap();
        assert!(hint("mine").contains("the cache is empty"));
        put_in(&cache, "p2041-rt", "6.12");
        assert_eq!(hint("p2041rt"), "did you mean p2041-rt?");
        assert_eq!(hint("something-else"), "there are p2041-rt");
        assert_eq!(
            hint("debian-6.1-rt-amd64"),
            "worstcase lab kernels fetch debian --version 6.1 --flavour rt --arch amd64"
        );
    }

    #[test]
    fn names_stay_in_the_cache() {
        let (_directory, cache) = empty();
        for name in ["", ".", "..", "../mine", "/etc", ".new-mine", "a b", "a\0", "ä", "-x", &"x".repeat(41)]
        {
            assert!(cache.kernel(name).unwrap_err().message.contains("is no name"), "{name:?}");
        }
    }

    #[test]
    fn a_lock_is_waited_for() {
        let (_directory, cache) = empty();
        let lock = cache.lock("mine", &mut |_| ()).unwrap();
        let shared = lock.share().unwrap();
        drop(lock);
        let (progress, hears) = std::sync::mpsc::channel();
        let other = cache.clone();
        let waiter = std::thread::spawn(move || {
            let mut progress = |words: &str| progress.send(words.to_owned()).unwrap();
            other.lock("mine", &mut progress).map(drop)
        });
        assert_eq!(hears.recv().unwrap(), "waiting: another process holds mine");
        drop(shared);
        waiter.join().unwrap().unwrap();
    }

    #[test]
    fn a_directory_that_cannot_be_is_an_error_with_its_path() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        fs::write(&file, b"").unwrap();
        let cache = Cache::at(&file).unwrap();
        assert!(cache.kernels().unwrap_err().message.contains("Not a directory"));
        let error = cache.lock("mine", &mut |_| ()).unwrap_err();
        assert!(error.message.starts_with(&format!("use {}: Not a directory", file.display())), "{error}");
    }
}
