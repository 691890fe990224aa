//! What a command fails with: what was tried, and what to do.

use std::fmt::Display;

/// An error for the user, with a hint.
#[derive(Debug)]
pub struct CommandError {
    /// What was tried, on what, and what the answer was.
    pub message: String,
    /// What to do about it; may be empty.
    pub hint: String,
}

/// Result of a command.
pub type Result<T> = std::result::Result<T, CommandError>;

impl CommandError {
    /// With a hint.
    pub fn new(message: impl Display, hint: impl Display) -> Self {
        Self { message: message.to_string(), hint: hint.to_string() }
    }
}

impl From<record::store::StoreError> for CommandError {
    fn from(error: record::store::StoreError) -> Self {
        Self::new(&error, error.hint)
    }
}

impl From<probe::ProbeError> for CommandError {
    fn from(error: probe::ProbeError) -> Self {
        Self::new(&error, error.hint())
    }
}

impl From<sys::Error> for CommandError {
    fn from(error: sys::Error) -> Self {
        Self::new(&error, "")
    }
}

impl From<load::Error> for CommandError {
    fn from(error: load::Error) -> Self {
        Self::new(&error, "worstcase load --list says what each load does and needs")
    }
}

impl From<sysroot::TreeError> for CommandError {
    fn from(error: sysroot::TreeError) -> Self {
        Self::new(
            &error,
            "name a file that worstcase snapshot wrote, or a directory with a copy of /proc and /sys",
        )
    }
}

impl From<lab::Error> for CommandError {
    fn from(error: lab::Error) -> Self {
        Self::new(&error, error.hint.as_deref().unwrap_or_default())
    }
}

impl From<tune::Error> for CommandError {
    fn from(error: tune::Error) -> Self {
        Self::new(&error, error.hint)
    }
}

impl From<trial::Error> for CommandError {
    fn from(error: trial::Error) -> Self {
        Self::new(&error, &error.hint)
    }
}

impl From<CommandError> for trial::Error {
    fn from(error: CommandError) -> Self {
        Self::new(error.message, error.hint)
    }
}
