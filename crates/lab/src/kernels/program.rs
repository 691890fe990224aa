//! Programs that do a part of the work: apt, dpkg-deb, make. Found on PATH; a failure carries their own words.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::cache::NO_ROOM;
use crate::Error;

/// How many of the last lines of a failed program's complaints an error shows.
const MOST_LINES: usize = 5;

/// A program, and what to do where it is missing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Program {
    /// Its name on PATH.
    pub name: &'static str,
    /// What to do where it is missing.
    pub hint: &'static str,
}

/// What a program said.
#[derive(Debug)]
pub(super) struct Said {
    /// To standard output.
    pub output: String,
    /// The last lines of what it said to standard error.
    pub complaints: String,
}

impl Program {
    /// A command that speaks English, reads nothing and does not outlive this process.
    pub fn command(self) -> Command {
        let mut command = Command::new(self.name);
        command.env("LC_ALL", "C").stdin(Stdio::null());
        sys::process::end_with_parent(&mut command);
        command
    }

    /// Runs it and gives back what it printed to standard output; that it failed is an error with its last words.
    pub fn output(self, command: &mut Command) -> Result<String, Error> {
        self.run(command).map(|said| said.output)
    }

    /// As [`Program::output`], with what it complained of as well.
    pub fn run(self, command: &mut Command) -> Result<Said, Error> {
        let output = command.output().map_err(|error| self.not_started(&error))?;
        let said = Said {
            output: String::from_utf8_lossy(&output.stdout).into_owned(),
            complaints: last_lines(&String::from_utf8_lossy(&output.stderr), MOST_LINES),
        };
        if output.status.success() {
            return Ok(said);
        }
        let failure =
            Error::new(format!("{} ended with {}: {}", shown(command), output.status, said.complaints));
        Err(if tells_of_a_full_disk(&said.complaints) { failure.hint(NO_ROOM) } else { failure })
    }

    /// Why it could not be started.
    pub fn not_started(self, error: &std::io::Error) -> Error {
        let failure = Error::new(format!("start {}: {error}", self.name));
        if error.kind() == ErrorKind::NotFound { failure.hint(self.hint) } else { failure }
    }

    /// Whether it is on PATH.
    pub fn is_there(self) -> bool {
        find(self.name, std::env::var_os("PATH").as_deref()).is_some()
    }
}

/// The first file of that name in a directory of `path`.
fn find(name: &str, path: Option<&OsStr>) -> Option<PathBuf> {
    std::env::split_paths(path?).map(|directory| directory.join(name)).find(|file| file.is_file())
}

/// Whether a program complains of ENOSPC or EDQUOT, in the words of strerror(3).
fn tells_of_a_full_disk(complaints: &str) -> bool {
    ["No space left on device", "Disk quota exceeded"].iter().any(|words| complaints.contains(words))
}

/// The program and its first words, for an error.
fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}

/// The last lines that say something.
pub(super) fn last_lines(text: &str, most: usize) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(most)..].join("\n")
}

/// The only entry of a directory whose name begins so, and the rest of that name.
pub(super) fn only(directory: &Path, prefix: &str) -> Option<(PathBuf, String)> {
    let names =
        std::fs::read_dir(directory).ok()?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut found =
        names.filter_map(|name| Some((directory.join(&name), name.strip_prefix(prefix)?.to_owned())));
    let first = found.next()?;
    found.next().is_none().then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complains(words: &str) -> Error {
        let shell = Program { name: "sh", hint: "" };
        shell.output(shell.command().args(["-c", "echo \"$1\" >&2; exit 2", "sh", words])).unwrap_err()
    }

    #[test]
    fn a_program_that_found_the_disk_full_is_an_error_that_says_where_room_can_be_had() {
        for words in ["tar: ./usr: Cannot mkdir: No space left on device", "dd: write: Disk quota exceeded"] {
            let error = complains(words);
            assert_eq!(error.hint.as_deref(), Some(NO_ROOM));
            assert!(error.message.ends_with(words), "{error:?}");
        }
        assert_eq!(complains("tar: ./usr: Cannot mkdir: Read-only file system").hint, None);
    }
}
