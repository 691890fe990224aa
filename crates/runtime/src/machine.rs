//! The machine as those see it who set it up and change it. Nothing here is for the cores' own threads: calls may allocate, and
//! wait until each core has come round.

mod end;
mod life;
mod observe;
mod sets;

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, RwLock};
use std::time::Duration;

use crate::breakage::Breakage;
use crate::clock::Clock;
use crate::dispatch::{Dispatcher, Owner};
use crate::event::pool::Pool;
use crate::event::{Event, Header};
use crate::failure::{Failure, Handled, Refused};
use crate::group::{Fork, Notification, tag};
use crate::helper;
use crate::local::{self, Entered};
use crate::model::{
    AtomicGroupId, Config, Error, GroupId, Kind, LEVELS, MAX_CORES, ObjectId, POOLS, PoolId, QueueId,
    QueueSpec, TimeoutId, Wait,
};
use crate::order::Window;
use crate::published::Published;
use crate::queue::{Parcel, Queue, Route, new_queues};
use crate::ring::{Receiver, Sender, ring};
use crate::state::{Core, Figures, Here, Job, Local, Machine, Shared, State, Visit, new_objects};
use crate::sync::locked;
use crate::timeout::{Timeout, TimeoutFigures, TimeoutSpec};

/// Queue groups at most.
const GROUPS_OF_CORES: usize = 64;
/// Atomic groups at most.
const ATOMIC_GROUPS: usize = 64;
/// Reports of a core that wait to be read at most.
const REPORTS: usize = 256;

type Rings<T> = Vec<Vec<T>>;

/// One ring from each of `from` places to each of `to`.
fn rings(from: usize, to: usize, capacity: usize) -> (Rings<Sender<Parcel>>, Rings<Receiver<Parcel>>) {
    let mut receivers: Rings<Receiver<Parcel>> = (0..to).map(|_| Vec::new()).collect();
    let mut senders: Rings<Sender<Parcel>> = Vec::new();
    for _ in 0..from {
        let mut row = Vec::new();
        for column in &mut receivers {
            let (sender, receiver) = ring(capacity);
            row.push(sender);
            column.push(receiver);
        }
        senders.push(row);
    }
    (senders, receivers)
}

impl Machine {
    /// A machine and its cores. Nothing runs until somebody dispatches.
    ///
    /// # Errors
    /// [`Error::NoSuchCore`] for 0 cores or more than [`MAX_CORES`]; [`Error::NoRoom`] where there is no memory for
    /// [`Config::publish`].
    pub fn new(config: Config) -> Result<(Self, Vec<Dispatcher>), Error> {
        Self::with_clock(config, Clock::of_this_machine())
    }

    /// A machine that lives by this clock.
    ///
    /// # Errors
    /// As [`Machine::new`].
    pub fn with_clock(mut config: Config, clock: Clock) -> Result<(Self, Vec<Dispatcher>), Error> {
        if config.cores == 0 || config.cores > MAX_CORES {
            return Err(Error::NoSuchCore);
        }
        let count = config.cores;
        config.window = config.window.max(2 * count + 2).next_power_of_two();
        // Room for every event there is and every ordered event under way: no push fails.
        let capacity = config.events + config.ordered * config.window;
        let (mut senders, mut receivers) = rings(count + 1, count + 1, capacity);
        let to_helper = receivers.pop().unwrap_or_default();
        let outside = senders.pop().unwrap_or_default();
        let mut reports = Vec::new();
        let mut core = |me: usize, from, to| {
            let (sender, receiver) = ring(REPORTS);
            reports.push(receiver);
            new_core(&config, local::new(me, &config, from, to, sender))
        };
        let ends = receivers.into_iter().zip(senders).enumerate();
        let cores: Box<[Core]> = ends.map(|(me, (from, to))| core(me, from, to)).collect();
        let published = match config.publish {
            0 => None,
            entries => Some(
                Published::new((count, entries, config.objects, config.queues), &clock)
                    .map_err(|_| Error::NoRoom)?,
            ),
        };
        config.watch |= published.is_some();
        let shared = Arc::new(new_shared(config, clock, cores, (outside, to_helper), published));
        shared.masks[0].store(u64::MAX >> (64 - count), Ordering::Release);
        for core in &shared.cores {
            if let Some(owner) = Owner::of(core) {
                owner.local().shared.set(Arc::as_ptr(&shared));
            }
        }
        let machine = Self { shared: Arc::clone(&shared), reports: Arc::new(Mutex::new(reports)) };
        let dispatchers = (0..count).map(|core| Dispatcher { shared: Arc::clone(&shared), core }).collect();
        Ok((machine, dispatchers))
    }

