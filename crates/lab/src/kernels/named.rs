//! Kernels by the names that people write into files and commands.

use super::{Cache, Kernel, Progress, Wanted, fetch};
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
