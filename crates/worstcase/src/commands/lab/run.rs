//! `worstcase lab run`: one command in one guest.

use std::cell::Cell;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use lab::boot::{self, Device, Failure, Guest, Left, Outcome, Time, Under};
use lab::kernels::{Architecture, Cache};
use lab::{limits, parameters};
use record::time::UtcTime;
use record::{KernelParameter, ParameterAnswer, store};
use sys::signal::{Signal, Signals};
use units::{Bytes, Nanos};

use super::kept::End;
use super::{again, binary, choice, explain, kept};
use crate::options;
use crate::output::{self, Stream};
use failure::{Error, Result};

/// The exit code of a guest that somebody ended before it had measured.
const INTERRUPTED: u8 = 130;

/// Run one command in one guest
///
/// The guest boots in seconds, runs the command in an empty directory and is gone; what the command printed and the
/// files that it left come back, and its exit code is the exit code. Nothing is installed, nothing needs privileges.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    worstcase lab run --kernel debian-6.1-rt-amd64 -- bench --loads idle,scary-grinder --duration 2s\n  \
    worstcase lab run --kernel ./bzImage --append threadirqs -- measure --samples 1000 --seed 7\n  \
    worstcase lab run --kernel ./bzImage --time wall --cpus 2 --append threadirqs -- shell")]
pub struct Run {
    /// The kernel: a name from `lab kernels list`, or the path of an image (with a `/`)
    #[arg(long, value_name = "NAME|PATH")]
    kernel: PathBuf,

    /// Kernel parameters after the lab's own, blanks within one in quotes; can be given several times
    #[arg(long, value_name = "PARAMETERS", allow_hyphen_values = true)]
    append: Vec<String>,

    /// Boot the kernel as the first domain (dom0) of this hypervisor, e.g. xen-4.17-amd64: see `lab kernels fetch xen`
    #[arg(long, value_name = "NAME")]
    under: Option<String>,

    /// The hypervisor's parameters after the lab's own, as --append has the kernel's
    #[arg(long, value_name = "PARAMETERS", allow_hyphen_values = true, requires = "under")]
    under_append: Vec<String>,

