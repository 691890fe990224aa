//! 26 invariants of an event machine, as a suite that runs against whatever implements [`Subject`].
//!
//! All checks are deterministic: one thread is every core in turn, and inside a receive it can be another core too
//! ([`Subject::dispatch`] from within), so what two cores do at once is tried without waiting for chance. Machines whose cores
//! cannot be dispatched so cannot be checked by it. `true` concurrency is the torture tests' part.
//!
//! ```
//! use runtime::conformance::{self, Ours};
//!
//! for invariant in conformance::all::<Ours>() {
//!     assert_eq!((invariant.check)(&Ours::new), Ok(()), "{}: {}", invariant.number, invariant.name);
//! }
//! ```

mod groups;
mod life;
mod ours;
mod queues;
mod times;

use crate::contract::Contract;
use crate::contract::watch::Fault;
use crate::dispatch::{Limits, Outcome};
use crate::failure::Handled;
use crate::model::{Error, Kind, Level};

pub use ours::Ours;

/// An event as the suite sees it.
pub trait Payload: Send + 'static {
    /// A word of its bytes.
    fn word(&self, number: usize) -> u64;
    /// Writes one.
    fn set_word(&mut self, number: usize, word: u64);
}

/// Why an event was not taken, and the event where it came back.
pub type Answer<E> = Result<(), (Error, Option<E>)>;

/// What may be called inside a receive, a start or a stop.
pub trait Calls<E> {
    /// Which core this is.
    fn core(&self) -> usize;
    /// The machine's time, ns.
    fn now(&self) -> u64;
    /// Allocates.
    fn allocate(&self, pool: u32) -> Result<E, Error>;
    /// Sends.
    fn send(&self, event: E, queue: u32) -> Answer<E>;
    /// Sends an event of a group.
    fn send_group(&self, event: E, queue: u32, group: u32) -> Answer<E>;
    /// Takes out of an unscheduled queue.
    fn take(&self, queue: u32) -> Result<Option<E>, Error>;
    /// Ends the atomic context.
    fn end_atomic(&self);
    /// Ends the ordered context.
    fn end_order(&self);
    /// Sets a timeout: due, period (0 for one event).
    fn set_timeout(&self, timeout: u32, due: u64, period: u64, event: E) -> Answer<E>;
    /// Acknowledges a periodic timeout's event.
    fn acknowledge(&self, event: E) -> Answer<E>;
    /// Cancels a timeout.
    fn cancel(&self, timeout: u32) -> Result<E, Error>;
    /// Begins a group's cycle with one notification.
    fn apply(&self, group: u32, count: u32, event: E, queue: u32) -> Answer<E>;
}

/// What receives: a core's calls, the event, its queue.
pub type Receive<E> = Box<dyn Fn(&dyn Calls<E>, E, u32) + Send + Sync>;
/// What receives several.
pub type ReceiveMany<E> = Box<dyn Fn(&dyn Calls<E>, &mut Vec<E>, u32) + Send + Sync>;
/// A start function.
pub type Start<E> = Box<dyn Fn(&dyn Calls<E>) -> Result<(), Error> + Send + Sync>;
/// A stop function.
pub type Stop<E> = Box<dyn Fn(&dyn Calls<E>) + Send + Sync>;
/// An error handler.
pub type Handle = Box<dyn Fn(Error) -> Handled + Send + Sync>;

/// An object of the suite.
pub struct Behaviour<E> {
    /// One event.
    pub receive: Receive<E>,
    /// Several, and how many at most.
    pub receive_many: Option<(usize, ReceiveMany<E>)>,
    /// Once.
    pub start: Option<Start<E>>,
    /// On each core.
    pub start_local: Option<Start<E>>,
    /// On each core.
    pub stop_local: Option<Stop<E>>,
    /// Once.
    pub stop: Option<Stop<E>>,
    /// Failures.
    pub failed: Option<Handle>,
}

impl<E: 'static> Behaviour<E> {
    /// One that only receives.
    pub fn new(receive: impl Fn(&dyn Calls<E>, E, u32) + Send + Sync + 'static) -> Self {
        Self {
            receive: Box::new(receive),
            receive_many: None,
            start: None,
            start_local: None,
            stop_local: None,
            stop: None,
            failed: None,
        }
    }
}

/// A queue of the suite.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// Its kind.
    pub kind: Kind,
    /// Its level.
    pub level: Level,
    /// Its cores; 0 for all.
    pub cores: u32,
    /// Its contract.
    pub contract: Option<Contract>,
}

