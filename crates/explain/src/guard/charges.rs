//! What was taken from cores, charged to what they ran then.

use std::collections::{BTreeMap, VecDeque};

use units::{InOrder, Nanos};

use super::takings::{Taking, What};

/// For how long what ran and what was taken is kept, ns: longer windows of responses are cut.
const KEPT: u64 = 2_000_000_000;

/// Activations of a core that are kept at most.
const MOST: usize = 1 << 17;

/// Excesses that are kept at most: the longest.
const MOST_EXCESSES: usize = 100;

/// A core that was held up, of which so much or more is in no trace: the host, or firmware.
const UNEXPLAINED: u64 = 2_000;

/// Something that ran on a core, on the trace's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activation {
    /// When its event was sent, where that is known.
    pub sent: Option<Nanos>,
    /// When it began.
    pub begin: Nanos,
    /// When it was done.
    pub end: Nanos,
    /// The object; none where the core was held up while nothing ran.
    pub object: Option<u32>,
    /// The queue.
    pub queue: u32,
}

impl Activation {
    fn run(&self) -> u64 {
        self.end.0.saturating_sub(self.begin.0)
    }
}

/// Whose time was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owner {
    /// An object's, which ran.
    Object(u32),
    /// The core's, which looked for something to run.
    Between,
    /// What ran then was overwritten before it was read.
    Unknown,
}

/// What a queue's events may take; none without a contract.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// How long one may run.
    pub budget: Option<Nanos>,
    /// From the send to the end.
    pub deadline: Option<Nanos>,
    /// What was computed from the send to the end.
    pub bound: Option<Nanos>,
}

/// One thing, as often as it took one object's time on one core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// How often.
    pub number: u64,
    /// How long, all together.
    pub time: Nanos,
    /// The longest.
    pub worst: Nanos,
}

/// An event that ran or waited longer than was promised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excess {
    /// On which core.
    pub core: usize,
    /// Which.
    pub activation: Activation,
    /// Whether it is its response that was too long, not its run.
    pub is_response: bool,
    /// How long it took.
    pub took: Nanos,
    /// How long it might have.
    pub allowed: Nanos,
    /// What was taken from the core meanwhile, the longest first.
    pub taken: Vec<(What, Nanos)>,
    /// What ran before it, of a response: objects and how long, the longest first.
    pub before: Vec<(u32, Nanos)>,
    /// Whether events of the trace or activations were lost meanwhile: more may have been taken.
    pub is_partial: bool,
}

/// The longest run of an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Longest {
    /// Its receives.
    pub number: u64,
    /// The longest.
    pub run: Nanos,
}

/// One core.
#[derive(Debug, Default)]
struct Core {
    ran: VecDeque<Activation>,
    taken: VecDeque<Taking>,
    waiting: Vec<Taking>,
    /// Times of which it is not known what ran.
    overwritten: Vec<(Nanos, Nanos)>,
    /// Times of which events are missing.
    missing: Vec<(Nanos, Nanos)>,
    /// Where the last activation that was seen ended.
    last: Nanos,
    /// Held up between receives, and not settled yet.
    held_up: Vec<Activation>,
    excesses: Vec<Activation>,
}

/// Charges what was taken.
#[derive(Debug, Default)]
pub struct Charges {
    cores: Vec<Core>,
    limits: Vec<Limits>,
    rows: BTreeMap<(usize, Owner, What), Row>,
    longest: BTreeMap<(usize, u32), Longest>,
    excesses: Vec<Excess>,
    more: u64,
}

impl Charges {
    /// On so many cores.
    pub fn of(cores: usize) -> Self {
        Self { cores: (0..cores).map(|_| Core::default()).collect(), ..Self::default() }
    }

    /// What the queues promise, by their numbers.
    pub fn promise(&mut self, limits: Vec<Limits>) {
        self.limits = limits;
    }

    /// How long an event of a queue may run; none without a contract.
    pub fn budget(&self, queue: u32) -> Option<Nanos> {
        self.limits.get(queue as usize)?.budget
    }

