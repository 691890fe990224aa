//! `worstcase snapshot`: what the rules read of this machine, in one file.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use sysroot::{SysRoot, Tree};

use crate::output;
use failure::{Error, Result};

/// Write what the rules read of this machine into one file, for check --root elsewhere
///
/// Prints what it takes. Names of programs, devices and network interfaces are in it; no host name, address, serial
/// number or UUID, and of the kernel command line and the boot loader's files no value that could hold one, nor a password. Run it
/// as root, or what only root may read is missing.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    worstcase snapshot board.tar.gz        on the board\n  \
    worstcase check --root board.tar.gz    elsewhere")]
pub struct Snapshot {
    /// The file to write: .tar.gz, or .txt to read it first
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

impl Snapshot {
    pub fn run(self) -> Result<ExitCode> {
        let write = form(&self.file)?;
        let tree = survey::snapshot(&SysRoot::live());
        let bytes = write(&tree).map_err(|error| failed(&self.file, &error))?;
        save(&self.file, &bytes).map_err(|error| failed(&self.file, &error))?;
        output::final_data(&outline(&tree))?;
        output::words(&format!(
            "{}: {} files, {} that are missing or may not be read, {} KiB",
            self.file.display(),
            tree.contents().count(),
            tree.files.len() - tree.contents().count(),
            bytes.len().div_ceil(1024)
        ));
        Ok(ExitCode::SUCCESS)
    }
}

/// Puts a tree into the bytes of a file.
type Writer = fn(&Tree) -> io::Result<Vec<u8>>;

/// How a tree is written into a file of that name.
fn form(file: &Path) -> Result<Writer> {
    let name = file.to_string_lossy();
    if name.ends_with(".tar.gz") || name.ends_with(".tgz") {
        Ok(Tree::archive)
    } else if name.ends_with(".txt") {
        Ok(|tree| Ok(tree.text().into_bytes()))
    } else {
        let message = format!("write {name}: a snapshot is an archive or a text");
        Err(Error::new(message, "name a file that ends in .tar.gz or .txt"))
    }
}

/// Never over another file. What could not be written whole is taken away: a part of a snapshot would be read as one.
fn save(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut made = files::create_new(file, files::READABLE)?;
    let written = made.write_all(bytes);
    if written.is_err() {
        let _ = std::fs::remove_file(file);
    }
    written
}

fn failed(file: &Path, error: &io::Error) -> Error {
    let hint = match error.kind() {
        io::ErrorKind::AlreadyExists => "name another file, or remove this one",
        _ => match files::hint(error) {
            "" => "name a file in a directory that you may write to",
            hint => hint,
        },
    };
    Error::new(format!("write {}: {error}", file.display()), hint)
}

/// The files in it, one line for all that differ in numbers only.
fn outline(tree: &Tree) -> String {
    let line = |(pattern, count): (String, usize)| match count {
        1 => format!("{pattern}\n"),
        _ => format!("{pattern} ({count})\n"),
    };
    tree.outline().into_iter().map(line).collect()
}
