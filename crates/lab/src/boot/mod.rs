//! One guest: a kernel, a machine, a command, and what came of it.

mod console;
pub(crate) mod disk;
mod kernel;
mod memory_file;
mod process;

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};
use std::process::Command;
use std::time::Duration;

pub use console::PATCHED;
pub use record::LabTime as Time;
use units::Bytes;

use crate::Error;
use crate::frames::{self, Frame};
use crate::guest::plan::{self, Plan};
use crate::initramfs::{self, modules};
use crate::kernels::Kernel;
use crate::qemu::{self, Emulator, Files};
use disk::Disk;
use memory_file::MemoryFile;
use process::{End, Process};

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
    /// More programs that are put into the guest's `/bin`, with their libraries: files, or names in PATH.
    pub programs: Vec<PathBuf>,
    /// A directory with a whole system, as debootstrap(8) makes one: its files are the guest's, its `/sbin/init` becomes
    /// process 1, and the command is a service of its systemd.
    pub system: Option<PathBuf>,
    /// The command: the program's name in the guest's PATH, and its arguments. Its current directory is empty, and all
    /// that it leaves there comes back. The directory lies on the disk, if there is one.
    pub command: Vec<OsString>,
    /// When the guest is given up.
    pub time_limit: Duration,
}

/// What came back.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The command's exit code; 128 + N if signal N ended it.
    pub code: u8,
    /// What the command printed to standard output.
    pub output: Vec<u8>,
    /// What it printed to standard error.
    pub errors: Vec<u8>,
    /// The files that it left, by their path below its directory: relative, without `..`.
    pub files: Vec<(PathBuf, Vec<u8>)>,
    /// All that the guest's console said.
    pub console: String,
    /// Host time from QEMU's start until the command began.
    pub boot: Duration,
    /// The emulator with its version: `QEMU 7.2.22`.
    pub emulator: String,
}

/// Boots `guest`, waits for its end and gives back what it left. `stop` is asked now and then: when it says so, the
/// guest is ended and that is the error. Nothing is left running in any case.
///
/// # Errors
/// What a guest cannot be made of: see the hint. A guest that does not boot, panics, hangs or is given up, with the
/// last lines of its console.
pub fn run(guest: &Guest, stop: &dyn Fn() -> bool) -> Result<Outcome, Error> {
    let prepared = Prepared::new(guest, None)?;
    let mut process = Process::start(&prepared, guest)?;
    let end = process.wait(guest.time_limit, stop)?;
    let console = process.console();
    let results = prepared.results.content()?;
    let frames = match (end, frames::read(&results)) {
        // All came back: how the machine went off does not matter then.
        (End::Ended | End::Failed(_), Ok(frames)) => frames,
        (end, read) => return Err(console::explain(guest, &end, read.err(), process.boot(), &console)),
    };
    outcome(guest, frames, console, process.boot().unwrap_or_default(), prepared.emulator.version.clone())
}

/// As [`run`], with a person at the guest's console, which is this process's terminal of `size` (rows, columns). There
/// is no time limit. Gives back the files that were left.
pub fn at_the_console(guest: &Guest, size: (u16, u16)) -> Result<Outcome, Error> {
    let prepared = Prepared::new(guest, Some(size))?;
    let mut process = Process::start(&prepared, guest)?;
    process.wait(Duration::MAX, &|| false)?;
    let Ok(frames) = frames::read(&prepared.results.content()?) else {
        return Err(Error::new("the guest was switched off: nothing came back"));
    };
    outcome(guest, frames, String::new(), Duration::ZERO, prepared.emulator.version.clone())
}

/// All that QEMU needs, in memory: nothing is left anywhere, however this process ends.
struct Prepared {
    emulator: Emulator,
    kernel: MemoryFile,
    initramfs: MemoryFile,
    results: MemoryFile,
    console: Option<MemoryFile>,
    disk: Option<MemoryFile>,
}

