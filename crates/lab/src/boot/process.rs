//! QEMU as a child: started, watched, ended on every path.

use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use super::guest::{Guest, Time};
use super::memory_file::MemoryFile;
use super::prepared::Prepared;
use crate::Error;
use crate::guest::plan::BEGINS;
use crate::qemu;

/// How often it is looked whether anything has changed.
const PAUSE: Duration = Duration::from_millis(10);
/// How long a guest that is given up has to end its command and to send what that left.
const PATIENCE: Duration = Duration::from_secs(30);

/// A guest that runs. Dropped, it is ended; it ends with the thread that started it too, however that goes.
pub(crate) struct Process<'a> {
    child: Child,
    console: Option<&'a MemoryFile>,
    results: &'a MemoryFile,
    messages: MemoryFile,
    started: Instant,
    boot: Option<Duration>,
    /// How much of the console has been looked at.
    seen: usize,
    /// What the guest reads from the port for results; a byte asks for the command's end.
    asks: Option<ChildStdin>,
    _terminal: Option<Terminal>,
}

/// No console is longer, in bytes: a guest's kernel prints some hundred thousand.
const LONGEST_CONSOLE: u64 = 64 << 20;
/// No results are: what a guest sends has its own, lower limit.
const LONGEST_RESULTS: u64 = 4 << 30;

/// A guest does not choose how much of the host's memory it fills.
fn bounded(what: &str, file: &MemoryFile, most: u64) -> Result<(), Error> {
    if file.length()? <= most {
        return Ok(());
    }
    Err(Error::new(format!("the guest was ended: its {what} are longer than {} MiB", most >> 20))
        .hint("let its command print or leave less"))
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
    /// It took too long.
    GivenUp {
        /// How much CPU time QEMU had until then, where that can be read.
        cpu: Option<Duration>,
        /// Whether the guest was asked to end, and did nothing.
        is_silent: bool,
    },
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
            command.stdin(Stdio::piped()).stdout(prepared.results.as_output()?);
            None
        } else {
            Terminal::keep()
        };
        command.stderr(standard_error);
        sys::process::end_with_parent(&mut command);
        let child = command.spawn();
        let path = prepared.emulator.path.display();
        let mut child = child.map_err(|error| Error::new(format!("start {path}: {error}")))?;
        Ok(Self {
            // While QEMU records, it hands no byte to a CPU that does not halt (7.2).
            asks: child.stdin.take().filter(|_| guest.time == Time::Wall),
            child,
            console: prepared.console.as_ref(),
            results: &prepared.results,
            messages,
            started: Instant::now(),
            boot: None,
            seen: 0,
            _terminal: terminal,
        })
    }

    /// Waits for the end. After `limit` the guest is asked for what there is, and given up a little later; so it is where
    /// it ends because it was asked.
    ///
    /// # Errors
    /// `stop` said so.
    pub fn wait(&mut self, limit: Duration, stop: &dyn Fn() -> bool) -> Result<End, Error> {
        let mut given_up = None;
        loop {
            let ended =
                self.child.try_wait().map_err(|error| Error::new(format!("wait for QEMU: {error}")))?;
            self.look()?;
            self.console.map_or(Ok(()), |console| bounded("console lines", console, LONGEST_CONSOLE))?;
            bounded("results", self.results, LONGEST_RESULTS)?;
            if let Some(status) = ended {
                return Ok(given_up.unwrap_or_else(|| self.ended(status)));
            }
            if stop() {
                return Err(Error::new("interrupted: the guest was ended"));
            }
            let over = self.started.elapsed().saturating_sub(limit);
            if !over.is_zero() && given_up.is_none() {
                given_up = Some(self.give_up());
            }
            if let Some(End::GivenUp { cpu, .. }) =
                given_up.take_if(|_| self.asks.is_none() || over > PATIENCE)
            {
                return Ok(End::GivenUp { cpu, is_silent: self.asks.is_some() });
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn give_up(&mut self) -> End {
        if let Some(asks) = &mut self.asks {
            // A QEMU that is gone does not read.
            let _ = asks.write_all(b"e");
        }
        End::GivenUp { cpu: sys::usage::cpu_time_of(self.child.id()), is_silent: false }
    }

    fn ended(&self, status: ExitStatus) -> End {
        match status.signal() {
            Some(signal) => End::Killed(signal),
            None if status.success() => End::Ended,
            None => End::Failed(self.said(status)),
        }
    }

    fn said(&self, status: ExitStatus) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_that_writes_without_end_is_ended() {
        let file = MemoryFile::new("console").unwrap();
        file.stretch(LONGEST_CONSOLE).unwrap();
        bounded("console lines", &file, LONGEST_CONSOLE).unwrap();
        file.stretch(LONGEST_CONSOLE + 1).unwrap();
        let error = bounded("console lines", &file, LONGEST_CONSOLE).unwrap_err();
        assert!(error.message.contains("longer than 64 MiB"), "{error}");
    }
}
