//! A guest under the microscope: the plugin in a file in memory, and the file that it writes to.

use super::guest::{Guest, Time};
use super::memory_file::MemoryFile;
use crate::Error;
use crate::kernels::Architecture;
use crate::qemu::Emulator;

/// What the plugin is to look for.
#[derive(Clone, Debug)]
pub enum Target {
    /// Wake-ups: their times on the guest's `CLOCK_MONOTONIC` and how late they were, in nanoseconds.
    WakeUps(Vec<(u64, u64)>),
    /// Sections with interrupts or preemption off, from and until these times on that clock, in nanoseconds: apart, in order.
    Sections(Vec<(u64, u64)>),
    /// Stretches of instructions: how many had begun at their end, and how many they are.
    Stretches(Vec<(u64, u64)>),
}

impl Target {
    /// The plugin's argument.
    fn argument(&self) -> String {
        let (name, pairs) = match self {
            Self::WakeUps(pairs) => ("wanted", in_order(pairs)),
            Self::Sections(pairs) => ("ranges", pairs.clone()),
            Self::Stretches(pairs) => ("stretches", in_order(pairs)),
        };
        list(name, &pairs)
    }
}

fn list(name: &str, pairs: &[(u64, u64)]) -> String {
    let pairs: Vec<String> = pairs.iter().map(|(one, other)| format!("{one:x}-{other:x}")).collect();
    format!("{name}={}", pairs.join(":"))
}

fn in_order(pairs: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let mut pairs = pairs.to_vec();
    pairs.sort_unstable();
    pairs.dedup();
    pairs
}

/// What the plugin is to look for, and where.
#[derive(Clone, Debug)]
pub struct Watched {
    /// What to look for.
    pub target: Target,
    /// Addresses by the plugin's names for them.
    pub addresses: Vec<(&'static str, u64)>,
    /// Where interrupts begin that are taken before an instruction runs with interrupts on: from, until.
    pub entries: Vec<(u64, u64)>,
}

/// Files of a guest that is watched.
#[derive(Debug)]
pub(crate) struct Watch {
    library: MemoryFile,
    stream: MemoryFile,
    arguments: String,
}

impl Watch {
    /// Makes them.
    pub fn new(watched: &Watched, guest: &Guest) -> Result<Self, Error> {
        let mut arguments = format!("{},memory={:x}", watched.target.argument(), guest.memory.0);
        for (name, address) in &watched.addresses {
            arguments.push_str(&format!(",{name}={address:x}"));
        }
        if !watched.entries.is_empty() {
            arguments.push_str(&format!(",{}", list("entries", &watched.entries)));
        }
        Ok(Self {
            library: MemoryFile::of("plugin", plugin::LIBRARY)?,
            stream: MemoryFile::new("stream")?,
            arguments,
        })
    }

    /// The file that the plugin writes to.
    pub fn stream(&self) -> Result<MemoryFile, Error> {
        self.stream.again()
    }

    /// QEMU's argument for it.
    pub fn pass_to(
        &self,
        pass: &mut impl FnMut(&MemoryFile) -> Result<String, Error>,
    ) -> Result<String, Error> {
        Ok(format!("{},out={},{}", pass(&self.library)?, pass(&self.stream)?, self.arguments))
    }
}

/// Interrupts are then off where the controller has a priority mask.
fn is_pseudo_nmi(word: &str) -> bool {
    word.starts_with("irqchip.gicv3_pseudo_nmi=") && !word.ends_with("=0")
}

/// Refuses guests that the plugin does not know, and emulators that do not load it.
///
/// # Errors
/// What the guest is, or that there is no emulator for it.
pub fn check_watched(guest: &Guest) -> Result<(), Error> {
    if let Some(under) = &guest.under {
        return Err(Error::new(format!(
            "the microscope does not look under {}: it knows one kernel's addresses and stacks, and there are two",
            under.hypervisor.name
        ))
        .hint("run the same kernel without --under to see its instructions"));
    }
    if plugin::LIBRARY.is_empty() {
        return Err(Error::new("this worstcase was built without the plugin for QEMU")
            .hint("the microscope runs on amd64 and arm64 hosts"));
    }
    if guest.kernel.architecture == Architecture::Arm64 && guest.words.iter().any(|word| is_pseudo_nmi(word))
    {
        return Err(Error::new("the microscope has no guests with pseudo-NMIs").hint(
            "the interrupt controller masks interrupts then, and the plugin reads the CPU's own masks only",
        ));
    }
    if guest.time != Time::Instructions {
        return Err(Error::new("a guest in wall time runs differently each time")
            .hint("measure in a guest with --time instructions"));
    }
    check_emulator(&Emulator::find(guest.kernel.architecture)?.version)
}

fn check_emulator(version: &str) -> Result<(), Error> {
    let major = version.trim_start_matches("QEMU ").split('.').next().and_then(|word| word.parse().ok());
    if major.is_some_and(|major: u32| plugin::EMULATORS.contains(&major)) {
        return Ok(());
    }
    let (first, last) = (plugin::EMULATORS.start(), plugin::EMULATORS.end());
    Err(Error::new(format!("{version} does not load the microscope's plugin"))
        .hint(format!("it is for version 1 of QEMU's plugin interface: QEMU {first}.2 to {last}.2")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_emulator_with_another_plugin_interface_is_refused() {
        assert!(check_emulator("QEMU 7.2.22").is_ok() && check_emulator("QEMU 8.2.0").is_ok());
        for version in ["QEMU 6.1.0", "QEMU 9.0.0", "QEMU 10.0.2", "QEMU of unknown version"] {
            let error = check_emulator(version).unwrap_err();
            assert!(error.message.starts_with(version), "{error}");
        }
    }
}
