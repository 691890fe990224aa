//! What can go wrong before a load runs.

use crate::Missing;

/// Why a load cannot run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No load of that name.
    #[error("there is no load `{name}`; there are {known}")]
    Unknown {
        /// The name asked for.
        name: String,
        /// The names that exist.
        known: String,
    },
    /// Nothing stands where a name should, as behind the last comma of a list.
    #[error("the name of a load is empty, as behind a comma too many; there are {known}")]
    Unnamed {
        /// The names that exist.
        known: String,
    },
    /// The catalogue that is built in does not parse: what the parser says.
    #[error("load catalogue: {0}")]
    Catalogue(String),
    /// Every part of the load needs a program that is not there.
    #[error("load `{load}` cannot run: {}", .missing.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Missing {
        /// The load.
        load: String,
        /// The programs.
        missing: Vec<Missing>,
    },
    /// No CPU to run on.
    #[error("load `{0}` has no CPU to run on: name some with --load-cpus")]
    NoCpus(String),
    /// A load that writes, and no directory.
    #[error("load `{0}` writes files and was given no directory: name one with --load-dir")]
    NoDirectory(String),
    /// A load that stresses a device, and a directory that is on none.
    #[error(
        "load `{load}` stresses a disk, and {directory} is on {system}: name a directory on a disk with --load-dir"
    )]
    NoDevice {
        /// The load.
        load: String,
        /// The directory.
        directory: String,
        /// Its file system.
        system: String,
    },
    /// A system call failed.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the kernel answered.
        source: sys::Error,
    },
    /// A file or pipe failed.
    #[error("{what}: {source}")]
    File {
        /// What was tried, and on which path.
        what: String,
        /// What the kernel answered.
        source: std::io::Error,
    },
    /// The supervisor could not do its work, in its own words.
    #[error("the load's supervisor failed: {0}")]
    Supervisor(String),
    /// No worker came up.
    #[error("load `{load}` did not start: {why}")]
    NotRunning {
        /// The load.
        load: String,
        /// What its workers said.
        why: String,
    },
}

/// Says what was tried when it fails.
pub(crate) trait Trying<T> {
    fn trying(self, what: &'static str) -> Result<T, Error>;
}

impl<T> Trying<T> for sys::Result<T> {
    fn trying(self, what: &'static str) -> Result<T, Error> {
        self.map_err(|source| Error::System { what, source })
    }
}

impl<T> Trying<T> for std::io::Result<T> {
    fn trying(self, what: &'static str) -> Result<T, Error> {
        self.map_err(|source| Error::File { what: what.to_owned(), source })
    }
}

impl From<Error> for failure::Error {
    fn from(error: Error) -> Self {
        Self::new(&error, "worstcase load --list says what each load does and needs").caused_by(error)
    }
}
