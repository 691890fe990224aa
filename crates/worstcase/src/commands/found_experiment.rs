//! The experiment that a directory holds, of whatever kind.

use std::path::Path;

use failure::{Error, Result};
use lab::state::{self, Kind};

use super::experiments::Shown;
use super::{lab as guests, tune::trial};

/// The experiment in `directory`; none where none was begun there.
pub fn find(directory: &Path) -> Option<Result<Shown>> {
    let file = directory.join(state::FILE);
    let broken =
        || Error::new(format!("read {}: it is no experiment", file.display()), "was it cut off or edited?");
    match state::kind(directory) {
        Some(kind) => Some(of_kind(kind, directory)),
        None => file.is_file().then(|| Err(broken())),
    }
}

fn of_kind(kind: Kind, directory: &Path) -> Result<Shown> {
    match kind {
        Kind::Trial | Kind::Search => trial::shown(directory),
        Kind::Bisection => guests::bisect::shown(directory),
        Kind::Ladder => guests::ladder::shown(directory),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_without_an_experiment_is_none_and_a_broken_file_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        assert!(find(directory.path()).is_none());
        std::fs::write(directory.path().join(state::FILE), "{").unwrap();
        let error = find(directory.path()).unwrap().err().unwrap();
        assert!(error.message.ends_with("experiment.json: it is no experiment"), "{error:?}");
    }
}