impl Prepared {
    fn new(guest: &Guest, terminal: Option<(u16, u16)>) -> Result<Self, Error> {
        if guest.time == Time::Instructions && guest.processors != 1 {
            return Err(Error::new(
                "in instruction time a guest has one CPU: several take turns on one clock",
            )
            .hint("leave out the number of CPUs, or use --time wall"));
        }
        let emulator = Emulator::find(guest.kernel.architecture)?;
        guest.kernel.check()?;
        let disk = guest.disk.map(|size| Disk::make(size, guest.time)).transpose()?;
        let modules = wanted_modules(guest, disk.as_ref())?;
        let plan = plan(guest, &emulator, disk.as_ref(), &modules, terminal)?;
        let (blocks, image) = disk.map_or((None, None), Disk::into_parts);
        let initramfs = initramfs::build(guest, &plan, modules, blocks)?;
        Ok(Self {
            emulator,
            kernel: kernel::load(&guest.kernel)?,
            initramfs: MemoryFile::of("initramfs", &initramfs)?,
            results: MemoryFile::new("results")?,
            console: if terminal.is_none() { Some(MemoryFile::new("console")?) } else { None },
            disk: image,
        })
    }

    /// Lets QEMU open them.
    fn pass_to(&self, command: &mut Command) -> Result<Files, Error> {
        let mut pass = |file: &MemoryFile| file.pass_to(command);
        Ok(Files {
            kernel: pass(&self.kernel)?,
            initramfs: pass(&self.initramfs)?,
            results: pass(&self.results)?,
            console: self.console.as_ref().map(&mut pass).transpose()?,
            disk: self.disk.as_ref().map(&mut pass).transpose()?,
        })
    }
}

/// What the guest's devices need, as far as it is not built in. A kernel without a tree of modules has all built in.
fn wanted_modules(guest: &Guest, disk: Option<&Disk>) -> Result<Vec<modules::Module>, Error> {
    let Some(directory) = &guest.kernel.modules else { return Ok(Vec::new()) };
    let needed = disk.map_or(&[][..], Disk::modules);
    modules::Tree::read(directory)?.order(needed)
}

fn plan(
    guest: &Guest,
    emulator: &Emulator,
    disk: Option<&Disk>,
    modules: &[modules::Module],
    terminal: Option<(u16, u16)>,
) -> Result<Plan, Error> {
    let machine = qemu::machine(guest.kernel.architecture);
    let parameters = |name: &str| disk.map(|disk| disk.parameters(name)).unwrap_or_default();
    let module = |name: &String| plan::Module { name: name.clone(), parameters: parameters(name) };
    let lab = serde_json::to_string(&lab(guest, emulator));
    let lab = lab.map_err(|error| Error::new(format!("write what the record is to say: {error}")))?;
    Ok(Plan {
        modules: modules.iter().map(|found| module(&found.name)).collect(),
        disk: disk.map(Disk::in_guest),
        environment: vec![("WORSTCASE_LAB".into(), lab)],
        command: guest.command.clone(),
        init: guest.system.as_ref().map(|_| "/sbin/init".into()),
        port: machine.port.into(),
        clock_source: Some(machine.clock_source.into()),
        terminal,
    })
}

/// What records that are made in the guest say of it.
fn lab(guest: &Guest, emulator: &Emulator) -> record::Lab {
    record::Lab {
        time: guest.time,
        kernel: guest.kernel.name.clone(),
        words: guest.words.clone(),
        emulator: emulator.version.clone(),
        cpu_model: qemu::cpu_model(guest).into(),
        processors: guest.processors,
        not_modelled: guest.time.not_modelled(),
    }
}

fn outcome(
    guest: &Guest,
    frames: Vec<Frame>,
    console: String,
    boot: Duration,
    emulator: String,
) -> Result<Outcome, Error> {
    let (output, errors, files) = (Vec::new(), Vec::new(), Vec::new());
    let mut outcome = Outcome { code: 0, output, errors, files, console, boot, emulator };
    for frame in frames {
        match frame {
            Frame::Ended(code) => outcome.code = code,
            Frame::Output(bytes) => outcome.output = bytes,
            Frame::Errors(bytes) => outcome.errors = bytes,
            Frame::File(path, bytes) if is_below(&path) => outcome.files.push((path, bytes)),
            Frame::File(path, _) => {
                return Err(Error::new(format!("the guest sent a file to {}", path.display())));
            }
            Frame::Failure(words) => return Err(console::failure(guest, &words, &outcome.console)),
        }
    }
    Ok(outcome)
}

/// A guest does not choose where on the host its files go.
fn is_below(path: &Path) -> bool {
    let mut parts = path.components().peekable();
    parts.peek().is_some() && parts.all(|part| matches!(part, Component::Normal(_)))
}
