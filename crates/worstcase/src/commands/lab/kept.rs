//! What is kept of a guest: the files that it left, and beside them what only the host knows.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use lab::boot::{Guest, Outcome};
use record::store;
use record::time::UtcTime;
use serde::Serialize;

use crate::error::{CommandError, Result};

/// What only the host knows: two runs that are equal differ in this file.
const LAB: &str = "lab.json";

#[derive(Serialize)]
struct Boot<'a> {
    started: UtcTime,
    boot_milliseconds: u64,
    kernel: &'a lab::kernels::Kernel,
    words: &'a [String],
    emulator: &'a str,
    command: Vec<String>,
    exit_code: u8,
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
pub fn keep(place: &Path, guest: &Guest, outcome: &Outcome, started: UtcTime) -> Result<()> {
    let hint = "make room, or choose a directory that can be written with --out";
    lab::kept::put(place, outcome).map_err(|error| CommandError::new(error, hint))?;
    let command = guest.command.iter().map(|word| word.to_string_lossy().into_owned());
    let boot = Boot {
        started,
        boot_milliseconds: outcome.boot.as_millis() as u64,
        kernel: &guest.kernel,
        words: &guest.words,
        emulator: &outcome.emulator,
        command: command.collect(),
        exit_code: outcome.code,
    };
    let boot = serde_json::to_vec_pretty(&boot).map_err(|error| CommandError::new(error, ""))?;
    Ok(store::write_whole(&place.join(LAB), &boot)?)
}
