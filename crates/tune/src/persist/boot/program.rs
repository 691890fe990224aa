//! The narrow door through which boot loaders' own programs are run.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

/// What a program answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Whether it ended well.
    pub is_ok: bool,
    /// What it printed.
    pub output: String,
    /// What it complained about.
    pub complaints: String,
}

/// Programs of the system that is changed.
pub trait Programs {
    /// Whether there is such a program.
    fn has(&self, program: &str) -> bool;

    /// Runs one to its end.
    ///
    /// # Errors
    /// Where it cannot be started.
    fn run(&mut self, program: &str, arguments: &[&str]) -> io::Result<Answer>;
}

/// Those of the running system.
#[derive(Clone, Copy, Debug, Default)]
pub struct LivePrograms;

/// Where programs for the administrator are, whoever's search path it is.
const DIRECTORIES: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

impl Programs for LivePrograms {
    fn has(&self, program: &str) -> bool {
        DIRECTORIES.split(':').any(|directory| Path::new(directory).join(program).is_file())
    }

    fn run(&mut self, program: &str, arguments: &[&str]) -> io::Result<Answer> {
        let mut command = Command::new(program);
        command.args(arguments).env("PATH", DIRECTORIES).env("LC_ALL", "C").stdin(Stdio::null());
        let output = command.output()?;
        Ok(Answer {
            is_ok: output.status.success(),
            output: String::from_utf8_lossy(&output.stdout).into_owned(),
            complaints: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }
}

/// Those of a system that lies in a directory: none, because what is there may be for another machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoPrograms;

impl Programs for NoPrograms {
    fn has(&self, _program: &str) -> bool {
        false
    }

    fn run(&mut self, _program: &str, _arguments: &[&str]) -> io::Result<Answer> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
