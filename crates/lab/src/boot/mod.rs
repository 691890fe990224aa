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
use record::{KernelParameter, LabImages};
use units::Bytes;

use crate::frames::{self, Frame};
use crate::guest::plan::{self, Plan};
use crate::initramfs::{self, modules};
use crate::kernels::Kernel;
use crate::qemu::{self, Emulator, Files, Port};
use crate::{Error, MadeOf, hash};
use disk::Disk;
use memory_file::MemoryFile;
use process::{End, Process};

/// A guest that is to run one command.
#[derive(Clone, Debug)]
pub struct Guest {
    /// What boots.
    pub kernel: Kernel,
    /// Kernel parameters after the ones that the lab needs itself, one each, with their quotes: [`crate::parameters`].
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
    let prepared = Prepared::new(guest, None)?;
    let mut process = Process::start(&prepared, guest)?;
    let end = process.wait(guest.time_limit, stop)?;
    let (frames, whole) = frames::read(&prepared.results.content()?);
    let (exit, left) = assemble(frames, process.console(), process.boot(), prepared.made_of.clone());
    let error = match (end, whole, exit) {
        // All came back: how the machine went off does not matter then.
        (End::Ended | End::Failed(_), Ok(()), Exit::Code(code)) => return Ok(Outcome { code, left }),
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

/// All that QEMU needs, in memory: nothing is left anywhere, however this process ends.
struct Prepared {
    emulator: Emulator,
    made_of: MadeOf,
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
        let names: Vec<String> = modules.iter().map(|module| module.name.clone()).collect();
        let in_guest = disk.as_ref().map(Disk::in_guest);
        let module = |name: &String| plan::Module {
            name: name.clone(),
            parameters: disk.as_ref().map(|disk| disk.parameters(name)).unwrap_or_default(),
        };
        let planned = names.iter().map(module).collect();
        let (blocks, image) = disk.map_or((None, None), Disk::into_parts);
        let root = initramfs::Root::new(guest, modules, blocks)?;
        let kernel = kernel::load(&guest.kernel)?;
        let images = LabImages {
            kernel: kernel.image,
            booted: kernel.booted,
            binary: hash::of_file(&guest.binary)?,
            initramfs: root.digest(),
        };
        let made_of = MadeOf { emulator: emulator.version.clone(), images };
        let plan = plan(guest, &made_of, in_guest, planned, terminal);
        Ok(Self {
            emulator,
            kernel: kernel.file,
            initramfs: MemoryFile::of("initramfs", &root.with(&plan)?)?,
            made_of,
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
            port: match &self.console {
                Some(console) => Port::Console(pass(console)?),
                None => Port::Results(pass(&self.results)?),
            },
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
    made_of: &MadeOf,
    disk: Option<plan::Disk>,
    modules: Vec<plan::Module>,
    terminal: Option<(u16, u16)>,
) -> Plan {
    let machine = qemu::machine(guest.kernel.architecture);
    Plan {
        modules,
        disk,
        lab: lab(guest, made_of),
        command: guest.command.clone(),
        init: guest.system.as_ref().map(|_| "/sbin/init".into()),
        port: machine.port.into(),
        clock_source: Some(machine.clock_source.into()),
        terminal,
    }
}

/// What records that are made in the guest say of it. Nothing that is but a name on this host: each byte of it moves what
/// the guest measures.
fn lab(guest: &Guest, made_of: &MadeOf) -> record::Lab {
    record::Lab {
        time: guest.time,
        kernel: None,
        words: guest.words.clone(),
        emulator: made_of.emulator.clone(),
        cpu_model: qemu::cpu_model(guest).into(),
        processors: guest.processors,
        not_modelled: guest.time.not_modelled(),
        images: Some(made_of.images.clone()),
        parameters: None,
    }
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
            Frame::Parameters(json) => left.parameters = serde_json::from_slice(&json).unwrap_or_default(),
        }
    }
    (exit, left)
}

/// A guest does not choose where on the host its files go.
fn is_below(path: &Path) -> bool {
    let mut parts = path.components().peekable();
    parts.peek().is_some() && parts.all(|part| matches!(part, Component::Normal(_)))
}
