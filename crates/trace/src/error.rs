//! What went wrong, where, and what to do.

use std::fmt;

/// [`std::result::Result`] with an [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// What was tried, on which path, what the answer was, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{operation} {path}: {reason}")]
pub struct Error {
    /// What was tried: `read`.
    pub operation: &'static str,
    /// On which path.
    pub path: String,
    /// What the answer was.
    pub reason: String,
    /// What to do about it; empty where there is nothing.
    pub hint: String,
}

impl Error {
    pub(crate) fn new(operation: &'static str, path: impl fmt::Display, reason: impl fmt::Display) -> Self {
        let (path, reason) = (path.to_string(), reason.to_string());
        let reason = units::without_errno(&reason).to_owned();
        Self { operation, path, reason, hint: String::new() }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }
}

impl From<Error> for failure::Error {
    fn from(error: Error) -> Self {
        let hint = error.hint.clone();
        Self::new(&error, hint).caused_by(error)
    }
}
