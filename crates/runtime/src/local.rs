//! What a core does with its own state: which core this thread is, events freed, put into queues and sent, failures.

use std::cell::{Cell, UnsafeCell};
use std::ptr;
use std::sync::atomic::Ordering;

use crate::breakage::Breakage;
use crate::contract::watch::Report;
use crate::event::pool::{Cache, Pool};
use crate::event::{Chain, Event, Header};
use crate::failure::{Failure, Handled, Refused, Scope};
use crate::group::{self, Fork, Notification};
use crate::heap::Heap;
use crate::model::{BATCH, Config, Error, GroupId, Kind, LEVELS, ObjectId, POOLS, PoolId, QueueId, THREADS};
use crate::queue::{Parcel, Queue, Route};
use crate::ring::{Receiver, Sender};
use crate::state::threads::Threads;
use crate::state::{Current, Handler, Here, List, Local, NOTHING, Ready, Shared};
use crate::sync::locked;

thread_local! {
    /// The core that this thread is, while it dispatches.
    static HERE: Cell<*const Local> = const { Cell::new(ptr::null()) };
}

/// Makes this thread a core until it is dropped.
pub struct Entered(*const Local);

impl Entered {
    pub fn new(local: &Local) -> Self {
        Self(HERE.replace(local))
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        HERE.set(self.0);
    }
}

/// A handler that may be there.
type Asked<'a> = &'a dyn Fn(&mut Failure) -> Option<Handled>;

/// Whether this thread is a core of the machine.
pub fn is_core_of(shared: &Shared) -> bool {
    let here = HERE.get();
    // SAFETY: set only while the core's state is borrowed further up this stack.
    !here.is_null() && ptr::eq(unsafe { (*here).shared.get() }, shared)
}

