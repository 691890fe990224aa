//! Kernels by the names that people write into files and commands.

use std::path::Path;

use super::{Build, Cache, Kernel, Progress, Wanted, XEN, build, fetch, fetch_xen};
use crate::Error;

/// The kernel called `name` in the cache, which is fetched where it is not there and is one of Debian's
/// (`debian-6.1-rt-amd64`).
///
/// # Errors
/// Where it is not there and cannot be had.
pub fn named(cache: &Cache, name: &str, progress: &mut Progress<'_>) -> Result<Kernel, Error> {
    let missing = match cache.kernel(name) {
        Ok(kernel) => return Ok(kernel),
        Err(missing) => missing,
    };
    match name.parse::<Wanted>() {
        Ok(wanted) => fetch(cache, &wanted, progress),
        Err(_) => Err(missing),
    }
}

/// The hypervisor called `name` in the cache, which is fetched where it is not there and is one of Debian's
/// (`xen-4.17-amd64`).
///
/// # Errors
/// Where it is not there and cannot be had.
pub fn hypervisor(cache: &Cache, name: &str, progress: &mut Progress<'_>) -> Result<Kernel, Error> {
    let version = name.strip_prefix(XEN).and_then(|rest| rest.strip_suffix("-amd64"));
    match (cache.kernel(name), version) {
        (Err(_), Some(version)) => fetch_xen(cache, Some(version), progress),
        (kernel, _) => kernel,
    }
}

/// The kernel that guests boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Needed {
    /// One in the cache, one of Debian's, or an image's path.
    Named(String),
    /// One that is built.
    Built(Box<Build>),
}

impl Needed {
    /// Refuses one that no guest boots, without fetching or building any.
    ///
    /// # Errors
    /// Where it is neither there nor one of Debian's, or is a hypervisor.
    pub fn check(&self, cache: &Cache) -> Result<(), Error> {
        match self {
            Self::Named(path) if path.contains('/') => Kernel::of_image(Path::new(path)).map(drop),
            Self::Named(name) => match cache.kernel(name) {
                Ok(kernel) => kernel.refuse_hypervisor(),
                Err(missing) => name.parse::<Wanted>().map(drop).map_err(|_| missing),
            },
            Self::Built(_) => Ok(()),
        }
    }

    /// Finds, fetches or builds it.
    ///
    /// # Errors
    /// Where it cannot be had, or is a hypervisor.
    pub fn get(&self, cache: &Cache, progress: &mut Progress<'_>) -> Result<Kernel, Error> {
        self.check(cache)?;
        match self {
            Self::Named(path) if path.contains('/') => Kernel::of_image(Path::new(path)),
            Self::Named(name) => named(cache, name, progress),
            Self::Built(wanted) => Ok(build(cache, wanted, progress)?.kernel),
        }
    }

    /// Its name in the cache, or its image's path.
    pub fn name(&self) -> &str {
        match self {
            Self::Named(name) => name,
            Self::Built(build) => &build.name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted;

    #[test]
    fn what_no_guest_boots_is_refused_before_anything_is_fetched() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::at(directory.path().join("kernels")).unwrap();
        let lock = cache.lock("xen-4.17-amd64", &mut |_| ()).unwrap();
        let draft = cache.draft("xen-4.17-amd64", &lock).unwrap();
        std::fs::write(draft.path().join("image"), "xen").unwrap();
        let xen = Kernel { hypervisor: true, image: "image".into(), ..scripted::kernel("xen-4.17-amd64") };
        draft.publish(&xen).unwrap();
        let refused = |name: &str| Needed::Named(name.into()).check(&cache).map_err(|error| error.message);
        assert_eq!(refused("xen-4.17-amd64").unwrap_err(), "xen-4.17-amd64 is a hypervisor, and no kernel");
        assert!(refused("no-such-kernel").is_err() && refused("/no/such/image").is_err());
        assert_eq!(refused("debian-6.1-rt-amd64"), Ok(()), "it can be fetched");
    }
}