    /// Something ran. In the order of their ends.
    pub fn ran(&mut self, core: usize, activation: Activation) {
        let limits = self.limits.get(activation.queue as usize).copied().unwrap_or_default();
        let place = &mut self.cores[core];
        place.last = activation.end;
        match activation.object {
            Some(object) => {
                let longest = self.longest.entry((core, object)).or_default();
                longest.number += 1;
                longest.run = longest.run.max(Nanos(activation.run()));
                place.ran.push_back(activation);
                if exceeds(&activation, &limits).is_some() {
                    place.excesses.push(activation);
                }
            }
            None => place.held_up.push(activation),
        }
        if place.ran.len() > MOST {
            place.ran.pop_front();
        }
    }

    /// Activations were overwritten before `next` began.
    pub fn overwritten(&mut self, core: usize, next: Nanos) {
        let place = &mut self.cores[core];
        place.overwritten.push((place.last, next));
    }

    /// Something was taken.
    pub fn taken(&mut self, taking: Taking) {
        if let Some(core) = self.cores.get_mut(taking.core) {
            core.waiting.push(taking);
        }
    }

    /// Events of the trace are missing of a core.
    pub fn missing(&mut self, core: usize, from: Nanos, to: Nanos) {
        self.cores[core].missing.push((from, to));
    }

    /// All is known of a core up to a time: what ended before is charged.
    pub fn settle(&mut self, core: usize, until: Nanos) {
        let place = &mut self.cores[core];
        let (mut ready, waiting): (Vec<_>, Vec<_>) =
            std::mem::take(&mut place.waiting).into_iter().partition(|taking| taking.to <= until);
        place.waiting = waiting;
        ready.order_by_key(|taking| taking.from);
        for taking in ready {
            let owner = self.cores[core].owner(&taking);
            self.add(core, owner, &taking.what, taking.own);
            self.cores[core].taken.push_back(taking);
        }
        for held_up in known(&mut self.cores[core].held_up, until) {
            let known = self.cores[core].known_of(held_up.begin, held_up.end);
            let rest = held_up.run().saturating_sub(known);
            if rest >= UNEXPLAINED && !self.cores[core].is_missing(held_up.begin, held_up.end) {
                self.add(core, Owner::Between, &What::Unseen, Nanos(rest));
            }
        }
        for activation in known(&mut self.cores[core].excesses, until) {
            self.explain(core, activation);
        }
        self.cores[core].forget(until);
    }

    fn add(&mut self, core: usize, owner: Owner, what: &What, own: Nanos) {
        let row = self.rows.entry((core, owner, what.clone())).or_default();
        row.number += 1;
        row.time = Nanos(row.time.0.saturating_add(own.0));
        row.worst = row.worst.max(own);
    }

    fn explain(&mut self, core: usize, activation: Activation) {
        let limits = self.limits.get(activation.queue as usize).copied().unwrap_or_default();
        let Some((is_response, took, allowed)) = exceeds(&activation, &limits) else { return };
        let from = match (is_response, activation.sent) {
            (true, Some(sent)) => sent,
            _ => activation.begin,
        };
        let (place, to) = (&self.cores[core], activation.end);
        let mut taken: BTreeMap<What, u64> = BTreeMap::new();
        for taking in place.taken.iter().filter(|taking| taking.to > from && taking.from < to) {
            // What began before counts as far as it reaches into this.
            let inside = taking.to.min(to).0.saturating_sub(taking.from.max(from).0);
            *taken.entry(taking.what.clone()).or_default() += taking.own.0.min(inside);
        }
        let mut before: BTreeMap<u32, u64> = BTreeMap::new();
        for earlier in
            place.ran.iter().filter(|earlier| earlier.end > from && earlier.end <= activation.begin)
        {
            // What was taken while it ran counts there already.
            let since = earlier.begin.max(from);
            let inside = earlier.end.0.saturating_sub(since.0);
            let own = inside.saturating_sub(place.known_of(since, earlier.end));
            *before.entry(earlier.object.unwrap_or_default()).or_default() += own;
        }
        self.excesses.push(Excess {
            core,
            activation,
            is_response,
            took,
            allowed,
            taken: longest_first(taken),
            before: longest_first(before),
            is_partial: place.is_missing(from, to) || overlaps(&place.overwritten, from, to),
        });
        if self.excesses.len() > MOST_EXCESSES {
            self.excesses.order_by_key(|excess| std::cmp::Reverse(excess.took.0 - excess.allowed.0));
            self.excesses.truncate(MOST_EXCESSES);
            self.more += 1;
        }
    }

