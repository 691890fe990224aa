//! The service that applies the file of choice at each boot.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use clap::Args;
use serde_json::json;
use tune::holder::has_systemd;
use tune::journal::History;
use tune::persist::startup::{SERVICE, TIMER};
use tune::persist::{Contents, Edit, Files, Init, PutBack, STATE};
use tune::status::{Now, reconcile};
use tune::{State, boot_id, live};
use units::errno_in_words;

use super::super::choice::{CHOICE, Choice};
use super::super::{shown, undo as settings};
use super::{System, program};
use crate::commands::applied;
use crate::output;
use failure::{Error, Result};

/// The name of the transaction.
const NAME: &str = "service";

/// How the service is written.
#[derive(Args)]
#[command(next_help_heading = "The service")]
pub struct Options {
    /// What starts services: systemd, openrc, sysv or busybox [default: what the system has]
    #[arg(long, value_name = "NAME")]
    init: Option<Init>,

    /// The worstcase that the service starts [default: this one, if it is installed]
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
}

/// What is to be written.
pub struct Wanted {
    init: Init,
    edits: Vec<Edit>,
}

impl Options {
    /// The file of choice and the files of the service.
    pub fn wanted(&self, system: &System, choice: &Choice, dry_run: bool) -> Result<Wanted> {
        let text = choice.text()?;
        match system.is_live() {
            true => drop(choice.plan(None)?),
            false => choice.selection()?.check_rules()?,
        }
        if let Some(why) = program::fleeting(Path::new("/etc")).filter(|_| system.is_live()) {
            let hint = "write it into the image that is booted: --root DIR";
            return Err(Error::new(format!("write to /etc: its file system is {why}"), hint));
        }
        let init = self.init.or_else(|| Init::of(&system.files())).ok_or_else(|| {
            let hint = format!("name it with --init: {}", Init::ALL.map(Init::name).join(", "));
            Error::new("find what starts services: it is not systemd, openrc, sysv or busybox", hint)
        })?;
        let (named, root) = (self.binary.as_deref(), system.root.as_deref());
        let program = match named {
            None if dry_run => program::once_installed(root),
            _ => program::choose(named, root)?,
        };
        let disk = system.disk();
        let mut edits = vec![Edit::of(&disk, CHOICE, Some(Contents::from(text.as_str())))?];
        for file in init.files(&program, CHOICE) {
            edits.push(Edit::of(&disk, &file.path, Some(file.contents))?.with_mode(file.mode));
        }
        Ok(Wanted { init, edits })
    }
}

impl Wanted {
    /// Every file with what is to be in it.
    pub fn text(&self) -> String {
        let one = |edit: &Edit| match &edit.after {
            Some(Contents::Bytes(bytes)) => {
                format!("==> {} <==\n{}\n", edit.path, String::from_utf8_lossy(bytes))
            }
            Some(Contents::Link(target)) => format!("==> {} -> {target}\n", edit.path),
            None => String::new(),
        };
        self.edits.iter().map(one).collect()
    }

    /// Writes them, all or none.
    pub fn write(&self, system: &System) -> Result<ExitCode> {
        let _lock = system.lock()?;
        let mut disk = system.disk();
        let note = json!({ "init": self.init });
        Files::at(&mut disk, STATE, NAME).write(&note, &self.edits)?;
        let mut text: String = self.edits.iter().map(|edit| format!("written   {}\n", edit.path)).collect();
        if system.is_live() {
            text += self.notify_init();
        }
        output::final_data(&text)?;
        Ok(ExitCode::SUCCESS)
    }

    /// What starts services hears of the new one.
    fn notify_init(&self) -> &'static str {
        if self.init != Init::Systemd {
            return "applied at the next boot; the script's start applies it now\n";
        }
        if has_systemd() {
            reload();
        } else {
            output::warning("systemd does not run now: whether it does at the next boot is not known");
        }
        "applied at the next boot; systemctl start worstcase-tune applies it now\n"
    }
}

/// Lets systemd read its units again, and puts right at once what that takes from a partition.
fn reload() {
    if let Err(why) = systemctl(&["daemon-reload"]) {
        output::warning(&format!("systemctl daemon-reload: {why}; it is read at the next boot"));
    }
    repair();
}

/// Writes again what a reload of systemd's has taken from what is applied now: a partition that it does not know of.
fn repair() {
    let state = State::of_machine(applied::STATE);
    let repaired = || -> Result<usize> {
        let Some(history) = state.history()?.filter(|history| history.applied) else { return Ok(0) };
        if history.is_of_another_boot(&boot_id()) {
            return Ok(0);
        }
        let lock = state.lock()?;
        let mut journal = state.resume(&lock, &history)?;
        Ok(reconcile(&mut live(state.directory()), &mut journal, &history)?.len())
    };
    match repaired() {
        Ok(0) => {}
        Ok(count) => output::words(&format!("{} written again after the reload", shown::settings(count))),
        Err(error) => {
            output::warning(&format!("what is applied may be lost by the reload: {}", error.message))
        }
    }
}

