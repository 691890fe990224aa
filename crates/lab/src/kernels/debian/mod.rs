//! Kernels from Debian's own packages, downloaded by its own tools, unpacked beside, never installed.

mod apt;
mod package;
mod wanted;
mod xen;

use std::fs;
use std::path::Path;

use rustix::fs::{StatVfs, statvfs};

pub(super) use apt::Apt;
pub(super) use package::Package;
pub use wanted::{Flavour, Wanted};
pub use xen::fetch_xen;

use super::cache::{NO_ROOM, failed};
use super::program::{Program, only};
use super::{Architecture, Cache, Kernel, Progress};
use crate::Error;

const DPKG_DEB: Program =
    Program { name: "dpkg-deb", hint: "it comes with Debian's dpkg; elsewhere: worstcase lab kernels add" };

/// The kernel that is wanted, from the cache if the newest package of it is there, else downloaded.
pub fn fetch(cache: &Cache, wanted: &Wanted, progress: &mut Progress<'_>) -> Result<Kernel, Error> {
    let fetched = with_lists(cache, wanted.architecture, progress, &mut |apt, progress| {
        let Some((package, version)) = find(apt, wanted)? else { return Ok(None) };
        fetch_package(cache, apt, &package, &wanted.name(&version), arrange, progress).map(Some)
    })?;
    fetched.ok_or_else(|| not_found(cache, wanted))
}

/// What is done with package lists; nothing comes of it where they have no such package.
type Work<'a, T> = dyn FnMut(&Apt, &mut Progress<'_>) -> Result<Option<T>, Error> + 'a;

/// Tries the system's package lists, then the cache's own, then those after an update: the first that has the package
/// and can download it. Lists that are older than the archive name packages that are gone.
pub(super) fn with_lists<T>(
    cache: &Cache,
    architecture: Architecture,
    progress: &mut Progress<'_>,
    work: &mut Work<'_, T>,
) -> Result<Option<T>, Error> {
    let mut last = Ok(None);
    if Architecture::own() == Some(architecture) {
        last = work(&Apt::of_system(), progress);
        if is_final(&last, cache) {
            return last;
        }
    }
    let apt = Apt::of_cache(cache, architecture)?;
    if apt.has_lists() {
        last = work(&apt, progress);
        if is_final(&last, cache) {
            return last;
        }
    }
    let name = format!("apt-{architecture}");
    let _lock = cache.lock(&name, progress)?;
    progress(&format!("reading Debian's package lists for {architecture}"));
    match apt.update() {
        Ok(()) => work(&apt, progress),
        // What stopped the work with the lists that there were says more.
        Err(error) => last.and(Err(error)),
    }
}

/// Whether other lists would bring nothing else: it is done, or it failed on a disk that is full. There apt-get would
/// try for minutes. What was written until then may be gone again, and the disk have room.
fn is_final<T>(result: &Result<Option<T>, Error>, cache: &Cache) -> bool {
    const LEAST: u64 = 64 << 20;
    match result {
        Ok(found) => found.is_some(),
        Err(error) => {
            let has_no_room = |system: StatVfs| system.f_bavail.saturating_mul(system.f_frsize) < LEAST;
            error.hint.as_deref() == Some(NO_ROOM) || statvfs(cache.directory()).is_ok_and(has_no_room)
        }
    }
}

/// The package with the image, and the version that it goes by: `6.1` for the newest one of 6.1.
fn find(apt: &Apt, wanted: &Wanted) -> Result<Option<(Package, String)>, Error> {
    for name in wanted.packages() {
        let Some(package) = apt.show(&name)? else { continue };
        let Some(image) = package.image() else {
            let version = wanted.version.clone().unwrap_or_else(|| package.version.clone());
            return Ok(Some((package, version)));
        };
        let release = image.strip_prefix("linux-image-").unwrap_or(image);
        if wanted.is_of(release) {
            let version = wanted.version.clone().unwrap_or_else(|| series(release));
            return Ok(apt.show(image)?.map(|package| (package, version)));
        }
    }
    Ok(None)
}

