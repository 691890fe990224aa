//! Joins line 0 of a first guest to line 0 of a second one, and line 1 of the second to line 1 of the first:
//! `join FIRST.socket SECOND.socket`, then `worstcase lab run --time wall --device gpio:FIRST.socket ...`.

use std::time::Duration;

use gpio_wire::{End, Wire, Wires};

fn main() -> std::io::Result<()> {
    let end = |guest, line| End { guest, line };
    let wire = |from, to| Wire { from, to, delay: Duration::ZERO };
    let wires = Wires::new(2, 2, &[wire(end(0, 0), end(1, 0)), wire(end(1, 1), end(0, 1))]);
    for (guest, socket) in std::env::args_os().skip(1).take(2).enumerate() {
        wires.serve(guest, socket.as_ref())?;
    }
    loop {
        std::thread::park();
    }
}