    /// The machine's clock.
    pub fn clock(&self) -> &Clock {
        &self.shared.clock
    }

    /// What it was made with.
    pub fn config(&self) -> &Config {
        &self.shared.config
    }

    /// Ends the cores' threads and the helper.
    pub fn end(&self) {
        self.shared.is_ending.store(true, Ordering::SeqCst);
        (0..self.shared.cores.len()).for_each(|core| self.shared.wake(core));
    }

    /// Breaks the machine on purpose. For tests; without the feature `breakages` nothing happens.
    pub fn break_by(&self, how: Breakage) {
        self.shared.broken.store(how as u8, Ordering::SeqCst);
    }

    /// A pool of `count` events of `size` bytes each.
    ///
    /// # Errors
    /// [`Error::NoRoom`] where the configuration's events are all in pools.
    pub fn pool(&self, count: usize, size: usize) -> Result<PoolId, Error> {
        let _one = locked(&self.shared.control);
        let there: usize = self.shared.pools.iter().filter_map(OnceLock::get).map(|pool| pool.capacity).sum();
        let place = self.shared.pools.iter().position(|place| place.get().is_none()).ok_or(Error::NoRoom)?;
        if there + count > self.shared.config.events || count == 0 || size > u32::MAX as usize {
            return Err(Error::NoRoom);
        }
        let pool = Box::leak(Box::new(Pool::new(place, count, size, self.shared.cores.len())));
        pool.fill();
        let _ = self.shared.pools[place].set(pool);
        Ok(PoolId(place as u32))
    }

    /// Events of a pool that nobody has. Exact while no core runs.
    pub fn free_events(&self, pool: PoolId) -> usize {
        self.shared.pools.get(pool.index()).and_then(OnceLock::get).map_or(0, |pool| pool.free_count())
    }

    /// Allocates an event of `size` bytes, off the cores.
    pub fn allocate(&self, pool: PoolId, size: usize) -> Result<Event, Error> {
        local::allocate(&self.shared, None, pool, size)
    }

    /// Sends from a thread that is no core.
    ///
    /// # Errors
    /// As [`Here::send`].
    pub fn send(&self, event: Event, queue: QueueId) -> Result<(), Refused> {
        let refused = |error, event| Err(Refused { error, event: Some(event) });
        if let Err(error) = local::admit(&self.shared, queue, event.header()) {
            return refused(error, event);
        }
        if self.shared.queues[queue.index()].route().kind() == Kind::Local {
            return refused(Error::WrongKind, event);
        }
        let outside = locked(&self.shared.outside);
        deliver(&self.shared, &outside, event.into_raw(), queue);
        Ok(())
    }

    /// Sends an event of a group's cycle from a thread that is no core.
    pub fn send_group(&self, event: Event, queue: QueueId, group: GroupId) -> Result<(), Refused> {
        let fork = self.shared.forks.get(group.index());
        let Some(cycle) = fork.and_then(Fork::cycle) else {
            return Err(Refused { error: Error::GroupIdle, event: Some(event) });
        };
        event.header().group.set(tag(group, cycle));
        self.send(event, queue)
    }

    /// The oldest event of an unscheduled queue.
    pub fn take(&self, queue: QueueId) -> Result<Option<Event>, Error> {
        let place = self.queue_place(queue)?;
        match place.route().kind() {
            Kind::Unscheduled => Ok(local::take_waiting(&self.shared, place)),
            _ => Err(Error::WrongKind),
        }
    }

    fn queue_place(&self, queue: QueueId) -> Result<&Queue, Error> {
        let place = self.shared.queues.get(queue.index()).ok_or(Error::NoSuchQueue)?;
        if place.route().is_live() { Ok(place) } else { Err(Error::NoSuchQueue) }
    }

