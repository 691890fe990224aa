//! Which kernel a guest boots.

use std::path::Path;

use lab::kernels::{Cache, Kernel};

use failure::Result;

/// The image in that file, if `name` is a path with a `/`; else the kernel of that name in the cache.
pub fn kernel(name: &Path) -> Result<Kernel> {
    match name.to_str().filter(|name| !name.contains('/')) {
        Some(name) => Ok(Cache::of_user()?.kernel(name)?),
        None => Ok(Kernel::of_image(name)?),
    }
}
