//! The lines and what is to become of their edges.

use vhost_user_backend::{VringRwLock, VringT};
use vm_memory::{Bytes, GuestAddress, GuestAddressSpace, GuestMemoryAtomic, GuestMemoryMmap};

use crate::{End, Wire};

pub(crate) type Memory = GuestMemoryAtomic<GuestMemoryMmap>;

/// What a guest wants interrupts for: `VIRTIO_GPIO_IRQ_TYPE_*`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Trigger(u8);

impl Trigger {
    const RISING: u8 = 1;
    const FALLING: u8 = 2;
    const HIGH: u8 = 4;
    const LOW: u8 = 8;

    /// None where there is no such type.
    pub fn new(value: u32) -> Option<Self> {
        let value = u8::try_from(value).ok()?;
        matches!(value, 0..=4 | 8).then_some(Self(value))
    }

    fn is_of_edge(self, level: bool) -> bool {
        self.0 & if level { Self::RISING } else { Self::FALLING } != 0
    }

    fn is_of_level(self, level: bool) -> bool {
        self.0 & if level { Self::HIGH } else { Self::LOW } != 0
    }
}

/// A buffer of a guest that waits for its line's interrupt.
#[derive(Clone)]
pub(crate) struct Waiting {
    pub ring: VringRwLock<Memory>,
    pub memory: Memory,
    pub head: u16,
    /// Where the status goes.
    pub status: GuestAddress,
}

/// `VIRTIO_GPIO_IRQ_STATUS_*`.
const INVALID: u8 = 0;
const VALID: u8 = 1;

impl Waiting {
    fn answer(self, status: u8) {
        // A guest that has gone does not miss it.
        let _ = self.memory.memory().write_obj(status, self.status);
        let _ = self.ring.add_used(self.head, 1);
        let _ = self.ring.signal_used_queue();
    }
}

/// A line.
#[derive(Default)]
pub(crate) struct Line {
    /// `VIRTIO_GPIO_DIRECTION_*`.
    pub direction: u8,
    pub level: bool,
    /// How often its level has changed.
    pub changes: u64,
    trigger: Trigger,
    waiting: Option<Waiting>,
    /// An edge came while no buffer waited.
    is_pending: bool,
}

impl Line {
    pub fn is_watched(&self) -> bool {
        self.trigger != Trigger::default()
    }

    /// Another type, which ends what was asked for before.
    pub fn watch(&mut self, trigger: Trigger) {
        self.trigger = trigger;
        self.is_pending = false;
        if !self.is_watched() {
            self.waiting.take().into_iter().for_each(|waiting| waiting.answer(INVALID));
        }
    }

    /// A buffer of the guest: its line may interrupt.
    pub fn wait(&mut self, waiting: Waiting) {
        let is_due = std::mem::take(&mut self.is_pending) || self.trigger.is_of_level(self.level);
        if is_due {
            waiting.answer(VALID);
        } else {
            self.waiting = Some(waiting);
        }
    }

    fn set(&mut self, level: bool) {
        if self.level == level {
            return;
        }
        self.level = level;
        self.changes += 1;
        if self.trigger.is_of_edge(level) || self.trigger.is_of_level(level) {
            match self.waiting.take() {
                Some(waiting) => waiting.answer(VALID),
                None => self.is_pending = self.trigger.is_of_edge(level),
            }
        }
    }
}

/// All lines of all guests.
pub(crate) struct Board {
    guests: Vec<Vec<Line>>,
    wires: Vec<Wire>,
}

impl Board {
    pub fn new(guests: usize, lines: usize, wires: Vec<Wire>) -> Self {
        let lines = || (0..lines).map(|_| Line::default()).collect();
        Self { guests: (0..guests).map(|_| lines()).collect(), wires }
    }

    /// # Panics
    /// There is no such line.
    pub fn line(&mut self, end: End) -> &mut Line {
        &mut self.guests[end.guest][end.line]
    }

    pub fn count(&self, guest: usize) -> usize {
        self.guests[guest].len()
    }

    /// The level of an output; by which wires it goes on, where it is another.
    pub fn drive(&mut self, end: End, level: bool) -> Vec<Wire> {
        let line = self.line(end);
        let changes = line.changes;
        line.set(level);
        let is_new = line.changes != changes;
        self.wires.iter().filter(|wire| is_new && wire.from == end).copied().collect()
    }

    /// The level of an input.
    pub fn receive(&mut self, end: End, level: bool) {
        self.line(end).set(level);
    }
}
