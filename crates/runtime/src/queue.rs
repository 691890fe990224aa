//! Queues: their places, what a send must know of them, and what goes between cores for them.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

use crate::contract::Contract;
use crate::event::{Chain, Header};
use crate::model::{Kind, Level, QueueId};

/// What goes through a ring between cores.
#[derive(Clone, Copy)]
pub struct Parcel {
    /// The event, or the first of a chain; null for an ordered event that sent nothing.
    pub event: *mut Header,
    /// [`Parcel::EVENT`] and its queue, or that an ordered queue's event is done: the queue and the event's place.
    pub what: u64,
}

// SAFETY: a parcel owns the events that it points to, as `Event` does.
unsafe impl Send for Parcel {}

impl Parcel {
    pub const EVENT: u64 = 1 << 63;

    pub fn event(event: *mut Header, queue: QueueId) -> Self {
        Self { event, what: Self::EVENT | u64::from(queue.0) }
    }

    pub fn done(queue: QueueId, position: u32, events: Chain) -> Self {
        Self { event: events.into_raw(), what: u64::from(queue.0) << 32 | u64::from(position) }
    }
}

/// All that a send must know of a queue, in one word.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Route(pub u64);

impl Route {
    const LIVE: u64 = 1;
    const KIND: u64 = 0b111 << 1;
    const CONTRACT: u64 = 1 << 7;

    pub fn new(kind: Kind, level: Level, home: usize, cores: u32, has_contract: bool) -> Self {
        let contract = if has_contract { Self::CONTRACT } else { 0 };
        let word = Self::LIVE | (kind as u64) << 1 | u64::from(level) << 4 | contract;
        Self(word | (home as u64) << 8 | u64::from(cores) << 16)
    }

    /// Whether it is an atomic queue's without a contract: the short way.
    #[inline(always)]
    pub fn is_plain(self) -> bool {
        self.0 & (Self::LIVE | Self::KIND | Self::CONTRACT) == Self::LIVE | (Kind::Atomic as u64) << 1
    }

    pub fn is_live(self) -> bool {
        self.0 & Self::LIVE != 0
    }

    pub fn has_contract(self) -> bool {
        self.0 & Self::CONTRACT != 0
    }

    pub fn kind(self) -> Kind {
        match (self.0 & Self::KIND) >> 1 {
            0 => Kind::Atomic,
            1 => Kind::Parallel,
            2 => Kind::Ordered,
            3 => Kind::Local,
            4 => Kind::Unscheduled,
            _ => Kind::Helper,
        }
    }

    #[inline(always)]
    pub fn level(self) -> usize {
        (self.0 >> 4 & 7) as usize
    }

    /// The core that an atomic queue's events run on, and that puts an ordered queue's output in order.
    #[inline(always)]
    pub fn home(self) -> usize {
        (self.0 >> 8 & 0xff) as usize
    }

    pub fn cores(self) -> usize {
        (self.0 >> 16 & 0xffff) as usize
    }

    pub fn with_home(self, home: usize) -> Self {
        Self(self.0 & !(0xff << 8) | (home as u64) << 8)
    }
}

/// A queue's place.
pub struct Queue {
    /// A [`Route`]; 0 where there is no queue.
    pub route: AtomicU64,
    /// Number + 1 of its object.
    pub object: AtomicU32,
    /// Which core of a parallel queue's the next event goes to.
    pub turn: AtomicU32,
    /// Events that an ordered queue was sent.
    pub ticket: AtomicU32,
    /// Events of an ordered queue that are done with, in order.
    pub released: AtomicU32,
    /// Which of the windows is the ordered queue's.
    pub window: AtomicU32,
    /// When the next event is due by the contract, ns (the generic cell rate algorithm's theoretical arrival time).
    pub due: AtomicU64,
    /// Sends that the contract refused.
    pub refused: AtomicU64,
    /// Events whose object did not run.
    pub dropped: AtomicU64,
    pub contract: OnceLock<Contract>,
    pub name: OnceLock<String>,
    /// An unscheduled queue's events. The lock is held for a few instructions.
    pub waiting: Mutex<Chain>,
    /// Events in `waiting`.
    pub waiting_count: AtomicU32,
}

impl Queue {
    fn empty() -> Self {
        Self {
            route: AtomicU64::new(0),
            object: AtomicU32::new(0),
            turn: AtomicU32::new(0),
            ticket: AtomicU32::new(0),
            released: AtomicU32::new(0),
            window: AtomicU32::new(0),
            due: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            contract: OnceLock::new(),
            name: OnceLock::new(),
            waiting: Mutex::default(),
            waiting_count: AtomicU32::new(0),
        }
    }

    #[inline(always)]
    pub fn route(&self) -> Route {
        Route(self.route.load(Ordering::Acquire))
    }
}

pub fn new_queues(count: usize) -> Box<[Queue]> {
    (0..count).map(|_| Queue::empty()).collect()
}
