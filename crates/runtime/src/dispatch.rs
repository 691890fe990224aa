//! The loop of a core: look at rings, timers and jobs; take the highest level that is ready; run a burst of it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::breakage::Breakage;
use crate::contract::watch::Fault;
use crate::event::{Chain, Event, Header};
use crate::failure::Scope;
use crate::group::{self, Fork};
use crate::local::{Entered, free};
use crate::model::{BATCH, Error, Kind, LEVELS, ObjectId, Order, QueueId, THREADS, Wait};
use crate::queue::Parcel;
use crate::state::{Core, Here, List, Local, NOTHING, Object, ObjectSlot, Shared, State, Visit};
use crate::wait;

/// Parcels that a core takes from one ring before it looks further: the bound of one look is this times the rings.
pub const PARCELS: usize = 32;

/// How long a core that blocks sleeps at most where no timeout is due, ns.
const SLEEP: u64 = 10_000_000;

/// When [`Dispatcher::dispatch`] ends: at whichever comes first. 0 is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Rounds: looks, each with one burst at most.
    pub rounds: u64,
    /// Events. Looked at between bursts: up to a burst less one more may run.
    pub events: u64,
    /// ns. Looked at between bursts: the last burst's run time comes on top.
    pub nanos: u64,
    /// Rounds without an event one after the other.
    pub idle_rounds: u64,
}

/// What a call of [`Dispatcher::dispatch`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Rounds.
    pub rounds: u64,
    /// Events received.
    pub events: u64,
    /// ns from its begin to its end.
    pub nanos: u64,
}

/// One core of a machine. The thread that calls [`Dispatcher::dispatch`] is this core meanwhile.
pub struct Dispatcher {
    pub(crate) shared: Arc<Shared>,
    pub(crate) core: usize,
}

/// The right to touch a core's own state.
pub struct Owner<'a>(&'a Core);

impl<'a> Owner<'a> {
    pub fn of(core: &'a Core) -> Option<Self> {
        let free = core.owned.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed);
        free.is_ok().then(|| Self(core))
    }

    pub fn local(&self) -> &Local {
        // SAFETY: `owned` was false, and is ours until this is dropped.
        unsafe { &*self.0.local.get() }
    }
}

impl Drop for Owner<'_> {
    fn drop(&mut self) {
        self.0.owned.store(false, Ordering::Release);
    }
}

impl Dispatcher {
    /// Its number.
    pub fn core(&self) -> usize {
        self.core
    }

    /// How this core waits from now on.
    pub fn set_wait(&mut self, wait: Wait) {
        let core = &self.shared.cores[self.core];
        if let Some(owner) = Owner::of(core) {
            owner.local().wait.set(wait);
            core.blocks.store(wait == Wait::Block, Ordering::SeqCst);
        }
    }

    /// Runs events until a limit is reached. A panic of an object is reported, and the others go on.
    pub fn dispatch(&mut self, limits: Limits) -> Outcome {
        let core = &self.shared.cores[self.core];
        let owner = loop {
            // A change from outside is being made in this core's place: it takes as long as the change.
            match Owner::of(core) {
                Some(owner) => break owner,
                None => std::thread::yield_now(),
            }
        };
        let local = owner.local();
        local.publish_thread();
        let _here = Entered::new(local);
        let mut run = Run::new(local, limits);
        while catch_unwind(AssertUnwindSafe(|| run.go())).is_err() {
            local.after_panic(core);
        }
        core.rounds.fetch_add(run.outcome.rounds, Ordering::Relaxed);
        run.outcome.nanos = local.read_clock() - run.start;
        run.outcome
    }

    /// Dispatches until the machine ends: what a core's thread does.
    pub fn dispatch_to_the_end(&mut self) {
        while !self.shared.is_ending.load(Ordering::Acquire) {
            self.dispatch(Limits { rounds: 1 << 20, idle_rounds: 1 << 12, ..Limits::default() });
        }
    }
}

