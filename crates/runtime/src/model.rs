//! The words of the machine: what things are numbered by, what they are made with, how calls fail.

use std::fmt;

/// Priority of a queue or light thread: 0 the lowest, [`HIGHEST`] the highest. Strict: the highest that is ready runs next.
pub type Level = u8;

/// Levels there are.
pub const LEVELS: usize = 8;
/// The highest level.
pub const HIGHEST: Level = 7;
/// Where nothing speaks for another one.
pub const NORMAL: Level = 4;
/// Cores at most: a queue group is a mask of 64 bits.
pub const MAX_CORES: usize = 63;
/// Pools at most.
pub const POOLS: usize = 16;
/// Events that an object takes at once at most.
pub const BATCH: usize = 64;
/// Light threads of a core at most.
pub const THREADS: usize = 64;
/// Semaphores of a core at most.
pub const SEMAPHORES: usize = 64;

macro_rules! number {
    ($(#[$doc:meta] $name:ident),*) => {$(
        #[$doc]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub(crate) u32);
        impl $name {
            /// The number, from 0, as C programs know it.
            pub fn number(self) -> u32 {
                self.0
            }
            /// What a C program numbers so; calls answer with an error where it does not exist.
            pub fn from_number(number: u32) -> Self {
                Self(number)
            }
            pub(crate) fn index(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}

number!(
    /// A queue.
    QueueId,
    /// An execution object.
    ObjectId,
    /// A pool of events.
    PoolId,
    /// A set of cores that queues are bound to.
    CoresId,
    /// An event group: a fork that is joined by counting.
    GroupId,
    /// A timeout: one place in a timer.
    TimeoutId,
    /// Atomic queues that are scheduled as one.
    AtomicGroupId
);

/// All cores: the queue group that is always there.
pub const ALL_CORES: CoresId = CoresId(0);

/// How events of a queue may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One at a time over all cores, in the order of each sender.
    Atomic,
    /// Any number at once, in no order.
    Parallel,
    /// Like parallel; what they send arrives in the order in which they came.
    Ordered,
    /// After the sender's receive, on the sender's core, before anything else there.
    Local,
    /// Nobody is called: whoever likes takes events out.
    Unscheduled,
    /// A thread off the cores, which may block.
    Helper,
}

/// What a queue is made with.
#[derive(Clone, Debug)]
pub struct QueueSpec {
    /// For reports; up to you whether it is unique.
    pub name: String,
    /// How its events may run.
    pub kind: Kind,
    /// Its priority.
    pub level: Level,
    /// The cores it is bound to.
    pub cores: CoresId,
    /// Scheduled as one with these; for atomic queues.
    pub group: Option<AtomicGroupId>,
    /// What arrives, how long it runs, and by when it must be done.
    pub contract: Option<crate::contract::Contract>,
}

impl QueueSpec {
    /// A queue of this kind at the normal level on all cores, without a contract.
    pub fn new(name: &str, kind: Kind) -> Self {
        Self { name: name.to_owned(), kind, level: NORMAL, cores: ALL_CORES, group: None, contract: None }
    }

    /// At another level.
    pub fn level(self, level: Level) -> Self {
        Self { level, ..self }
    }

    /// On these cores.
    pub fn cores(self, cores: CoresId) -> Self {
        Self { cores, ..self }
    }

    /// As one with the other queues of an atomic group.
    pub fn group(self, group: AtomicGroupId) -> Self {
        Self { group: Some(group), ..self }
    }

    /// With a contract.
    pub fn contract(self, contract: crate::contract::Contract) -> Self {
        Self { contract: Some(contract), ..self }
    }
}

/// In which order levels are served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The highest that is ready. A level can starve those below.
    #[default]
    Strict,
    /// As strict, but each eighth round begins at another level, so that each ready queue is served within
    /// [`Order::WEIGHTED_ROUNDS`] rounds for each queue that is ready at its level.
    Weighted,
}

impl Order {
    /// Rounds within which a level is served in weighted order.
    pub const WEIGHTED_ROUNDS: u32 = 64;
}

/// How a core waits while nothing is ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wait {
    /// Looks again at once: the least delay, the CPU never rests.
    #[default]
    Spin,
    /// `umwait`-like: until memory changes or a time comes, without the kernel. `tpause` on x86-64 CPUs that have it, `wfet`
    /// on arm64 CPUs that have it, else `wfe` there (the counter's event stream ends it, up to 100 us later); spins elsewhere.
    Pause,
    /// Sleeps in the kernel (futex) until an event is sent: the CPU is free, and each wake-up is a system call for the sender.
    Block,
}

/// What a machine is made with. Everything is allocated when it is made.
#[derive(Clone, Debug)]
pub struct Config {
    /// Cores that will dispatch, 1 to [`MAX_CORES`].
    pub cores: usize,
    /// Events of all pools together.
    pub events: usize,
    /// Queues at most.
    pub queues: usize,
    /// Objects at most.
    pub objects: usize,
    /// Event groups at most.
    pub groups: usize,
    /// Timeouts at most: the bound of each core's heap.
    pub timeouts: usize,
    /// Ordered queues at most.
    pub ordered: usize,
    /// Events of one ordered queue that may be under way.
    pub window: usize,
    /// Events of a queue that run before the core looks at rings and timers again, for each level. 1 gives the least bounds,
    /// more the better throughput; a higher level that is ready on this core ends a burst.
    pub bursts: [u8; LEVELS],
    /// In which order levels are served.
    pub order: Order,
    /// How cores wait, all alike; [`crate::Dispatcher::set_wait`] changes one.
    pub wait: Wait,
    /// Whether each event's run and response time is read from the clock: two readings an event.
    pub watch: bool,
    /// How many receives of each core are published for `worstcase guard`, as [`crate::published`] says: 2^20 at most, and `watch` is
    /// taken as true then. 0 publishes nothing.
    pub publish: usize,
    /// What dispatching costs and what the kernel takes: terms of each bound.
    pub overheads: crate::contract::Overheads,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            cores: 1,
            events: 4096,
            queues: 256,
            objects: 256,
            groups: 64,
            timeouts: 256,
            ordered: 8,
            window: 512,
            bursts: [1; LEVELS],
            order: Order::Strict,
            wait: Wait::Spin,
            watch: true,
            publish: 0,
            overheads: crate::contract::Overheads::default(),
        }
    }
}

