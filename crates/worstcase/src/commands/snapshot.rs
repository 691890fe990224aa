//! `worstcase snapshot`: what the rules read of this machine, in one file.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use record::Fact;
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
        let refused = refused(&tree);
        output::words(&format!(
            "{}: {} files, {} that this machine does not have, {} KiB",
            self.file.display(),
            tree.contents().count(),
            (tree.files.len() - tree.contents().count()).saturating_sub(refused.len()),
            bytes.len().div_ceil(1024)
        ));
        if let Some(warning) = partial(&refused) {
            output::warning(&warning);
            output::hint("run it as root: rules that need these files are unknown elsewhere");
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Files and directories that the kernel did not let be read.
fn refused(tree: &Tree) -> Vec<&str> {
    fn denied<'a, T>((path, fact): (&'a String, &'a Fact<T>)) -> Option<&'a str> {
        let denied = [rustix::io::Errno::ACCESS, rustix::io::Errno::PERM].map(|errno| errno.raw_os_error());
        matches!(fact, Fact::Unreadable(errno) if denied.contains(errno)).then_some(path.as_str())
    }
    let files = tree.files.iter().filter_map(denied);
    files
        .chain(tree.directories.iter().filter_map(denied))
        .chain(tree.links.iter().filter_map(denied))
        .collect()
}

/// That a snapshot is one of a part: what is not in it.
fn partial(refused: &[&str]) -> Option<String> {
    const NAMED: usize = 3;
    let named = refused.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    let more = match refused.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let what =
        if refused.len() == 1 { "1 file may".to_owned() } else { format!("{} files may", refused.len()) };
    (!refused.is_empty()).then(|| format!("this snapshot is partial: {what} not be read: {named}{more}"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_not_be_read_makes_a_snapshot_partial_and_what_is_not_there_does_not() {
        let mut tree = Tree::captured();
        let mut add = |path: &str, fact| tree.files.insert(path.to_owned(), fact);
        add("/proc/a", Fact::Value(Vec::new()));
        add("/proc/b", Fact::Absent);
        add("/proc/c", Fact::Unreadable(5));
        assert_eq!(partial(&refused(&tree)), None);
        let refuse = |tree: &mut Tree, path: &str, errno| {
            tree.files.insert(path.to_owned(), Fact::Unreadable(errno));
        };
        refuse(&mut tree, "/proc/d", 13);
        assert_eq!(
            partial(&refused(&tree)).as_deref(),
            Some("this snapshot is partial: 1 file may not be read: /proc/d")
        );
        for path in ["/proc/e", "/proc/f", "/proc/g"] {
            refuse(&mut tree, path, 1);
        }
        tree.directories.insert("/proc/h".to_owned(), Fact::Unreadable(13));
        assert_eq!(
            partial(&refused(&tree)).as_deref(),
            Some("this snapshot is partial: 5 files may not be read: /proc/d, /proc/e, /proc/f and 2 more")
        );
    }
}