    /// What was taken, by core, whose time it was, and what took it.
    pub fn rows(&self) -> &BTreeMap<(usize, Owner, What), Row> {
        &self.rows
    }

    /// What ran, by core and object.
    pub fn longest(&self) -> &BTreeMap<(usize, u32), Longest> {
        &self.longest
    }

    /// The excesses, the longest first, and how many more there were.
    pub fn excesses(&mut self) -> (&[Excess], u64) {
        self.excesses.order_by_key(|excess| std::cmp::Reverse(excess.took.0 - excess.allowed.0));
        (&self.excesses, self.more)
    }
}

/// Takes those out that ended when all was known: of later ones something may still wait to be charged.
fn known(list: &mut Vec<Activation>, until: Nanos) -> Vec<Activation> {
    let (known, later) = std::mem::take(list).into_iter().partition(|activation| activation.end <= until);
    *list = later;
    known
}

/// Whether it is the response, how long it took, and what was allowed, where that was exceeded: the run if it is that.
fn exceeds(activation: &Activation, limits: &Limits) -> Option<(bool, Nanos, Nanos)> {
    let run = Nanos(activation.run());
    if let Some(budget) = limits.budget.filter(|budget| run > *budget) {
        return Some((false, run, budget));
    }
    let response = Nanos(activation.end.0.saturating_sub(activation.sent?.0));
    let limit = [limits.deadline, limits.bound].into_iter().flatten().min()?;
    (response > limit).then_some((true, response, limit))
}

fn longest_first<T: Ord>(map: BTreeMap<T, u64>) -> Vec<(T, Nanos)> {
    let mut all: Vec<(T, Nanos)> = map.into_iter().map(|(key, time)| (key, Nanos(time))).collect();
    all.order_by_key(|(_, time)| std::cmp::Reverse(time.0));
    all
}

fn overlaps(times: &[(Nanos, Nanos)], from: Nanos, to: Nanos) -> bool {
    times.iter().any(|(begin, end)| *begin < to && *end > from)
}

impl Core {
    /// What ran in the midst of it.
    fn owner(&self, taking: &Taking) -> Owner {
        let middle = Nanos(taking.from.0 + (taking.to.0 - taking.from.0) / 2);
        let next = self.ran.partition_point(|activation| activation.end < middle);
        match self.ran.get(next).filter(|activation| activation.begin <= middle) {
            Some(activation) => activation.object.map_or(Owner::Between, Owner::Object),
            None if overlaps(&self.overwritten, taking.from, Nanos(taking.to.0 + 1)) => Owner::Unknown,
            None => Owner::Between,
        }
    }

    fn is_missing(&self, from: Nanos, to: Nanos) -> bool {
        overlaps(&self.missing, from, to)
    }

    /// How much of a time is known to have been taken.
    fn known_of(&self, from: Nanos, to: Nanos) -> u64 {
        let inside =
            |taking: &Taking| taking.to.min(to).0.saturating_sub(taking.from.max(from).0).min(taking.own.0);
        self.taken.iter().map(inside).sum()
    }

    fn forget(&mut self, until: Nanos) {
        let from = Nanos(until.0.saturating_sub(KEPT));
        while self.ran.front().is_some_and(|activation| activation.end < from) {
            self.ran.pop_front();
        }
        while self.taken.front().is_some_and(|taking| taking.to < from) {
            self.taken.pop_front();
        }
        self.overwritten.retain(|(_, to)| *to >= from);
        self.missing.retain(|(_, to)| *to >= from);
    }
}
