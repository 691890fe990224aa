//! What went wrong with the tool's own files. What the kernel refuses is no error here but an outcome.

use std::io;
use std::path::Path;

/// Result of what touches the state directory.
pub type Result<T> = std::result::Result<T, Error>;

/// What was tried, on which path, what the answer was, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{operation} {path}: {reason}")]
pub struct Error {
    /// What was tried: `write`.
    pub operation: &'static str,
    /// On which path.
    pub path: String,
    /// What the answer was.
    pub reason: String,
    /// What to do about it.
    pub hint: &'static str,
}

impl Error {
    pub(crate) fn new(
        operation: &'static str,
        path: &Path,
        reason: impl ToString,
        hint: &'static str,
    ) -> Self {
        Self { operation, path: path.display().to_string(), reason: reason.to_string(), hint }
    }

    /// For a file of our own.
    pub(crate) fn file(error: files::Error) -> Self {
        let hint = hint(&error.source);
        Self::new(error.operation, &error.path, error.source, hint)
    }

    /// For an answer of the system about `path`.
    pub(crate) fn io<'a>(operation: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> Self + 'a {
        move |error| {
            let hint = hint(&error);
            Self::new(operation, path, error, hint)
        }
    }
}

/// What to do about it. Another place for the journal does not help whoever may not write settings.
fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "run as root",
        _ => files::hint(error),
    }
}

impl From<Error> for failure::Error {
    fn from(error: Error) -> Self {
        Self::new(&error, error.hint)
    }
}