impl Wanted {
    /// At the normal level, on all cores, without a contract.
    pub fn new(kind: Kind) -> Self {
        Self { kind, level: crate::model::NORMAL, cores: 0, contract: None }
    }

    /// At another level.
    pub fn level(self, level: Level) -> Self {
        Self { level, ..self }
    }

    /// On these cores.
    pub fn cores(self, cores: u32) -> Self {
        Self { cores, ..self }
    }
}

/// What a machine of the suite is made with.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Cores.
    pub cores: usize,
    /// Events of a burst, for all levels.
    pub burst: u8,
    /// Whether all levels are served within some rounds.
    pub is_weighted: bool,
    /// Whether the clock stands until [`Subject::advance`] moves it.
    pub is_simulated: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { cores: 2, burst: 1, is_weighted: false, is_simulated: false }
    }
}

/// A fault that the machine reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reported {
    /// What.
    pub fault: Fault,
    /// The queue.
    pub queue: u32,
    /// The event's first word; 0 where it is gone.
    pub event: u64,
    /// The core.
    pub core: usize,
    /// When, ns.
    pub time: u64,
}

/// A machine that can be checked. Clones are the same machine.
pub trait Subject: Clone + Send + Sync + 'static {
    /// Its events.
    type Event: Payload;

    /// Dispatches on a core, from any thread, inside a receive of another core too.
    fn dispatch(&self, core: usize, limits: Limits) -> Outcome;
    /// Moves a simulated clock.
    fn advance(&self, nanos: u64);
    /// The time, ns.
    fn now(&self) -> u64;
    /// A pool of so many events of 64 bytes.
    fn pool(&self, count: usize) -> u32;
    /// Events that nobody has; no core runs meanwhile.
    fn free_events(&self, pool: u32) -> usize;
    /// An object.
    fn object(&self, behaviour: Behaviour<Self::Event>) -> u32;
    /// A queue of an object; of none where it is unscheduled.
    fn queue(&self, wanted: Wanted, object: Option<u32>) -> Result<u32, Error>;
    /// Two atomic queues of a level each, scheduled as one.
    fn atomic_pair(&self, levels: [Level; 2], object: u32) -> [u32; 2];
    /// Removes a queue.
    fn remove_queue(&self, queue: u32) -> Result<(), Error>;
    /// A set of cores.
    fn cores(&self, cores: &[usize]) -> u32;
    /// Changes it.
    fn change_cores(&self, set: u32, cores: &[usize]) -> Result<(), Error>;
    /// Starts an object.
    fn start(&self, object: u32) -> Result<(), Error>;
    /// Stops it.
    fn stop(&self, object: u32) -> Result<(), Error>;
    /// Whether it receives.
    fn is_running(&self, object: u32) -> bool;
    /// Allocates, off the cores.
    fn allocate(&self, pool: u32) -> Result<Self::Event, Error>;
    /// Sends, off the cores.
    fn send(&self, event: Self::Event, queue: u32) -> Answer<Self::Event>;
    /// Sends an event of a group, off the cores.
    fn send_group(&self, event: Self::Event, queue: u32, group: u32) -> Answer<Self::Event>;
    /// Takes out of an unscheduled queue.
    fn take(&self, queue: u32) -> Result<Option<Self::Event>, Error>;
    /// Events dropped since their object did not run.
    fn dropped(&self, queue: u32) -> u64;
    /// An event group.
    fn group(&self) -> u32;
    /// Begins its cycle with one notification.
    fn apply(&self, group: u32, count: u32, event: Self::Event, queue: u32) -> Answer<Self::Event>;
    /// Aborts its cycle; the notifications' events.
    fn abort(&self, group: u32) -> Result<Vec<Self::Event>, Error>;
    /// A timeout: its queue, least time ahead, whether missed periods are made up for.
    fn timeout(&self, queue: u32, least: u64, catches_up: bool) -> u32;
    /// Removes it.
    fn remove_timeout(&self, timeout: u32) -> Result<(), Error>;
    /// The machine's error handler.
    fn set_handler(&self, handle: Handle);
    /// A callback before each event; false drops it.
    fn on_enter(&self, enter: Box<dyn Fn() -> bool + Send + Sync>);
    /// One after each.
    fn on_exit(&self, exit: Box<dyn Fn() + Send + Sync>);
    /// Faults since the last call.
    fn reports(&self) -> Vec<Reported>;
}

/// Makes machines.
pub type Make<'a, S> = &'a dyn Fn(Settings) -> S;

/// What was found; the words say which promise was broken.
pub type Finding = Result<(), String>;

