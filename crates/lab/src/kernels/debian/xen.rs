//! Debian's Xen: the hypervisor alone, without the tools that start domains.

use std::io::Read;
use std::path::Path;

use flate2::read::GzDecoder;

use super::{Apt, Package, fetch_package, with_lists};
use crate::kernels::cache::write;
use crate::kernels::{Architecture, Cache, Kernel, Progress, XEN};
use crate::{Error, input};

/// Depends on the hypervisor of this release of Debian.
const META: &str = "xen-system-amd64";
/// How the names of the packages with a hypervisor begin.
const PACKAGE: &str = "xen-hypervisor-";
/// No hypervisor is longer, in bytes: that of 4.17 has 2.8 MB.
const LONGEST: u64 = 64 << 20;

/// The hypervisor of `version` (`4.17`), else that of this release of Debian: from the cache if the newest package of it
/// is there, else downloaded.
///
/// # Errors
/// Where it is not among the packages, or cannot be downloaded or kept.
pub fn fetch_xen(cache: &Cache, version: Option<&str>, progress: &mut Progress<'_>) -> Result<Kernel, Error> {
    let fetched = with_lists(cache, Architecture::Amd64, progress, &mut |apt, progress| {
        let Some(package) = find(apt, version)? else { return Ok(None) };
        let name = package.name.replacen(PACKAGE, XEN, 1);
        fetch_package(cache, apt, &package, &name, arrange, progress).map(Some)
    })?;
    fetched.ok_or_else(|| {
        let name = version.map_or_else(|| META.to_owned(), package_name);
        Error::new(format!("Debian's package lists have no {name}"))
            .hint("Debian has one hypervisor a release: leave --version out; or add Debian's archives to this machine's package sources")
    })
}

fn package_name(version: &str) -> String {
    format!("{PACKAGE}{version}-amd64")
}

fn find(apt: &Apt, version: Option<&str>) -> Result<Option<Package>, Error> {
    let name = match version {
        Some(version) => Some(package_name(version)),
        None => apt.show(META)?.and_then(|meta| meta.dependency(PACKAGE).map(str::to_owned)),
    };
    name.map_or(Ok(None), |name| apt.show(&name))
}

/// Takes the hypervisor out of an unpacked package, unpacked itself: QEMU loads no other (a multiboot image, ELF).
fn arrange(tree: &Path, to: &Path, origin: &str) -> Result<Kernel, Error> {
    let missing = || Error::new(format!("{origin} has no boot/xen-*.gz that can be unpacked"));
    let files = std::fs::read_dir(tree.join("boot")).into_iter().flatten().flatten();
    let mut paths = files.map(|file| file.path());
    let path = paths.find(|path| path.extension().is_some_and(|end| end == "gz")).ok_or_else(missing)?;
    let packed = input::read(&path)?;
    let mut image = Vec::new();
    let read = GzDecoder::new(packed.as_slice()).take(LONGEST).read_to_end(&mut image);
    if read.is_err() || !image.starts_with(b"\x7fELF") {
        return Err(missing());
    }
    write(&to.join("image"), &image)?;
    Ok(Kernel {
        name: String::new(),
        architecture: Architecture::Amd64,
        release: origin.rsplit(' ').next().unwrap_or_default().to_owned(),
        image: "image".into(),
        sha256: None,
        unpacked: None,
        modules: None,
        config: None,
        origin: origin.to_owned(),
        hypervisor: true,
    })
}