struct Run<'a> {
    local: &'a Local,
    limits: Limits,
    outcome: Outcome,
    idle: u64,
    start: u64,
}

impl<'a> Run<'a> {
    fn new(local: &'a Local, mut limits: Limits) -> Self {
        if limits.rounds > 0 && local.shared().broken(Breakage::RoundTooMany) {
            limits.rounds += 1;
        }
        Self { local, limits, outcome: Outcome::default(), idle: 0, start: local.read_clock() }
    }

    fn go(&mut self) {
        while !self.is_over() {
            self.outcome.rounds += 1;
            self.local.look();
            let events = self.local.round();
            self.outcome.events += u64::from(events);
            if events > 0 {
                self.idle = 0;
            } else if self.local.bits.get() == 0 {
                self.idle += 1;
                self.local.account();
                self.local.rest();
            }
        }
    }

    fn is_over(&self) -> bool {
        let reached = |limit: u64, value: u64| limit > 0 && value >= limit;
        let Limits { rounds, events, nanos, idle_rounds } = self.limits;
        reached(rounds, self.outcome.rounds)
            || reached(events, self.outcome.events)
            || reached(idle_rounds, self.idle)
            || (nanos > 0 && self.local.read_clock() - self.start >= nanos)
    }
}

impl Local {
    /// What came from elsewhere: events of other cores, due times, jobs.
    #[inline]
    fn look(&self) {
        for ring in &self.from {
            for _ in 0..PARCELS {
                match ring.pop() {
                    Some(parcel) => self.open(parcel),
                    None => break,
                }
            }
        }
        self.expire();
        let core = &self.shared().cores[self.me];
        if !core.job.load(Ordering::Relaxed).is_null() {
            self.do_job(core);
        }
    }

    /// Everything that is in the rings now.
    pub fn look_to_the_end(&self) {
        for ring in &self.from {
            while let Some(parcel) = ring.pop() {
                self.open(parcel);
            }
        }
    }

    fn open(&self, parcel: Parcel) {
        if parcel.what & Parcel::EVENT == 0 {
            let (queue, position) = (QueueId((parcel.what >> 32) as u32), parcel.what as u32);
            // SAFETY: the chain came through the ring, and is ours.
            return self.settle(queue, position, unsafe { Chain::from_raw(parcel.event) });
        }
        fetch(parcel.event);
        let queue = QueueId(parcel.what as u32);
        let route = self.shared().queues[queue.index()].route();
        self.enqueue(parcel.event, queue, route.level());
    }

    #[cold]
    fn do_job(&self, core: &Core) {
        let job = core.job.swap(ptr::null_mut(), Ordering::Acquire);
        // SAFETY: who laid the job there waits until `done` is set.
        let Some(job) = (unsafe { job.as_ref() }) else { return };
        // SAFETY: the work is borrowed by the job's owner alone, who waits.
        let work = unsafe { &mut *job.work };
        work(&Here { local: self });
        self.accounted.set(0);
        job.done.store(true, Ordering::Release);
    }

    /// The level to be served now.
    #[inline(always)]
    fn level(&self, bits: u8) -> usize {
        if self.shared().broken(Breakage::PriorityReversed) {
            return bits.trailing_zeros() as usize;
        }
        if self.shared().config.order == Order::Weighted && !self.shared().broken(Breakage::Starving) {
            let round = self.rounds.get();
            self.rounds.set(round.wrapping_add(1));
            let favoured = (round / 8) as usize % LEVELS;
            if round % 8 == 7 && bits & 1 << favoured != 0 {
                return favoured;
            }
        }
        7 - bits.leading_zeros() as usize
    }

    /// One burst of the highest level that is ready; how many events ran.
    #[inline]
    fn round(&self) -> u32 {
        let bits = self.bits.get();
        if bits == 0 {
            return 0;
        }
        let level = self.level(bits);
        let number = self.ready[level].head.get();
        match self.lists.get(number as usize) {
            Some(_) => self.burst(QueueId(number), level),
            None => {
                self.unlink_first(level);
                self.current.object.set(0);
                self.threads.run(self, number as usize - self.lists.len());
                self.accounted.set(0);
                1
            }
        }
    }

