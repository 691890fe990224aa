//! Wires between the GPIO lines of guests: a process of the host that has the lines of several, each over a socket of its own
//! (vhost-user-gpio), and hands the level of an output on to the inputs that are joined to it.
//!
//! An edge comes to a guest as its device's interrupt, from another guest: it is not made by a thread of the guest that gets it,
//! as with gpio-sim. What QEMU and the host's scheduler take is part of the way, so what is measured over such a wire proves that
//! something works, and never how fast it is.
//!
//! ```no_run
//! use std::time::Duration;
//! use gpio_wire::{End, Wire, Wires};
//!
//! # fn main() -> std::io::Result<()> {
//! let (output, input) = (End { guest: 0, line: 3 }, End { guest: 1, line: 0 });
//! let wires = Wires::new(2, 4, &[Wire { from: output, to: input, delay: Duration::ZERO }]);
//! wires.serve(0, "first.socket".as_ref())?;
//! wires.serve(1, "second.socket".as_ref())?;
//! // worstcase lab run --time wall --device gpio:first.socket ...
//! # Ok(())
//! # }
//! ```

mod device;
mod lines;

use std::io;
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use vhost_user_backend::VhostUserDaemon;
use vm_memory::{GuestMemoryAtomic, GuestMemoryMmap};

use device::Device;
use lines::Board;

/// A line of a guest; both count from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// Which guest.
    pub guest: usize,
    /// Which of its lines.
    pub line: usize,
}

/// A wire from an output to an input.
#[derive(Clone, Copy, Debug)]
pub struct Wire {
    /// Where its level is made.
    pub from: End,
    /// Where it is seen.
    pub to: End,
    /// How much later.
    pub delay: Duration,
}

/// The lines of some guests, and the wires between them.
#[derive(Clone)]
pub struct Wires {
    board: Arc<Mutex<Board>>,
    /// The wires with a delay, each with what leads to the thread that has it.
    delayed: Arc<Vec<(Wire, Sender<Change>)>>,
}

/// A level, and when it is to be seen.
type Change = (Instant, bool);

impl Wires {
    /// For guests with `lines` lines each.
    pub fn new(guests: usize, lines: usize, wires: &[Wire]) -> Self {
        let board = Arc::new(Mutex::new(Board::new(guests, lines, wires.to_vec())));
        let delayed = wires.iter().filter(|wire| !wire.delay.is_zero());
        let delayed = delayed.map(|wire| (*wire, in_order(Arc::clone(&board), wire.to))).collect();
        Self { board, delayed: Arc::new(delayed) }
    }

    /// Serves one guest at `socket`, in a thread that ends when the guest does.
    ///
    /// # Errors
    /// The socket cannot be made, by the name that is in the error.
    pub fn serve(&self, guest: usize, socket: &Path) -> io::Result<()> {
        let failed = |error: String| io::Error::other(format!("serve {}: {error}", socket.display()));
        let mut listener =
            vhost::vhost_user::Listener::new(socket, true).map_err(|error| failed(error.to_string()))?;
        let device = Arc::new(Device::new(self.clone(), guest));
        let memory = GuestMemoryAtomic::new(GuestMemoryMmap::new());
        let daemon = VhostUserDaemon::new("gpio-wire".into(), device, memory);
        let mut daemon = daemon.map_err(|error| failed(error.to_string()))?;
        std::thread::Builder::new()
            .name(format!("guest {guest}"))
            .spawn(move || daemon.start(&mut listener).and_then(|()| daemon.wait()))?;
        Ok(())
    }

    /// How often the level of an output has changed.
    pub fn changes(&self, end: End) -> u64 {
        self.board().line(end).changes
    }

    /// Whether a guest has asked for interrupts of this line.
    pub fn is_watched(&self, end: End) -> bool {
        self.board().line(end).is_watched()
    }

    /// A thread that panicked has left nothing unfinished that another one reads.
    fn board(&self) -> MutexGuard<'_, Board> {
        locked(&self.board)
    }

    /// Takes the level of an output, and hands it on: at once, or later by the wire's thread.
    fn drive(&self, end: End, level: bool) {
        let now = Instant::now();
        let wires = self.board().drive(end, level);
        for wire in wires {
            if wire.delay.is_zero() {
                self.board().receive(wire.to, level);
                continue;
            }
            let is_it = |other: &Wire| (other.from, other.to) == (wire.from, wire.to);
            for (_, changes) in self.delayed.iter().filter(|(other, _)| is_it(other)) {
                // The thread ends with this alone.
                let _ = changes.send((now + wire.delay, level));
            }
        }
    }
}

fn locked(board: &Mutex<Board>) -> MutexGuard<'_, Board> {
    board.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts the thread of a wire with a delay. One thread a wire: changes arrive in the order in which they were made.
fn in_order(board: Arc<Mutex<Board>>, to: End) -> Sender<Change> {
    let (send, changes) = channel::<Change>();
    std::thread::spawn(move || {
        for (due, level) in changes {
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            locked(&board).receive(to, level);
        }
    });
    send
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wire_with_a_delay_brings_each_change_in_its_order() {
        const PULSES: u64 = 300;
        let (from, to) = (End { guest: 0, line: 0 }, End { guest: 1, line: 0 });
        let wires = Wires::new(2, 1, &[Wire { from, to, delay: Duration::from_millis(1) }]);
        for _ in 0..PULSES {
            wires.drive(from, true);
            wires.drive(from, false);
        }
        let patience = Instant::now() + Duration::from_secs(60);
        while wires.changes(to) < 2 * PULSES {
            assert!(Instant::now() < patience, "{} of {} changes have come", wires.changes(to), 2 * PULSES);
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(wires.changes(from), 2 * PULSES);
    }
}
