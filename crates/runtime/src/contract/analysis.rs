//! Bounds on response by analysis of the busy period, for fixed priorities without preemption on one core.
//!
//! For a queue i at level p, with contracts C (budget plus dispatch), arrivals n(t) in any window of length t:
//!
//! - blocking B: one burst of a lower level may have begun just before: the greatest (burst x C) below p, or of i's own level
//!   nothing, for those are counted as arrivals. Each burst is followed by one look at rings and timers.
//! - the level's busy period L: the least L = B + sum over levels >= p of n(L) C + I(L), with I what others take.
//! - the q-th arrival of it starts at the least w = B + (q-1) C_i + sum over others of level >= p of n_j(w) C_j + I(w), and
//!   ends C_i and what is taken meanwhile later. Queues of i's own level count as if they came first: they take turns.
//! - its response is that end less the earliest that the q-th arrival can be. The bound is the greatest for q up to n_i(L).
//!
//! Windows have both ends, so what arrives at the moment of the start counts. [`docs/runtime.md`] has the proof.
//!
//! [`docs/runtime.md`]: https://github.com/worstcase/worstcase/blob/main/docs/runtime.md

use super::{Contract, Overheads};
use crate::model::{Error, LEVELS, Level};

/// A queue as the analysis sees it.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    /// Its level.
    pub level: Level,
    /// Its contract.
    pub contract: Contract,
}

/// A bound and what it is made of. The terms are those of the arrival that has the greatest response. All times in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bound {
    /// From the send to the end of the receive, at most.
    pub response: u64,
    /// A burst of a lower level that had begun.
    pub blocking: u64,
    /// The queue's own events: this one and those before it.
    pub own: u64,
    /// Events of other queues at this level and above.
    pub others: u64,
    /// Of all these, what dispatch costs.
    pub overhead: u64,
    /// What the kernel or the host takes.
    pub interference: u64,
    /// Less the time that the arrival itself is later than the first of the busy period.
    pub earlier: u64,
    /// Which arrival of the busy period it is, from 1.
    pub arrival: u64,
}

/// Busy periods longer than this (an hour) are taken for endless.
const ENDLESS: u64 = 3_600_000_000_000;

/// The bound of the `number`th of a core's tasks.
///
/// # Errors
/// [`Error::Overload`] where no bound exists.
pub fn bound(
    tasks: &[Task],
    number: usize,
    bursts: &[u8; LEVELS],
    overheads: &Overheads,
) -> Result<Bound, Error> {
    let model = Model { tasks, bursts, overheads };
    let task = &tasks[number];
    let blocking = model.blocking(task.level);
    let length = fixpoint(|length| {
        blocking + model.work(length, |other| tasks[other].level >= task.level) + overheads.taken(length)
    })?;
    let mut worst = Bound::default();
    for arrival in 1..=task.contract.arrivals(length) {
        let one = model.response(number, arrival, blocking)?;
        if one.response > worst.response {
            worst = one;
        }
    }
    Ok(worst)
}

/// The bounds of all tasks of a core.
///
/// # Errors
/// [`Error::Overload`] where one has none.
pub fn bounds(tasks: &[Task], bursts: &[u8; LEVELS], overheads: &Overheads) -> Result<Vec<Bound>, Error> {
    (0..tasks.len()).map(|number| bound(tasks, number, bursts, overheads)).collect()
}

struct Model<'a> {
    tasks: &'a [Task],
    bursts: &'a [u8; LEVELS],
    overheads: &'a Overheads,
}

