//! The port that results leave by.

use std::fs::{self, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use rustix::termios::{self, OptionalActions};

use super::Result;
use crate::frames::Sender;

/// Opens `port`, without the changes that a terminal makes to bytes, sends, and waits until all is out.
pub fn send(port: &Path, write: impl FnOnce(&mut Sender<&mut dyn Write>) -> io::Result<()>) -> Result<()> {
    let failed = |error: &dyn std::fmt::Display| format!("send results over {}: {error}", port.display());
    trust_interrupts();
    let file = OpenOptions::new().read(true).write(true).open(port).map_err(|error| failed(&error))?;
    let mut modes = termios::tcgetattr(&file).map_err(|error| failed(&error))?;
    modes.make_raw();
    termios::tcsetattr(&file, OptionalActions::Now, &modes).map_err(|error| failed(&error))?;
    let mut buffered = BufWriter::with_capacity(1 << 16, &file);
    let mut sender = Sender::new(&mut buffered as &mut dyn Write);
    write(&mut sender).and_then(|()| sender.finish()).map_err(|error| failed(&error))?;
    drop(buffered);
    termios::tcdrain(&file).map_err(|error| failed(&error))
}

/// QEMU's port is done with a byte as soon as it has it. A handler in a thread (PREEMPT_RT, `threadirqs`) so finds its
/// work done by its last round, again and again, until the kernel takes the interrupt for stuck and switches it off
/// (kernel/irq/spurious.c). Switched off here, after the command, it changes nothing that is measured.
fn trust_interrupts() {
    let _ = fs::write("/sys/module/spurious/parameters/noirqdebug", "Y");
}
