//! Scheduling policies and priorities, sched(7).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A scheduling policy of sched(7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// `SCHED_OTHER`: the fair class.
    Other,
    /// `SCHED_FIFO`: runs until it blocks or something of higher priority wakes.
    Fifo,
    /// `SCHED_RR`: as FIFO with a time slice among equals.
    Rr,
    /// `SCHED_BATCH`.
    Batch,
    /// `SCHED_IDLE`.
    Idle,
    /// `SCHED_DEADLINE`: a reservation of run time per period.
    Deadline,
    /// A policy number that this program does not know (`SCHED_EXT` and later).
    Unknown,
}

impl Policy {
    /// The kernel's number for it, `include/uapi/linux/sched.h`.
    pub const fn number(self) -> u32 {
        match self {
            Self::Other => 0,
            Self::Fifo => 1,
            Self::Rr => 2,
            Self::Batch => 3,
            Self::Idle => 5,
            Self::Deadline => 6,
            Self::Unknown => u32::MAX,
        }
    }

    /// What the kernel's headers and sched(7) call it.
    pub const fn kernel_name(self) -> &'static str {
        match self {
            Self::Other => "SCHED_OTHER",
            Self::Fifo => "SCHED_FIFO",
            Self::Rr => "SCHED_RR",
            Self::Batch => "SCHED_BATCH",
            Self::Idle => "SCHED_IDLE",
            Self::Deadline => "SCHED_DEADLINE",
            Self::Unknown => "an unknown policy",
        }
    }

    /// The policy that the kernel means by `number`.
    pub const fn from_number(number: u32) -> Self {
        match number {
            0 => Self::Other,
            1 => Self::Fifo,
            2 => Self::Rr,
            3 => Self::Batch,
            5 => Self::Idle,
            6 => Self::Deadline,
            _ => Self::Unknown,
        }
    }

    /// Whether a thread of this policy runs before every `SCHED_OTHER` thread.
    pub const fn is_real_time(self) -> bool {
        matches!(self, Self::Fifo | Self::Rr | Self::Deadline)
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Other => "other",
            Self::Fifo => "fifo",
            Self::Rr => "rr",
            Self::Batch => "batch",
            Self::Idle => "idle",
            Self::Deadline => "deadline",
            Self::Unknown => "unknown",
        })
    }
}

impl FromStr for Policy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "fifo" => Ok(Self::Fifo),
            "rr" => Ok(Self::Rr),
            "other" => Ok(Self::Other),
            _ => Err(format!("`{text}` is not a policy for a probe: fifo, rr or other")),
        }
    }
}

/// A real-time priority, 1 (lowest) to 99 (highest).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(extend("minimum" = 1, "maximum" = 99)))]
#[serde(try_from = "u8", into = "u8")]
pub struct Priority(u8);

/// A priority outside 1..=99.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a real-time priority: 1 (lowest) to 99 (highest)")]
pub struct PriorityOutOfRange(String);

impl Priority {
    /// The priority as the kernel takes it.
    pub const fn get(self) -> u8 {
        self.0
    }
}

impl TryFrom<u8> for Priority {
    type Error = PriorityOutOfRange;
    fn try_from(value: u8) -> Result<Self, Self::Error> {
        if (1..=99).contains(&value) { Ok(Self(value)) } else { Err(PriorityOutOfRange(value.to_string())) }
    }
}

impl From<Priority> for u8 {
    fn from(priority: Priority) -> Self {
        priority.0
    }
}

impl FromStr for Priority {
    type Err = PriorityOutOfRange;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let value: u8 = text.trim().parse().map_err(|_| PriorityOutOfRange(text.to_owned()))?;
        Self::try_from(value).map_err(|_| PriorityOutOfRange(text.to_owned()))
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_are_1_to_99() {
        assert_eq!("98".parse::<Priority>().unwrap().get(), 98);
        for text in ["0", "100", "-1", "", "high"] {
            assert!(text.parse::<Priority>().is_err(), "{text}");
        }
        assert!(serde_json::from_str::<Priority>("0").is_err());
    }

    #[test]
    fn policy_numbers_are_the_kernels() {
        for number in 0..8 {
            let policy = Policy::from_number(number);
            assert!(policy == Policy::Unknown || policy.number() == number, "{number}: {policy:?}");
        }
    }
}
