//! The port that results leave by, and by which the host asks for them before the command has ended.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use control::{Kernel, Live};
use rustix::termios::{self, OptionalActions};

use super::Result;
use crate::frames::Sender;

/// An open port.
#[derive(Debug)]
pub struct Port {
    file: File,
    sender: Sender<BufWriter<File>>,
}

impl Port {
    /// Opens `path`, without the changes that a terminal makes to bytes.
    pub fn open(path: &Path) -> Result<Self> {
        let opened = || -> io::Result<Self> {
            // Newer kernels ask when the interrupt is requested, which is now; older ones whenever it comes.
            trust_interrupts(true);
            let file = OpenOptions::new().read(true).write(true).open(path);
            trust_interrupts(false);
            let file = file?;
            let mut modes = termios::tcgetattr(&file)?;
            modes.make_raw();
            termios::tcsetattr(&file, OptionalActions::Now, &modes)?;
            let buffered = BufWriter::with_capacity(1 << 16, file.try_clone()?);
            Ok(Self { file, sender: Sender::new(buffered) })
        };
        opened().map_err(|error| format!("open {}: {error}", path.display()))
    }

    /// Writes frames and waits until they are out.
    pub fn send(&mut self, write: impl FnOnce(&mut Sender<BufWriter<File>>) -> io::Result<()>) -> Result<()> {
        trust_interrupts(true);
        let sent = write(&mut self.sender).and_then(|()| self.sender.flush());
        let out = sent.and_then(|()| Ok(termios::tcdrain(&self.file)?));
        out.map_err(|error| format!("send results: {error}"))
    }

    /// Says that this was all, and waits until it is out.
    pub fn close(self) -> Result<()> {
        let finished = self.sender.finish().and_then(|()| Ok(termios::tcdrain(&self.file)?));
        finished.map_err(|error| format!("send results: {error}"))
    }
}

/// Readable once the host has asked for the results.
impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// QEMU's port is done with a byte as soon as it has it. A handler in a thread (PREEMPT_RT, `threadirqs`) so finds its
/// work done by its last round, again and again, until the kernel takes the interrupt for stuck and switches it off
/// (kernel/irq/spurious.c). While the command is silent the kernel watches all others as it does everywhere.
fn trust_interrupts(trusted: bool) {
    let value = if trusted { "Y" } else { "N" };
    let _ = Live::default().write_file("/sys/module/spurious/parameters/noirqdebug", value);
}
