//! What the command prints is sent as it comes, so that it is on the host before the guest panics or hangs; and the host
//! asks here for the command's end. While the command is silent and nobody asks, nothing is done.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command};
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, kill_process};

use super::port::Port;
use super::{LONGEST, Result};
use crate::frames::Stream;

/// How much is read at once.
const CHUNK: usize = 1 << 16;
/// How long a command that was asked to end has for it before it is killed. In instruction time this takes the host several
/// seconds.
const PATIENCE: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// The ends of the command's pipes that are read.
#[derive(Debug)]
pub struct Pipes {
    output: OwnedFd,
    errors: OwnedFd,
}

impl Pipes {
    /// Makes `command` print into them.
    pub fn of(command: &mut Command) -> Result<Self> {
        let ((output, to_output), (errors, to_errors)) = (pipe()?, pipe()?);
        command.stdout(to_output).stderr(to_errors);
        Ok(Self { output, errors })
    }
}

fn pipe() -> Result<(OwnedFd, OwnedFd)> {
    pipe_with(PipeFlags::CLOEXEC).map_err(|errno| format!("make a pipe: {errno}"))
}

/// A thread that sends.
#[derive(Debug)]
pub struct Relay {
    thread: JoinHandle<Result<Port>>,
    /// Open while the command runs.
    running: OwnedFd,
}

impl Relay {
    /// Sends over `port` what comes out of `pipes`, which `child` prints into.
    pub fn start(port: Port, pipes: Pipes, child: &Child) -> Result<Self> {
        let (ended, running) = pipe()?;
        let sources =
            [Source::new(Stream::Output, pipes.output)?, Source::new(Stream::Errors, pipes.errors)?];
        let mut session = Session { port, sources, child: Pid::from_child(child), asked: Asked::Not };
        let thread = std::thread::Builder::new().spawn(move || session.run(&ended).map(|()| session.port));
        let thread = thread.map_err(|error| format!("start a thread: {error}"))?;
        Ok(Self { thread, running })
    }

    /// Sends what is left in the pipes, and gives the port back. To be called when the command has ended: of a process that
    /// it left behind, nothing more is waited for.
    pub fn finish(self) -> Result<Port> {
        drop(self.running);
        self.thread.join().unwrap_or_else(|_| Err("the thread that sends what is printed panicked".into()))
    }
}

/// Whether the host has asked for the command's end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    Not,
    /// It was sent SIGTERM.
    Terminated,
    /// It was sent SIGKILL, or nobody can ask.
    Over,
}

struct Session {
    port: Port,
    sources: [Source; 2],
    child: Pid,
    asked: Asked,
}

impl Session {
    fn run(&mut self, ended: &OwnedFd) -> Result<()> {
        while !self.wait(ended)? {
            self.send()?;
        }
        self.send()
    }

    /// Waits until there is something to send, or to do; whether the command has ended.
    fn wait(&mut self, ended: &OwnedFd) -> Result<bool> {
        let mut polled = vec![PollFd::new(ended, PollFlags::IN)];
        let asks = self.asked == Asked::Not;
        polled.extend(asks.then(|| PollFd::new(&self.port, PollFlags::IN)));
        let open = self.sources.iter().filter_map(|source| source.pipe.as_ref());
        polled.extend(open.map(|pipe| PollFd::new(pipe, PollFlags::IN)));
        let patience = (self.asked == Asked::Terminated).then_some(&PATIENCE);
        let ready = match poll(&mut polled, patience) {
            Err(rustix::io::Errno::INTR) => return Ok(false),
            ready => ready.map_err(|errno| format!("poll: {errno}"))?,
        };
        let has_ended = !polled[0].revents().is_empty();
        let from_port = if asks { polled[1].revents() } else { PollFlags::empty() };
        if ready == 0 {
            self.end_by(Signal::KILL, Asked::Over);
        } else if from_port.contains(PollFlags::IN) {
            self.end_by(Signal::TERM, Asked::Terminated);
        } else if !from_port.is_empty() {
            self.asked = Asked::Over;
        }
        Ok(has_ended)
    }

    /// The command may have ended by itself meanwhile.
    fn end_by(&mut self, signal: Signal, asked: Asked) {
        self.asked = asked;
        let _ = kill_process(self.child, signal);
    }

    fn send(&mut self) -> Result<()> {
        self.sources.iter_mut().try_for_each(|source| source.send(&mut self.port))
    }
}

/// A pipe that the command prints into.
struct Source {
    what: Stream<'static>,
    /// None where the other end is closed.
    pipe: Option<File>,
    sent: u64,
}

impl Source {
    fn new(what: Stream<'static>, pipe: OwnedFd) -> Result<Self> {
        let set = rustix::fs::fcntl_setfl(&pipe, OFlags::NONBLOCK);
        set.map_err(|errno| format!("read a pipe without waiting: {errno}"))?;
        Ok(Self { what, pipe: Some(pipe.into()), sent: 0 })
    }

    /// Sends what has come, up to [`LONGEST`]; what is beyond it is read and dropped, so that the command goes on.
    fn send(&mut self, port: &mut Port) -> Result<()> {
        let mut chunk = vec![0; CHUNK];
        while let Some(pipe) = &mut self.pipe {
            match pipe.read(&mut chunk) {
                Ok(0) => self.pipe = None,
                Ok(read) => self.pass_on(&chunk[..read], port)?,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(format!("read what the command prints: {error}")),
            }
        }
        Ok(())
    }

    fn pass_on(&mut self, bytes: &[u8], port: &mut Port) -> Result<()> {
        let room = usize::try_from(LONGEST - self.sent).unwrap_or(usize::MAX);
        let (fits, rest) = bytes.split_at(bytes.len().min(room));
        self.sent += fits.len() as u64;
        if fits.is_empty() {
            return Ok(());
        }
        port.send(|sender| {
            sender.stream(self.what, &mut &*fits, u64::MAX)?;
            if rest.is_empty() && self.sent < LONGEST {
                return Ok(());
            }
            sender.left_out(Path::new(self.what.name()), &format!("it is cut off after {LONGEST} bytes"))
        })
    }
}