/// Whether a machine keeps a promise.
pub type Check<S> = fn(Make<'_, S>) -> Finding;

/// One invariant.
pub struct Invariant<S> {
    /// Its number, 1 to 26.
    pub number: u8,
    /// What it says.
    pub name: &'static str,
    /// Whether it holds.
    pub check: Check<S>,
}

/// All of them.
pub fn all<S: Subject>() -> Vec<Invariant<S>> {
    let list: [(&'static str, Check<S>); 26] = [
        ("each event is in one place, and pools are full at the end", queues::ownership),
        ("an atomic queue's events run one at a time", queues::atomic_alone),
        ("an atomic queue keeps each sender's order", queues::atomic_order),
        ("what ordered events send arrives in their order", queues::ordered),
        ("an ordered event that sends nothing holds nobody up", queues::ordered_skip),
        ("the end of atomic processing loses and doubles nothing", queues::atomic_end),
        ("parallel events reach as many cores as there are, and no more", queues::parallel),
        ("no event runs on a core outside its queue's set", queues::core_sets),
        ("at most a burst of lower levels starts before a higher one", queues::priority),
        ("weighted order serves each level within its rounds", queues::weighted),
        ("local events run after their sender, before all others", queues::local),
        ("unscheduled queues are first in, first out", queues::unscheduled),
        ("objects receive only between start and stop", life::life_cycle),
        ("sends of a start function follow once the object runs", life::held_back),
        ("an object whose start failed never receives", life::failed_start),
        ("a group notifies once, after its last event", groups::notifies_once),
        ("an aborted group never notifies, and its late events count for nobody", groups::abort),
        ("a batch is of one group and counts all its events", groups::batches),
        ("dispatch ends where it was asked to", life::dispatch_limits),
        ("callbacks run in order, and exit always", life::callbacks),
        ("the object's error handler is asked before the machine's", life::handlers),
        ("a timeout fires once and never early", times::one_shot),
        ("periods do not drift, and each waits for its acknowledgement", times::periodic),
        ("an empty pool fails cleanly and recovers", life::exhaustion),
        ("teardown with events under way loses none", life::teardown),
        ("a panic or an overrun is named, and the others go on", times::faults),
    ];
    (1..).zip(list).map(|(number, (name, check))| Invariant { number, name, check }).collect()
}

/// A check's condition.
fn ensure(holds: bool, what: impl FnOnce() -> String) -> Finding {
    if holds { Ok(()) } else { Err(what()) }
}

/// A call that must succeed.
fn must<T, F: std::fmt::Debug>(result: Result<T, F>, what: &str) -> Result<T, String> {
    result.map_err(|error| format!("{what}: {error:?}"))
}

/// The same for answers that give events back.
fn sent<E>(answer: Answer<E>) -> Finding {
    answer.map_err(|(error, _)| format!("a send was refused: {error:?}"))
}

/// One round on each core, until none has anything to do.
fn settle<S: Subject>(machine: &S, cores: usize) {
    let idle_rounds =
        |core| machine.dispatch(core, Limits { rounds: 10_000, idle_rounds: 2, ..Limits::default() });
    while (0..cores).map(|core| idle_rounds(core).events).sum::<u64>() > 0 {}
}

/// One round on one core.
fn one_round<S: Subject>(machine: &S, core: usize) -> u64 {
    machine.dispatch(core, Limits { rounds: 1, ..Limits::default() }).events
}

/// An object of this behaviour with a queue, started.
fn started<S: Subject>(
    machine: &S,
    wanted: Wanted,
    behaviour: Behaviour<S::Event>,
) -> Result<(u32, u32), String> {
    let object = machine.object(behaviour);
    let queue = must(machine.queue(wanted, Some(object)), "a queue")?;
    must(machine.start(object), "a start")?;
    Ok((object, queue))
}

/// An event with these words.
fn event<S: Subject>(machine: &S, pool: u32, words: &[u64]) -> Result<S::Event, String> {
    let mut event = must(machine.allocate(pool), "an event")?;
    words.iter().enumerate().for_each(|(number, word)| event.set_word(number, *word));
    Ok(event)
}

/// What objects of a check write down.
type Notes = std::sync::Arc<std::sync::Mutex<Vec<(u64, u64)>>>;

fn note(notes: &Notes, first: u64, second: u64) {
    crate::sync::locked(notes).push((first, second));
}

fn read(notes: &Notes) -> Vec<(u64, u64)> {
    crate::sync::locked(notes).clone()
}