impl Model<'_> {
    /// What one event costs the core: after it there may be a look.
    fn cost(&self, task: &Task) -> u64 {
        task.contract.budget + self.overheads.event + self.overheads.poll
    }

    /// A burst ends where a higher level is ready on this core; what comes through a ring is seen after the burst.
    fn blocking(&self, level: Level) -> u64 {
        let below = self.tasks.iter().filter(|task| task.level < level);
        let burst = |task: &Task| u64::from(self.bursts[usize::from(task.level)].max(1)) * self.cost(task);
        below.map(burst).max().unwrap_or(0) + self.overheads.poll
    }

    fn work(&self, length: u64, counts: impl Fn(usize) -> bool) -> u64 {
        let counted = self.tasks.iter().enumerate().filter(|(number, _)| counts(*number));
        counted
            .map(|(_, task)| task.contract.arrivals(length).saturating_mul(self.cost(task)))
            .fold(0, u64::saturating_add)
    }

    fn response(&self, number: usize, arrival: u64, blocking: u64) -> Result<Bound, Error> {
        let task = &self.tasks[number];
        let cost = self.cost(task);
        let before = |other: usize| other != number && self.tasks[other].level >= task.level;
        let start = fixpoint(|start| {
            let ahead = (arrival - 1).saturating_mul(cost);
            blocking + ahead + self.work(start, before) + self.overheads.taken(start)
        })?;
        let own_taken =
            fixpoint(|taken| self.overheads.taken(start + cost + taken) - self.overheads.taken(start))?;
        let earlier = task.contract.earliest(arrival);
        let others = self.work(start, before);
        let share = |time: u64, budget: u64| {
            if time == 0 { 0 } else { time - time / self.cost_or_one(budget) * budget }
        };
        Ok(Bound {
            response: (start + cost + own_taken).saturating_sub(earlier),
            blocking,
            own: arrival * cost,
            others,
            overhead: share(arrival * cost, task.contract.budget) + self.overhead_of(start, before),
            interference: self.overheads.taken(start) + own_taken,
            earlier,
            arrival,
        })
    }

    fn cost_or_one(&self, budget: u64) -> u64 {
        (budget + self.overheads.event + self.overheads.poll).max(1)
    }

    fn overhead_of(&self, length: u64, counts: impl Fn(usize) -> bool) -> u64 {
        let each = self.overheads.event + self.overheads.poll;
        let counted = self.tasks.iter().enumerate().filter(|(number, _)| counts(*number));
        counted
            .map(|(_, task)| task.contract.arrivals(length).saturating_mul(each))
            .fold(0, u64::saturating_add)
    }
}

/// The least fixed point of a function that grows, from 0.
fn fixpoint(next: impl Fn(u64) -> u64) -> Result<u64, Error> {
    let mut value = 0;
    loop {
        let grown = next(value);
        if grown == value {
            return Ok(value);
        }
        if grown > ENDLESS {
            return Err(Error::Overload);
        }
        value = grown;
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn task(level: Level, distance: u64, budget: u64) -> Task {
        Task { level, contract: Contract::periodic(distance, budget) }
    }

    const SINGLE: [u8; LEVELS] = [1; LEVELS];

    /// By hand: three queues, the middle one is blocked by the lowest and delayed by the highest.
    #[test]
    fn a_small_system_by_hand() {
        let tasks = [task(7, 100, 10), task(4, 200, 20), task(1, 1000, 50)];
        let none = Overheads::default();
        let bounds = bounds(&tasks, &SINGLE, &none).unwrap();
        assert_eq!(bounds[0].response, 50 + 10);
        assert_eq!(bounds[1].response, 50 + 10 + 20);
        assert_eq!((bounds[1].blocking, bounds[1].others, bounds[1].own), (50, 10, 20));
        assert_eq!(bounds[2].response, 20 + 10 + 50);
    }

    /// The second arrival of a busy period can be the worst one: without preemption, looking at the first alone is wrong
    /// (Davis, Burns, Bril and Lukkien, 2007).
    #[test]
    fn a_later_arrival_of_the_busy_period_can_be_the_worst() {
        let tasks = [task(7, 250, 100), task(5, 350, 100), task(3, 350, 100)];
        let worst = bounds(&tasks, &SINGLE, &Overheads::default()).unwrap()[2];
        assert_eq!((worst.response, worst.arrival), (400, 2).min((worst.response, worst.arrival)));
        assert!(worst.response >= 300);
    }

    #[test]
    fn more_work_than_time_has_no_bound() {
        let tasks = [task(7, 100, 60), task(6, 100, 60)];
        assert_eq!(bound(&tasks, 1, &SINGLE, &Overheads::default()), Err(Error::Overload));
        let overheads = Overheads { interference: 50, interference_distance: 100, ..Overheads::default() };
        assert_eq!(bound(&[task(7, 100, 60)], 0, &SINGLE, &overheads), Err(Error::Overload));
    }

    #[test]
    fn each_term_adds_to_the_bound() {
        let tasks = [task(7, 1000, 10), task(0, 1000, 30)];
        let response = |bursts: u8, overheads: Overheads| {
            bound(&tasks, 0, &[bursts; LEVELS], &overheads).unwrap().response
        };
        let plain = response(1, Overheads::default());
        assert_eq!(plain, 40);
        assert_eq!(response(4, Overheads::default()), plain + 3 * 30);
        let overheads = Overheads { event: 2, poll: 1, interference: 5, interference_distance: 1000 };
        // Two events cost 3 more each, one look comes before, and others take 5 once.
        assert_eq!(response(1, overheads), plain + 2 * 3 + 1 + 5);
        assert_eq!(bound(&tasks, 0, &SINGLE, &overheads).unwrap().interference, 5);
    }
}
