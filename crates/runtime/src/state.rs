//! What a machine consists of: its objects, its cores and what all of them see. These types refer to each other, as an object is
//! lent the core that it runs on, and a core has the objects: so they stand in one file, and what is done with them in files above.

pub mod threads;

use std::any::Any;
use std::cell::{Cell, UnsafeCell};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, RwLock};

use crate::breakage::Breakage;
use crate::clock::Clock;
use crate::contract::watch::Report;
use crate::event::pool::{Cache, Pool};
use crate::event::{Chain, Event};
use crate::failure::{Failure, Handled};
use crate::group::Fork;
use crate::heap::Heap;
use crate::model::{Config, Error, Kind, LEVELS, ObjectId, QueueId, Wait};
use crate::order::Window;
use crate::published::Published;
use crate::queue::{Parcel, Queue, Route};
use crate::ring::{Receiver, Sender};
use crate::timeout::Timeout;
use threads::Threads;

/// An execution object: functions that run to their end on a core and are never interrupted by another one.
///
/// Several cores may be in [`Object::receive`] at once where the object has parallel or ordered queues, or atomic ones of
/// different homes; [`crate::Exclusive`] makes an object of what wants `&mut self`.
pub trait Object: Send + Sync + 'static {
    /// Once, before all else. Sends are held back until the object runs.
    fn start(&self, _here: &Here<'_>) -> Result<(), Error> {
        Ok(())
    }

    /// On each core, after [`Object::start`].
    fn start_local(&self, _here: &Here<'_>) -> Result<(), Error> {
        Ok(())
    }

    /// An event of one of its queues.
    fn receive(&self, here: &Here<'_>, event: Event, queue: QueueId);

    /// Events at most that [`Object::receive_many`] takes at once; 0: they come one at a time.
    fn batch(&self) -> usize {
        0
    }

    /// Several events of one queue and one event group. What is left in `events` is freed.
    fn receive_many(&self, here: &Here<'_>, events: &mut Vec<Event>, queue: QueueId) {
        events.drain(..).for_each(|event| self.receive(here, event, queue));
    }

    /// On each core, when no core is in [`Object::receive`] any more.
    fn stop_local(&self, _here: &Here<'_>) {}

    /// Once, after all else.
    fn stop(&self, _here: &Here<'_>) {}

    /// A call of this object failed.
    fn failed(&self, _failure: &mut Failure) -> Handled {
        Handled::Pass
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

/// What is ready at a level, one behind the other: queues by their number, then light threads.
pub const NOTHING: u32 = u32::MAX;

/// A queue's events on this core, and its place among what is ready.
#[derive(Default)]
pub struct List {
    pub events: Chain,
    pub is_linked: Cell<bool>,
    /// Not served while its events move here from another core.
    pub is_held: Cell<bool>,
    pub level: Cell<u8>,
    pub next: Cell<u32>,
}

pub struct Ready {
    pub head: Cell<u32>,
    pub tail: Cell<u32>,
}

/// Where the code that runs stands.
pub struct Current {
    pub object: Cell<u32>,
    pub queue: Cell<u32>,
    /// The ordered queue whose event runs, and the event's place.
    pub order: Cell<Option<(QueueId, u32)>>,
    /// Whether sends wait for their turn in that order.
    pub is_staging: Cell<bool>,
    /// Event group of the event that runs.
    pub group: Cell<u64>,
    /// Events of that group that this receive has.
    pub count: Cell<u32>,
    /// Number + 1 of the object whose start function runs: sends are held back.
    pub starting: Cell<u32>,
    /// Whether a receive is running.
    pub is_receiving: Cell<bool>,
}

/// On lines of cache of its own: what other cores read of a core must not move with what this one writes.
#[repr(align(128))]
pub struct Local {
    /// The machine; dangling before it is whole. Valid as long as anybody dispatches.
    pub shared: Cell<*const Shared>,
    pub me: usize,
    pub lists: Box<[List]>,
    pub ready: [Ready; LEVELS],
    /// Levels at which something is ready.
    pub bits: Cell<u8>,
    pub from: Box<[Receiver<Parcel>]>,
    pub to: Box<[Sender<Parcel>]>,
    pub caches: Box<[Cache]>,
    pub heap: UnsafeCell<Heap>,
    pub threads: Threads,
    /// Events of local queues.
    pub own: Chain,
    /// What the ordered event that runs has sent.
    pub staged: Chain,
    pub current: Current,
    pub batch: Cell<Vec<Event>>,
    /// The last reading of the clock.
    pub now: Cell<u64>,
    /// When the receive that runs began: the end of the one before it in its burst.
    pub begun: Cell<u64>,
    /// Up to when it is known what this core did, where that is published.
    pub accounted: Cell<u64>,
    pub rounds: Cell<u32>,
    pub reports: Sender<Report>,
    pub wait: Cell<Wait>,
}

/// What runs on a core: where it is, and what it may do there. It cannot leave the core.
#[derive(Clone, Copy)]
pub struct Here<'a> {
    pub(crate) local: &'a Local,
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
pub type Enter = Box<dyn Fn(&Visit, &mut Event) -> bool + Send + Sync>;
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
    /// The helper's ends of its rings, until its thread is started: by the first queue of its own.
    pub to_helper: Mutex<Option<Vec<Receiver<Parcel>>>>,
    /// What the helper's queues do.
    pub helpers: Mutex<Vec<(QueueId, Work)>>,
    /// Kept alive with the machine: what C programs pass through.
    pub kept: Mutex<Vec<Box<dyn Any + Send>>>,
    /// Where what runs is published, if it is.
    pub published: Option<Published>,
}

/// What a helper queue does with an event: anything, blocking calls too.
pub type Work = Box<dyn FnMut(&Machine, Event) + Send>;

/// Sees and changes a machine from outside its cores. Clones are the same machine.
#[derive(Clone)]
pub struct Machine {
    pub(crate) shared: Arc<Shared>,
    pub(crate) reports: Arc<Mutex<Vec<Receiver<Report>>>>,
}

impl Machine {
    pub(crate) fn of(shared: Arc<Shared>) -> Self {
        Self { shared, reports: Arc::default() }
    }
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

pub fn new_objects(count: usize) -> Box<[ObjectSlot]> {
    let empty = |_| ObjectSlot {
        state: AtomicU8::new(State::Removed as u8),
        object: OnceLock::new(),
        name: OnceLock::new(),
        held_back: Mutex::default(),
    };
    (0..count).map(empty).collect()
}

impl Local {
    /// The machine.
    #[inline(always)]
    pub fn shared(&self) -> &Shared {
        // SAFETY: set before anybody can dispatch, and the machine is kept by whoever dispatches.
        unsafe { &*self.shared.get() }
    }

    /// The heap of due times. Borrowed for one expression at a time, by this core's thread alone.
    #[allow(clippy::mut_from_ref)]
    pub fn heap(&self) -> &mut Heap {
        // SAFETY: Local is not Sync, and no caller keeps the reference over a call that comes here again.
        unsafe { &mut *self.heap.get() }
    }

    /// Reads the clock.
    #[inline(always)]
    pub fn read_clock(&self) -> u64 {
        let now = self.shared().clock.now();
        self.now.set(now);
        now
    }
}

impl<'a> Here<'a> {
    pub(crate) fn shared(self) -> &'a Shared {
        self.local.shared()
    }
}
