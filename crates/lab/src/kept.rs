//! What a guest left, kept in a directory of its own.

use std::fs;
use std::io;
use std::path::Path;

use record::store;

use crate::Error;
use crate::boot::Outcome;

/// All that a guest's console said.
pub(crate) const CONSOLE: &str = "console.txt";

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
pub fn keep(place: &Path, outcome: &Outcome) -> Result<(), Error> {
    let draft = place.with_extension("draft");
    remove(&draft)?;
    for (path, bytes) in &outcome.files {
        write(&draft.join(path), bytes)?;
    }
    write(&draft.join(CONSOLE), outcome.console.as_bytes())?;
    remove(place)?;
    fs::rename(&draft, place).map_err(|error| failed("move", &draft, &error))
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
    let written = store::write_whole(path, bytes);
    written.map_err(|error| Error::new(error.to_string()).hint("make room; --resume goes on from here"))
}

fn failed(what: &str, path: &Path, error: &io::Error) -> Error {
    Error::new(format!("{what} {}: {error}", path.display())).hint("make room; --resume goes on from here")
}
