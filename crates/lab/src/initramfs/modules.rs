//! Kernel modules in the order of their needs, read from the modules themselves: a package that was unpacked and not
//! installed has no modules.dep.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::read::GzDecoder;

use super::elf;
use crate::{Error, input};

/// A module that is to be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// Its name, as lsmod(8) shows it: `crc32c_generic`.
    pub name: String,
    /// The module, uncompressed.
    pub bytes: Vec<u8>,
}

/// A kernel's modules: the directory that holds `modules.order`, `modules.builtin` and `kernel/`.
#[derive(Debug)]
pub struct Tree {
    directory: PathBuf,
    /// Paths below the directory without the ending of compression, by name.
    loadable: BTreeMap<String, String>,
    built_in: BTreeSet<String>,
}

impl Tree {
    /// Reads which modules there are.
    pub fn read(directory: &Path) -> Result<Self, Error> {
        let list = |file: &str| {
            let path = directory.join(file);
            input::text(&path).map_err(|error| {
                error.hint("name the directory of the kernel's modules: lib/modules/RELEASE in its package")
            })
        };
        let (order, built_in) = (list("modules.order")?, list("modules.builtin")?);
        let loadable = order.lines().map(|path| (name_of(path), path.to_owned())).collect();
        let built_in = built_in.lines().map(name_of).collect();
        Ok(Self { directory: directory.to_path_buf(), loadable, built_in })
    }

    /// The modules called `names` and all that they need, each after what it needs. What is built in is left out.
    ///
    /// # Errors
    /// A name that the kernel has neither as a module nor built in; files that cannot be read or are no modules.
    pub fn order(&self, names: &[&str]) -> Result<Vec<Module>, Error> {
        let mut order = Vec::new();
        let mut seen = BTreeSet::new();
        for name in names {
            if !self.loadable.contains_key(*name) && !self.built_in.contains(*name) {
                let message = format!("the kernel of {} has no module {name}", self.directory.display());
                return Err(Error::new(message));
            }
            self.append(name, &mut seen, &mut order)?;
        }
        Ok(order)
    }

    /// Depth first; `seen` ends circles too, which the kernel's build excludes.
    fn append(&self, name: &str, seen: &mut BTreeSet<String>, to: &mut Vec<Module>) -> Result<(), Error> {
        let Some(path) = self.loadable.get(name).filter(|_| seen.insert(name.to_owned())) else {
            return Ok(());
        };
        let bytes = self.content(path)?;
        let needs = needs(&bytes).map_err(|error| self.failed(path, error))?;
        let generic = needs.before.iter().flat_map(|name| [name.clone(), format!("{name}_generic")]);
        for need in generic.chain(needs.depends) {
            self.append(&need, seen, to)?;
        }
        to.push(Module { name: name.to_owned(), bytes });
        Ok(())
    }

    fn failed(&self, path: &str, why: impl std::fmt::Display) -> Error {
        Error::new(format!("read module {}: {why}", self.directory.join(path).display()))
    }

    /// A module's file, whatever it is compressed with.
    fn content(&self, path: &str) -> Result<Vec<u8>, Error> {
        let file = |ending: &str| self.directory.join(format!("{path}{ending}"));
        let found = ["", ".gz", ".xz", ".zst"].into_iter().find(|ending| file(ending).is_file());
        let ending = found.ok_or_else(|| self.failed(path, "no such file, nor compressed"))?;
        let read = || input::read(&file(ending));
        match ending {
            "" => read(),
            ".gz" => {
                let mut bytes = Vec::new();
                let read = GzDecoder::new(read()?.as_slice()).take(input::LONGEST).read_to_end(&mut bytes);
                read.map(|_| bytes).map_err(|error| self.failed(path, error))
            }
            _ => self.decompressed(&file(ending), if ending == ".xz" { "xz" } else { "zstd" }),
        }
    }

    fn decompressed(&self, file: &Path, program: &str) -> Result<Vec<u8>, Error> {
        let failed = |why: String| {
            Error::new(format!("decompress {} with {program}: {why}", file.display()))
                .hint(format!("install {program} (on Debian: apt-get install xz-utils zstd)"))
        };
        let output = Command::new(program).arg("-dc").arg(file).output();
        let output = output.map_err(|error| failed(error.to_string()))?;
        if output.status.success() {
            Ok(output.stdout)
        } else {
            Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
        }
    }
}

/// `kernel/crypto/crc32c-intel.ko` is the module crc32c_intel.
fn name_of(path: &str) -> String {
    let file = path.rsplit('/').next().unwrap_or(path);
    file.trim_end_matches(".ko").replace('-', "_")
}

