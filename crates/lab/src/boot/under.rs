//! A hypervisor between QEMU's machine and the guest's kernel, which is its first domain (dom0).

use record::LabHypervisor;

use machine::KernelConfig;

use super::device::Device;
use super::guest::Under;
use super::memory_file::MemoryFile;
use crate::kernels::{Architecture, Kernel};
use crate::{Error, hash, input};

/// Xen's own words. Its console is the first serial port, which dom0's `hvc0` is shown on; what Xen has no use for, as the
/// second port, is dom0's. Memory and scheduler stay as Xen chooses: there is no other domain.
/// (Xen's docs/misc/xen-command-line.pandoc.)
const OWN: [&str; 2] = ["console=com1", "com1=115200,8n1"];

/// The CPU under Xen. With `max`, which has SMAP, dom0 dies in its first instructions: Xen faults where it writes to dom0's
/// stack (Xen 4.17, QEMU 7.2). A kernel that is to be compared wants the same one: --cpu-model.
pub(crate) const CPU: &str = "qemu64";

/// dom0's console: Xen shows on its own what is written to it.
pub(crate) const CONSOLE: &str = "hvc0";

/// The parameters in `texts`, as Xen takes them apart (`cmdline_parse`, xen/common/kernel.c): each blank parts, and quotes are
/// letters. What stands behind ` -- ` is the first domain's (`__start_xen`, xen/arch/x86/setup.c).
///
/// # Errors
/// A quote, with which nobody means a letter; `--`.
pub fn split(texts: &[String]) -> Result<Vec<String>, Error> {
    let words: Vec<String> =
        texts.iter().flat_map(|text| text.split_ascii_whitespace()).map(str::to_owned).collect();
    if words.iter().any(|word| word == "--") {
        return Err(Error::new("`--` ends the hypervisor's parameters: what follows is the kernel's")
            .hint("leave it out: --append has the kernel's"));
    }
    match words.iter().find(|word| word.contains(['"', '\''])) {
        None => Ok(words),
        Some(word) => Err(Error::new(format!(
            "the hypervisor's command line knows no quotes: it would take the one in `{word}` for a letter"
        ))
        .hint("leave the quotes out: none of its parameters has a blank in it")),
    }
}

impl Under {
    /// Its whole command line.
    pub(crate) fn command_line(&self) -> String {
        let own = OWN.into_iter().map(str::to_owned);
        own.chain(self.words.iter().cloned()).collect::<Vec<_>>().join(" ")
    }

    /// The hypervisor in memory, and what records say of it.
    ///
    /// # Errors
    /// Where it cannot be read, or is not what came into the cache.
    pub(crate) fn load(&self) -> Result<(MemoryFile, LabHypervisor), Error> {
        let bytes = input::read(&self.hypervisor.image)?;
        let image = hash::of(&bytes);
        self.hypervisor.verify(&image)?;
        let version = self.hypervisor.release.clone();
        let described = LabHypervisor { version, command_line: self.command_line(), image };
        Ok((MemoryFile::of("hypervisor", &bytes)?, described))
    }
}

/// Refuses what cannot be under a hypervisor, or was not tried.
///
/// # Errors
/// What is refused, and what to take instead.
pub fn check(kernel: &Kernel, under: &Under, devices: &[Device]) -> Result<(), Error> {
    let name = &under.hypervisor.name;
    if !under.hypervisor.hypervisor {
        return Err(Error::new(format!("{name} is a kernel, and no hypervisor"))
            .hint("worstcase lab kernels fetch xen brings one; worstcase lab kernels list shows its name"));
    }
    if kernel.architecture != Architecture::Amd64 {
        return Err(Error::new(format!(
            "{name} is for amd64, and {} for {}",
            kernel.name, kernel.architecture
        ))
        .hint("name a kernel for amd64"));
    }
    if let Some(device) = devices.iter().find(|device| **device != Device::EduUio) {
        return Err(Error::new(format!("--device {device} was not tried under {name}"))
            .hint("edu-uio alone was; run the kernel without --under for others"));
    }
    check_config(kernel, name)
}

