//! What an object may do while it runs on a core.

use crate::breakage::Breakage;
use crate::event::Event;
use crate::failure::{Refused, Scope};
use crate::group::{self, Notification};
use crate::local::{self, admit, allocate, free, take_waiting};
use crate::model::{Error, GroupId, Kind, PoolId, QueueId};
use crate::state::Here;
use crate::sync::locked;

impl<'a> Here<'a> {
    /// Allocates an event of `size` bytes. It holds what the last one left.
    pub fn allocate(self, pool: PoolId, size: usize) -> Result<Event, Error> {
        let cache = self.local.caches.get(pool.index()).map(|cache| (self.local.me, cache));
        allocate(self.shared(), cache, pool, size).map_err(|error| {
            let handled = self.local.fail(error, Scope::Allocate, None);
            handled.map_or_else(|refused| refused.error, |()| error)
        })
    }

    /// Sends an event. It was accepted, not received: events for objects that do not run are dropped.
    ///
    /// # Errors
    /// [`Error::TooSoon`] where the queue's contract does not allow another one yet; the event comes back with each error.
    #[inline]
    pub fn send(self, event: Event, queue: QueueId) -> Result<(), Refused> {
        let local = self.local;
        let Some(place) = local.shared().queues.get(queue.index()) else {
            return local.fail(Error::NoSuchQueue, Scope::Send, Some(event));
        };
        let route = place.route();
        let is_plain =
            route.is_plain() && !local.current.is_staging.get() && local.current.starting.get() == 0;
        if is_plain && !local.shared().broken(Breakage::AtomicAnywhere) {
            local.to_core(event.into_raw(), queue, route.home(), route);
            return Ok(());
        }
        self.send_checked(event, queue)
    }

    fn send_checked(self, event: Event, queue: QueueId) -> Result<(), Refused> {
        let local = self.local;
        if let Err(error) = admit(local.shared(), queue, event.header()) {
            return local.fail(error, Scope::Send, Some(event));
        }
        event.header().queue.set(queue.0);
        let is_scheduled =
            !matches!(local.shared().queues[queue.index()].route().kind(), Kind::Local | Kind::Unscheduled);
        let starting = local.current.starting.get();
        if starting != 0 && is_scheduled && !local.shared().broken(Breakage::StartUnbuffered) {
            locked(&local.shared().objects[starting as usize - 1].held_back).push(event.into_raw());
        } else if local.current.is_staging.get() && is_scheduled {
            local.staged.push(event.into_raw());
        } else {
            local.deliver_to_queue(event.into_raw(), queue);
        }
        Ok(())
    }

    /// Sends an event of a group's cycle that counts: it is counted when it was received.
    pub fn send_group(self, event: Event, queue: QueueId, group: GroupId) -> Result<(), Refused> {
        let tag = self.tag_of(group);
        match tag {
            Ok(tag) => {
                event.header().group.set(tag);
                self.send(event, queue).inspect_err(untag)
            }
            Err(error) => self.local.fail(error, Scope::Group, Some(event)),
        }
    }

    fn tag_of(self, group: GroupId) -> Result<u64, Error> {
        let fork = self.shared().forks.get(group.index()).ok_or(Error::NoSuchThing)?;
        Ok(group::tag(group, fork.cycle().ok_or(Error::GroupIdle)?))
    }

    /// Sends several, in order; how many were sent. The rest stays with the caller.
    pub fn send_many(self, events: &mut Vec<Event>, queue: QueueId) -> usize {
        let count = events.len();
        events.reverse();
        while let Some(event) = events.pop() {
            if let Err(refused) = self.send(event, queue) {
                events.extend(refused.event);
                break;
            }
        }
        events.reverse();
        count - events.len()
    }

    /// The oldest event of an unscheduled queue.
    pub fn take(self, queue: QueueId) -> Result<Option<Event>, Error> {
        let place = self.shared().queues.get(queue.index()).ok_or(Error::NoSuchQueue)?;
        match place.route() {
            route if !route.is_live() => Err(Error::NoSuchQueue),
            route if route.kind() == Kind::Unscheduled => Ok(take_waiting(self.shared(), place)),
            _ => Err(Error::WrongKind),
        }
    }

    /// A hint that what follows need not be alone. The queue stays on its core: nothing changes but that the order of an
    /// ordered event ends, see [`Here::end_order`].
    pub fn end_atomic(self) {
        if self.shared().broken(Breakage::EndDrops) {
            let list = &self.local.lists[self.local.current.queue.get() as usize];
            if let Some(event) = list.events.pop() {
                free(event);
            }
        }
    }

    /// What is sent from now on needs no order. It cannot be taken up again.
    pub fn end_order(self) {
        self.local.current.is_staging.set(false);
        if let Some((queue, position)) = self.local.current.order.take() {
            self.local.complete(queue, position, self.local.staged.take());
        }
    }

    /// Counts the event that is received as one of the group's, from now on.
    pub fn assign(self, group: GroupId) -> Result<(), Error> {
        if self.local.current.group.get() != 0 {
            return Err(Error::GroupBusy);
        }
        self.local.current.group.set(self.tag_of(group)?);
        self.local.current.count.set(1);
        Ok(())
    }

    /// The group whose event is received.
    pub fn group(self) -> Option<GroupId> {
        group::group_of(self.local.current.group.get())
    }

    /// The group counts `number` events more. Only while one of its events is received.
    pub fn increment(self, number: u32) -> Result<(), Error> {
        let tag = self.local.current.group.get();
        let group = group::group_of(tag).ok_or(Error::GroupIdle)?;
        self.shared().forks[group.index()].increment(tag as u32, number)
    }

    /// Counts the event that is received now rather than at its end.
    pub fn end_group(self) {
        let tag = self.local.current.group.take();
        if tag != 0 {
            self.local.count_down(tag, self.local.current.count.get());
        }
    }

    /// Begins a cycle of a group. See [`crate::Machine::apply`].
    pub fn apply(
        self,
        group: GroupId,
        count: u32,
        notifications: &mut Vec<Notification>,
    ) -> Result<(), Error> {
        local::apply(self.shared(), group, count, notifications)
    }

    /// Ends a group's cycle without notifications. See [`crate::Machine::abort`].
    pub fn abort(self, group: GroupId) -> Result<Vec<Notification>, Error> {
        local::abort(self.shared(), group)
    }

    /// Reports an error of the application: the same handlers are asked.
    pub fn fail(self, code: u32) -> Result<(), Error> {
        self.local.fail(Error::Application(code), Scope::Application, None).map_err(|refused| refused.error)
    }

    /// This core's number.
    pub fn core(self) -> usize {
        self.local.me
    }

    /// The queue whose event is received.
    pub fn queue(self) -> QueueId {
        QueueId(self.local.current.queue.get())
    }

    /// The machine's time, ns since it was made, read now.
    pub fn now(self) -> u64 {
        self.local.read_clock()
    }

    /// The ordered queue whose order binds what is sent now.
    pub fn order(self) -> Option<QueueId> {
        self.local.current.order.get().map(|(queue, _)| queue)
    }
}

fn untag(refused: &Refused) {
    if let Some(event) = &refused.event {
        event.header().group.set(0);
    }
}