/// `6.1` of `6.1.0-56-rt-amd64`.
fn series(release: &str) -> String {
    release.split(['.', '-']).take(2).collect::<Vec<_>>().join(".")
}

/// Takes what is wanted out of an unpacked package into a directory; the last one says what it comes from.
type Arrange = fn(&Path, &Path, &str) -> Result<Kernel, Error>;

fn fetch_package(
    cache: &Cache,
    apt: &Apt,
    package: &Package,
    name: &str,
    arrange: Arrange,
    progress: &mut Progress<'_>,
) -> Result<Kernel, Error> {
    let origin = format!("Debian package {} {}", package.name, package.version);
    let lock = cache.lock(name, progress)?;
    if let Some(kernel) = cache.present(name).filter(|kernel| kernel.origin == origin && kernel.is_intact()) {
        return Ok(kernel);
    }
    let draft = cache.draft(name, &lock)?;
    progress(&format!("fetching {} {}{}", package.name, package.version, megabytes(package)));
    let archive = apt.download(package, draft.path())?;
    let tree = draft.path().join("tree");
    unpack(&archive, &tree)?;
    let mut kernel = arrange(&tree, draft.path(), &origin)?;
    for used in [archive, tree] {
        let gone = if used.is_dir() { fs::remove_dir_all(&used) } else { fs::remove_file(&used) };
        gone.map_err(|error| failed("remove", &used, &error))?;
    }
    name.clone_into(&mut kernel.name);
    draft.publish(&kernel)
}

fn megabytes(package: &Package) -> String {
    package.size.map(|size| format!(" ({} MB)", size.div_ceil(1_000_000))).unwrap_or_default()
}

/// Unpacks a package's files into a directory that is made.
pub(super) fn unpack(archive: &Path, tree: &Path) -> Result<(), Error> {
    DPKG_DEB.output(DPKG_DEB.command().arg("-x").arg(archive).arg(tree)).map(drop)
}

/// Takes image, configuration and modules out of an unpacked package; paths are relative to `to`.
fn arrange(tree: &Path, to: &Path, origin: &str) -> Result<Kernel, Error> {
    let (image, release) = only(&tree.join("boot"), "vmlinuz-")
        .ok_or_else(|| Error::new(format!("{origin} has no boot/vmlinuz-*")))?;
    let known = super::image::recognise(&image)?;
    let take = |from: &Path, name: &str| {
        let to = to.join(name);
        fs::rename(from, &to).map_err(|error| failed("move a kernel's files to", &to, &error))
    };
    take(&image, "image")?;
    let config = tree.join(format!("boot/config-{release}"));
    let has_config = config.is_file();
    if has_config {
        take(&config, "config")?;
    }
    let modules = ["lib", "usr/lib"].map(|lib| tree.join(lib).join("modules").join(&release));
    let modules = modules.iter().find(|modules| modules.is_dir());
    if let Some(modules) = modules {
        take(modules, "modules")?;
    }
    Ok(Kernel {
        name: String::new(),
        architecture: known.architecture,
        release,
        image: "image".into(),
        sha256: None,
        unpacked: None,
        modules: modules.map(|_| "modules".into()),
        config: has_config.then(|| "config".into()),
        origin: origin.to_owned(),
        hypervisor: false,
    })
}

fn not_found(cache: &Cache, wanted: &Wanted) -> Error {
    let name = wanted.packages().into_iter().next().unwrap_or_default();
    let error = Error::new(format!("Debian's package lists have no {name}"));
    let known = Apt::of_cache(cache, wanted.architecture).and_then(|apt| apt.names("linux-image-"));
    let mut versions: Vec<String> =
        known.unwrap_or_default().iter().filter_map(|name| wanted.version_in(name)).collect();
    versions.sort_unstable();
    versions.dedup();
    if versions.is_empty() {
        return error.hint(
            "are Debian's archives among this machine's package sources? add a kernel of your own: \
             worstcase lab kernels add",
        );
    }
    error.hint(format!("of this flavour and architecture they have {}", versions.join(", ")))
}
