//! What guests left, kept in directories of their own, and beside it what was asked, so that a run can be gone on with.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::boot::{Failure, Left};

/// All that a guest's console said.
pub const CONSOLE: &str = "console.txt";
/// What did not come back, and why.
const LEFT_OUT: &str = "left-out.txt";
/// The ending of a directory with what a guest left that failed.
const FAILED: &str = "failed";

/// No file of what was asked is longer, in bytes.
const LONGEST: u64 = 64 << 20;

/// What was asked, as it stands in the run's directory: enough to go on with it.
pub trait Resumable: Serialize + DeserializeOwned {
    /// The file's name.
    const FILE: &'static str;
    /// The version of its form that this program writes and reads: `schema_version` or `schema-version` in the file.
    const VERSION: u32;
    /// What it is: `bisection`.
    const WHAT: &'static str;
    /// The commands that begin one.
    const COMMAND: &'static str;

    /// Refuses what cannot be gone on with.
    ///
    /// # Errors
    /// The first thing that makes no sense.
    fn check(&self) -> Result<(), Error>;

    /// The one that was begun in `directory`.
    ///
    /// # Errors
    /// Where there is none, or none that this program can go on with.
    fn load(directory: &Path) -> Result<Self, Error> {
        let path = directory.join(Self::FILE);
        let failed = |reason: String| {
            Error::new(format!("read {}: {reason}", path.display()))
                .hint(format!("give the directory that {} made", Self::COMMAND))
        };
        let is_none = |error| failed(format!("it is no {}: {error}", Self::WHAT));
        let bytes = files::read(&path, LONGEST).map_err(|error| failed(error.source.to_string()))?;
        let Version { found } = serde_json::from_slice(&bytes).map_err(is_none)?;
        if found != Self::VERSION {
            let hint = format!(
                "another version of worstcase began this {}: finish it with that one, or begin anew ({})",
                Self::WHAT,
                Self::COMMAND
            );
            let refused = failed(format!("its form has version {found}, not {}", Self::VERSION));
            return Err(Error { hint: Some(hint), ..refused });
        }
        let asked: Self = serde_json::from_slice(&bytes).map_err(is_none)?;
        asked.check().map_err(|Error { message, hint }| {
            let refused = failed(message);
            Error { hint: hint.or(refused.hint), message: refused.message }
        })?;
        Ok(asked)
    }

    /// Writes it, whole or not at all.
    ///
    /// # Errors
    /// Where there is no room, or it may not be written there.
    fn save(&self, directory: &Path) -> Result<(), Error> {
        let text = serde_json::to_vec_pretty(self).map_err(|error| Error::new(error.to_string()))?;
        write(&directory.join(Self::FILE), &text)
    }
}

#[derive(Deserialize)]
struct Version {
    #[serde(rename = "schema_version", alias = "schema-version")]
    found: u32,
}

/// Makes the directory in which `what` is kept; one that holds something is refused.
///
/// # Errors
/// Where it holds something, cannot be made or cannot be read.
pub fn begin(directory: &Path, what: &str) -> Result<(), Error> {
    let failed = |error: io::Error| {
        Error::new(format!("create {}: {error}", directory.display()))
            .hint("choose a directory that can be written with --out")
    };
    fs::create_dir_all(directory).map_err(failed)?;
    if fs::read_dir(directory).map_err(failed)?.next().is_some() {
        return Err(Error::new(format!("{} is not empty", directory.display()))
            .hint(format!("choose another directory with --out, or go on with the {what} in it: --resume")));
    }
    Ok(())
}

/// Makes a directory `place` of it, in place of what an earlier attempt left. It is there whole or not at all.
///
/// # Errors
/// Where there is no room, or it may not be written there.
pub fn keep(place: &Path, left: &Left) -> Result<(), Error> {
    let draft = place.with_extension("draft");
    remove(&draft)?;
    put(&draft, left)?;
    remove(place)?;
    fs::rename(&draft, place).map_err(|error| failed("move", &draft, &error))?;
    remove(&failed_place(place))
}

