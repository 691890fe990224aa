//! The guest that left a directory, to be booted again.

use std::path::{Path, PathBuf};

use lab::boot::Guest;
use lab::kernels::Cache;
use lab::state::Kind;
use record::store;

use super::{binary, kept, ladder};
use failure::{Error, Result};

/// The directory that `path` names, by itself or by the record in it.
pub fn place(path: &Path) -> Result<&Path> {
    let place = if path.ends_with(store::RECORD) { path.parent().unwrap_or(path) } else { path };
    refuse_of_others(place)?;
    Ok(place)
}

/// The guest that left what is in `place`; `guest_binary` is the worstcase that ran in it, where it is not this one.
pub fn guest(place: &Path, guest_binary: Option<&Path>) -> Result<Guest> {
    let binary = |architecture| binary::choose(guest_binary, architecture);
    match kept::again(place)? {
        Some(boot) => boot.guest(&binary),
        None => ladder_guest(place, &binary),
    }
}

/// What stands in it is booted: kernel, programs and files of this machine that it names. So nobody else may have written it.
fn refuse_of_others(place: &Path) -> Result<()> {
    match files::Directory::open_obeyed(place) {
        Err(files::Error { source, .. }) if source.kind() == std::io::ErrorKind::PermissionDenied => {
            Err(Error::new(
                format!("boot again what {} names: {source}", place.display()),
                "copy it into a directory of your own, and read its lab.json first",
            ))
        }
        _ => Ok(()),
    }
}

/// A guest of the ladder above `place`.
fn ladder_guest(
    place: &Path,
    binary: &dyn Fn(lab::kernels::Architecture) -> Result<PathBuf>,
) -> Result<Guest> {
    let whole = std::path::absolute(place).unwrap_or_else(|_| place.to_path_buf());
    let unknown = || {
        Error::new(
            format!("{}: it is not known which guest left this", place.display()),
            "name a directory that `worstcase lab run` left, or LADDER/RUNG/seed-N",
        )
    };
    let home = whole.ancestors().nth(2).ok_or_else(unknown)?;
    if lab::state::kind(home) != Some(Kind::Ladder) {
        return Err(unknown());
    }
    refuse_of_others(home)?;
    let below = whole.strip_prefix(home).map_err(|_| unknown())?;
    ladder::guest_of(home, below, &Cache::of_user()?, binary)?.ok_or_else(unknown)
}