/// Why a call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Error {
    /// The pool has no event left.
    PoolEmpty,
    /// The event would be larger than the pool's.
    TooLarge,
    /// There is no such queue, or it was removed.
    NoSuchQueue,
    /// There is no such object, pool, group or timeout.
    NoSuchThing,
    /// The queue's kind does not allow this.
    WrongKind,
    /// More of a kind of thing than the configuration has room for.
    NoRoom,
    /// More events arrive than the queue's contract allows: try again later.
    TooSoon,
    /// As many events of an ordered queue are under way as it has room for.
    OrderFull,
    /// The object is not in a state that allows this.
    WrongState,
    /// A start function of the object failed.
    StartFailed,
    /// The due time is past, or too near.
    TooNear,
    /// Later than the timer goes.
    TooFar,
    /// The timeout was cancelled; the event is the caller's again.
    Cancelled,
    /// The event group is counting, or the notification tags its own group.
    GroupBusy,
    /// The event group is not counting.
    GroupIdle,
    /// An event of a cycle of its group that was aborted or is over.
    GroupStale,
    /// A core that the machine does not have, or a set without cores.
    NoSuchCore,
    /// A bound exceeds its deadline.
    Deadline,
    /// No bound exists: more work arrives than the core can do.
    Overload,
    /// What the application reports by [`crate::Here::fail`].
    Application(u32),
    /// An object's function panicked.
    Panic,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = match self {
            Self::PoolEmpty => "the pool has no event left",
            Self::TooLarge => "larger than the pool's events",
            Self::NoSuchQueue => "no such queue",
            Self::NoSuchThing => "no such object, pool, group or timeout",
            Self::WrongKind => "the queue's kind does not allow this",
            Self::NoRoom => "the configuration has no room for another one",
            Self::TooSoon => "more events than the queue's contract allows",
            Self::OrderFull => "the ordered queue has no room for another event under way",
            Self::WrongState => "the object's state does not allow this",
            Self::StartFailed => "a start function failed",
            Self::TooNear => "the due time is past or too near",
            Self::TooFar => "the due time is later than the timer goes",
            Self::Cancelled => "the timeout was cancelled",
            Self::GroupBusy => "the event group is counting",
            Self::GroupIdle => "the event group is not counting",
            Self::GroupStale => "an event of a cycle that is over",
            Self::NoSuchCore => "no such core",
            Self::Deadline => "a bound exceeds its deadline",
            Self::Overload => "more work arrives than the core can do",
            Self::Application(code) => return write!(f, "application error {code}"),
            Self::Panic => "an object panicked",
        };
        f.write_str(words)
    }
}

impl std::error::Error for Error {}