/// What a configuration says of a kernel that is to be dom0; a kernel without one is tried.
fn check_config(kernel: &Kernel, name: &str) -> Result<(), Error> {
    let Some(path) = &kernel.config else { return Ok(()) };
    let config = KernelConfig::parse(&input::text(path)?);
    if config.value_of("XEN_DOM0") != "y" {
        return Err(Error::new(format!(
            "{} cannot be the first domain of {name}: CONFIG_XEN_DOM0 is not set",
            kernel.name
        ))
        .hint("Debian's plain kernels have it: debian-6.1-amd64, debian-6.12-amd64"));
    }
    if config.value_of("PREEMPT_RT") == "y" {
        return Err(Error::new(format!(
            "{} is PREEMPT_RT: such kernels hang while they boot as the first domain of {name}",
            kernel.name
        ))
        .hint("take a kernel without PREEMPT_RT; docs/lab.md says what was seen of 6.1 and 6.12"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot::Guest;
    use crate::scripted;

    fn check(guest: &Guest) -> Result<(), Error> {
        super::check(&guest.kernel, guest.under.as_ref().unwrap(), &guest.devices)
    }

    fn guest() -> Guest {
        let hypervisor = Kernel { hypervisor: true, ..scripted::kernel("xen-4.17-amd64") };
        let under = Under { hypervisor, words: vec!["sched=null".into()] };
        Guest { under: Some(under), ..scripted::guest("plain") }
    }

    #[test]
    fn what_cannot_be_under_a_hypervisor_is_refused_by_name() {
        assert!(check(&guest()).is_ok());
        let refused = |change: &dyn Fn(&mut Guest)| {
            let mut guest = guest();
            change(&mut guest);
            check(&guest).unwrap_err().message
        };
        assert!(
            refused(&|guest| guest.kernel.architecture = Architecture::Arm64).contains("and plain for arm64")
        );
        assert!(
            refused(&|guest| guest.devices = vec![Device::Kvm])
                .starts_with("--device kvm was not tried under xen-4.17")
        );
        let no_hypervisor = |guest: &mut Guest| guest.under.as_mut().unwrap().hypervisor.hypervisor = false;
        assert!(refused(&no_hypervisor).ends_with("is a kernel, and no hypervisor"));
        assert!(crate::boot::check_watched(&guest()).unwrap_err().message.contains("under xen-4.17-amd64"));
    }

    #[test]
    fn a_kernel_that_is_not_built_for_it_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let config = directory.path().join("config");
        let mut guest = guest();
        guest.kernel.config = Some(config.clone());
        std::fs::write(&config, "CONFIG_XEN_DOM0=y\n").unwrap();
        assert!(check(&guest).is_ok());
        std::fs::write(&config, "# CONFIG_XEN_DOM0 is not set\n").unwrap();
        assert!(check(&guest).unwrap_err().message.contains("CONFIG_XEN_DOM0 is not set"));
        std::fs::write(&config, "CONFIG_XEN_DOM0=y\nCONFIG_PREEMPT_RT=y\n").unwrap();
        assert!(check(&guest).unwrap_err().message.contains("is PREEMPT_RT: such kernels hang"));
    }

    #[test]
    fn quotes_of_a_hypervisors_parameter_are_refused_in_its_name() {
        let split = |text: &str| super::split(&[text.to_owned(), "sched=null".into()]);
        assert_eq!(split(" dom0_mem=512M  noreboot").unwrap(), ["dom0_mem=512M", "noreboot", "sched=null"]);
        for text in ["quoted \"x\"", "a=\"b c\"", "it's", "x -- y", "--"] {
            let error = split(text).unwrap_err();
            assert!(error.message.contains("the hypervisor's") && error.hint.is_some(), "{error}");
        }
    }

    #[test]
    fn the_users_words_come_last() {
        let line = guest().under.unwrap().command_line();
        assert_eq!(line, "console=com1 com1=115200,8n1 sched=null");
    }
}
