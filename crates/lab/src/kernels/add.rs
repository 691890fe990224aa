//! A kernel of one's own, copied into the cache.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use machine::KernelConfig;

use super::cache::{LONGEST_CONFIG, check_name, failed};
use super::{Cache, Kernel, Progress, image};
use crate::Error;

/// What is added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addition {
    /// What it is to be called.
    pub name: String,
    /// A bzImage, or an arm64 Image, packed by gzip or not.
    pub image: PathBuf,
    /// Its modules: the directory with `modules.order`, or one that modules were installed to.
    pub modules: Option<PathBuf>,
    /// Its configuration.
    pub config: Option<PathBuf>,
}

/// Copies the kernel into the cache, in place of one of the same name.
pub fn add(cache: &Cache, addition: &Addition, progress: &mut Progress<'_>) -> Result<Kernel, Error> {
    check_name(&addition.name)?;
    let known = image::recognise(&addition.image)?;
    let modules =
        addition.modules.as_deref().map(|given| find_modules(given, known.release.as_deref())).transpose()?;
    addition.config.as_deref().map(check_config).transpose()?;
    let lock = cache.lock(&addition.name, progress)?;
    let draft = cache.draft(&addition.name, &lock)?;
    copy(&addition.image, &draft.path().join("image"))?;
    if let Some(modules) = &modules {
        copy_tree(modules, &draft.path().join("modules"))?;
    }
    if let Some(config) = &addition.config {
        copy(config, &draft.path().join("config"))?;
    }
    draft.publish(&Kernel {
        name: addition.name.clone(),
        architecture: known.architecture,
        release: known.release.unwrap_or_default(),
        image: "image".into(),
        sha256: None,
        unpacked: None,
        modules: modules.map(|_| "modules".into()),
        config: addition.config.as_ref().map(|_| "config".into()),
        origin: format!("added from {}", addition.image.display()),
        hypervisor: false,
    })
}

/// The directory with `modules.order`, at or below what was given.
fn find_modules(given: &Path, release: Option<&str>) -> Result<PathBuf, Error> {
    let release = release.unwrap_or_default();
    let places = [given.to_owned(), given.join(release), given.join("lib/modules").join(release)];
    let found = places.iter().find(|place| place.join("modules.order").is_file());
    let found = found.ok_or_else(|| {
        Error::new(format!("{} has no modules.order", given.display()))
            .hint(format!("give the directory lib/modules/{release} that make modules_install made"))
    })?;
    let other = found.file_name().is_some_and(|name| {
        let named_by_release = name.to_string_lossy().starts_with(|first: char| first.is_ascii_digit());
        named_by_release && !release.is_empty() && name != release
    });
    if other {
        return Err(Error::new(format!(
            "{} holds modules of another kernel than {release}",
            found.display()
        ))
        .hint("a kernel takes only the modules that were built with it"));
    }
    Ok(found.clone())
}

fn check_config(path: &Path) -> Result<(), Error> {
    let bytes = files::read(path, LONGEST_CONFIG).map_err(|error| failed("read", path, &error.source))?;
    if KernelConfig::parse(&String::from_utf8_lossy(&bytes)).is_empty() {
        return Err(Error::new(format!("{} is no kernel configuration: it sets nothing", path.display())));
    }
    Ok(())
}

/// Copies the regular files and directories below `from`; links (`build`, `source`) lead out of it.
pub(super) fn copy_tree(from: &Path, to: &Path) -> Result<(), Error> {
    fs::create_dir(to).map_err(|error| failed("create", to, &error))?;
    for entry in fs::read_dir(from).map_err(|error| failed("list", from, &error))? {
        let entry = entry.map_err(|error| failed("list", from, &error))?;
        let kind = entry.file_type().map_err(|error| failed("read", &entry.path(), &error))?;
        let target = to.join(entry.file_name());
        if kind.is_dir() {
            copy_tree(&entry.path(), &target)?;
        } else if kind.is_file() {
            copy(&entry.path(), &target)?;
        }
    }
    Ok(())
}

pub(super) fn copy(from: &Path, to: &Path) -> Result<(), Error> {
    let what = |error| failed(&format!("copy {} to", from.display()), to, &error);
    let copied = || {
        let (mut from, mut to) = (files::open(from)?, files::create_new(to, files::READABLE)?);
        io::copy(&mut from, &mut to)
    };
    copied().map(drop).map_err(what)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::super::image::tests::bzimage;
    use super::*;

    struct Bench {
        directory: tempfile::TempDir,
        cache: Cache,
    }

    impl Bench {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let cache = Cache::at(directory.path().join("cache")).unwrap();
            Self { directory, cache }
        }

        fn file(&self, path: &str, content: &[u8]) -> PathBuf {
            let path = self.directory.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, content).unwrap();
            path
        }

        fn add(&self, addition: &Addition) -> Result<Kernel, Error> {
            add(&self.cache, addition, &mut |_| ())
        }
    }

    fn addition(image: PathBuf) -> Addition {
        Addition { name: "mine".into(), image, modules: None, config: None }
    }

    #[test]
    fn a_kernel_comes_with_its_modules_and_configuration() {
        let bench = Bench::new();
        let image = bench.file("bzImage", &bzimage("6.12.1-mine", true));
        bench.file("mods/lib/modules/6.12.1-mine/modules.order", b"kernel/a.ko\n");
        let module = bench.file("mods/lib/modules/6.12.1-mine/kernel/a.ko", b"module");
        symlink("/usr/src", module.with_file_name("build")).unwrap();
        let config = bench.file("config", b"CONFIG_HZ=250\n");
        let modules = Some(bench.directory.path().join("mods"));
        let added = bench.add(&Addition { modules, config: Some(config), ..addition(image) }).unwrap();
        assert_eq!(bench.cache.kernel("mine").unwrap(), added);
        assert_eq!(added.release, "6.12.1-mine");
        let modules = added.modules.unwrap();
        assert_eq!(fs::read(modules.join("kernel/a.ko")).unwrap(), b"module");
        assert!(!modules.join("kernel/build").exists());
        assert_eq!(fs::read(added.config.unwrap()).unwrap(), b"CONFIG_HZ=250\n");
    }

    #[test]
    fn what_does_not_fit_is_refused_and_leaves_nothing() {
        let bench = Bench::new();
        let image = bench.file("bzImage", &bzimage("6.12.1-mine", true));
        let old = bench.file("old", &bzimage("3.12.19", false));
        let empty = bench.directory.path().join("empty");
        fs::create_dir(&empty).unwrap();
        bench.file("6.1.0-50-amd64/modules.order", b"");
        let foreign = Some(bench.directory.path().join("6.1.0-50-amd64"));
        let text = Some(bench.file("text", b"nothing\n"));
        for (wrong, words) in [
            (addition(old), "32-bit"),
            (addition(bench.directory.path().join("none")), "No such file"),
            (Addition { modules: Some(empty), ..addition(image.clone()) }, "has no modules.order"),
            (Addition { modules: foreign, ..addition(image.clone()) }, "of another kernel than 6.12.1-mine"),
            (Addition { config: text, ..addition(image.clone()) }, "it sets nothing"),
            (Addition { name: "../mine".into(), ..addition(image) }, "is no name"),
        ] {
            let error = bench.add(&wrong).unwrap_err();
            assert!(error.message.contains(words), "{words}: {error}");
            assert_eq!(bench.cache.entries().unwrap().len(), 0);
        }
    }
}
