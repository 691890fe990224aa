//! A directory's files as those of a guest.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::cpio::Archive;
use super::elf::Elf;
use crate::{Error, input};

/// Puts what is below `directory` under `/`: files with their modes, links as they are. Devices and sockets are left out.
pub fn put(archive: &mut Archive, directory: &Path) -> Result<(), Error> {
    put_below(archive, directory, Path::new("/"))
}

fn put_below(archive: &mut Archive, directory: &Path, to: &Path) -> Result<(), Error> {
    let failed = |error| Error::new(format!("read {}: {error}", directory.display()));
    for entry in fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.metadata().map_err(failed)?;
        if kind.is_symlink() {
            archive.link(to, fs::read_link(&from).map_err(failed)?);
        } else if kind.is_dir() {
            archive.directory_with_mode(&to, kind.mode());
            put_below(archive, &from, &to)?;
        } else if kind.is_file() {
            archive.file_with_mode(to, kind.mode(), read(&from, kind.mode())?);
        }
    }
    Ok(())
}

/// Programs go without what only debuggers read.
fn read(path: &Path, mode: u32) -> Result<Vec<u8>, Error> {
    let bytes = input::read(path)?;
    let is_program = mode & 0o111 != 0;
    let stripped = Elf::read(&bytes).ok().filter(|_| is_program).map(|elf| elf.stripped(&bytes));
    Ok(stripped.unwrap_or(bytes))
}
