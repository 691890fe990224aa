//! What a guest is made of, before QEMU is started.

use std::process::Command;

use record::LabImages;

use super::disk::Disk;
use super::guest::{Guest, Time, Under};
use super::kernel;
use super::memory_file::MemoryFile;
use super::under;
use super::watch::Watch;
use crate::guest::plan::{self, Plan};
use crate::initramfs::{self, modules};
use crate::qemu::{self, Emulator, Files, Port};
use crate::{Error, MadeOf, hash, limits};

/// All that QEMU needs, in memory: nothing is left anywhere, however this process ends.
pub(crate) struct Prepared {
    pub emulator: Emulator,
    pub made_of: MadeOf,
    kernel: MemoryFile,
    hypervisor: Option<MemoryFile>,
    initramfs: MemoryFile,
    pub results: MemoryFile,
    pub console: Option<MemoryFile>,
    disk: Option<MemoryFile>,
    pub watch: Option<Watch>,
}

impl Prepared {
    /// Makes it all.
    pub fn new(guest: &Guest, terminal: Option<(u16, u16)>) -> Result<Self, Error> {
        if guest.time == Time::Instructions && guest.processors != 1 {
            return Err(Error::new(
                "in instruction time a guest has one CPU: several take turns on one clock",
            )
            .hint("leave out the number of CPUs, or use --time wall"));
        }
        if let Some(under) = &guest.under {
            under::check(&guest.kernel, under, &guest.devices)?;
        }
        qemu::check_devices(guest)?;
        limits::check_size(guest.processors, guest.memory, guest.disk)?;
        let emulator = Emulator::find(guest.kernel.architecture)?;
        guest.kernel.check()?;
        let disk = guest.disk.map(|size| Disk::make(size, guest.time)).transpose()?;
        let modules = wanted_modules(guest, disk.as_ref())?;
        let names: Vec<String> = modules.iter().map(|module| module.name.clone()).collect();
        let in_guest = disk.as_ref().map(Disk::in_guest);
        let module = |name: &String| plan::Module {
            name: name.clone(),
            parameters: disk.as_ref().map(|disk| disk.parameters(name)).unwrap_or_default(),
        };
        let planned = names.iter().map(module).collect();
        let (blocks, image) = disk.map_or((None, None), Disk::into_parts);
        let root = initramfs::Root::new(guest, modules, blocks)?;
        let kernel = kernel::load(&guest.kernel)?;
        let images = LabImages {
            kernel: kernel.image,
            booted: kernel.booted,
            binary: hash::of_file(&guest.binary)?,
            initramfs: root.digest(),
        };
        let made_of = MadeOf { emulator: emulator.version.clone(), images };
        let under = guest.under.as_ref().map(Under::load).transpose()?;
        let (hypervisor, described) = under.unzip();
        let lab = record::Lab { under: described, ..lab(guest, &made_of) };
        let plan = plan(guest, lab, in_guest, planned, terminal);
        Ok(Self {
            emulator,
            kernel: kernel.file,
            hypervisor,
            initramfs: MemoryFile::of("initramfs", &root.with(&plan)?)?,
            made_of,
            results: MemoryFile::new("results")?,
            console: if terminal.is_none() { Some(MemoryFile::new("console")?) } else { None },
            disk: image,
            watch: None,
        })
    }

    /// Lets QEMU open them.
    pub fn pass_to(&self, command: &mut Command) -> Result<Files, Error> {
        let mut pass = |file: &MemoryFile| file.pass_to(command);
        Ok(Files {
            kernel: pass(&self.kernel)?,
            hypervisor: self.hypervisor.as_ref().map(&mut pass).transpose()?,
            initramfs: pass(&self.initramfs)?,
            port: match &self.console {
                Some(console) => Port::Console(pass(console)?),
                None => Port::Results(pass(&self.results)?),
            },
            disk: self.disk.as_ref().map(&mut pass).transpose()?,
            plugin: self.watch.as_ref().map(|watch| watch.pass_to(&mut pass)).transpose()?,
        })
    }
}

/// What the guest's devices need, as far as it is not built in. A kernel without a tree of modules has all built in.
fn wanted_modules(guest: &Guest, disk: Option<&Disk>) -> Result<Vec<modules::Module>, Error> {
    let Some(directory) = &guest.kernel.modules else { return Ok(Vec::new()) };
    let of_disk = disk.map_or(&[][..], Disk::modules).iter();
    let needed: Vec<&str> =
        of_disk.chain(guest.devices.iter().flat_map(|device| device.modules())).copied().collect();
    modules::Tree::read(directory)?.order(&needed)
}

fn plan(
    guest: &Guest,
    lab: record::Lab,
    disk: Option<plan::Disk>,
    modules: Vec<plan::Module>,
    terminal: Option<(u16, u16)>,
) -> Plan {
    let machine = qemu::machine(guest.kernel.architecture);
    Plan {
        modules,
        bindings: guest.devices.iter().filter_map(|device| device.binding()).collect(),
        disk,
        lab,
        command: guest.command.clone(),
        init: guest.system.as_ref().map(|_| "/sbin/init".into()),
        port: machine.port.into(),
        clock_source: Some(machine.clock_source.into()),
        terminal,
    }
}

/// What records that are made in the guest say of it. Nothing that is but a name on this host: each byte of it moves what
/// the guest measures.
fn lab(guest: &Guest, made_of: &MadeOf) -> record::Lab {
    record::Lab {
        time: guest.time,
        kernel: None,
        words: guest.words.clone(),
        emulator: made_of.emulator.clone(),
        cpu_model: qemu::cpu_model(guest).into(),
        under: None,
        processors: guest.processors,
        not_modelled: guest.time.not_modelled(),
        images: Some(made_of.images.clone()),
        parameters: None,
    }
}