    #[inline]
    fn burst(&self, queue: QueueId, level: usize) -> u32 {
        let shared = self.shared();
        let place = &shared.queues[queue.index()];
        let object = place.object.load(Ordering::Acquire);
        let slot = shared.objects.get((object as usize).wrapping_sub(1));
        let running = slot.filter(|slot| slot.state.load(Ordering::Acquire) == State::Running as u8);
        let Some(receiver) = running.and_then(|slot| slot.object.get()) else {
            return self.drop_all(queue, level);
        };
        self.current.object.set(object);
        self.current.queue.set(queue.0);
        let list = &self.lists[queue.index()];
        if shared.config.watch {
            self.account();
            self.begun.set(self.read_clock());
        }
        let batch = receiver.batch();
        if batch > 0 {
            return self.run_batch(queue, level, receiver.as_ref(), batch);
        }
        let is_bare = !shared.is_visited.load(Ordering::Relaxed);
        let limit = u32::from(shared.config.bursts[level].max(1));
        let above = !((2_u32 << level) - 1) as u8;
        let mut count = 0;
        while let Some(header) = list.events.pop() {
            count += 1;
            self.run_one(header, queue, receiver.as_ref(), is_bare);
            if count == limit || self.bits.get() & above != 0 {
                break;
            }
        }
        self.end_burst(queue, list, level);
        count
    }

    /// The queue leaves its place, and takes the last one where it still has events.
    #[inline(always)]
    fn end_burst(&self, queue: QueueId, list: &List, level: usize) {
        let ready = &self.ready[level];
        if list.events.is_empty() || list.is_held.get() {
            list.is_linked.set(false);
            self.unlink_first(level);
        } else if ready.tail.get() != queue.0 {
            self.unlink_first(level);
            self.append(queue.0, &list.next, level);
        }
    }

    #[inline(always)]
    fn run_one(&self, header: *mut Header, queue: QueueId, receiver: &dyn Object, is_bare: bool) {
        // SAFETY: it was in this queue's list, and is no more.
        let mut event = unsafe { Event::from_raw(header) };
        let fields = event.header();
        // Where it is sent on to a queue without a contract, nobody asks when.
        let (group, position, sent) = (fields.group.get(), fields.position.get(), fields.sent.take());
        let shared = self.shared();
        let word = if shared.config.watch { event.word(0) } else { 0 };
        let is_ordered = shared.queues[queue.index()].route().kind() == Kind::Ordered;
        if is_ordered {
            self.current.order.set(Some((queue, position)));
            self.current.is_staging.set(true);
        }
        if group != 0 {
            self.enter_group(&event, group, 1, queue);
        }
        let here = Here { local: self };
        self.publish_begin(queue);
        self.current.is_receiving.set(true);
        if is_bare {
            receiver.receive(&here, event, queue);
        } else if self.visit(queue, &mut event) {
            receiver.receive(&here, event, queue);
            self.leave(queue);
        } else {
            drop(event);
            if !shared.broken(Breakage::ExitLeftOut) {
                self.leave(queue);
            }
        }
        self.finish();
        if shared.config.watch {
            self.watch(queue, sent, word);
        }
    }

    /// The end of a receive: local queues, then order and group.
    #[inline(always)]
    fn finish(&self) {
        self.current.is_receiving.set(false);
        if !self.own.is_empty() {
            self.run_own();
        }
        if let Some((queue, position)) = self.current.order.take() {
            self.current.is_staging.set(false);
            self.complete(queue, position, self.staged.take());
        }
        let group = self.current.group.take();
        if group != 0 {
            self.count_down(group, self.current.count.get());
        }
    }

