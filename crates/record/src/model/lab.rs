//! What the lab says of a guest that it booted: what the guest itself cannot know.

use serde::{Deserialize, Serialize};

use super::plan::names;

/// What a guest's clock counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum LabTime {
    /// Instructions: one is counted as a nanosecond. One CPU, and every run with the same seed is the same run.
    Instructions,
    /// The host's time, of an emulated machine: timings mean nothing.
    Wall,
}

impl LabTime {
    /// What a real machine has and a guest in this time has not, in the words of reports.
    pub fn not_modelled(self) -> Vec<String> {
        let missing: &[&str] = match self {
            Self::Instructions => &[
                "caches",
                "TLBs",
                "memory and buses",
                "other CPUs",
                "idle states",
                "frequency changes",
                "devices' own time",
            ],
            Self::Wall => &["time: emulated instructions last as long as the host makes them"],
        };
        missing.iter().map(|what| (*what).to_owned()).collect()
    }
}

/// The guest that a run was made in, and the emulator under it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Lab {
    /// What the guest's clock counts.
    pub time: LabTime,
    /// The kernel's name in the lab: `debian-6.1-rt-amd64`.
    pub kernel: String,
    /// The boot words asked for, without those that the lab needs itself.
    pub words: Vec<String>,
    /// The emulator with its version: `QEMU 7.2.17`.
    pub emulator: String,
    /// The CPU model as the emulator was told it: `max,-rdrand,-rdseed,-erms,-fsrm`.
    pub cpu_model: String,
    /// How many CPUs the guest was given.
    pub processors: u32,
    /// What is not modelled: [`LabTime::not_modelled`].
    pub not_modelled: Vec<String>,
}

names! {
    LabTime { Instructions => "instructions", Wall => "wall" }
}
