//! What is kept of a guest: the files that it left, and beside them what only the host knows.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lab::boot::{Device, Guest, Left, Time, Under};
use lab::kernels::{Architecture, Kernel};
use lab::made_of::MadeOf;
use record::KernelParameter;
use record::time::UtcTime;
use serde::{Deserialize, Serialize};
use units::Bytes;

use failure::{Error, Result};

/// What only the host knows: two runs that are equal differ in this file.
const LAB: &str = "lab.json";

#[derive(Serialize)]
struct Boot<'a> {
    started: UtcTime,
    boot_milliseconds: Option<u64>,
    kernel: &'a lab::kernels::Kernel,
    #[serde(skip_serializing_if = "Option::is_none")]
    under: Option<&'a Under>,
    words: &'a [String],
    emulator: &'a str,
    made_of: &'a MadeOf,
    parameters: &'a [KernelParameter],
    left_out: Vec<LeftOut>,
    command: Vec<String>,
    machine: Machine,
    exit_code: Option<u8>,
    failure: Option<String>,
}

/// What else a guest was given that it can be made of again.
#[derive(Clone, Serialize, Deserialize)]
struct Machine {
    time: Time,
    processors: u32,
    #[serde(default)]
    cpu_model: Option<String>,
    memory: Bytes,
    disk: Option<Bytes>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    devices: Vec<Device>,
    system: Option<PathBuf>,
    programs: Vec<PathBuf>,
    time_limit_seconds: u64,
}

/// What a guest can be made of again.
#[derive(Deserialize)]
pub struct Again {
    kernel: Kernel,
    #[serde(default)]
    under: Option<Under>,
    words: Vec<String>,
    command: Vec<String>,
    machine: Option<Machine>,
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
        Ok(false) => Err(Error::new(format!("{} is not empty", place.display()), hint)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Error::new(format!("read {}: {error}", place.display()), hint)),
    }
}

/// Writes all of it below `place`.
pub fn keep(place: &Path, guest: &Guest, left: &Left, end: End<'_>, started: UtcTime) -> Result<()> {
    let hint = "make room, or choose a directory that can be written with --out";
    let put = match end {
        End::Code(_) => lab::kept::put(place, left),
        End::Failed(error) => lab::kept::put_failed(place, left, error),
    };
    let directory = put.map_err(|error| Error::new(error, hint))?;
    let command = guest.command.iter().map(|word| word.to_string_lossy().into_owned());
    let left_out = left.left_out.iter();
    let left_out = left_out.map(|(path, why)| LeftOut { path: path.display().to_string(), why: why.clone() });
    let boot = Boot {
        started,
        boot_milliseconds: left.boot.map(|boot| boot.as_millis() as u64),
        kernel: &guest.kernel,
        under: guest.under.as_ref(),
        words: &guest.words,
        emulator: &left.made_of.emulator,
        made_of: &left.made_of,
        parameters: &left.parameters,
        left_out: left_out.collect(),
        command: command.collect(),
        machine: Machine {
            time: guest.time,
            processors: guest.processors,
            cpu_model: guest.cpu_model.clone(),
            memory: guest.memory,
            disk: guest.disk,
            devices: guest.devices.clone(),
            system: guest.system.clone(),
            programs: guest.programs.clone(),
            time_limit_seconds: guest.time_limit.as_secs(),
        },
        exit_code: match end {
            End::Code(code) => Some(code),
            End::Failed(_) => None,
        },
        failure: match end {
            End::Code(_) => None,
            End::Failed(error) => Some(error.message.clone()),
        },
    };
    let boot = serde_json::to_vec_pretty(&boot).map_err(|error| Error::new(error, ""))?;
    Ok(directory.write_whole(LAB, &boot)?)
}

/// No such file is longer, in bytes.
const LONGEST: u64 = 16 << 20;

/// What is known of the guest that left `place`; none where `lab run` has left nothing there.
pub fn again(place: &Path) -> Result<Option<Again>> {
    let path = place.join(LAB);
    if !path.is_file() {
        return Ok(None);
    }
    let broken = |error| Error::new(format!("read {}: {error}", path.display()), "was it cut off or edited?");
    record::json::read(&files::read(&path, LONGEST)?).map(Some).map_err(broken)
}

impl Again {
    /// The same guest.
    pub fn guest(self, binary: &dyn Fn(Architecture) -> Result<PathBuf>) -> Result<Guest> {
        let Some(machine) = self.machine else {
            return Err(Error::new(
                "an older version left this and did not note memory and disk",
                "measure once more with worstcase lab run",
            ));
        };
        let cached = super::choice::kernel(Path::new(&self.kernel.name)).ok();
        let kernel = cached.filter(|cached| cached.image == self.kernel.image).unwrap_or(self.kernel);
        Ok(Guest {
            binary: binary(kernel.architecture)?,
            kernel,
            under: self.under,
            words: self.words,
            processors: machine.processors,
            threads_per_core: 1,
            cpu_model: machine.cpu_model,
            memory: machine.memory,
            time: machine.time,
            disk: machine.disk,
            devices: machine.devices,
            system: machine.system,
            programs: machine.programs,
            command: self.command.into_iter().map(Into::into).collect(),
            time_limit: Duration::from_secs(machine.time_limit_seconds),
        })
    }
}
