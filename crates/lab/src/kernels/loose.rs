//! A kernel that is in no cache: an image where it lies.

use std::path::Path;

use super::image;
use super::{Architecture, Kernel};
use crate::Error;

impl Kernel {
    /// The kernel in `image`. Where it lies as a package holds it, in `boot/`, its modules and its configuration are
    /// found beside it.
    ///
    /// # Errors
    /// The file cannot be read, or is nothing that a guest can boot.
    pub fn of_image(image: &Path) -> Result<Self, Error> {
        let known = image::recognise(image)?;
        let image = std::path::absolute(image).unwrap_or_else(|_| image.to_path_buf());
        let release = known.release.unwrap_or_default();
        let boot = image.parent().unwrap_or(Path::new("/"));
        let modules = boot.parent().unwrap_or(boot).join("lib/modules").join(&release);
        let config = boot.join(format!("config-{release}"));
        let file = image.file_name().unwrap_or(image.as_os_str());
        Ok(Self {
            name: file.to_string_lossy().into_owned(),
            architecture: known.architecture,
            modules: (!release.is_empty() && modules.join("modules.order").is_file()).then_some(modules),
            config: (!release.is_empty() && config.is_file()).then_some(config),
            origin: format!("the image {}", image.display()),
            image,
            sha256: None,
            unpacked: None,
            release,
            hypervisor: false,
        })
    }

    /// Refuses an image that cannot boot: cut off, 32-bit, another architecture's, something else.
    pub fn check(&self) -> Result<(), Error> {
        self.refuse_hypervisor()?;
        let Self { image, architecture, .. } = self;
        match image::recognise(image)?.architecture {
            found if found == *architecture => Ok(()),
            found => Err(refused(image, found, *architecture)),
        }
    }
}

impl Kernel {
    pub(super) fn refuse_hypervisor(&self) -> Result<(), Error> {
        let Self { name, hypervisor, .. } = self;
        if !hypervisor {
            return Ok(());
        }
        Err(Error::new(format!("{name} is a hypervisor, and no kernel"))
            .hint(format!("a kernel boots under it: lab run --kernel NAME --under {name}")))
    }
}

fn refused(image: &Path, found: Architecture, wanted: Architecture) -> Error {
    Error::new(format!("{} is a kernel for {found}, not for {wanted}", image.display()))
}
