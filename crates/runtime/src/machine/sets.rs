//! Sets of cores, and how queues move when these change.

use std::sync::atomic::{AtomicU64, Ordering};

use super::push;
use crate::breakage::Breakage;
use crate::event::Chain;
use crate::model::{CoresId, Error, Kind, QueueId};
use crate::queue::Route;
use crate::state::Machine;
use crate::sync::locked;

impl Machine {
    /// A set of cores.
    pub fn cores(&self, cores: &[usize]) -> Result<CoresId, Error> {
        let mask = self.mask_of(cores)?;
        let claimed =
            |place: &AtomicU64| place.compare_exchange(0, mask, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        let number = self.shared.masks.iter().position(claimed).ok_or(Error::NoRoom)?;
        Ok(CoresId(number as u32))
    }

    fn mask_of(&self, cores: &[usize]) -> Result<u64, Error> {
        if cores.is_empty() || cores.iter().any(|core| *core >= self.shared.cores.len()) {
            return Err(Error::NoSuchCore);
        }
        Ok(cores.iter().fold(0, |mask, core| mask | 1 << core))
    }

    /// Changes a set of cores. When this returns, no event of its queues runs on a core that is not in it, none was lost,
    /// and the order of each sender is kept.
    pub fn change_cores(&self, set: CoresId, cores: &[usize]) -> Result<(), Error> {
        let mask = self.mask_of(cores)?;
        let _one = locked(&self.shared.control);
        let place = self.shared.masks.get(set.index()).ok_or(Error::NoSuchThing)?;
        if place.load(Ordering::Acquire) == 0 {
            return Err(Error::NoSuchThing);
        }
        if self.shared.broken(Breakage::MaskIgnored) {
            return Ok(());
        }
        place.store(mask, Ordering::Release);
        for (number, queue) in self.shared.queues.iter().enumerate() {
            let (queue_id, route) = (QueueId(number as u32), queue.route());
            if !route.is_live() || route.cores() != set.index() {
                continue;
            }
            match route.kind() {
                Kind::Atomic => self.move_home(queue_id, route, cores)?,
                Kind::Parallel | Kind::Ordered => self.spread_anew(queue_id, mask)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Moves an atomic queue from a core that is not in the set any more: the new home holds what comes until it has what
    /// the old one had, so that each sender's order is kept.
    fn move_home(&self, queue: QueueId, route: Route, cores: &[usize]) -> Result<(), Error> {
        let old = route.home();
        if cores.contains(&old) {
            return Ok(());
        }
        let place = &self.shared.queues[queue.index()];
        // Queues of one atomic group move to the same core, for they come from the same one.
        let new = cores[old % cores.len()];
        let number = queue.index();
        self.on(new, &mut |here| here.local.lists[number].is_held.set(true))?;
        place.route.store(route.with_home(new).0, Ordering::Release);
        for atomic in &self.shared.atomic_groups {
            let _ =
                atomic.compare_exchange(old as u32 + 1, new as u32 + 1, Ordering::AcqRel, Ordering::Relaxed);
        }
        // Whoever sends after this sends to the new home; what was sent before is in the old one's rings.
        self.on_all(&mut |_| ())?;
        let mut moved = Chain::default();
        self.on(old, &mut |here| {
            here.local.look_to_the_end();
            moved = here.local.lists[number].events.take();
        })?;
        self.on(new, &mut |here| {
            // What came meanwhile may wait in rings: it stays behind what was moved.
            here.local.look_to_the_end();
            let list = &here.local.lists[number];
            list.events.prepend(&std::mem::take(&mut moved));
            list.is_held.set(false);
            if !list.events.is_empty() && !list.is_linked.get() {
                here.local.link(number as u32, list, route.level());
            }
        })
    }

    /// Events of a parallel or ordered queue leave cores that are not in the mask any more.
    fn spread_anew(&self, queue: QueueId, mask: u64) -> Result<(), Error> {
        self.on_all(&mut |_| ())?;
        for core in (0..self.shared.cores.len()).filter(|core| mask & 1 << core == 0) {
            let mut moved = Chain::default();
            self.on(core, &mut |here| {
                here.local.look_to_the_end();
                moved = here.local.lists[queue.index()].events.take();
            })?;
            let outside = locked(&self.shared.outside);
            let place = &self.shared.queues[queue.index()];
            while let Some(event) = moved.pop() {
                let core = self.shared.core_of(place, place.route());
                push(&self.shared, &outside, core, event, queue);
            }
        }
        Ok(())
    }
}
