//! What guests left, kept in directories of their own.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use record::store;
use units::Seed;

use crate::boot::{Failure, Left};
use crate::{Error, input};

/// All that a guest's console said.
pub const CONSOLE: &str = "console.txt";
/// What did not come back, and why.
const LEFT_OUT: &str = "left-out.txt";
/// The ending of a directory with what a guest left that failed.
const FAILED: &str = "failed";
/// Why it failed.
const FAILURE: &str = "failure.txt";
/// The ending of a directory that is being written.
const DRAFT: &str = "draft";

/// The directory of the guest with `seed` in that of its `arm`.
pub fn name(arm: &str, seed: Seed) -> String {
    format!("{arm}/seed-{seed}")
}

/// The directory of the guest with `seed` that measures what operations take, in that of its `arm`.
pub fn cost_name(arm: &str, seed: Seed) -> String {
    format!("{arm}/cost-{seed}")
}

/// How far below an experiment's directory a record lies at most, and some more.
const DEEPEST: usize = 8;

/// How many records lie below `directory`: guests and blocks that have measured to their end, no drafts and none that failed.
pub fn records(directory: &Path) -> usize {
    records_below(directory, DEEPEST)
}

/// Links are not followed: one that leads up has no end.
fn records_below(directory: &Path, deepest: usize) -> usize {
    let is_whole = |path: &Path| path.extension().is_none_or(|end| end != DRAFT && end != FAILED);
    let count = |entry: fs::DirEntry| match entry.file_type() {
        Ok(kind) if kind.is_file() => usize::from(entry.file_name() == store::RECORD),
        Ok(kind) if kind.is_dir() && deepest > 0 && is_whole(&entry.path()) => {
            records_below(&entry.path(), deepest - 1)
        }
        _ => 0,
    };
    fs::read_dir(directory).into_iter().flatten().flatten().map(count).sum()
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
    files::Directory::make(directory).map_err(|error| failed(error.source))?;
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
    let draft = place.with_extension(DRAFT);
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
    let put = |failed: &Path| match &left {
        Some(left) => put_failed(failed, left, &error),
        None => write(&failed.join(FAILURE), format!("{error}\n").as_bytes()),
    };
    let failed = failed_place(place);
    let message = match remove(&failed).and_then(|()| put(&failed)) {
        Ok(()) if left.is_some() => shown(directory, &failed, &error.message),
        Ok(()) => error.message,
        Err(lost) => format!("{}\nwhat came back could not be kept: {lost}", error.message),
    };
    Error { message, ..error }
}

/// Why the guest that was to leave its record in `place` failed, if it did.
pub fn failure(directory: &Path, place: &Path) -> Option<String> {
    let failed = failed_place(place);
    let text = input::text(&failed.join(FAILURE)).ok()?;
    Some(if failed.join(CONSOLE).is_file() {
        shown(directory, &failed, &text)
    } else {
        text.trim_end().to_owned()
    })
}

fn shown(directory: &Path, failed: &Path, message: &str) -> String {
    let first = message.lines().next().unwrap_or_default();
    let place = failed.strip_prefix(directory).unwrap_or(failed);
    format!("{first}\nwhat came back, with its console: {}", place.display())
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
    write(&place.join(FAILURE), format!("{error}\n").as_bytes())
}

fn remove(place: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(place) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("remove", place, &error)),
        _ => Ok(()),
    }
}

/// Writes a file whole or not at all, and the directories above it.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    if let Some(directory) = path.parent() {
        files::Directory::make(directory).map_err(|error| failed("create", directory, &error.source))?;
    }
    files::write_whole(path, bytes).map_err(|error| failed(error.operation, path, &error.source))
}

fn failed(what: &str, path: &Path, error: &io::Error) -> Error {
    Error::new(format!("{what} {}: {error}", path.display())).hint("make room; --resume goes on from here")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_in_an_experiment_are_not_counted_round_and_round() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        write(&at("a/seed-1/record.json"), b"{}").unwrap();
        write(&at("a/seed-2.failed/record.json"), b"{}").unwrap();
        for name in ["one", "two", "a/three"] {
            symlink(directory.path(), at(name)).unwrap();
        }
        symlink(at("a/seed-1/record.json"), at("record.json")).unwrap();
        assert_eq!(records(directory.path()), 1);
    }

    #[test]
    fn a_pipe_in_an_experiment_is_no_failure_and_holds_nobody_up() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("a/seed-1");
        let failed = failed_place(&place);
        fs::create_dir_all(&failed).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, failed.join(FAILURE), rustix::fs::Mode::RWXU).unwrap();
        assert_eq!(failure(directory.path(), &place), None);
    }
}
