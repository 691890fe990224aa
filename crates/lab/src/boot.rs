//! One guest: a kernel, a machine, a command, and what came of it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use units::Bytes;

use crate::Error;
use crate::kernels::Kernel;

/// What a guest's clock counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Time {
    /// Instructions: one is a nanosecond. One CPU, and every run with the same seed is the same run.
    Instructions,
    /// The host's time. Several CPUs; timings mean nothing.
    Wall,
}

/// A guest that is to run one command.
#[derive(Clone, Debug)]
pub struct Guest {
    /// What boots.
    pub kernel: Kernel,
    /// Words after the ones that the lab needs itself.
    pub words: Vec<String>,
    /// CPUs; 1 in instruction time.
    pub processors: u32,
    /// Its memory.
    pub memory: Bytes,
    /// What its clock counts.
    pub time: Time,
    /// The size of an ext4 disk for loads, if there is to be one: a RAM block device in instruction time, virtio else.
    pub disk: Option<Bytes>,
    /// This program, for the guest's architecture; with its libraries if it is dynamic.
    pub binary: PathBuf,
    /// More programs that are put into the guest's `/bin`, with their libraries.
    pub programs: Vec<PathBuf>,
    /// The command: the program's name in the guest's PATH, and its arguments. Its current directory is empty, and all
    /// that it leaves there comes back.
    pub command: Vec<OsString>,
    /// When the guest is given up.
    pub time_limit: Duration,
}

/// What came back.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The command's exit code; 128 + N if signal N ended it.
    pub code: u8,
    /// What the command printed to standard output and to standard error.
    pub output: Vec<u8>,
    /// The files that it left, by their path below its directory.
    pub files: Vec<(PathBuf, Vec<u8>)>,
    /// All that the guest's console said.
    pub console: String,
    /// Host time from QEMU's start until the command began.
    pub boot: Duration,
}

/// Boots `guest`, waits for its end and gives back what it left. `stop` is asked now and then: when it says so, the
/// guest is ended and that is the error. Nothing is left running in any case.
pub fn run(guest: &Guest, stop: &dyn Fn() -> bool) -> Result<Outcome, Error> {
    let _ = stop;
    Err(Error::new(format!("booting {} is not built yet", guest.kernel.name)))
}
