//! The root of a guest: this program as process 1, more programs, modules, the plan. The same guest makes the same
//! bytes.

pub(crate) mod cpio;
pub(crate) mod elf;
pub(crate) mod modules;
pub(crate) mod programs;
mod tree;

use std::path::Path;

use record::Digest;

use crate::boot::guest::Guest;
use crate::guest::plan::{BLOCKS, Module, PATH, Plan};
use crate::{Error, hash, input};
use cpio::Archive;

/// What a guest begins with, but for its plan.
#[derive(Debug)]
pub(crate) struct Root(Archive);

impl Root {
    /// The root of `guest`. `blocks` are the disk's, where the guest writes it itself.
    pub fn new(guest: &Guest, modules: Vec<modules::Module>, blocks: Option<Vec<u8>>) -> Result<Self, Error> {
        let mut archive = Archive::default();
        // Before anything is mounted: where process 1 says what is wrong, and what its standard library opens.
        archive.device("/dev/console", 5, 1);
        archive.device("/dev/null", 1, 3);
        for directory in ["/proc", "/sys", "/tmp", "/run", "/bin", "/sbin", "/usr/bin", "/usr/sbin"] {
            archive.directory(directory);
        }
        archive.file("/etc/passwd", b"root:x:0:0:root:/:/bin/sh\n".to_vec());
        archive.file("/etc/group", b"root:x:0:\n".to_vec());
        if let Some(system) = &guest.system {
            tree::put(&mut archive, system)?;
        }
        if !archive.contains(Path::new("/bin/worstcase")) {
            archive.link("/bin/worstcase", "/init");
        }
        programs::put(&mut archive, &guest.binary, Path::new("/init"), guest.kernel.architecture)?;
        for program in &guest.programs {
            put_program(&mut archive, guest, program)?;
        }
        put_configuration(&mut archive, guest)?;
        for module in modules {
            archive.file(Module::path(&module.name), module.bytes);
        }
        if let Some(blocks) = blocks {
            archive.file(BLOCKS, blocks);
        }
        Ok(Self(archive))
    }

    /// Its hash: guests that only differ in their command, their seed or their parameters have the same.
    pub fn digest(&self) -> Digest {
        hash::of(&self.0.bytes())
    }

    /// The archive with the plan in it.
    pub fn with(mut self, plan: &Plan) -> Result<Vec<u8>, Error> {
        let plan =
            serde_json::to_vec(plan).map_err(|error| Error::new(format!("write the plan: {error}")))?;
        self.0.file(PATH, plan);
        Ok(self.0.bytes())
    }
}

/// Where a distribution has it, for kernels that do not carry it themselves.
fn put_configuration(archive: &mut Archive, guest: &Guest) -> Result<(), Error> {
    let Some(path) = guest.kernel.config.as_ref().filter(|_| !guest.kernel.release.is_empty()) else {
        return Ok(());
    };
    archive.file(format!("/boot/config-{}", guest.kernel.release), input::read(path)?);
    Ok(())
}

fn put_program(archive: &mut Archive, guest: &Guest, program: &Path) -> Result<(), Error> {
    let found = programs::find(program).ok_or_else(|| {
        Error::new(format!("{} is no program on this machine", program.display()))
            .hint("install it, or name its file")
    })?;
    let name = program.file_name().unwrap_or(program.as_os_str());
    programs::put(archive, &found, &Path::new("/bin").join(name), guest.kernel.architecture)
}
