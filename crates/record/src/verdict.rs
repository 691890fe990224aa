//! Pass, fail, inconclusive or error, and why.
//!
//! A latency over the limit is a failure whatever the environment: it happened. Below the limit, harmed validity
//! makes the verdict inconclusive. Without a limit nothing can fail. An error weighs more than inconclusive and
//! less than a failure.

use serde::{Deserialize, Serialize};
use units::Nanos;

use crate::{Effect, Record, ScenarioEnd, Warning, WarningId};

/// What a run means for its requirement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The requirement was met, or none was given and the figures stand.
    Pass,
    /// The environment was not what the figures need.
    #[default]
    Inconclusive,
    /// Something could not be done or was lost.
    Error,
    /// A latency over the limit was seen.
    Fail,
}

impl Verdict {
    /// The exit code of a command that ends with this verdict.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Pass => 0,
            Self::Fail => 1,
            Self::Error => 2,
            Self::Inconclusive => 3,
        }
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Error => "error",
            Self::Inconclusive => "inconclusive",
        })
    }
}

/// A verdict with its reasons.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// Why, weightiest first.
    pub reasons: Vec<String>,
    /// For which requirement this evidence speaks.
    pub speaks_for: String,
    /// For which it does not.
    pub does_not_speak_for: String,
}
