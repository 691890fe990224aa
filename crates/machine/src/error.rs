//! Why something could not be held.

use rustix::io::Errno;

/// A request that the kernel refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot {operation} {path}: {}", std::io::Error::from_raw_os_error(.errno.raw_os_error()))]
pub struct Error {
    /// What was tried: `open`, `write`.
    pub operation: &'static str,
    /// On which path.
    pub path: String,
    /// What the kernel answered.
    pub errno: Errno,
    /// What to do about it.
    pub hint: &'static str,
}
