//! When a rule is asked: a fact and what it must be.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;

use crate::want::{ParseWantError, Want};

/// `FACT WANT`: `architecture = x86_64`, `kernel >= 5.12`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Condition {
    /// The fact's name.
    pub fact: String,
    /// What it must be.
    pub want: Want,
}

/// Why a text is no condition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseConditionError {
    /// No fact, or nothing behind it.
    #[error(
        "`{0}` is not a condition: write a fact's name and what it must be, as in `architecture = x86_64`"
    )]
    Malformed(String),
    /// A fact, and no want.
    #[error("in the condition `{text}`: {error}")]
    Want {
        /// The whole condition.
        text: String,
        /// What is wrong.
        error: ParseWantError,
    },
}

impl TryFrom<String> for Condition {
    type Error = ParseConditionError;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl FromStr for Condition {
    type Err = ParseConditionError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let malformed = || ParseConditionError::Malformed(text.to_owned());
        let (fact, want) = text.trim().split_once(char::is_whitespace).ok_or_else(malformed)?;
        let want =
            want.parse().map_err(|error| ParseConditionError::Want { text: text.to_owned(), error })?;
        Ok(Self { fact: fact.to_owned(), want })
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.fact, self.want)
    }
}
