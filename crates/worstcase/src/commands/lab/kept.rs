//! What is kept of a guest: the files that it left, and beside them what only the host knows.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use lab::boot::{Guest, Left};
use lab::made_of::MadeOf;
use record::KernelParameter;
use record::time::UtcTime;
use serde::Serialize;

use crate::error::{CommandError, Result};

/// What only the host knows: two runs that are equal differ in this file.
const LAB: &str = "lab.json";

#[derive(Serialize)]
struct Boot<'a> {
    started: UtcTime,
    boot_milliseconds: Option<u64>,
    kernel: &'a lab::kernels::Kernel,
    words: &'a [String],
    emulator: &'a str,
    made_of: &'a MadeOf,
    parameters: &'a [KernelParameter],
    left_out: Vec<LeftOut>,
    command: Vec<String>,
    exit_code: Option<u8>,
    failure: Option<String>,
}

/// What did not come back.
#[derive(Serialize)]
struct LeftOut {
    path: String,
    why: String,
}

/// How a guest ended: the command's exit code, or why there is none.
#[derive(Clone, Copy)]
pub enum End<'a> {
    /// The command's.
    Code(u8),
    /// Why the command did not come to its end.
    Failed(&'a lab::Error),
}

/// Refuses a directory that holds something, before a guest runs for it.
pub fn check(place: &Path) -> Result<()> {
    let hint = "choose another directory with --out: nothing is ever overwritten";
    match fs::read_dir(place).map(|mut entries| entries.next().is_none()) {
        Ok(true) => Ok(()),
        Ok(false) => Err(CommandError::new(format!("{} is not empty", place.display()), hint)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(CommandError::new(format!("read {}: {error}", place.display()), hint)),
    }
}

/// Writes all of it below `place`.
pub fn keep(place: &Path, guest: &Guest, left: &Left, end: End<'_>, started: UtcTime) -> Result<()> {
    let hint = "make room, or choose a directory that can be written with --out";
    let put = match end {
        End::Code(_) => lab::kept::put(place, left),
        End::Failed(error) => lab::kept::put_failed(place, left, error),
    };
    put.map_err(|error| CommandError::new(error, hint))?;
    let command = guest.command.iter().map(|word| word.to_string_lossy().into_owned());
    let left_out = left.left_out.iter();
    let left_out = left_out.map(|(path, why)| LeftOut { path: path.display().to_string(), why: why.clone() });
    let boot = Boot {
        started,
        boot_milliseconds: left.boot.map(|boot| boot.as_millis() as u64),
        kernel: &guest.kernel,
        words: &guest.words,
        emulator: &left.made_of.emulator,
        made_of: &left.made_of,
        parameters: &left.parameters,
        left_out: left_out.collect(),
        command: command.collect(),
        exit_code: match end {
            End::Code(code) => Some(code),
            End::Failed(_) => None,
        },
        failure: match end {
            End::Code(_) => None,
            End::Failed(error) => Some(error.message.clone()),
        },
    };
    let boot = serde_json::to_vec_pretty(&boot).map_err(|error| CommandError::new(error, ""))?;
    Ok(files::write_whole(&place.join(LAB), &boot)?)
}
