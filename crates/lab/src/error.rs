//! What goes wrong in the lab, with what to do about it.

/// An error that says what was tried, and a hint where there is one.
#[derive(Clone, Debug, thiserror::Error)]
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

    /// Message and hint in one text, where there is no place for two.
    pub fn with_hint(self) -> String {
        let hint = self.hint.filter(|hint| !hint.is_empty());
        hint.map_or(self.message.clone(), |hint| format!("{}\n({hint})", self.message))
    }

    /// The same error with a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl From<Error> for failure::Error {
    fn from(error: Error) -> Self {
        Self::new(&error, error.hint.as_deref().unwrap_or_default())
    }
}

impl From<failure::Error> for Error {
    fn from(error: failure::Error) -> Self {
        Self::new(error.message).hint(error.hint)
    }
}
