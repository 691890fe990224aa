//! What goes wrong in the lab, with what to do about it.

/// An error that says what was tried, and a hint where there is one.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// What was tried, on which path, and what came of it.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Error {
    /// An error without a hint.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }

    /// The same error with a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}