/// What a module says that it needs.
#[derive(Debug, Default, PartialEq, Eq)]
struct Needs {
    /// Modules whose symbols it uses.
    depends: Vec<String>,
    /// Modules that it asks the kernel for by an alias while it starts: `softdep=pre: crypto-crc32c`.
    before: Vec<String>,
}

/// Reads the section `.modinfo`: texts `key=value` with a zero byte after each.
fn needs(module: &[u8]) -> Result<Needs, elf::ElfError> {
    let information = elf::section(module, ".modinfo")?.unwrap_or_default();
    Ok(needs_in(information))
}

fn needs_in(information: &[u8]) -> Needs {
    let mut needs = Needs::default();
    for text in information.split(|&byte| byte == 0) {
        let text = String::from_utf8_lossy(text);
        match text.split_once('=') {
            Some(("depends", list)) => needs.depends.extend(list.split(',').map(name_of)),
            Some(("softdep", words)) => {
                let before = words.split_once("pre:").map_or("", |(_, rest)| rest);
                let before = before.split_once("post:").map_or(before, |(names, _)| names);
                let names = before.split_whitespace().map(|name| name.trim_start_matches("crypto-"));
                needs.before.extend(names.map(name_of));
            }
            _ => {}
        }
    }
    needs
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use proptest::prelude::*;

    /// An ELF file that has nothing but a section `.modinfo`.
    fn module(information: &str) -> Vec<u8> {
        let names = b"\0.modinfo\0.names\0";
        let mut bytes = vec![0; 0x40];
        bytes[..6].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1]);
        let places = [(1_u32, 0x40, information.len()), (10, 0x40 + information.len(), names.len())];
        bytes.extend_from_slice(information.as_bytes());
        bytes.extend_from_slice(names);
        let table = bytes.len() as u64;
        for (name, offset, size) in places {
            let mut header = [0; 0x40];
            header[..4].copy_from_slice(&name.to_le_bytes());
            header[0x18..0x20].copy_from_slice(&(offset as u64).to_le_bytes());
            header[0x20..0x28].copy_from_slice(&(size as u64).to_le_bytes());
            bytes.extend_from_slice(&header);
        }
        bytes[0x28..0x30].copy_from_slice(&table.to_le_bytes());
        bytes[0x3a..0x40].copy_from_slice(&[0x40, 0, 2, 0, 1, 0]);
        bytes
    }

    fn tree(modules: &[(&str, &str)], built_in: &str) -> (tempfile::TempDir, Tree) {
        let directory = tempfile::tempdir().unwrap();
        let mut order = String::new();
        for (path, information) in modules {
            let file = directory.path().join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, module(information)).unwrap();
            order += &format!("{path}\n");
        }
        fs::write(directory.path().join("modules.order"), order).unwrap();
        fs::write(directory.path().join("modules.builtin"), built_in).unwrap();
        let tree = Tree::read(directory.path()).unwrap();
        (directory, tree)
    }

    fn names(modules: Vec<Module>) -> Vec<String> {
        modules.into_iter().map(|module| module.name).collect()
    }

    #[test]
    fn each_module_comes_after_what_it_needs() {
        let (_kept, tree) = tree(
            &[
                ("kernel/fs/ext4.ko", "license=GPL\0depends=jbd2,crc16\0softdep=pre: crypto-crc32c\0"),
                ("kernel/fs/jbd2.ko", "depends=crc16\0"),
                ("kernel/lib/crc16.ko", "depends=\0"),
                ("kernel/crypto/crc32c_generic.ko", ""),
                ("kernel/other.ko", "depends=ext4\0"),
            ],
            "kernel/block/brd.ko\n",
        );
        let order = names(tree.order(&["ext4", "brd", "jbd2"]).unwrap());
        assert_eq!(order, ["crc32c_generic", "crc16", "jbd2", "ext4"]);
    }

    #[test]
    fn a_module_that_is_not_there_is_named() {
        let (_kept, tree) = tree(&[], "");
        let error = tree.order(&["brd"]).unwrap_err().to_string();
        assert!(error.contains("has no module brd"), "{error}");
        let gone = Tree::read(Path::new("/nowhere")).unwrap_err();
        assert!(gone.message.contains("/nowhere/modules.order") && gone.hint.is_some());
    }

    #[test]
    fn needs_of_a_circle_end() {
        let (_kept, tree) = tree(&[("kernel/a.ko", "depends=b\0"), ("kernel/b.ko", "depends=a\0")], "");
        assert_eq!(names(tree.order(&["a"]).unwrap()), ["b", "a"]);
    }

    proptest! {
        #[test]
        fn any_information_is_answered_without_a_panic(text in "((depends|softdep)=)?[a-z:,= \0]{0,60}") {
            let _ = needs_in(text.as_bytes());
            prop_assert!(needs(text.as_bytes()).is_err());
        }
    }
}