/// Keeps what came back of a guest that failed beside `place`, where nothing takes it for a result. The error says what
/// happened in one line, and where the rest is, as seen from the experiment's `directory`.
pub fn keep_failed(directory: &Path, place: &Path, failure: Failure) -> Error {
    let Failure { error, left } = failure;
    let Some(left) = left else { return error };
    let place = failed_place(place);
    let first = error.message.lines().next().unwrap_or_default().to_owned();
    let message = match remove(&place).and_then(|()| put_failed(&place, &left, &error)) {
        Ok(()) => {
            let shown = place.strip_prefix(directory).unwrap_or(&place);
            format!("{first}\nwhat came back, with its console: {}", shown.display())
        }
        Err(lost) => format!("{}\nwhat came back could not be kept: {lost}", error.message),
    };
    Error { message, ..error }
}

/// Whether a directory holds what a guest left that failed.
pub fn is_of_failed(place: &Path) -> bool {
    place.extension().is_some_and(|end| end == FAILED)
}

fn failed_place(place: &Path) -> PathBuf {
    place.with_extension(FAILED)
}

/// Writes what a guest left below `place`, with its console.
///
/// # Errors
/// Where there is no room, or it may not be written there.
pub fn put(place: &Path, left: &Left) -> Result<(), Error> {
    left.files.iter().try_for_each(|(path, bytes)| write(&place.join(path), bytes))?;
    if !left.left_out.is_empty() {
        let line = |(path, why): &(PathBuf, String)| format!("{}: {why}\n", path.display());
        let text: String = left.left_out.iter().map(line).collect();
        write(&place.join(LEFT_OUT), text.as_bytes())?;
    }
    write(&place.join(CONSOLE), left.console.as_bytes())
}

/// As [`put`], with what the command printed and why the guest failed.
///
/// # Errors
/// Where there is no room, or it may not be written there.
pub fn put_failed(place: &Path, left: &Left, error: &Error) -> Result<(), Error> {
    put(place, left)?;
    for (name, bytes) in [("stdout.txt", &left.output), ("stderr.txt", &left.errors)] {
        if !bytes.is_empty() {
            write(&place.join(name), bytes)?;
        }
    }
    write(&place.join("failure.txt"), format!("{error}\n").as_bytes())
}

fn remove(place: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(place) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("remove", place, &error)),
        _ => Ok(()),
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).map_err(|error| failed("create", directory, &error))?;
    }
    files::write_whole(path, bytes).map_err(|error| failed(error.operation, path, &error.source))
}

fn failed(what: &str, path: &Path, error: &io::Error) -> Error {
    Error::new(format!("{what} {}: {error}", path.display())).hint("make room; --resume goes on from here")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize, Deserialize)]
    struct Asked {
        schema_version: u32,
        guests: u32,
    }

    impl Resumable for Asked {
        const FILE: &'static str = "asked.json";
        const VERSION: u32 = 2;
        const WHAT: &'static str = "experiment";
        const COMMAND: &'static str = "`worstcase try`";

        fn check(&self) -> Result<(), Error> {
            if self.guests == 0 { Err(Error::new("no guests")) } else { Ok(()) }
        }
    }

    fn refused(text: &str) -> String {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join(Asked::FILE), text).unwrap();
        let error = Asked::load(directory.path()).err().unwrap();
        assert!(error.hint.unwrap().contains("`worstcase try`"));
        error.message.rsplit_once(Asked::FILE).unwrap().1.to_owned()
    }

    #[test]
    fn what_cannot_be_gone_on_with_says_why() {
        assert!(refused("{").starts_with(": it is no experiment: EOF"));
        assert!(refused("{}").starts_with(": it is no experiment: missing field"));
        assert!(
            refused(r#"{ "schema_version": 2 }"#)
                .starts_with(": it is no experiment: missing field `guests`")
        );
        assert_eq!(refused(r#"{ "schema_version": 2, "guests": 0 }"#), ": no guests");
    }

    #[test]
    fn another_version_is_told_as_such_whatever_else_it_holds() {
        assert_eq!(refused(r#"{ "schema_version": 3 }"#), ": its form has version 3, not 2");
        assert_eq!(refused(r#"{ "schema-version": 1, "seeds": 5 }"#), ": its form has version 1, not 2");
    }
}
