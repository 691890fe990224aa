//! What all cores see: tables whose places are allocated once and filled by whoever creates something.

use std::any::Any;
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use crate::breakage::Breakage;
use crate::clock::Clock;
use crate::contract::Contract;
use crate::event::{Chain, Header};
use crate::group::Fork;
use crate::local::{Here, Local};
use crate::model::{Config, Failure, Handled, Kind, Level, ObjectId, QueueId};
use crate::object::Object;
use crate::order::Window;
use crate::pool::Pool;
use crate::ring::Sender;
use crate::timer::Timeout;

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

/// What an object is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    /// It may be started; events for it are dropped.
    Created = 0,
    /// Its start functions run.
    Starting = 1,
    /// It receives.
    Running = 2,
    /// Its stop functions run.
    Stopping = 3,
    /// It was removed.
    Removed = 4,
}

/// An object's place.
pub struct ObjectSlot {
    pub state: AtomicU8,
    pub object: OnceLock<Box<dyn Object>>,
    pub name: OnceLock<String>,
    /// Sends of its start functions, held back until it runs.
    pub held_back: Mutex<Chain>,
}

impl ObjectSlot {
    pub fn state(&self) -> State {
        match self.state.load(Ordering::Acquire) {
            0 => State::Created,
            1 => State::Starting,
            2 => State::Running,
            3 => State::Stopping,
            _ => State::Removed,
        }
    }
}

/// What one core saw of one queue. Written by that core alone, read by all.
#[derive(Default)]
pub struct Figures {
    pub events: AtomicU64,
    pub worst_run: AtomicU64,
    pub worst_response: AtomicU64,
    pub overruns: AtomicU64,
    pub late: AtomicU64,
}