/// The core that this thread is now. For the C face, whose calls carry no `Here`.
pub fn with_here<R>(work: impl FnOnce(Option<Here<'_>>) -> R) -> R {
    let here = HERE.get();
    // SAFETY: as above.
    work(unsafe { here.as_ref() }.map(|local| Here { local }))
}

/// Returns an event to its pool, through the cache of the core that this thread is.
#[inline]
pub fn free(header: *mut Header) {
    // SAFETY: events keep their pool alive.
    let pool = unsafe { &*(*header).pool };
    let here = HERE.get();
    if here.is_null() {
        return pool.put(header);
    }
    // SAFETY: as in `is_core_of`.
    let local = unsafe { &*here };
    if local.loses_events() && pool.was_empty.fetch_add(1, Ordering::Relaxed) % 8 == 7 {
        return;
    }
    match local.cache_of(pool) {
        Some(cache) => pool.give(local.me, cache, header),
        None => pool.put(header),
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        free(self.0.as_ptr());
    }
}

impl Local {
    fn loses_events(&self) -> bool {
        cfg!(feature = "breakages") && self.shared().broken(Breakage::LostEvents)
    }

    #[inline]
    fn cache_of(&self, pool: &Pool) -> Option<&Cache> {
        let place = self.shared().pools.get(pool.number)?.get()?;
        if !ptr::eq::<Pool>(*place, pool) {
            return None;
        }
        self.caches.get(pool.number)
    }

    /// Puts an event at the end of its queue's list, and the queue among what is ready.
    #[inline(always)]
    pub fn enqueue(&self, event: *mut Header, queue: QueueId, level: usize) {
        let list = &self.lists[queue.index()];
        if self.shared().broken(Breakage::Overtaking) {
            list.events.push_front(event);
        } else {
            list.events.push(event);
        }
        if !list.is_linked.get() {
            self.link(queue.0, list, level);
        }
    }

    #[inline(always)]
    pub fn link(&self, number: u32, list: &List, level: usize) {
        if list.is_held.get() {
            return;
        }
        list.is_linked.set(true);
        list.level.set(level as u8);
        self.append(number, &list.next, level);
    }

    /// Puts a number behind what is ready at a level.
    #[inline(always)]
    pub fn append(&self, number: u32, next: &Cell<u32>, level: usize) {
        next.set(NOTHING);
        let ready = &self.ready[level & (LEVELS - 1)];
        if ready.head.get() == NOTHING {
            ready.head.set(number);
            self.bits.set(self.bits.get() | 1 << (level & (LEVELS - 1)));
        } else {
            self.next_of(ready.tail.get()).set(number);
        }
        ready.tail.set(number);
    }

    /// Takes the first number of a level away.
    #[inline(always)]
    pub fn unlink_first(&self, level: usize) {
        let ready = &self.ready[level];
        let next = self.next_of(ready.head.get()).get();
        ready.head.set(next);
        if next == NOTHING {
            self.bits.set(self.bits.get() & !(1 << level));
        }
    }

    #[inline(always)]
    fn next_of(&self, number: u32) -> &Cell<u32> {
        match self.lists.get(number as usize) {
            Some(list) => &list.next,
            None => self.threads.next_of(number as usize - self.lists.len()),
        }
    }

    /// Sends an event whose right to be sent was checked: here, or to another core.
    #[inline]
    pub fn deliver_to_queue(&self, event: *mut Header, queue: QueueId) {
        let place = &self.shared().queues[queue.index()];
        let route = place.route();
        match route.kind() {
            _ if !route.is_live() => free(event),
            Kind::Local => self.own.push(event),
            Kind::Unscheduled => wait_in(place, event),
            Kind::Ordered => self.to_ordered(event, queue, place, route),
            _ => self.to_core(event, queue, self.shared().core_of(place, route), route),
        }
    }

    fn to_ordered(&self, event: *mut Header, queue: QueueId, place: &Queue, route: Route) {
        // SAFETY: the event is ours.
        unsafe { (*event).position.set(place.ticket.fetch_add(1, Ordering::Relaxed)) };
        self.to_core(event, queue, self.shared().core_of(place, route), route);
    }

    #[inline]
    pub fn to_core(&self, event: *mut Header, queue: QueueId, core: usize, route: Route) {
        if core == self.me {
            return self.enqueue(event, queue, route.level());
        }
        self.push(core, Parcel::event(event, queue));
    }

    pub fn push(&self, core: usize, parcel: Parcel) {
        match self.to[core].push(parcel) {
            Ok(()) => self.shared().wake(core),
            Err(_) => drop(self.shared().lost.fetch_add(1, Ordering::Relaxed)),
        }
    }

    /// The ordered event that ran is done: what it sent goes to the core that puts it in order.
    pub fn complete(&self, queue: QueueId, position: u32, output: Chain) {
        if self.shared().broken(Breakage::SkipBlocks) && output.is_empty() {
            return;
        }
        let route = self.shared().queues[queue.index()].route();
        let disordered = self.shared().broken(Breakage::Disordered);
        if disordered {
            self.send_chain(&output);
        }
        let output = if disordered { Chain::default() } else { output };
        if route.home() == self.me {
            self.settle(queue, position, output);
        } else {
            self.push(route.home(), Parcel::done(queue, position, output));
        }
    }

    /// On the queue's home only.
    pub fn settle(&self, queue: QueueId, position: u32, output: Chain) {
        let place = &self.shared().queues[queue.index()];
        let number = place.window.load(Ordering::Relaxed) as usize;
        if let Some(window) = self.shared().windows.get(number).and_then(|window| window.get()) {
            window.settle(position, output, &place.released, |chain| self.send_chain(&chain));
        }
    }

    /// Sends a chain of events, each to the queue that its header names.
    pub fn send_chain(&self, chain: &Chain) {
        while let Some(event) = chain.pop() {
            // SAFETY: the chain's events are ours.
            let queue = QueueId(unsafe { (*event).queue.get() });
            self.deliver_to_queue(event, queue);
        }
    }

    /// `number` events of a tagged cycle were received; the last ones send the notifications.
    pub fn count_down(&self, tag: u64, number: u32) {
        let Some(group) = group::group_of(tag) else { return };
        let fork = &self.shared().forks[group.index()];
        let early = self.shared().broken(Breakage::NotifiedEarly);
        let number = if self.shared().broken(Breakage::BatchCountsOne) { 1 } else { number };
        if early && fork.decrement(tag as u32, number + 1) == Ok(true) {
            return self.notify(fork);
        }
        match fork.decrement(tag as u32, number) {
            Ok(true) => self.notify(fork),
            Ok(false) => {}
            Err(error) => drop(self.fail(error, Scope::Group, None)),
        }
    }

    /// All are taken before the first is sent: whoever receives it may begin a new cycle.
    pub fn notify(&self, fork: &Fork) {
        let chain = Chain::default();
        while let Some(Notification { event, queue, group }) = fork.take() {
            let cycle = group.and_then(|group| Some((group, self.shared().forks[group.index()].cycle()?)));
            event.header().group.set(cycle.map_or(0, |(group, cycle)| group::tag(group, cycle)));
            event.header().queue.set(queue.0);
            chain.push(event.into_raw());
        }
        self.send_chain(&chain);
    }

    /// Asks the handlers: the object's, then the machine's.
    #[cold]
    pub fn fail(&self, error: Error, scope: Scope, event: Option<Event>) -> Result<(), Refused> {
        let object = self.current.object.get().checked_sub(1).map(ObjectId);
        let mut failure = Failure { error, scope, object, event };
        let shared = self.shared();
        let by_object = |failure: &mut Failure| {
            let slot = shared.objects.get(object?.index())?;
            Some(slot.object.get()?.failed(failure))
        };
        let handler: Option<Handler> = shared.handler.read().ok().and_then(|handler| handler.clone());
        let by_machine = |failure: &mut Failure| handler.as_ref().map(|handler| handler(failure));
        let mut order: [Asked<'_>; 2] = [&by_object, &by_machine];
        if shared.broken(Breakage::HandlersSwapped) {
            order.reverse();
        }
        for handler in order {
            match handler(&mut failure) {
                Some(Handled::Return(Ok(()))) => return Ok(()),
                Some(Handled::Return(Err(error))) => return Err(Refused { error, event: failure.event }),
                Some(Handled::Pass) | None => {}
            }
        }
        Err(Refused { error, event: failure.event })
    }

    /// Gives free events that this core keeps back to all.
    pub fn flush_caches(&self) {
        for (cache, pool) in self.caches.iter().zip(&self.shared().pools) {
            if let Some(pool) = pool.get() {
                pool.flush(self.me, cache);
            }
        }
    }
}

/// Puts an event into an unscheduled queue.
pub fn wait_in(queue: &Queue, event: *mut Header) {
    locked(&queue.waiting).push(event);
    queue.waiting_count.fetch_add(1, Ordering::Relaxed);
}

/// Takes the oldest event of an unscheduled queue.
pub fn take_waiting(shared: &Shared, queue: &Queue) -> Option<Event> {
    if queue.waiting_count.load(Ordering::Relaxed) == 0 {
        return None;
    }
    let waiting = locked(&queue.waiting);
    if shared.broken(Breakage::LastInFirstOut) {
        let reversed = Chain::default();
        while let Some(event) = waiting.pop() {
            reversed.push_front(event);
        }
        waiting.prepend(&reversed);
    }
    let event = waiting.pop()?;
    queue.waiting_count.fetch_sub(1, Ordering::Relaxed);
    // SAFETY: it was in the queue, and is no more.
    Some(unsafe { Event::from_raw(event) })
}

/// Allocates from a pool.
pub fn allocate(
    shared: &Shared,
    cache: Option<(usize, &Cache)>,
    pool: PoolId,
    size: usize,
) -> Result<Event, Error> {
    let place = shared.pools.get(pool.index()).and_then(|pool| pool.get()).ok_or(Error::NoSuchThing)?;
    if size > place.size {
        return Err(Error::TooLarge);
    }
    if shared.broken(Breakage::ExhaustedForGood) && place.was_empty.load(Ordering::Relaxed) > 0 {
        return Err(Error::PoolEmpty);
    }
    let Some(event) = place.take(cache) else {
        place.was_empty.fetch_add(1, Ordering::Relaxed);
        return Err(Error::PoolEmpty);
    };
    event.header().length.set(size as u32);
    Ok(event)
}

/// Whether an event may be sent to this queue now: its contract is charged.
pub fn admit(shared: &Shared, queue: QueueId, header: &Header) -> Result<(), Error> {
    let place = shared.queues.get(queue.index()).ok_or(Error::NoSuchQueue)?;
    let route = place.route();
    if !route.is_live() {
        return Err(Error::NoSuchQueue);
    }
    if route.kind() == Kind::Unscheduled && header.group.get() != 0 {
        return Err(Error::WrongKind);
    }
    if route.kind() == Kind::Ordered {
        let under_way =
            place.ticket.load(Ordering::Relaxed).wrapping_sub(place.released.load(Ordering::Acquire));
        // Each core and the outside may be between this look and its own ticket: they have room left.
        if under_way as usize >= shared.config.window.next_power_of_two() - shared.cores.len() - 1 {
            return Err(Error::OrderFull);
        }
    }
    if route.has_contract() {
        let now = shared.clock.now();
        header.sent.set(now.max(1));
        if place.contract.get().is_some_and(|contract| !contract.charge(&place.due, now)) {
            place.refused.fetch_add(1, Ordering::Relaxed);
            return Err(Error::TooSoon);
        }
    }
    Ok(())
}

/// Begins a cycle of a group.
pub fn apply(
    shared: &Shared,
    group: GroupId,
    count: u32,
    notifications: &mut Vec<Notification>,
) -> Result<(), Error> {
    let fork = shared.forks.get(group.index()).ok_or(Error::NoSuchThing)?;
    if notifications.iter().any(|notification| notification.group == Some(group)) {
        return Err(Error::GroupBusy);
    }
    fork.apply(count, notifications)
}

/// Ends a cycle of a group without notifications.
pub fn abort(shared: &Shared, group: GroupId) -> Result<Vec<Notification>, Error> {
    let fork = shared.forks.get(group.index()).ok_or(Error::NoSuchThing)?;
    if shared.broken(Breakage::AbortIgnored) {
        return fork.cycle().map(|_| Vec::new()).ok_or(Error::GroupIdle);
    }
    fork.abort()
}

/// A core's state, all of it allocated.
pub fn new(
    me: usize,
    config: &Config,
    from: Vec<Receiver<Parcel>>,
    to: Vec<Sender<Parcel>>,
    reports: Sender<Report>,
) -> Local {
    Local {
        shared: Cell::new(ptr::null()),
        me,
        lists: (0..config.queues).map(|_| List::default()).collect(),
        ready: std::array::from_fn(|_| Ready { head: Cell::new(NOTHING), tail: Cell::new(NOTHING) }),
        bits: Cell::new(0),
        from: from.into(),
        to: to.into(),
        caches: (0..POOLS).map(|_| Cache::default()).collect(),
        heap: UnsafeCell::new(Heap::new(config.timeouts + THREADS)),
        threads: Threads::new(),
        own: Chain::default(),
        staged: Chain::default(),
        current: Current {
            object: Cell::new(0),
            queue: Cell::new(0),
            order: Cell::new(None),
            is_staging: Cell::new(false),
            group: Cell::new(0),
            count: Cell::new(0),
            starting: Cell::new(0),
            is_receiving: Cell::new(false),
        },
        batch: Cell::new(Vec::with_capacity(BATCH)),
        now: Cell::new(0),
        begun: Cell::new(0),
        accounted: Cell::new(0),
        rounds: Cell::new(0),
        reports,
        wait: Cell::new(config.wait),
    }
}