    /// Events of local queues: on this core, after the receive that sent them, with its context.
    #[cold]
    fn run_own(&self) {
        let outer = (self.current.object.get(), self.current.queue.get());
        if self.shared().broken(Breakage::LocalLate) {
            let late = self.own.take();
            while let Some(event) = late.pop() {
                // SAFETY: the chain's events are ours.
                self.enqueue(event, QueueId(unsafe { (*event).queue.get() }), 0);
            }
        }
        while let Some(header) = self.own.pop() {
            // SAFETY: as above.
            let event = unsafe { Event::from_raw(header) };
            let queue = QueueId(event.header().queue.get());
            let place = &self.shared().queues[queue.index()];
            let object = place.object.load(Ordering::Acquire);
            let slot: Option<&ObjectSlot> = self.shared().objects.get((object as usize).wrapping_sub(1));
            let running = slot.filter(|slot| slot.state() == State::Running);
            match running.and_then(|slot| slot.object.get()) {
                Some(receiver) => {
                    self.current.object.set(object);
                    self.current.queue.set(queue.0);
                    receiver.receive(&Here { local: self }, event, queue);
                    self.figures(queue).events.fetch_add(1, Ordering::Relaxed);
                }
                None => drop(place.dropped.fetch_add(1, Ordering::Relaxed)),
            }
        }
        self.current.object.set(outer.0);
        self.current.queue.set(outer.1);
    }

    /// Several events of one queue and one group.
    fn run_batch(&self, queue: QueueId, level: usize, receiver: &dyn Object, batch: usize) -> u32 {
        let list = &self.lists[queue.index()];
        let mut events = self.batch.take();
        let group = list.events.first().map_or(0, |header| header.group.get());
        // An ordered queue's events have a place each: one at a time.
        let is_ordered = self.shared().queues[queue.index()].route().kind() == Kind::Ordered;
        let limit = if is_ordered { 1 } else { batch.min(BATCH) };
        while events.len() < limit && list.events.first().is_some_and(|header| header.group.get() == group) {
            // SAFETY: it was in this queue's list, and is no more.
            events.extend(list.events.pop().map(|header| unsafe { Event::from_raw(header) }));
        }
        let count = events.len() as u32;
        let first = events
            .first()
            .map(|event| (event.header().sent.get(), event.word(0), event.header().position.get()));
        if let Some(event) = events.first().filter(|_| group != 0) {
            self.enter_group(event, group, count, queue);
        }
        if let (true, Some((_, _, position))) = (is_ordered, first) {
            self.current.order.set(Some((queue, position)));
            self.current.is_staging.set(true);
        }
        self.publish_begin(queue);
        self.current.is_receiving.set(true);
        receiver.receive_many(&Here { local: self }, &mut events, queue);
        events.clear();
        self.batch.set(events);
        self.finish();
        if let (true, Some((sent, word, _))) = (self.shared().config.watch, first) {
            self.watch(queue, sent, word);
        }
        self.end_burst(queue, list, level);
        count
    }

    /// An event of a cycle that is over is reported before it is received, and counts for nobody.
    #[cold]
    fn enter_group(&self, event: &Event, tag: u64, count: u32, queue: QueueId) {
        let fork = group::group_of(tag).map(|group| &self.shared().forks[group.index()]);
        event.header().group.set(0);
        if fork.and_then(Fork::cycle) == Some(tag as u32) || self.shared().broken(Breakage::AbortIgnored) {
            self.current.group.set(tag);
            self.current.count.set(count);
        } else {
            self.report(Fault::Stale, queue, event.word(0), 0, 0);
            drop(self.fail(Error::GroupStale, Scope::Dispatch, None));
        }
    }

    #[cold]
    fn visit(&self, queue: QueueId, event: &mut Event) -> bool {
        let visit = Visit { queue, object: ObjectId(self.current.object.get() - 1), core: self.me };
        self.shared().enter.iter().filter_map(|place| place.get()).all(|enter| enter(&visit, event))
    }

