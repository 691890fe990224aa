//! The parent's side of a sample: started, waited for, ended.

use std::ffi::OsStr;
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sys::process::Pid;
use sys::signal::{Signal, Signals, wait_readable};

use crate::process::{ARGUMENT, Answer, OWN_PROGRAM, Order};

/// How much longer than asked for a sample may take: fsync on a slow disk, half a CPU, an emulator.
const PATIENCE: Duration = Duration::from_secs(30);

/// What came of asking for a sample.
#[derive(Debug)]
pub enum Taken {
    /// An answer, or why there is none.
    Answer(Answer),
    /// None within the time it may take.
    Silent(String),
    /// A signal came.
    Interrupted(Signal),
}

/// Has a process take the sample that `order` asks for.
pub fn take(order: &Order, signals: &Signals) -> Taken {
    let started = start(order);
    let mut child = match started {
        Ok(child) => child,
        Err(error) => return unable(format!("start a process: {error}")),
    };
    let taken = read(&mut child, order, signals);
    if !matches!(taken, Taken::Answer(_)) {
        if let Some(pid) = Pid::from_raw(child.id() as i32) {
            let _ = sys::process::end_group(pid);
        }
    }
    let _ = child.wait();
    taken
}

fn unable(why: String) -> Taken {
    Taken::Answer(Answer::Unable(why))
}

fn start(order: &Order) -> std::io::Result<Child> {
    let message = serde_json::to_string(order)?;
    let mut command = Command::new(OsStr::from_bytes(OWN_PROGRAM.to_bytes()));
    command.args([ARGUMENT, &message]).stdin(Stdio::null()).stdout(Stdio::piped());
    sys::process::detach(&mut command);
    command.spawn()
}

/// The answer is one line.
fn read(child: &mut Child, order: &Order, signals: &Signals) -> Taken {
    let Some(mut output) = child.stdout.take() else { return unable("start a process: no output".into()) };
    let end = Instant::now() + order.length.duration() * 4 + PATIENCE;
    let mut text = Vec::new();
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Taken::Silent(format!("it did not come to an end within {PATIENCE:?}"));
        }
        let ready = match wait_readable(&[output.as_fd(), signals.as_fd()], left) {
            Ok(ready) => ready,
            Err(error) => return unable(error.to_string()),
        };
        if ready[1] {
            if let Some(signal) = signals.next().filter(|signal| *signal != Signal::User1) {
                return Taken::Interrupted(signal);
            }
        }
        if ready[0] {
            let mut part = [0; 1024];
            match output.read(&mut part) {
                Ok(0) => break,
                Ok(read) => text.extend_from_slice(&part[..read]),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return unable(format!("read an answer: {error}")),
            }
        }
    }
    // One that is killed after its answer has answered.
    let first = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let none = || Answer::Unable("the process ended without an answer".into());
    Taken::Answer(record::json::read(first).unwrap_or_else(|_| none()))
}
