//! Why a record could not be written or read: of runs (`store`) and of costs (`cost`).

use std::path::Path;

/// Why a record could not be written or read.
#[derive(Debug, thiserror::Error)]
#[error("{action} {path}: {reason}")]
pub struct StoreError {
    /// What was tried.
    pub action: &'static str,
    /// On which path.
    pub path: String,
    /// What the system answered.
    pub reason: String,
    /// What to do about it.
    pub hint: &'static str,
}

impl StoreError {
    pub(crate) fn new(action: &'static str, path: &Path, reason: impl ToString, hint: &'static str) -> Self {
        Self { action, path: path.display().to_string(), reason: reason.to_string(), hint }
    }

    pub(crate) fn of(error: files::Error, hint: &'static str) -> Self {
        Self::new(error.operation, &error.path, error.source, hint)
    }
}
