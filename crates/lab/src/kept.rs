//! What guests left, kept in directories of their own.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use files::Directory;
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
    let failed = |error: files::Error| {
        Error::new(format!("create {}: {}", directory.display(), error.source))
            .hint("choose a directory that can be written with --out")
    };
    let made = Directory::make(directory).map_err(failed)?;
    if made.is_empty().map_err(failed)? {
        return Ok(());
    }
    Err(Error::new(format!("{} is not empty", directory.display()))
        .hint(format!("choose another directory with --out, or go on with the {what} in it: --resume")))
}

/// Makes a directory `place` of it, in place of what an earlier attempt left. It is there whole or not at all.
///
/// # Errors
/// Where there is no room, or it may not be written there.
pub fn keep(place: &Path, left: &Left) -> Result<(), Error> {
    let (parent, name) = above(place)?;
    let draft = with_end(&name, DRAFT);
    parent.remove(&draft).map_err(failed)?;
    let made = parent.make_below(Path::new(&draft)).map_err(failed)?;
    put_into(&made, left)?;
    parent.remove(&name).map_err(failed)?;
    parent.rename(&draft, &name).map_err(failed)?;
    parent.remove(&with_end(&name, FAILED)).map_err(failed)
}

/// The directory that a place is in, which stays the one that all is done in, and the place's name in it.
fn above(place: &Path) -> Result<(Directory, OsString), Error> {
    let (Some(parent), Some(name)) = (place.parent(), place.file_name()) else {
        return Err(Error::new(format!("{} is no place for what a guest left", place.display())));
    };
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    Ok((Directory::make(parent).map_err(failed)?, name.to_owned()))
}

fn with_end(name: &OsStr, end: &str) -> OsString {
    Path::new(name).with_extension(end).into()
}

/// Keeps what came back of a guest that failed beside `place`, where nothing takes it for a result. The error says what
/// happened in one line, and where the rest is, as seen from the experiment's `directory`.
pub fn keep_failed(directory: &Path, place: &Path, failure: Failure) -> Error {
    let Failure { error, left } = failure;
    let message = match put_beside(place, left.as_deref(), &error) {
        Ok(()) if left.is_some() => shown(directory, &failed_place(place), &error.message),
        Ok(()) => error.message,
        Err(lost) => format!("{}\nwhat came back could not be kept: {lost}", error.message),
    };
    Error { message, ..error }
}

fn put_beside(place: &Path, left: Option<&Left>, error: &Error) -> Result<(), Error> {
    let (parent, name) = above(place)?;
    let name = with_end(&name, FAILED);
    parent.remove(&name).map_err(failed)?;
    let made = parent.make_below(Path::new(&name)).map_err(failed)?;
    match left {
        Some(left) => put_all(&made, left, error),
        None => put_failure(&made, error),
    }
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

/// Writes what a guest left below `place`, with its console. The directory stays the one that was written into, for what else
/// belongs there.
///
/// # Errors
/// Where there is no room, or it may not be written there.
pub fn put(place: &Path, left: &Left) -> Result<Directory, Error> {
    let made = Directory::make(place).map_err(failed)?;
    put_into(&made, left)?;
    Ok(made)
}

/// As [`put`], with what the command printed and why the guest failed.
///
/// # Errors
/// Where there is no room, or it may not be written there.
pub fn put_failed(place: &Path, left: &Left, error: &Error) -> Result<Directory, Error> {
    let made = Directory::make(place).map_err(failed)?;
    put_all(&made, left, error)?;
    Ok(made)
}

fn put_all(place: &Directory, left: &Left, error: &Error) -> Result<(), Error> {
    put_into(place, left)?;
    for (name, bytes) in [("stdout.txt", &left.output), ("stderr.txt", &left.errors)] {
        if !bytes.is_empty() {
            place.write_whole(name, bytes).map_err(failed)?;
        }
    }
    put_failure(place, error)
}

fn put_failure(place: &Directory, error: &Error) -> Result<(), Error> {
    place.write_whole(FAILURE, format!("{error}\n").as_bytes()).map_err(failed)
}

fn put_into(place: &Directory, left: &Left) -> Result<(), Error> {
    left.files.iter().try_for_each(|(path, bytes)| put_file(place, path, bytes))?;
    if !left.left_out.is_empty() {
        let line = |(path, why): &(PathBuf, String)| format!("{}: {why}\n", path.display());
        let text: String = left.left_out.iter().map(line).collect();
        place.write_whole(LEFT_OUT, text.as_bytes()).map_err(failed)?;
    }
    place.write_whole(CONSOLE, left.console.as_bytes()).map_err(failed)
}

/// A guest's file, and the directories above it.
fn put_file(place: &Directory, path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let parent = place.make_below(path.parent().unwrap_or(Path::new(""))).map_err(failed)?;
    parent.write_whole(path.file_name().unwrap_or_default(), bytes).map_err(failed)
}

/// Writes a file of an experiment whole or not at all, and the directories above it.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let (parent, name) = above(path)?;
    put_file(&parent, Path::new(&name), bytes)
}