    #[cold]
    fn leave(&self, queue: QueueId) {
        let visit = Visit { queue, object: ObjectId(self.current.object.get() - 1), core: self.me };
        self.shared().exit.iter().filter_map(|place| place.get()).for_each(|exit| exit(&visit));
    }

    /// The queue's object does not run: its events are dropped and counted.
    #[cold]
    fn drop_all(&self, queue: QueueId, level: usize) -> u32 {
        let list = &self.lists[queue.index()];
        let place = &self.shared().queues[queue.index()];
        let is_ordered = place.route().kind() == Kind::Ordered;
        while let Some(header) = list.events.pop() {
            place.dropped.fetch_add(1, Ordering::Relaxed);
            // SAFETY: it was in the list, and is ours.
            let position = unsafe { (*header).position.get() };
            free(header);
            if is_ordered {
                self.complete(queue, position, Chain::default());
            }
        }
        list.is_linked.set(false);
        self.unlink_first(level);
        0
    }

    /// The receive that panicked is over: its event was dropped by the unwinding, what it sent under an order is sent.
    #[cold]
    fn after_panic(&self, core: &Core) {
        core.panics.fetch_add(1, Ordering::Relaxed);
        let end = self.read_clock();
        let queue = QueueId(self.current.queue.get());
        self.publish_end((0, self.begun.get(), end), queue);
        self.begun.set(end);
        if !self.shared().broken(Breakage::PanicHidden) {
            self.report(Fault::Panic, queue, 0, 0, 0);
            drop(self.fail(Error::Panic, Scope::Dispatch, None));
        }
        if self.batch.take().capacity() < BATCH {
            self.batch.set(Vec::with_capacity(BATCH));
        }
        // A panic in a local queue's receive comes here too, and the rest of the local queues is run by `finish`.
        if catch_unwind(AssertUnwindSafe(|| self.finish())).is_err() {
            return self.after_panic(core);
        }
        let list = &self.lists[queue.index()];
        let level = usize::from(list.level.get());
        if list.is_linked.get() && self.ready[level].head.get() == queue.0 {
            self.end_burst(queue, list, level);
        }
    }

    /// Nothing is ready.
    #[inline]
    fn rest(&self) {
        match self.wait.get() {
            Wait::Spin => std::hint::spin_loop(),
            Wait::Pause => self.pause(),
            Wait::Block => self.block(),
        }
    }

    #[cold]
    fn pause(&self) {
        // Until the next due time, and never long: nobody writes to memory that this watches.
        let next = self.heap().next().unwrap_or(u64::MAX).min(self.read_clock() + 1_000);
        match self.shared().clock.counter_at(next) {
            Some(ticks) => wait::pause(ticks),
            None => std::hint::spin_loop(),
        }
    }

    #[cold]
    fn block(&self) {
        let core = &self.shared().cores[self.me];
        core.asleep.store(1, Ordering::SeqCst);
        std::sync::atomic::fence(Ordering::SeqCst);
        let is_idle =
            self.from.iter().all(|ring| ring.is_empty()) && core.job.load(Ordering::SeqCst).is_null();
        let now = self.read_clock();
        let due = self.heap().next().unwrap_or(u64::MAX).saturating_sub(now);
        if is_idle && due > 0 && !self.shared().is_ending.load(Ordering::SeqCst) {
            wait::sleep(&core.asleep, due.min(SLEEP));
            // It was not held up: it had nothing to do.
            self.accounted.set(0);
        }
        core.asleep.store(0, Ordering::Relaxed);
    }
}

/// Asks for the header's line and the first of the bytes, which the sender's core has: several come at once.
#[inline(always)]
fn fetch(event: *mut Header) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch reads nothing, whatever the address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_ET0>(event.cast());
        _mm_prefetch::<_MM_HINT_ET0>(event.cast::<i8>().wrapping_add(size_of::<Header>()));
    }
    let _ = event;
}

const _: () = assert!(NOTHING as usize > THREADS);