    /// A queue of this object; none for unscheduled queues.
    ///
    /// # Errors
    /// [`Error::Deadline`] or [`Error::Overload`] where the contracts of its core do not fit any more: nothing is made.
    pub fn queue(&self, spec: &QueueSpec, object: Option<ObjectId>) -> Result<QueueId, Error> {
        let _one = locked(&self.shared.control);
        let is_free = |queue: &Queue| queue.route.load(Ordering::Acquire) == 0 && queue.name.get().is_none();
        let number = self.shared.queues.iter().position(is_free).ok_or(Error::NoRoom)?;
        if object.is_some() == matches!(spec.kind, Kind::Unscheduled | Kind::Helper) {
            return Err(Error::WrongKind);
        }
        if object.is_some_and(|object| self.state(object).is_none_or(|state| state == State::Removed)) {
            return Err(Error::NoSuchThing);
        }
        let mask = self.shared.masks.get(spec.cores.index()).map_or(0, |mask| mask.load(Ordering::Acquire));
        if mask == 0 {
            return Err(Error::NoSuchCore);
        }
        let home = self.home(spec, number, mask)?;
        self.check_contract(spec, home)?;
        let place = &self.shared.queues[number];
        if spec.kind == Kind::Ordered {
            self.give_window(place)?;
        }
        drop(place.name.set(spec.name.clone()));
        if let Some(contract) = spec.contract {
            let _ = place.contract.set(contract);
        }
        place.object.store(object.map_or(0, |object| object.0 + 1), Ordering::Release);
        let level = spec.level.min(LEVELS as u8 - 1);
        let route = Route::new(spec.kind, level, home, spec.cores.0, spec.contract.is_some());
        place.route.store(route.0, Ordering::Release);
        self.publish_queue(number, &spec.name);
        Ok(QueueId(number as u32))
    }

    /// Queues take homes in turn; those of an atomic group the group's.
    fn home(&self, spec: &QueueSpec, number: usize, mask: u64) -> Result<usize, Error> {
        let cores: Vec<usize> = (0..self.shared.cores.len()).filter(|core| mask & 1 << core != 0).collect();
        let Some(group) = spec.group else { return Ok(cores[number % cores.len()]) };
        if spec.kind != Kind::Atomic {
            return Err(Error::WrongKind);
        }
        let place = self.shared.atomic_groups.get(group.index()).ok_or(Error::NoSuchThing)?;
        let home = place.load(Ordering::Acquire);
        if home == 0 || home > self.shared.cores.len() as u32 {
            let home = cores[group.index() % cores.len()];
            place.store(home as u32 + 1, Ordering::Release);
            return Ok(home);
        }
        Ok(home as usize - 1)
    }

    fn give_window(&self, place: &Queue) -> Result<(), Error> {
        let number =
            self.shared.windows.iter().position(|window| window.get().is_none()).ok_or(Error::NoRoom)?;
        drop(self.shared.windows[number].set(Window::new(self.shared.config.window)));
        place.window.store(number as u32, Ordering::Release);
        Ok(())
    }

    /// A queue for which a thread off the cores makes blocking calls. `work` gets each event, and may send answers.
    pub fn helper(
        &self,
        name: &str,
        work: impl FnMut(&Self, Event) + Send + 'static,
    ) -> Result<QueueId, Error> {
        let queue = self.queue(&QueueSpec::new(name, Kind::Helper), None)?;
        locked(&self.shared.helpers).push((queue, Box::new(work)));
        // A machine without such queues has no thread that looks for them again and again.
        if let Some(rings) = locked(&self.shared.to_helper).take() {
            start_helper(Arc::downgrade(&self.shared), rings);
        }
        Ok(queue)
    }

    /// Removes a queue; its events are dropped. Its object must be stopped. Places of queues are not used again.
    pub fn remove_queue(&self, queue: QueueId) -> Result<(), Error> {
        let _one = locked(&self.shared.control);
        let place = self.queue_place(queue)?;
        let object = place.object.load(Ordering::Acquire).checked_sub(1).map(ObjectId);
        if object.and_then(|object| self.state(object)) == Some(State::Running) {
            return Err(Error::WrongState);
        }
        place.route.store(0, Ordering::Release);
        place.object.store(0, Ordering::Release);
        // Whoever looked at the route before is through after this; then all that was sent is here.
        self.on_all(&mut |_| ())?;
        self.on_all(&mut |here| {
            here.local.look_to_the_end();
            let list = &here.local.lists[queue.index()];
            let count = list.events.free() as u64;
            here.shared().queues[queue.index()].dropped.fetch_add(count, Ordering::Relaxed);
        })?;
        if !self.shared.broken(Breakage::TeardownLeaks) {
            locked(&place.waiting).free();
        } else {
            let _forgotten = locked(&place.waiting).take();
        }
        place.waiting_count.store(0, Ordering::Relaxed);
        Ok(())
    }

