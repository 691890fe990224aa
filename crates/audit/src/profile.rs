//! What the user runs, and so what is wanted of the machine.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What a user runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// Threads that sleep and wake on CPUs that are theirs.
    Isolated,
    /// A loop that never sleeps and makes no system call, on a CPU that is its own.
    Poll,
    /// Low latency on CPUs shared with everything else.
    General,
    /// A stock kernel, not PREEMPT_RT.
    Stock,
    /// PREEMPT_RT.
    Rt,
    /// EVL or Xenomai beside Linux.
    Evl,
    /// A virtual machine.
    Guest,
    /// The host of real-time virtual machines.
    Host,
}

impl Profile {
    /// All, in the order in which they are listed for a user.
    pub const ALL: [Self; 8] = [
        Self::Isolated,
        Self::Poll,
        Self::General,
        Self::Stock,
        Self::Rt,
        Self::Evl,
        Self::Guest,
        Self::Host,
    ];

    /// Its name, as it is typed.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Isolated => "isolated",
            Self::Poll => "poll",
            Self::General => "general",
            Self::Stock => "stock",
            Self::Rt => "rt",
            Self::Evl => "evl",
            Self::Guest => "guest",
            Self::Host => "host",
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A text that names no profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no profile `{0}`; there are isolated, poll, general, stock, rt, evl, guest, host")]
pub struct UnknownProfile(String);

impl FromStr for Profile {
    type Err = UnknownProfile;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let named = Self::ALL.into_iter().find(|profile| profile.name() == text);
        named.ok_or_else(|| UnknownProfile(text.to_owned()))
    }
}

/// Whose want it is: a profile's, or that of all profiles without one of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub enum Asker {
    /// One profile.
    Profile(Profile),
    /// All others: `any`.
    Any,
}

impl TryFrom<String> for Asker {
    type Error = UnknownProfile;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        if text == "any" { Ok(Self::Any) } else { text.parse().map(Self::Profile) }
    }
}

/// How the CPUs are used, which kernel runs, and whether it is a guest or a host: three answers that together say what
/// is wanted. A rule's want is the first that it has for
///
/// 1. `evl`, where EVL or Xenomai runs; it inherits nothing from 2, 3, 5 and 6,
/// 2. `poll`, where a loop polls,
/// 3. `isolated`, where CPUs are set apart, for a polling loop too,
/// 4. `guest` or `host`,
/// 5. `rt` or `stock`,
/// 6. `general`, always,
/// 7. `any`.
///
/// The want `anything` ends the search: the rule is not asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct Profiles {
    /// `isolated`, `poll` or `general`.
    pub usage: Profile,
    /// `stock`, `rt` or `evl`.
    pub kernel: Profile,
    /// `guest`, `host` or neither.
    pub virtualization: Option<Profile>,
}

impl Profiles {
    /// With `profile` in the place of the one that answers the same question.
    pub fn with(self, profile: Profile) -> Self {
        match profile {
            Profile::Isolated | Profile::Poll | Profile::General => Self { usage: profile, ..self },
            Profile::Stock | Profile::Rt | Profile::Evl => Self { kernel: profile, ..self },
            Profile::Guest | Profile::Host => Self { virtualization: Some(profile), ..self },
        }
    }

    /// Those whose want counts, the first first.
    pub fn chain(&self) -> Vec<Asker> {
        let mut chain = Vec::new();
        let usage = match self.usage {
            Profile::Poll => &[Profile::Poll, Profile::Isolated][..],
            Profile::Isolated => &[Profile::Isolated],
            _ => &[],
        };
        if self.kernel == Profile::Evl {
            chain.push(Profile::Evl);
            chain.extend(self.virtualization);
        } else {
            chain.extend(usage);
            chain.extend(self.virtualization);
            chain.extend([self.kernel, Profile::General]);
        }
        chain.into_iter().map(Asker::Profile).chain([Asker::Any]).collect()
    }
}

impl fmt::Display for Profiles {
    /// As they are typed: `guest,stock,general`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.virtualization.into_iter().chain([self.kernel, self.usage]).map(Profile::name);
        f.pad(&names.collect::<Vec<_>>().join(","))
    }
}
