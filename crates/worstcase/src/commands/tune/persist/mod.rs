//! `worstcase tune persist`: what holds from the next boot on.

mod boot;
mod program;
mod unit;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use sysroot::SysRoot;
use tune::State;
use tune::journal::Lock;
use tune::persist::{self, Live};

use super::choice::Choice;
use super::selection::Selection;
use crate::output;
use failure::{Error, Result};

/// Make settings hold from the next boot on
///
/// Writes a service that applies /etc/worstcase/tune.toml, or what --file names, at each boot; with --boot or --words
/// writes kernel parameters where the boot loader has them. Nothing changes before the next boot. Every file is kept as it
/// was, and --undo restores it.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    worstcase tune persist --isolate 2-3 --dry-run    what would be written\n  \
    worstcase tune persist --isolate 2-3              from the next boot on\n  \
    worstcase tune persist --boot --isolate 2-3       kernel parameters\n  \
    worstcase tune persist --status                   what this boot made of it\n  \
    worstcase tune persist --undo                     back to what there was")]
pub struct Persist {
    #[command(flatten)]
    choice: Choice,

    #[command(flatten)]
    service: unit::Options,

    #[command(flatten)]
    boot: boot::BootOptions,

    /// Write to the system in this directory, as an image that is being built
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,

    /// Print the files that would be written
    #[arg(long)]
    dry_run: bool,

    /// Take it all back; what others have changed since is left and listed, with exit code 1
    #[arg(long, conflicts_with_all = ["status", "dry_run"])]
    undo: bool,

    /// Say what was written, and what became of it at this boot; exit code 1 if something does not hold
    #[arg(long, conflicts_with = "dry_run")]
    status: bool,
}

impl Persist {
    pub fn run(self) -> Result<ExitCode> {
        let system = System::at(self.root.as_deref())?;
        if self.status {
            return self.both(boot::status(&system), || unit::status(&system));
        }
        if self.undo {
            return self.both(boot::undo(&system), || unit::undo(&system));
        }
        if self.boot.is_asked() {
            return self.boot.run(&system, &self.choice, self.dry_run);
        }
        let wanted = self.service.wanted(&system, &self.choice, self.dry_run)?;
        if self.dry_run {
            output::final_data(&wanted.text())?;
            return Ok(ExitCode::SUCCESS);
        }
        wanted.write(&system)
    }
}

impl Persist {
    /// What became of the kernel parameters and of the service: the worse of both; of the words alone where only they are asked
    /// for.
    fn both(&self, words: Result<ExitCode>, service: impl FnOnce() -> Result<ExitCode>) -> Result<ExitCode> {
        let words = words?;
        if self.boot.is_asked() {
            return Ok(words);
        }
        let service = service()?;
        Ok(if words == ExitCode::SUCCESS { service } else { words })
    }
}

/// Makes words part of the kernel command line of the system that runs, as `tune persist --words` does.
pub fn write_words(words: String, dry_run: bool) -> Result<ExitCode> {
    boot::BootOptions::of_words(words).run(&System::at(None)?, &Choice::of(Selection::default()), dry_run)
}

/// The system that is changed.
pub struct System {
    /// Where it lies, if it is not the one that runs.
    root: Option<PathBuf>,
}

impl System {
    fn at(root: Option<&Path>) -> Result<Self> {
        if let Some(root) = root.filter(|root| !root.join("etc").is_dir()) {
            let message = format!("read {}: it has no directory etc", root.display());
            return Err(Error::new(message, "name the root of a whole system"));
        }
        let root = root.map(std::path::absolute).transpose();
        let root = root.map_err(|error| Error::new(format!("find --root: {error}"), ""))?;
        Ok(Self { root })
    }

    /// Whether it is the one that runs.
    fn is_live(&self) -> bool {
        self.root.is_none()
    }

    fn directory(&self) -> &Path {
        self.root.as_deref().unwrap_or(Path::new("/"))
    }

    /// Its files, to be changed.
    fn disk(&self) -> Live {
        Live::at(self.directory())
    }

    /// Its files, to be read.
    fn files(&self) -> SysRoot {
        SysRoot::at(self.directory())
    }

    /// Becomes the one process that changes it. Nothing is made where a link leads out of the system.
    fn lock(&self) -> Result<Lock> {
        let inside = self.disk().inside(persist::STATE);
        let place = inside.map_err(|error| {
            let directory = self.directory().display();
            Error::new(format!("use {} of {directory}: {error}", persist::STATE), "a link leads out of it")
        })?;
        Ok(State::at(place).lock()?)
    }
}