/// What systemctl says, or why it failed.
fn systemctl(words: &[&str]) -> std::result::Result<String, String> {
    let output = Command::new("systemctl").args(words).stdin(Stdio::null()).output();
    let output = output.map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}

/// Ends the service, undoes what it applied, and takes its files back.
pub fn undo(system: &System) -> Result<ExitCode> {
    let mut disk = system.disk();
    let mut files = Files::at(&mut disk, STATE, NAME);
    if files.recorded()?.is_none() {
        output::final_data("no service was written\n")?;
        return Ok(ExitCode::SUCCESS);
    }
    let _lock = system.lock()?;
    let mut text = match system.is_live() {
        true => ended()?,
        false => String::new(),
    };
    let undone = files.undo()?;
    text += &undone.iter().map(|file| shown::put_back(&file.path, &file.back)).collect::<String>();
    if system.is_live() && has_systemd() {
        reload();
    }
    let is_whole = undone.iter().all(|PutBack { back, .. }| back.is_as_before());
    text += match is_whole {
        true => "proof: every file is as before\n",
        false => "not every file is as before\n",
    };
    output::final_data(&text)?;
    Ok(ExitCode::from(u8::from(!is_whole)))
}

/// What the service applied is undone: by systemd, which knows it then, or here.
fn ended() -> Result<String> {
    if has_systemd() {
        let units = [&format!("{SERVICE}.service"), TIMER];
        if let Err(why) = systemctl(&[&["stop"][..], &units].concat()) {
            output::warning(&format!("systemctl stop: {why}"));
        }
    }
    let state = State::of_machine(applied::STATE);
    let lock = state.lock()?;
    match state.history()?.filter(is_of_service) {
        Some(history) => Ok(settings::undo(&state, &lock, &history)?.0),
        None => Ok(String::new()),
    }
}

fn is_of_service(history: &History) -> bool {
    history.begin.as_ref().is_some_and(|begin| begin.choice.as_deref() == Some(CHOICE))
}

/// What was written, and what became of it at this boot.
pub fn status(system: &System) -> Result<ExitCode> {
    let mut disk = system.disk();
    let files = Files::at(&mut disk, STATE, NAME);
    let Some(recorded) = files.recorded()? else {
        output::final_data("no service was written\n")?;
        return Ok(ExitCode::SUCCESS);
    };
    let now = files.now()?;
    let mut text: String = now.iter().map(|(path, now)| of_file(path, now)).collect();
    let mut is_fine = recorded.is_whole && now.iter().all(|(path, now)| *now == Now::Holds || path == CHOICE);
    if !recorded.is_whole {
        text += "the command that wrote them was killed: worstcase tune persist --undo takes them back\n";
    }
    if system.is_live() {
        let (words, holds) = at_this_boot()?;
        text += &words;
        is_fine &= holds;
    }
    output::final_data(&text)?;
    Ok(ExitCode::from(u8::from(!is_fine)))
}

/// The file of choice is there to be changed.
pub fn of_file(path: &str, now: &Now) -> String {
    match now {
        Now::Drifted(_) if path == CHOICE => shown::marked("yours", &format!("{path}: changed since")),
        Now::Holds => shown::marked("holds", path),
        Now::AsBefore => shown::marked("reset", &format!("{path}: as before us")),
        Now::Drifted(why) | Now::Gone(why) | Now::Unclear(why) | Now::Pending(why) | Now::Ended(why) => {
            shown::marked("drifted", &format!("{path}: {why}"))
        }
        Now::Unreadable(errno) => shown::marked("unread", &format!("{path}: {}", errno_in_words(*errno))),
    }
}

/// What the service did at this boot, and whether all of it holds.
fn at_this_boot() -> Result<(String, bool)> {
    let state = State::of_machine(applied::STATE);
    let history = state.history()?;
    if let Some(history) =
        history.filter(|history| is_of_service(history) && !history.is_of_another_boot(&boot_id()))
    {
        let (text, holds) = super::super::status::of(&state, &history);
        return Ok((format!("at this boot: {text}"), holds));
    }
    let why = match has_systemd().then(|| systemctl(&["show", "-p", SHOWN, SERVICE])) {
        Some(Ok(properties)) => format!(" ({})", properties.trim().replace('\n', ", ")),
        Some(Err(why)) => format!(" (systemctl: {why})"),
        None => String::new(),
    };
    let text = format!("at this boot: the service's settings are not applied{why}\n");
    Ok((text, false))
}

/// What of a unit tells why it did nothing.
const SHOWN: &str = "LoadState,UnitFileState,ActiveState,Result,ExecMainStatus";