fn failed(error: files::Error) -> Error {
    Error::new(error.to_string()).hint("make room; --resume goes on from here")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{chown, lchown, symlink};
    use std::sync::atomic::{AtomicBool, Ordering};

    use rustix::fs::{CWD, RenameFlags};

    use record::LabImages;

    use super::*;
    use crate::hash;
    use crate::made_of::MadeOf;

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

    const OTHER_USER: u32 = 65_534;

    fn left_behind() -> Left {
        let [kernel, booted, binary, initramfs] = ["a", "b", "c", "d"].map(|text| hash::of(text.as_bytes()));
        let images = LabImages { kernel, booted, binary, initramfs };
        let files = [("record.json", "{}"), ("a/b", "c")];
        Left {
            output: Vec::new(),
            errors: Vec::new(),
            files: files.map(|(path, text)| (path.into(), text.into())).into(),
            left_out: Vec::new(),
            console: "Booting\n".into(),
            boot: None,
            made_of: MadeOf { emulator: "QEMU".into(), images },
            parameters: Vec::new(),
        }
    }

    #[test]
    fn an_experiment_that_another_user_puts_a_link_in_place_of_leads_nowhere() {
        if !rustix::process::geteuid().is_root() {
            return println!("skipped: another user's links take root to make");
        }
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let [experiment, moved, others] = ["experiment", "moved", "others"].map(at);
        write(&others.join("arm/seed-1/precious"), b"precious").unwrap();
        write(&others.join("arm/seed-1.draft/precious"), b"precious").unwrap();
        let left = left_behind();
        fs::create_dir(&experiment).unwrap();
        symlink(&others, &moved).unwrap();
        lchown(&moved, Some(OTHER_USER), None).unwrap();
        chown(directory.path(), Some(OTHER_USER), None).unwrap();
        let over = AtomicBool::new(false);
        let exchange =
            || rustix::fs::renameat_with(CWD, &experiment, CWD, &moved, RenameFlags::EXCHANGE).unwrap();
        let is_over = |swaps: &u32| {
            exchange();
            *swaps >= 1_000 && over.load(Ordering::Relaxed)
        };
        let (kept, swaps) = std::thread::scope(|scope| {
            let swapping = scope.spawn(|| (1..).find(is_over));
            let kept = (0..200).filter(|_| keep(&experiment.join("arm/seed-1"), &left).is_ok()).count();
            over.store(true, Ordering::Relaxed);
            (kept, swapping.join().unwrap())
        });
        assert!(kept > 0 && swaps >= Some(1_000), "{kept} {swaps:?}");
        for place in ["arm/seed-1", "arm/seed-1.draft"] {
            let names: Vec<_> = fs::read_dir(others.join(place)).unwrap().flatten().collect();
            assert_eq!(
                (names.len(), fs::read(others.join(place).join("precious")).unwrap()),
                (1, b"precious".into())
            );
        }
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