    /// A group of atomic queues that are scheduled as one.
    pub fn atomic_group(&self) -> Result<AtomicGroupId, Error> {
        let claimed = |place: &AtomicU32| {
            place.compare_exchange(0, u32::MAX, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        };
        let number = self.shared.atomic_groups.iter().position(claimed).ok_or(Error::NoRoom)?;
        Ok(AtomicGroupId(number as u32))
    }

    /// Runs `work` on a core between two events, by its own thread where one dispatches.
    ///
    /// # Errors
    /// [`Error::WrongState`] where the caller is a core of this machine: it would wait for itself.
    pub fn on(&self, core: usize, work: &mut (dyn FnMut(&Here<'_>) + Send)) -> Result<(), Error> {
        if local::is_core_of(&self.shared) {
            return Err(Error::WrongState);
        }
        let place = self.shared.cores.get(core).ok_or(Error::NoSuchCore)?;
        // SAFETY: the job ends before this function does, so the borrow may pass for a static one.
        let work: *mut (dyn FnMut(&Here<'_>) + Send) = unsafe { std::mem::transmute(ptr::from_mut(work)) };
        let mut job = Job { work, done: AtomicBool::new(false) };
        loop {
            if let Some(owner) = Owner::of(place) {
                let _here = Entered::new(owner.local());
                // SAFETY: `work` is the caller's, borrowed for this call.
                unsafe { (*work)(&Here { local: owner.local() }) };
                return Ok(());
            }
            place.job.store(&raw mut job, Ordering::SeqCst);
            self.shared.wake(core);
            for turn in 0..200 {
                if job.done.load(Ordering::Acquire) {
                    return Ok(());
                }
                if turn < 20 {
                    std::thread::yield_now()
                } else {
                    std::thread::sleep(Duration::from_micros(20))
                }
            }
            // Nobody may dispatch any more: taken back, unless it was taken.
            if place.job.swap(ptr::null_mut(), Ordering::AcqRel).is_null() {
                while !job.done.load(Ordering::Acquire) {
                    std::thread::sleep(Duration::from_micros(20));
                }
                return Ok(());
            }
        }
    }

    fn on_all(&self, work: &mut (dyn FnMut(&Here<'_>) + Send)) -> Result<(), Error> {
        (0..self.shared.cores.len()).try_for_each(|core| self.on(core, work))
    }

    /// An event group.
    pub fn group(&self) -> Result<GroupId, Error> {
        let free = self.shared.forks.iter().position(|fork| !fork.exists.swap(true, Ordering::AcqRel));
        free.map(|number| GroupId(number as u32)).ok_or(Error::NoRoom)
    }

    /// Begins a cycle of a group: when `count` of its events were received, the notifications are sent. They are taken out of
    /// the list where that succeeds.
    pub fn apply(
        &self,
        group: GroupId,
        count: u32,
        notifications: &mut Vec<Notification>,
    ) -> Result<(), Error> {
        local::apply(&self.shared, group, count, notifications)
    }

    /// Ends a group's cycle: its notifications are the caller's, and none is sent. Events of the cycle that come later are
    /// reported, and count for no other cycle.
    ///
    /// # Errors
    /// [`Error::GroupIdle`] or [`Error::GroupStale`] where the cycle was over sooner: its notifications are sent.
    pub fn abort(&self, group: GroupId) -> Result<Vec<Notification>, Error> {
        local::abort(&self.shared, group)
    }

    /// A timeout.
    pub fn timeout(&self, spec: TimeoutSpec) -> Result<TimeoutId, Error> {
        let _one = locked(&self.shared.control);
        let kind = self.queue_place(spec.queue)?.route().kind();
        if matches!(kind, Kind::Local | Kind::Unscheduled) {
            return Err(Error::WrongKind);
        }
        let is_free = |timeout: &Timeout| !timeout.exists.load(Ordering::Acquire);
        let number = self.shared.timeouts.iter().position(is_free).ok_or(Error::NoRoom)?;
        self.shared.timeouts[number].create(spec);
        Ok(TimeoutId(number as u32))
    }

    /// Removes a timeout, which must not be set.
    pub fn remove_timeout(&self, timeout: TimeoutId) -> Result<(), Error> {
        self.shared.timeouts.get(timeout.index()).ok_or(Error::NoSuchThing)?.delete()
    }

    /// What a timeout counted.
    pub fn timeout_figures(&self, timeout: TimeoutId) -> TimeoutFigures {
        self.shared.timeouts.get(timeout.index()).map(Timeout::figures).unwrap_or_default()
    }

    /// What failures are given to that no object handled.
    pub fn set_handler(&self, handler: impl Fn(&mut Failure) -> Handled + Send + Sync + 'static) {
        if let Ok(mut place) = self.shared.handler.write() {
            *place = Some(Arc::new(handler));
        }
    }

    /// Calls this before each event that comes through a scheduled queue; false drops it. In the order of this call.
    pub fn on_enter(
        &self,
        enter: impl Fn(&Visit, &mut Event) -> bool + Send + Sync + 'static,
    ) -> Result<(), Error> {
        let place = self.shared.enter.iter().find(|place| place.get().is_none()).ok_or(Error::NoRoom)?;
        drop(place.set(Box::new(enter)));
        self.shared.is_visited.store(true, Ordering::Release);
        Ok(())
    }

    /// Calls this after each event, whether it was dropped or not.
    pub fn on_exit(&self, exit: impl Fn(&Visit) + Send + Sync + 'static) -> Result<(), Error> {
        let place = self.shared.exit.iter().find(|place| place.get().is_none()).ok_or(Error::NoRoom)?;
        drop(place.set(Box::new(exit)));
        self.shared.is_visited.store(true, Ordering::Release);
        Ok(())
    }

    /// The core that an atomic queue is at home on.
    pub fn home_of(&self, queue: QueueId) -> Result<usize, Error> {
        Ok(self.queue_place(queue)?.route().home())
    }

    /// Gives free events that cores keep for themselves back to all. Waits for the cores.
    pub fn flush(&self) -> Result<(), Error> {
        self.on_all(&mut |here| here.local.flush_caches())
    }

    /// Keeps something as long as the machine.
    pub fn keep(&self, thing: Box<dyn std::any::Any + Send>) {
        locked(&self.shared.kept).push(thing);
    }
}

/// Sends from outside: as a core does, through the outside's own rings.
fn deliver(shared: &Shared, outside: &[Sender<Parcel>], event: *mut Header, queue: QueueId) {
    let place = &shared.queues[queue.index()];
    let route = place.route();
    match route.kind() {
        _ if !route.is_live() => local::free(event),
        Kind::Local => local::free(event),
        Kind::Unscheduled => local::wait_in(place, event),
        kind => {
            if kind == Kind::Ordered {
                // SAFETY: the event is ours.
                unsafe { (*event).position.set(place.ticket.fetch_add(1, Ordering::Relaxed)) };
            }
            push(shared, outside, shared.core_of(place, route), event, queue);
        }
    }
}

fn push(shared: &Shared, outside: &[Sender<Parcel>], core: usize, event: *mut Header, queue: QueueId) {
    match outside[core].push(Parcel::event(event, queue)) {
        Ok(()) => shared.wake(core),
        Err(_) => drop(shared.lost.fetch_add(1, Ordering::Relaxed)),
    }
}

fn new_core(config: &Config, local: Local) -> Core {
    Core {
        owned: AtomicBool::new(false),
        local: std::cell::UnsafeCell::new(local),
        job: AtomicPtr::new(ptr::null_mut()),
        asleep: AtomicU32::new(0),
        blocks: AtomicBool::new(config.wait == Wait::Block),
        figures: (0..config.queues).map(|_| Figures::default()).collect(),
        rounds: AtomicU64::new(0),
        panics: AtomicU64::new(0),
        reports_lost: AtomicU64::new(0),
    }
}

fn new_shared(
    config: Config,
    clock: Clock,
    cores: Box<[Core]>,
    (outside, to_helper): (Vec<Sender<Parcel>>, Vec<Receiver<Parcel>>),
    published: Option<Published>,
) -> Shared {
    Shared {
        clock,
        queues: new_queues(config.queues),
        objects: new_objects(config.objects),
        masks: (0..GROUPS_OF_CORES).map(|_| AtomicU64::new(0)).collect(),
        atomic_groups: (0..ATOMIC_GROUPS).map(|_| AtomicU32::new(0)).collect(),
        forks: (0..config.groups).map(|_| Fork::new()).collect(),
        timeouts: (0..config.timeouts).map(|_| Timeout::new()).collect(),
        pools: (0..POOLS).map(|_| OnceLock::new()).collect(),
        windows: (0..config.ordered).map(|_| OnceLock::new()).collect(),
        cores,
        enter: std::array::from_fn(|_| OnceLock::new()),
        exit: std::array::from_fn(|_| OnceLock::new()),
        is_visited: AtomicBool::new(false),
        handler: RwLock::new(None),
        outside: Mutex::new(outside),
        control: Mutex::new(()),
        broken: AtomicU8::new(0),
        lost: AtomicU64::new(0),
        is_ending: AtomicBool::new(false),
        to_helper: Mutex::new(Some(to_helper)),
        helpers: Mutex::default(),
        kept: Mutex::default(),
        published,
        config,
    }
}

fn start_helper(shared: std::sync::Weak<Shared>, rings: Vec<Receiver<Parcel>>) {
    std::thread::spawn(move || helper::run(&shared, &rings));
}
