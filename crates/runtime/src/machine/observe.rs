//! What is seen of a machine: reports, worst observed, bounds.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::contract::analysis::{self, Bound, Task};
use crate::contract::watch::{Report, Row, Table};
use crate::model::{Error, Kind, QueueId, QueueSpec};
use crate::queue::Queue;
use crate::state::{Figures, Machine};
use crate::sync::locked;

impl Machine {
    /// Faults since the last call, each core's in order; and how many found no room.
    pub fn reports(&self) -> (Vec<Report>, u64) {
        let rings = locked(&self.reports);
        let reports = rings.iter().flat_map(|ring| std::iter::from_fn(|| ring.pop())).collect();
        (reports, self.shared.cores.iter().map(|core| core.reports_lost.load(Ordering::Relaxed)).sum())
    }

    /// Panics of objects so far.
    pub fn panics(&self) -> u64 {
        self.shared.cores.iter().map(|core| core.panics.load(Ordering::Relaxed)).sum()
    }

    /// Events that no ring had room for: 0, or the machine is broken.
    pub fn lost(&self) -> u64 {
        self.shared.lost.load(Ordering::Relaxed)
    }

    /// Worst observed against bound, for all queues.
    pub fn table(&self) -> Table {
        let live = self.shared.queues.iter().enumerate().filter(|(_, queue)| queue.route().is_live());
        Table(live.map(|(number, queue)| self.row(number, queue)).collect())
    }

    /// The table's line of a queue.
    pub fn figures_of(&self, queue: QueueId) -> Result<Row, Error> {
        Ok(self.row(queue.index(), self.queue_place(queue)?))
    }

    fn row(&self, number: usize, queue: &Queue) -> Row {
        let figures = || self.shared.cores.iter().map(|core| &core.figures[number]);
        let sum = |of: fn(&Figures) -> &AtomicU64| figures().map(|one| of(one).load(Ordering::Relaxed)).sum();
        let most = |of: fn(&Figures) -> &AtomicU64| {
            figures().map(|one| of(one).load(Ordering::Relaxed)).max().unwrap_or_default()
        };
        let contract = queue.contract.get();
        Row {
            queue: queue.name.get().cloned().unwrap_or_default(),
            events: sum(|figures| &figures.events),
            worst_run: most(|figures| &figures.worst_run),
            budget: contract.map(|contract| contract.budget),
            worst_response: most(|figures| &figures.worst_response),
            bound: self.bound_of(QueueId(number as u32)),
            deadline: contract.map(|contract| contract.deadline),
            overruns: sum(|figures| &figures.overruns),
            late: sum(|figures| &figures.late),
            refused: queue.refused.load(Ordering::Relaxed),
            dropped: queue.dropped.load(Ordering::Relaxed),
        }
    }

    /// The bound on a queue's response; none without a contract, or where none exists. Queues without a contract on its core
    /// are not in it: give all a contract, or none above the lowest levels.
    pub fn bound_of(&self, queue: QueueId) -> Option<Bound> {
        let place = self.queue_place(queue).ok()?;
        let (tasks, numbers) = self.tasks_of(place.route().home());
        let index = numbers.iter().position(|number| *number == queue.index())?;
        analysis::bound(&tasks, index, &self.shared.config.bursts, &self.shared.config.overheads).ok()
    }

    /// Publishes a queue that was made, and what is promised of all: one more moves the bounds of the others.
    pub(super) fn publish_queue(&self, number: usize, name: &str) {
        let Some(published) = &self.shared.published else { return };
        published.queue(number, name);
        for (number, queue) in self.shared.queues.iter().enumerate() {
            if let Some(contract) = queue.contract.get().filter(|_| queue.route().is_live()) {
                let bound = self.bound_of(QueueId(number as u32)).map_or(0, |bound| bound.response);
                published.limits(number, [contract.budget, contract.deadline, bound]);
            }
        }
    }

    /// Contracts on a core. A parallel or ordered queue's events may all come to one core: it counts wholly on each.
    fn tasks_of(&self, core: usize) -> (Vec<Task>, Vec<usize>) {
        let on_core = |(number, queue): (usize, &Queue)| {
            let route = queue.route();
            let is_here = match route.kind() {
                Kind::Atomic => route.home() == core,
                Kind::Parallel | Kind::Ordered => self.shared.mask(route.cores()) & 1 << core != 0,
                _ => false,
            };
            let contract = *queue.contract.get().filter(|_| route.is_live() && is_here)?;
            Some((Task { level: route.level() as u8, contract }, number))
        };
        self.shared.queues.iter().enumerate().filter_map(on_core).unzip()
    }

    /// Whether all deadlines of a core hold with one queue more.
    pub(super) fn check_contract(&self, spec: &QueueSpec, home: usize) -> Result<(), Error> {
        let Some(contract) = spec.contract else { return Ok(()) };
        if matches!(spec.kind, Kind::Local | Kind::Unscheduled | Kind::Helper) {
            return Err(Error::WrongKind);
        }
        let mask = self.shared.mask(spec.cores.index());
        let is_here =
            |core: &usize| if spec.kind == Kind::Atomic { *core == home } else { mask & 1 << core != 0 };
        for core in (0..self.shared.cores.len()).filter(is_here) {
            let (mut tasks, _) = self.tasks_of(core);
            tasks.push(Task { level: spec.level, contract });
            let bounds = analysis::bounds(&tasks, &self.shared.config.bursts, &self.shared.config.overheads)?;
            let misses = |(task, bound): (&Task, &Bound)| bound.response > task.contract.deadline;
            if tasks.iter().zip(&bounds).any(misses) {
                return Err(Error::Deadline);
            }
        }
        Ok(())
    }
}