    /// CPUs; always 1 in instruction time
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=64))]
    cpus: u32,

    /// The emulated CPU, as `qemu -cpu` names it, e.g. qemu64 [default: all that QEMU can do, without what is not reproducible]
    #[arg(long, value_name = "MODEL", value_parser = limits::cpu_model)]
    cpu_model: Option<String>,

    /// Memory
    #[arg(long, value_name = "SIZE", default_value = "1G")]
    memory: Bytes,

    /// What the guest's clock counts: instructions (reproducible, one CPU) or wall (the host's time; timings mean
    /// nothing)
    #[arg(long, value_name = "TIME", default_value = "instructions")]
    time: Time,

    /// An ext4 disk of this size under the command's directory; the load hdd wants 1 GiB free: 2G. What is not written
    /// costs nothing
    #[arg(long, value_name = "SIZE")]
    disk: Option<Bytes>,

    /// A device whose interrupts `measure --probe call` takes: edu-uio for `--calls uio`, edu-vfio for `--calls vfio`, hpet for
    /// `--calls hpet`; kvm for --wake kvm. For two guests in wall time: network:OWN:PEER, a cable between their sockets; igb:OWN:PEER, the
    /// same with cards that stamp frames (QEMU 8.0); gpio:SOCKET, GPIO lines that a process of this machine has (vhost-user-gpio)
    #[arg(long, value_name = "DEVICE")]
    device: Option<Device>,

    /// A program of this machine to put into the guest, with its libraries; can be given several times
    #[arg(long, value_name = "PROGRAM")]
    with: Vec<PathBuf>,

    /// A directory with a whole system, as debootstrap makes: its init is process 1, and the command is a service of its
    /// systemd, started when the system is up
    #[arg(long, value_name = "DIR")]
    system: Option<PathBuf>,

    /// The worstcase that runs in the guest [default: this one; for another architecture what `cargo xtask dist` made]
    #[arg(long, value_name = "FILE")]
    guest_binary: Option<PathBuf>,

    /// When the guest is given up, in the host's time
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = options::length)]
    timeout: Nanos,

    /// Directory for what comes back [default: worstcase-lab-<UTC time>-<kernel>, if the command leaves any file]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Then run the guest again under the microscope, and say what each instruction of its N worst wake-ups of each load was
    /// for: as `lab explain`
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "10")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=200))]
    explain: Option<u16>,

    /// The command: a command of worstcase, a program in the guest, or `shell`
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl Run {
    pub fn run(self) -> Result<ExitCode> {
        self.out.as_deref().map_or(Ok(()), kept::check)?;
        let guest = self.guest()?;
        if self.explain.is_some() && (self.is_shell() || self.time != Time::Instructions) {
            return Err(Error::new(
                "--explain needs a guest in instruction time with a command that measures",
                "worstcase lab run --kernel NAME --explain -- bench",
            ));
        }
        if self.explain.is_some() {
            boot::check_watched(&guest)?;
        }
        if self.is_shell() {
            return self.shell(&guest);
        }
        let signals = Signals::take()?;
        let started = UtcTime(sys::clock::unix_seconds());
        let stop = || signals.next().is_some_and(|signal| signal != Signal::User1);
        let stopped = Cell::new(false);
        let asked = || {
            stopped.set(stopped.get() || stop());
            stopped.get()
        };
        let result = boot::run(&guest, &asked);
        // A terminal sends Ctrl-C to QEMU too, which may be gone before anybody has asked.
        if result.is_err() && (stopped.get() || stop()) {
            return Ok(interrupted(self.bring_back(&guest, result, started)));
        }
        let code = self.bring_back(&guest, result, started)?;
        if let Some(worst) = self.explain {
            let place = self.place(&guest, started);
            let seen = again::look(&place, &guest, worst.into(), &[], &signals)?;
            output::final_data(&explain::shown(&seen))?;
        }
        Ok(code)
    }

    /// Where what comes back is kept.
    fn place(&self, guest: &Guest, started: UtcTime) -> PathBuf {
        let name = || format!("worstcase-lab-{}-{}", started.compact(), guest.kernel.name).into();
        self.out.clone().unwrap_or_else(name)
    }

    fn is_shell(&self) -> bool {
        self.command.len() == 1 && self.command.iter().all(|word| word == "shell")
    }

    fn guest(&self) -> Result<Guest> {
        let kernel = choice::kernel(&self.kernel)?;
        let devices: Vec<Device> = self.device.clone().into_iter().collect();
        let under = self.under.as_deref().map(|name| self.under(name)).transpose()?;
        if let Some(under) = &under {
            boot::check_under(&kernel, under, &devices)?;
        }
        let binary = binary::choose(self.guest_binary.as_deref(), kernel.architecture)?;
        let (command, brought) = self.command(kernel.architecture)?;
        self.system.as_deref().map_or(Ok(()), check_system)?;
        let words = parameters::split_all(&self.append)?;
        super::warn_of(&words, &kernel.release);
        Ok(Guest {
            under,
            words,
            processors: self.cpus,
            threads_per_core: 1,
            cpu_model: self.cpu_model.clone(),
            memory: self.memory,
            time: self.time,
            disk: self.disk,
            devices,
            binary,
            system: self.system.clone(),
            programs: self.with.iter().cloned().chain(brought).collect(),
            command,
            time_limit: self.timeout.duration(),
            kernel,
        })
    }

    fn under(&self, name: &str) -> Result<Under> {
        let missing = |error: lab::Error| {
            let hint = "it takes a name, as xen-4.17-amd64: lab kernels fetch xen brings it, lab kernels list shows it";
            Error::new(format!("--under {name}: {}", error.message), hint)
        };
        let hypervisor = Cache::of_user()?.kernel(name).map_err(missing)?;
        Ok(Under { hypervisor, words: boot::split_under(&self.under_append)? })
    }

    /// What runs in the guest, and the program that is brought for it: a command of worstcase, or a program that was
    /// not named with --with and that this machine has.
    fn command(&self, architecture: Architecture) -> Result<(Vec<OsString>, Option<PathBuf>)> {
        let Some(first) = self.command.first() else {
            return Err(Error::new("there is no command", "worstcase lab run ... -- bench"));
        };
        if self.is_shell() {
            let busybox = lab::find_program("busybox".as_ref()).is_some();
            let brought = if busybox { "busybox" } else { "sh" };
            let there = ["busybox", "sh"].into_iter().any(|name| self.has(name));
            return Ok((vec!["sh".into()], (!there).then(|| brought.into())));
        }
        if let Some(verb) = first.to_str().filter(|word| is_verb(word)) {
            let mut words = vec![OsString::from("worstcase")];
            words.extend(self.command.iter().cloned());
            // The record lies in what comes back, not in a directory in it that is named after the guest's clock.
            if verb == "bench" && !self.command.iter().any(|word| word.to_string_lossy().starts_with("--out"))
            {
                words.extend(["--out", "."].map(OsString::from));
            }
            return Ok((words, None));
        }
        let path = Path::new(first);
        let here = path.components().count() == 1
            && Architecture::own() == Some(architecture)
            && !self.has(&first.to_string_lossy())
            && lab::find_program(path).is_some();
        Ok((self.command.clone(), here.then(|| path.to_path_buf())))
    }

    fn has(&self, name: &str) -> bool {
        self.with.iter().any(|program| program.file_name().is_some_and(|file| file == name))
    }

    fn shell(&self, guest: &Guest) -> Result<ExitCode> {
        if guest.system.is_some() {
            return Err(Error::new(
                "a guest with a system of its own has no shell for a person",
                "give the command instead: worstcase lab run ... -- sh -c 'WORDS'",
            ));
        }
        if !std::io::stdin().is_terminal() {
            return Err(Error::new(
                "a shell in a guest needs a terminal",
                "give the command instead: worstcase lab run ... -- sh -c 'WORDS'",
            ));
        }
        let size = rustix::termios::tcgetwinsize(std::io::stdin());
        // A terminal whose size was never set says 0.
        let size = size.ok().filter(|size| size.ws_row > 0 && size.ws_col > 0);
        let size = size.map_or((24, 80), |size| (size.ws_row, size.ws_col));
        output::words("the guest's console: leave it with `exit`, or with Ctrl-A X");
        let started = UtcTime(sys::clock::unix_seconds());
        self.bring_back(guest, boot::at_the_console(guest, size), started)
    }

    /// Files first: they are what cannot be had again if standard output is closed.
    fn bring_back(
        &self,
        guest: &Guest,
        result: std::result::Result<Outcome, Failure>,
        started: UtcTime,
    ) -> Result<ExitCode> {
        match result {
            Ok(Outcome { code, left }) => {
                let is_kept = self.out.is_some() || !left.files.is_empty();
                let place = is_kept.then(|| self.place(guest, started));
                if let Some(place) = &place {
                    kept::keep(place, guest, &left, End::Code(code), started)?;
                }
                show(&left)?;
                if let Some(place) = place {
                    say_what_is_kept(guest, &place);
                }
                Ok(ExitCode::from(code))
            }
            Err(Failure { error, left: None }) => Err(error.into()),
            Err(Failure { error, left: Some(left) }) => {
                let place = self.place(guest, started);
                let kept = kept::keep(&place, guest, &left, End::Failed(&error), started);
                show(&left)?;
                match kept {
                    Ok(()) => output::words(&format!(
                        "what came back, with all of its console: {}",
                        place.join(lab::kept::CONSOLE).display()
                    )),
                    Err(lost) => output::warning(&format!("what came back is not kept: {}", lost.message)),
                }
                Err(error.into())
            }
        }
    }
}

