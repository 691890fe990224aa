//! The one error of whatever ends at a user: a message, a hint, and what caused it.
//!
//! Crates that answer differently to different causes have enums of their own; on the way up they become this.
//!
//! ```
//! use failure::Error;
//!
//! let errno = std::io::Error::from_raw_os_error(13);
//! let error = Error::new(format!("open /dev/cpu_dma_latency: {errno}"), "run as root").caused_by(errno);
//! assert_eq!(error.to_string(), "open /dev/cpu_dma_latency: Permission denied (os error 13)");
//! ```

mod alike;

pub use alike::did_you_mean;

use std::fmt::{self, Display};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// An error for the user. It can be sent to another process; its source stays behind.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Error {
    /// What was tried, on what, and what the answer was.
    pub message: String,
    /// What to do about it; may be empty.
    #[serde(default)]
    pub hint: String,
    #[serde(skip)]
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

/// Result of what can fail so.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// With a hint, which may be empty.
    pub fn new(message: impl Display, hint: impl Display) -> Self {
        Self { message: message.to_string(), hint: hint.to_string(), source: None }
    }

    /// With what caused it.
    #[must_use]
    pub fn caused_by(self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self { source: Some(Arc::new(source)), ..self }
    }

    /// With another hint.
    #[must_use]
    pub fn with_hint(self, hint: impl Display) -> Self {
        Self { hint: hint.to_string(), ..self }
    }
}

impl Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

/// The same for whoever reads it.
impl PartialEq for Error {
    fn eq(&self, other: &Self) -> bool {
        (&self.message, &self.hint) == (&other.message, &other.hint)
    }
}

impl Eq for Error {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error as _;

    #[test]
    fn an_error_keeps_its_words_on_the_way_to_another_process_and_leaves_its_source() {
        let error = Error::new("read x: gone", "look elsewhere").caused_by(std::io::Error::other("gone"));
        assert_eq!(error.source().map(ToString::to_string).as_deref(), Some("gone"));
        let sent: Error = serde_json::from_str(&serde_json::to_string(&error).unwrap()).unwrap();
        assert_eq!((&sent, sent.source().is_some()), (&error, false));
    }
}
