//! QEMU as a child: started, watched, ended on every path.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::memory_file::MemoryFile;
use super::{Guest, Prepared};
use crate::Error;
use crate::guest::plan::BEGINS;
use crate::qemu;

/// How often it is looked whether anything has changed.
const PAUSE: Duration = Duration::from_millis(10);

/// A guest that runs. Dropped, it is ended; it ends with the thread that started it too, however that goes.
pub(crate) struct Process<'a> {
    child: Child,
    console: Option<&'a MemoryFile>,
    messages: MemoryFile,
    started: Instant,
    boot: Option<Duration>,
    /// How much of the console has been looked at.
    seen: usize,
    _terminal: Option<Terminal>,
}

/// How a guest ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The guest switched itself off or restarted.
    Ended,
    /// QEMU failed: what it said.
    Failed(String),
    /// A signal of this number ended QEMU.
    Killed(i32),
    /// It took too long. How much CPU time QEMU had until then, where that can be read.
    GivenUp(Option<Duration>),
}

impl<'a> Process<'a> {
    /// Starts QEMU.
    pub fn start(prepared: &'a Prepared, guest: &Guest) -> Result<Self, Error> {
        let messages = MemoryFile::new("messages")?;
        let mut command = Command::new(&prepared.emulator.path);
        let files = prepared.pass_to(&mut command)?;
        command.args(qemu::arguments(guest, &files));
        let standard_error = messages.as_output()?;
        let terminal = if prepared.console.is_some() {
            // Ctrl-C is this process's business: a guest that is to end is ended in order.
            sys::process::detach(&mut command);
            command.stdin(Stdio::null()).stdout(Stdio::null());
            None
        } else {
            Terminal::keep()
        };
        command.stderr(standard_error);
        sys::process::end_with_parent(&mut command);
        let child = command.spawn();
        let path = prepared.emulator.path.display();
        let child = child.map_err(|error| Error::new(format!("start {path}: {error}")))?;
        Ok(Self {
            child,
            console: prepared.console.as_ref(),
            messages,
            started: Instant::now(),
            boot: None,
            seen: 0,
            _terminal: terminal,
        })
    }

    /// Waits for the end, at most for `limit`.
    ///
    /// # Errors
    /// `stop` said so.
    pub fn wait(&mut self, limit: Duration, stop: &dyn Fn() -> bool) -> Result<End, Error> {
        loop {
            let ended =
                self.child.try_wait().map_err(|error| Error::new(format!("wait for QEMU: {error}")))?;
            self.look()?;
            if let Some(status) = ended {
                return Ok(match status.signal() {
                    Some(signal) => End::Killed(signal),
                    None if status.success() => End::Ended,
                    None => End::Failed(self.said(status)),
                });
            }
            if stop() {
                return Err(Error::new("interrupted: the guest was ended"));
            }
            if self.started.elapsed() > limit {
                return Ok(End::GivenUp(sys::usage::cpu_time_of(self.child.id())));
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn said(&self, status: std::process::ExitStatus) -> String {
        let messages = self.messages.content().unwrap_or_default();
        let messages = String::from_utf8_lossy(&messages).trim().to_owned();
        if messages.is_empty() { status.to_string() } else { messages }
    }

    /// Sees the command begin.
    fn look(&mut self) -> Result<(), Error> {
        let Some(console) = self.console.filter(|_| self.boot.is_none()) else { return Ok(()) };
        let from = self.seen.saturating_sub(BEGINS.len());
        let new = console.content_from(from as u64)?;
        if String::from_utf8_lossy(&new).contains(BEGINS) {
            self.boot = Some(self.started.elapsed());
        }
        self.seen = from + new.len();
        Ok(())
    }

    /// Host time until the command began, if it did.
    pub fn boot(&self) -> Option<Duration> {
        self.boot
    }

    /// What the console said so far.
    pub fn console(&self) -> String {
        let bytes = self.console.and_then(|console| console.content().ok()).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Drop for Process<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The terminal's modes, put back when a guest's console leaves it, also where QEMU was killed.
struct Terminal(rustix::termios::Termios);

impl Terminal {
    /// None where standard input is no terminal.
    fn keep() -> Option<Self> {
        rustix::termios::tcgetattr(rustix::stdio::stdin()).ok().map(Self)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let now = rustix::termios::OptionalActions::Now;
        let _ = rustix::termios::tcsetattr(rustix::stdio::stdin(), now, &self.0);
    }
}