/// Something to be done on a core, by that core between two events.
pub struct Job {
    /// Valid until `done` is set.
    pub work: *mut (dyn FnMut(&Here<'_>) + Send),
    pub done: AtomicBool,
}

/// A core's place. What its own thread alone touches is `local`.
pub struct Core {
    /// Whether a thread is this core now. Who sets it may touch `local`.
    pub owned: AtomicBool,
    pub local: UnsafeCell<Local>,
    pub job: AtomicPtr<Job>,
    /// Whether it sleeps in the kernel: the futex's word.
    pub asleep: AtomicU32,
    /// Whether senders look at `asleep`.
    pub blocks: AtomicBool,
    pub figures: Box<[Figures]>,
    pub rounds: AtomicU64,
    pub panics: AtomicU64,
    /// Reports that found no room.
    pub reports_lost: AtomicU64,
}

// SAFETY: `local` is touched only by the thread that set `owned`; all else is atomics.
unsafe impl Sync for Core {}
// SAFETY: the pointers inside are to memory of the machine, which moves between threads with ownership of `owned`.
unsafe impl Send for Core {}

/// What is called around each event.
pub struct Visit {
    /// The queue.
    pub queue: QueueId,
    /// The object.
    pub object: ObjectId,
    /// The core.
    pub core: usize,
}

/// Called before an event is received; false drops it.
pub type Enter = Box<dyn Fn(&Visit, &mut crate::Event) -> bool + Send + Sync>;
/// Called after it.
pub type Exit = Box<dyn Fn(&Visit) + Send + Sync>;
/// What failures are given to that no object handled.
pub type Handler = Arc<dyn Fn(&mut Failure) -> Handled + Send + Sync>;

/// Callbacks of one sort at most.
pub const CALLBACKS: usize = 8;

pub struct Shared {
    pub clock: Clock,
    pub config: Config,
    pub queues: Box<[Queue]>,
    pub objects: Box<[ObjectSlot]>,
    /// Masks of cores; 0 where there is no group.
    pub masks: Box<[AtomicU64]>,
    /// Home + 1 of each atomic group's queues.
    pub atomic_groups: Box<[AtomicU32]>,
    pub forks: Box<[Fork]>,
    pub timeouts: Box<[Timeout]>,
    pub pools: Box<[OnceLock<&'static Pool>]>,
    pub windows: Box<[OnceLock<Window>]>,
    pub cores: Box<[Core]>,
    pub enter: [OnceLock<Enter>; CALLBACKS],
    pub exit: [OnceLock<Exit>; CALLBACKS],
    /// Whether there are callbacks.
    pub is_visited: AtomicBool,
    pub handler: RwLock<Option<Handler>>,
    /// How threads that are no core send: one ring to each core, and to the helper.
    pub outside: Mutex<Vec<Sender<Parcel>>>,
    /// One change at a time.
    pub control: Mutex<()>,
    pub broken: AtomicU8,
    /// Events that no ring had room for: 0, since rings are sized for all.
    pub lost: AtomicU64,
    pub is_ending: AtomicBool,
    /// What the helper's queues do.
    pub helpers: Mutex<Vec<(QueueId, crate::helper::Work)>>,
    /// Kept alive with the machine: what C programs pass through.
    pub kept: Mutex<Vec<Box<dyn Any + Send>>>,
}

impl Shared {
    /// Whether the machine is broken in this way on purpose.
    #[inline(always)]
    pub fn broken(&self, how: Breakage) -> bool {
        cfg!(feature = "breakages") && self.broken.load(Ordering::Relaxed) == how as u8
    }

    /// Cores of a queue group.
    #[inline]
    pub fn mask(&self, cores: usize) -> u64 {
        self.masks[cores].load(Ordering::Acquire)
    }

    /// Wakes a core that sleeps. A system call only where it does.
    #[inline]
    pub fn wake(&self, core: usize) {
        let Some(core) = self.cores.get(core) else { return };
        if core.blocks.load(Ordering::Relaxed) {
            crate::wait::wake(&core.asleep);
        }
    }

    /// Which core an event of this queue goes to, its place taken. Changes the queue's turn.
    pub fn core_of(&self, queue: &Queue, route: Route) -> usize {
        if route.kind() == Kind::Helper {
            return self.cores.len();
        }
        let anywhere = self.broken(Breakage::AtomicAnywhere);
        if route.kind() == Kind::Atomic && !anywhere {
            return route.home();
        }
        let mask = self.mask(route.cores());
        if self.broken(Breakage::NotParallel) {
            return mask.trailing_zeros() as usize;
        }
        let turn = queue.turn.fetch_add(1, Ordering::Relaxed) % mask.count_ones().max(1);
        nth(mask, turn)
    }
}

/// The `turn`th core of a mask.
fn nth(mask: u64, turn: u32) -> usize {
    let rest = (0..turn).fold(mask, |mask, _| mask & mask.wrapping_sub(1));
    (rest.trailing_zeros() as usize).min(63)
}

/// What a poisoned lock guards is whole: nothing that is held panics between two writes.
pub fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn new_queues(count: usize) -> Box<[Queue]> {
    (0..count).map(|_| Queue::empty()).collect()
}

pub fn new_objects(count: usize) -> Box<[ObjectSlot]> {
    let empty = |_| ObjectSlot {
        state: AtomicU8::new(State::Removed as u8),
        object: OnceLock::new(),
        name: OnceLock::new(),
        held_back: Mutex::default(),
    };
    (0..count).map(empty).collect()
}

impl Drop for Shared {
    /// Pools whose events are all back are freed; the others stay, since who has an event may still read it.
    fn drop(&mut self) {
        for core in &mut self.cores {
            core.local.get_mut().free_all();
        }
        for slot in &self.objects {
            locked(&slot.held_back).free();
        }
        for queue in &self.queues {
            locked(&queue.waiting).free();
        }
        self.windows.iter().filter_map(OnceLock::get).for_each(Window::free);
        self.timeouts.iter().for_each(Timeout::free);
        self.forks.iter().for_each(Fork::free);
        for pool in self.pools.iter().filter_map(OnceLock::get) {
            if pool.free_count() == pool.capacity {
                // SAFETY: made by Box::leak; no event of it is out, and this is the last that knows it.
                drop(unsafe { Box::from_raw(std::ptr::from_ref::<Pool>(pool).cast_mut()) });
            }
        }
    }
}
