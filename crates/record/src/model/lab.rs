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

impl Lab {
    /// The environment variable in which process 1 of the lab's guests describes the guest to its command: a [`Lab`] as JSON.
    pub const VARIABLE: &str = "WORSTCASE_LAB";

    /// The guest that this program runs in, if the lab booted it.
    ///
    /// # Errors
    /// The variable is there, and does not describe a guest.
    pub fn of_this_guest() -> serde_json::Result<Option<Self>> {
        let value = std::env::var_os(Self::VARIABLE);
        value.map(|value| crate::json::read(value.to_string_lossy().as_bytes())).transpose()
    }
}

/// The guest that a run was made in, and the emulator under it.
///
/// A guest in instruction time reads this before it measures, and each byte of it moves the draw. So it holds nothing
/// that only has a name: the kernel's name in the cache stands in `lab.json` on the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Lab {
    /// What the guest's clock counts.
    pub time: LabTime,
    /// The kernel's name in the lab: `debian-6.1-rt-amd64`. Only records of older versions have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// The kernel parameters asked for, without those that the lab needs itself.
    pub words: Vec<String>,
    /// The emulator with its version: `QEMU 7.2.17`.
    pub emulator: String,
    /// The CPU model that the emulator was given: `max,-rdrand,-rdseed,-erms,-fsrm`.
    pub cpu_model: String,
    /// The hypervisor under which the guest's kernel ran, as its first domain; none where it ran on the emulated machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub under: Option<LabHypervisor>,
    /// How many CPUs the guest was given.
    pub processors: u32,
    /// What is not modelled: [`LabTime::not_modelled`].
    pub not_modelled: Vec<String>,
    /// What the guest was made of. Records of older versions do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub images: Option<LabImages>,
    /// What the guest's kernel made of each parameter in `words`, as it stood before the command began. Records of
    /// older versions do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Vec<KernelParameter>>,
}

/// The hypervisor under a guest's kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LabHypervisor {
    /// Its package's version: `4.17.7+13-g2445b30a44-0+deb12u1`.
    pub version: String,
    /// Its command line.
    pub command_line: String,
    /// The hypervisor's image, as it lies on the host.
    pub image: Digest,
}

impl std::fmt::Display for LabHypervisor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Xen {} ({})", self.version, self.command_line)
    }
}

/// A SHA-256, in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Digest(pub String);

impl Digest {
    /// Its first 12 digits, enough to tell two images apart by eye.
    pub fn short(&self) -> &str {
        self.0.get(..12).unwrap_or(&self.0)
    }
}

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&self.0)
    }
}

/// The files that a guest was made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LabImages {
    /// The kernel's image, as it lies on the host.
    pub kernel: Digest,
    /// The kernel as the emulator got it: unpacked on the host, where the host could.
    pub booted: Digest,
    /// The worstcase that ran in the guest, as it lies on the host.
    pub binary: Digest,
    /// The guest's root: programs, libraries, modules, the disk's blocks; without the file that holds the command.
    pub initramfs: Digest,
}

/// A kernel parameter that was asked for, and what the guest's kernel made of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KernelParameter {
    /// As it stood on the kernel's command line.
    pub word: String,
    /// Whether the kernel read it.
    pub answer: ParameterAnswer,
    /// What shows it: a line of the kernel's log, a file, or why neither can.
    pub evidence: String,
}

/// Whether a kernel read a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ParameterAnswer {
    /// The kernel read it.
    Read,
    /// The kernel knows no such parameter, or was built without it.
    NotRead,
    /// The kernel knows it and complained about its value.
    Refused,
    /// Neither the log nor a file can show it.
    Unknown,
}

impl ParameterAnswer {
    /// Whether the parameter surely did not do what was asked for.
    pub fn is_without_effect(self) -> bool {
        matches!(self, Self::NotRead | Self::Refused)
    }
}

impl std::fmt::Display for ParameterAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Read => "read",
            Self::NotRead => "not read by this kernel",
            Self::Refused => "refused by this kernel",
            Self::Unknown => "not known whether this kernel read it",
        })
    }
}

names! {
    LabTime { Instructions => "instructions", Wall => "wall" }
}
