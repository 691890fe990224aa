//! One guest: a kernel, a machine, a command, and what came of it.

mod console;
pub(crate) mod device;
pub(crate) mod disk;
pub(crate) mod guest;
mod kernel;
mod memory_file;
mod prepared;
mod process;
pub(crate) mod under;
mod watch;

use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use record::KernelParameter;

pub use console::{PANICS_WHEN_LOCKED_UP, is_confused};
pub use device::Device;
pub use guest::{Guest, Time, Under};
use prepared::Prepared;
use process::{End, Process};
pub use under::{check as check_under, split as split_under};
use watch::Watch;
pub use watch::{Target, Watched, check_watched};

use crate::frames::{self, Frame};
use crate::{Error, MadeOf};

/// What came back of a guest that ran its command to the end.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The command's exit code; 128 + N if signal N ended it.
    pub code: u8,
    /// The rest.
    pub left: Left,
}

/// What a guest left, however it ended.
#[derive(Clone, Debug)]
pub struct Left {
    /// What the command printed to standard output.
    pub output: Vec<u8>,
    /// What it printed to standard error.
    pub errors: Vec<u8>,
    /// The files that it left, by their path below its directory: relative, without `..`.
    pub files: Vec<(PathBuf, Vec<u8>)>,
    /// What did not come back, or not to its end, and why.
    pub left_out: Vec<(PathBuf, String)>,
    /// All that the guest's console said.
    pub console: String,
    /// Host time from QEMU's start until the command began, if it did.
    pub boot: Option<Duration>,
    /// The emulator and the files that it was made of.
    pub made_of: MadeOf,
    /// What the guest's kernel had made of its parameters when the command had ended.
    pub parameters: Vec<KernelParameter>,
}

/// Why a guest has no outcome, and what it left all the same.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{error}")]
pub struct Failure {
    /// What went wrong.
    pub error: Error,
    /// What came back until then; none where no guest ran, or it was not waited for.
    pub left: Option<Box<Left>>,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { error, left: None }
    }
}

/// Boots `guest`, waits for its end and gives back what it left. `stop` is asked now and then: when it says so, the
/// guest is ended and that is the error. Nothing is left running in any case.
///
/// # Errors
/// What a guest cannot be made of: see the hint. A guest that does not boot, panics, hangs, is killed or given up, with
/// what its console said of it.
pub fn run(guest: &Guest, stop: &dyn Fn() -> bool) -> Result<Outcome, Failure> {
    run_prepared(guest, &Prepared::new(guest, None)?, stop)
}

/// As [`run`], with the plugin in QEMU, which looks for what is in `watched`. Gives back what it has written too.
///
/// # Errors
/// As of [`run`], and where this QEMU takes no such plugin.
pub fn run_watched(
    guest: &Guest,
    watched: &Watched,
    stop: &dyn Fn() -> bool,
) -> Result<(Outcome, Vec<u8>), Failure> {
    check_watched(guest)?;
    let mut prepared = Prepared::new(guest, None)?;
    let watch = prepared.watch.insert(Watch::new(watched, guest)?);
    let stream = watch.stream()?;
    let outcome = run_prepared(guest, &prepared, stop)?;
    Ok((outcome, stream.content()?))
}

/// SIGABRT.
const ABORTED: i32 = 6;

fn run_prepared(guest: &Guest, prepared: &Prepared, stop: &dyn Fn() -> bool) -> Result<Outcome, Failure> {
    let mut process = Process::start(prepared, guest)?;
    let end = process.wait(guest.time_limit, stop)?;
    let (frames, whole) = frames::read(&prepared.results.content()?);
    let (exit, left) = assemble(frames, process.console(), process.boot(), prepared.made_of.clone());
    let error = match (end, whole, exit) {
        // All came back: how the machine went off does not matter then.
        // QEMU 7.2, which records, now and then fails an assertion of its own where Xen switches the machine off (SIGABRT).
        (End::Ended | End::Failed(_) | End::Killed(ABORTED), Ok(()), Exit::Code(code)) => {
            return Ok(Outcome { code, left });
        }
        (_, _, Exit::NotRun(words)) => console::failure(guest, &words, &left.console),
        (end, whole, _) => console::explain(guest, &end, whole.err(), left.boot, &left.console),
    };
    Err(Failure { error, left: Some(Box::new(left)) })
}

/// As [`run`], with a person at the guest's console, which is this process's terminal of `size` (rows, columns). There
/// is no time limit. Gives back the files that were left.
///
/// # Errors
/// As of [`run`].
pub fn at_the_console(guest: &Guest, size: (u16, u16)) -> Result<Outcome, Failure> {
    let prepared = Prepared::new(guest, Some(size))?;
    let mut process = Process::start(&prepared, guest)?;
    process.wait(Duration::MAX, &|| false)?;
    let (frames, whole) = frames::read(&prepared.results.content()?);
    let (exit, left) = assemble(frames, String::new(), None, prepared.made_of.clone());
    let error = match (whole, exit) {
        (_, Exit::NotRun(words)) => console::failure(guest, &words, ""),
        (Ok(()), Exit::Code(code)) => return Ok(Outcome { code, left }),
        _ => Error::new("the guest was switched off before its results came back"),
    };
    Err(Failure { error, left: Some(Box::new(left)) })
}

/// What `guest` would be made of now, without booting it.
///
/// # Errors
/// What a guest cannot be made of.
pub fn made_of(guest: &Guest) -> Result<MadeOf, Error> {
    Prepared::new(guest, None).map(|prepared| prepared.made_of)
}

/// How a guest's command ended.
enum Exit {
    /// Its exit code.
    Code(u8),
    /// It was not run: why.
    NotRun(String),
    /// The guest sent neither.
    Unknown,
}

/// Takes the frames apart.
fn assemble(frames: Vec<Frame>, console: String, boot: Option<Duration>, made_of: MadeOf) -> (Exit, Left) {
    let mut exit = Exit::Unknown;
    let mut left = Left {
        output: Vec::new(),
        errors: Vec::new(),
        files: Vec::new(),
        left_out: Vec::new(),
        console,
        boot,
        made_of,
        parameters: Vec::new(),
    };
    for frame in frames {
        match frame {
            Frame::Ended(code) => exit = Exit::Code(code),
            Frame::Failure(words) => exit = Exit::NotRun(words),
            Frame::Output(mut bytes) => left.output.append(&mut bytes),
            Frame::Errors(mut bytes) => left.errors.append(&mut bytes),
            Frame::File(path, bytes) if is_below(&path) => left.files.push((path, bytes)),
            Frame::File(path, _) => left.left_out.push((path, "its path leads out of the directory".into())),
            Frame::LeftOut(path, why) => left.left_out.push((path, why)),
            Frame::Parameters(json) => left.parameters = record::json::read(&json).unwrap_or_default(),
        }
    }
    (exit, left)
}

/// A guest does not choose where on the host its files go.
fn is_below(path: &Path) -> bool {
    let mut parts = path.components().peekable();
    parts.peek().is_some() && parts.all(|part| matches!(part, Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_does_not_choose_where_its_files_go() {
        for path in ["record.json", "a/b/c", "..a"] {
            assert!(is_below(Path::new(path)), "{path}");
        }
        for path in ["", "/etc/passwd", "..", "../a", "a/../../b", "./a"] {
            assert!(!is_below(Path::new(path)), "{path}");
        }
    }
}
