//! Where a kernel's source is: one's own tree, or Debian's package of it, unpacked in the cache.

use std::fs;
use std::path::{Path, PathBuf};

use super::cache::{failed, remove};
use super::debian::{self, Apt, Package};
use super::program::{Program, only};
use super::{Architecture, Cache, Progress};
use crate::Error;

const TAR: Program = Program { name: "tar", hint: "apt-get install tar xz-utils" };

/// What is built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A tree; it is built outside of it.
    Tree(PathBuf),
    /// Debian's `linux-source` package of a version (`6.12`), or the distribution's own.
    Debian(Option<String>),
}

/// A source that can be built.
#[derive(Debug)]
pub(super) struct Unpacked {
    pub directory: PathBuf,
    /// What stands for its content: the package and its version. A tree of one's own can change at any time.
    pub identity: Option<String>,
}

impl Source {
    /// `debian`, `debian-6.12`, or the directory of a tree.
    pub fn named(name: &str) -> Self {
        match name.strip_prefix("debian") {
            Some("") => Self::Debian(None),
            Some(rest) if rest.starts_with('-') => Self::Debian(Some(rest[1..].to_owned())),
            _ => Self::Tree(name.into()),
        }
    }

    /// Finds it; downloads and unpacks it where it is not there yet.
    pub(super) fn unpack(&self, cache: &Cache, progress: &mut Progress<'_>) -> Result<Unpacked, Error> {
        match self {
            Self::Tree(tree) => own(tree),
            Self::Debian(version) => from_debian(cache, version.as_deref(), progress),
        }
    }
}

fn own(tree: &Path) -> Result<Unpacked, Error> {
    let directory = tree.canonicalize().map_err(|error| failed("find the source", tree, &error))?;
    if !(directory.join("Kbuild").is_file() && directory.join("scripts/kconfig").is_dir()) {
        return Err(Error::new(format!("{} is no tree of the kernel's source", tree.display()))
            .hint("give the directory that holds Kbuild and scripts/kconfig, or debian"));
    }
    Ok(Unpacked { directory, identity: None })
}

fn from_debian(cache: &Cache, version: Option<&str>, progress: &mut Progress<'_>) -> Result<Unpacked, Error> {
    let name = version.map_or_else(|| "linux-source".to_owned(), |version| format!("linux-source-{version}"));
    // It is a package for all architectures, but lists are of one.
    let architecture = Architecture::own().unwrap_or(Architecture::Amd64);
    let unpacked = debian::with_lists(cache, architecture, progress, &mut |apt, progress| {
        let Some(package) = apt.show(&name)? else { return Ok(None) };
        // linux-source without a version stands for the newest with one.
        let versioned = package.depends.iter().find(|name| name.starts_with("linux-source-"));
        let package = match versioned {
            Some(versioned) => apt.show(versioned)?,
            None => Some(package),
        };
        package.map(|package| unpack_package(cache, apt, &package, progress)).transpose()
    })?;
    unpacked.ok_or_else(|| {
        Error::new(format!("Debian's package lists have no {name}"))
            .hint("apt-cache search '^linux-source' lists them")
    })
}

fn unpack_package(
    cache: &Cache,
    apt: &Apt,
    package: &Package,
    progress: &mut Progress<'_>,
) -> Result<Unpacked, Error> {
    let identity = format!("{}_{}", package.name, package.version);
    let place = cache.make(".sources")?.join(&identity);
    let unpacked =
        |place: &Path| Unpacked { directory: place.join(&package.name), identity: Some(identity.clone()) };
    let _lock = cache.lock(&package.name, progress)?;
    if place.is_dir() {
        return Ok(unpacked(&place));
    }
    let draft = place.with_file_name(format!(".new-{}", package.name));
    remove(&draft)?;
    let made = fill(apt, package, &draft, progress)
        .and_then(|()| fs::rename(&draft, &place).map_err(|error| failed("put a source at", &place, &error)));
    made.inspect_err(|_| drop(remove(&draft)))?;
    Ok(unpacked(&place))
}

/// The package holds an archive of the tree; only the tree is kept.
fn fill(apt: &Apt, package: &Package, draft: &Path, progress: &mut Progress<'_>) -> Result<(), Error> {
    files::Directory::make(draft).map_err(|error| failed("create", draft, &error.source))?;
    let size = package.size.map(|size| format!(" ({} MB)", size.div_ceil(1_000_000))).unwrap_or_default();
    progress(&format!("fetching {} {}{size}", package.name, package.version));
    let archive = apt.download(package, draft)?;
    let outer = draft.join("package");
    debian::unpack(&archive, &outer)?;
    fs::remove_file(&archive).map_err(|error| failed("remove", &archive, &error))?;
    let (inner, _) = only(&outer.join("usr/src"), &format!("{}.tar", package.name)).ok_or_else(|| {
        Error::new(format!("{} {} holds no archive of a tree", package.name, package.version))
    })?;
    progress(&format!("unpacking {} (1.6 GB)", package.name));
    TAR.output(TAR.command().arg("-xf").arg(inner).arg("-C").arg(draft))?;
    remove(&outer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_named_by_one_word() {
        assert_eq!(Source::named("debian"), Source::Debian(None));
        assert_eq!(Source::named("debian-6.12"), Source::Debian(Some("6.12".into())));
        assert_eq!(Source::named("/src/linux"), Source::Tree("/src/linux".into()));
        assert_eq!(Source::named("debianish"), Source::Tree("debianish".into()));
    }

    #[test]
    fn a_directory_without_a_kernel_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::at(directory.path()).unwrap();
        let refused = |tree: &Path| Source::Tree(tree.into()).unpack(&cache, &mut |_| ()).unwrap_err();
        assert!(refused(directory.path()).message.contains("no tree of the kernel's source"));
        assert!(refused(Path::new("/nowhere")).message.contains("No such file"));
    }
}
