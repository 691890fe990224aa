//! What is known about one thing of a machine: unreadable is not off, absent is not unset.

use serde::{Deserialize, Serialize};

/// A value, or why there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Fact_of_{T}"))]
#[serde(rename_all = "kebab-case")]
pub enum Fact<T> {
    /// It was read.
    Value(T),
    /// The file or entry that would say it does not exist.
    Absent,
    /// It exists and could not be read: the kernel's errno.
    Unreadable(i32),
    /// This architecture, kernel or program has no such thing, or it was not asked for.
    #[default]
    Unsupported,
}

impl<T> Fact<T> {
    /// The value, if it was read.
    pub fn value(&self) -> Option<&T> {
        match self {
            Self::Value(value) => Some(value),
            _ => None,
        }
    }

    /// Whether there is nothing that could have been read.
    pub(crate) fn is_silent(&self) -> bool {
        matches!(self, Self::Absent | Self::Unsupported)
    }

    /// The same state with another value.
    pub fn map<U>(self, convert: impl FnOnce(T) -> U) -> Fact<U> {
        self.and_then(|value| Fact::Value(convert(value)))
    }

    /// The same state, or what `convert` makes of the value.
    pub fn and_then<U>(self, convert: impl FnOnce(T) -> Fact<U>) -> Fact<U> {
        match self {
            Self::Value(value) => convert(value),
            Self::Absent => Fact::Absent,
            Self::Unreadable(errno) => Fact::Unreadable(errno),
            Self::Unsupported => Fact::Unsupported,
        }
    }
}

/// The value, or the state in words.
impl<T: std::fmt::Display> std::fmt::Display for Fact<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Value(value) => value.fmt(f),
            Self::Absent => f.pad("absent"),
            Self::Unreadable(errno) => f.pad(&format!("unreadable: {}", units::errno_in_words(*errno))),
            Self::Unsupported => f.pad("unknown"),
        }
    }
}
