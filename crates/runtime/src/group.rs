//! Event groups: events are counted, and notifications sent when the last one was received.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::event::Event;
use crate::model::{Error, GroupId, QueueId};
use crate::sync::locked;

/// What is sent when all events of a group were received.
#[derive(Debug)]
pub struct Notification {
    /// The event.
    pub event: Event,
    /// Where it goes.
    pub queue: QueueId,
    /// A group that counts it; not the one that sends it.
    pub group: Option<GroupId>,
}

/// Notifications of a group at most.
pub const NOTIFICATIONS: usize = 8;

/// A group's place.
pub struct Fork {
    /// The cycle in the upper half, events still to come in the lower.
    state: AtomicU64,
    pub exists: AtomicBool,
    /// Not empty only while events are counted. Never contended: who brings the count to 0, or aborts, takes all.
    notifications: Mutex<Vec<Notification>>,
}

/// A group and one of its cycles, as events carry it; 0 is none.
pub fn tag(group: GroupId, cycle: u32) -> u64 {
    u64::from(group.0 + 1) << 32 | u64::from(cycle)
}

/// The group of a tag.
pub fn group_of(tag: u64) -> Option<GroupId> {
    ((tag >> 32) as u32).checked_sub(1).map(GroupId)
}

impl Fork {
    pub fn new() -> Self {
        Self {
            state: AtomicU64::new(0),
            exists: AtomicBool::new(false),
            notifications: Mutex::new(Vec::with_capacity(NOTIFICATIONS)),
        }
    }

    fn load(&self) -> (u32, u32) {
        let state = self.state.load(Ordering::Acquire);
        ((state >> 32) as u32, state as u32)
    }

    /// The cycle that counts now.
    pub fn cycle(&self) -> Option<u32> {
        let (cycle, count) = self.load();
        (count > 0).then_some(cycle)
    }

    /// Begins a cycle of `count` events. The notifications come back where one is under way.
    pub fn apply(&self, count: u32, notifications: &mut Vec<Notification>) -> Result<(), Error> {
        let (cycle, left) = self.load();
        if left > 0 || count == 0 {
            return Err(Error::GroupBusy);
        }
        if notifications.len() > NOTIFICATIONS {
            return Err(Error::NoRoom);
        }
        let mut held = locked(&self.notifications);
        if !held.is_empty() {
            return Err(Error::GroupBusy);
        }
        held.append(notifications);
        drop(held);
        self.state.store(u64::from(cycle) << 32 | u64::from(count), Ordering::Release);
        Ok(())
    }

    /// `number` more events, for a cycle that counts.
    pub fn increment(&self, cycle: u32, number: u32) -> Result<(), Error> {
        self.change(cycle, |count| count.checked_add(number)).map(drop)
    }

    /// `number` events of a cycle were received: true where these were the last.
    pub fn decrement(&self, cycle: u32, number: u32) -> Result<bool, Error> {
        self.change(cycle, |count| count.checked_sub(number)).map(|count| count == 0)
    }

    /// Ends the cycle that counts. Its notifications are the caller's.
    pub fn abort(&self) -> Result<Vec<Notification>, Error> {
        let cycle = self.cycle().ok_or(Error::GroupIdle)?;
        self.change(cycle, |_| Some(0))?;
        Ok(std::mem::replace(&mut locked(&self.notifications), Vec::with_capacity(NOTIFICATIONS)))
    }

    /// The notifications of a cycle that just ended, one by one.
    pub fn take(&self) -> Option<Notification> {
        let mut notifications = locked(&self.notifications);
        (!notifications.is_empty()).then(|| notifications.remove(0))
    }

    /// Changes the count of a cycle; at 0 the cycle ends.
    fn change(&self, cycle: u32, change: impl Fn(u32) -> Option<u32>) -> Result<u32, Error> {
        let mut seen = self.state.load(Ordering::Acquire);
        loop {
            if (seen >> 32) as u32 != cycle || seen as u32 == 0 {
                return Err(Error::GroupStale);
            }
            let count = change(seen as u32).ok_or(Error::GroupStale)?;
            let cycle = if count == 0 { cycle.wrapping_add(1) } else { cycle };
            let next = u64::from(cycle) << 32 | u64::from(count);
            match self.state.compare_exchange_weak(seen, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Ok(count),
                Err(now) => seen = now,
            }
        }
    }

    pub fn free(&self) {
        locked(&self.notifications).clear();
    }
}
