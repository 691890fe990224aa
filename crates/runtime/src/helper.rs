//! A thread off the cores that makes system calls for them: it receives events of helper queues and may send answers.
//!
//! A core that sends to it makes no system call: the helper looks at its rings every [`PERIOD`].

use std::sync::Weak;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::event::{Chain, Event};
use crate::model::QueueId;
use crate::queue::Parcel;
use crate::ring::Receiver;
use crate::state::{Machine, Shared};
use crate::sync::locked;

/// How often the helper looks.
pub const PERIOD: Duration = Duration::from_micros(200);

/// The helper's loop, until the machine ends or nobody has it any more.
pub fn run(shared: &Weak<Shared>, rings: &[Receiver<Parcel>]) {
    while let Some(shared) = shared.upgrade().filter(|shared| !shared.is_ending.load(Ordering::Acquire)) {
        let machine = Machine::of(shared);
        let mut is_idle = true;
        for ring in rings {
            while let Some(parcel) = ring.pop() {
                is_idle = false;
                // SAFETY: a parcel's event is the receiver's.
                let event = unsafe { Event::from_raw(parcel.event) };
                work(&machine, event, QueueId(parcel.what as u32));
            }
        }
        drop(machine);
        if is_idle {
            std::thread::sleep(PERIOD);
        }
    }
    for ring in rings {
        while let Some(parcel) = ring.pop() {
            // SAFETY: as above.
            unsafe { Chain::from_raw(parcel.event) }.free();
        }
    }
}

/// The work is taken out while it runs, so that it may send to other helper queues.
fn work(machine: &Machine, event: Event, queue: QueueId) {
    let taken = {
        let mut helpers = locked(&machine.shared.helpers);
        helpers.iter().position(|(id, _)| *id == queue).map(|index| helpers.swap_remove(index))
    };
    let Some((id, mut work)) = taken else { return };
    work(machine, event);
    locked(&machine.shared.helpers).push((id, work));
}