/// What came back is kept as ever, and that somebody ended the guest is no error.
fn interrupted(kept: Result<ExitCode>) -> ExitCode {
    if let Err(ended) = kept {
        output::words(&ended.message);
    }
    ExitCode::from(INTERRUPTED)
}

/// Where what came back is, and what can be done with a record in it.
fn say_what_is_kept(guest: &Guest, place: &Path) {
    output::words(&format!("back from the guest: {}", place.display()));
    let page = place.join(store::PAGE);
    if !page.exists() {
        return;
    }
    output::news(&format!("Report  {}", page.display()));
    let is_alone = guest.under.is_none() && guest.time == Time::Instructions;
    let can_be_seen = is_alone && guest.kernel.architecture == Architecture::Amd64;
    let has_wake_ups =
        || store::load(place).is_ok_and(|record| !lab::microscope::worst(&record, 1).is_empty());
    if can_be_seen && has_wake_ups() {
        let again = |verb: &str| {
            let words = ["worstcase", "lab", verb, &place.display().to_string()].map(str::to_owned);
            report::text::shell(&words)
        };
        let steps = [
            (again("explain"), "each instruction of the worst wake-ups, by function".to_owned()),
            (again("sections"), "what kept interrupts or preemption off for longest".to_owned()),
        ];
        output::news(report::next::text(&steps, &output::style(Stream::Error)).trim_end());
    }
}

/// What the command printed, what did not come back, and which parameters the kernel did not take.
fn show(left: &Left) -> Result<()> {
    output::bytes(Stream::Error, &left.errors)?;
    output::bytes(Stream::Output, &left.output)?;
    for (path, why) in &left.left_out {
        output::warning(&format!("{} is left out: {why}", path.display()));
    }
    for KernelParameter { word, answer, evidence } in &left.parameters {
        match answer {
            ParameterAnswer::Read => {}
            ParameterAnswer::Unknown => output::words(&format!("note: {word}: {answer}: {evidence}")),
            _ => output::warning(&format!("{word}: {answer}: {evidence}")),
        }
    }
    Ok(())
}

/// A system has an init, or the guest ends in a panic.
fn check_system(directory: &Path) -> Result<()> {
    match std::fs::symlink_metadata(directory.join("sbin/init")) {
        Ok(_) => Ok(()),
        Err(error) => Err(Error::new(
            format!("find {}/sbin/init: {error}", directory.display()),
            "name the root of a system with systemd, as debootstrap makes it",
        )),
    }
}

/// Whether `word` is a command of worstcase that makes sense in a guest.
fn is_verb(word: &str) -> bool {
    word != "lab" && crate::commands::is_command(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_that_somebody_ended_is_interrupted_and_no_error() {
        let ended = Err(Error::new("interrupted: the guest was ended", ""));
        assert_eq!(interrupted(ended), ExitCode::from(130));
    }
}
