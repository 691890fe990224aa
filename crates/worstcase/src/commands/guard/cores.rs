//! The cores that are guarded: where they publish what they run, laid over the trace's clock.

use std::collections::BTreeSet;

use explain::guard::{Activation, Charges, Limits};
use machine::tasks::{self, Task};
use runtime::published::{Moment, Ran, Reader};
use sysroot::SysRoot;
use units::{CpuList, Nanos};

use super::nothing_published;
use crate::commands::no_such_thread;
use failure::{Error, Result};

/// What the runtime calls its memory.
const MEMORY: &str = "worstcase";

/// A core that is guarded.
#[derive(Debug)]
pub struct Core {
    /// Its number in the program.
    pub number: usize,
    /// Its thread.
    pub task: Task,
    /// What it runs now, on the trace's clock: object, queue, since when.
    pub running: Option<(u32, u32, Nanos)>,
    /// Up to when all that it ran is known.
    known: Nanos,
    /// Activations that were overwritten before they were read.
    pub overwritten: u64,
    /// When it was seen to have ended, on `CLOCK_MONOTONIC`.
    pub ended: Option<Nanos>,
}

/// All of them.
#[derive(Debug)]
pub struct Cores {
    cores: Vec<Core>,
    published: Option<Reader>,
    /// Both clocks at the last look.
    last: Option<Moment>,
    /// The greatest doubt of a comparison of the clocks, ns.
    pub doubt: u64,
    /// Names of objects and queues, by number.
    objects: Vec<String>,
    queues: Vec<String>,
}

impl Cores {
    /// Those of a program that publishes what they run.
    pub fn of_process(root: &SysRoot, pid: i32) -> Result<Self> {
        let task = tasks::task(root, pid, pid).filter(|_| tasks::start_of_living(root, pid).is_some());
        let task = task.ok_or_else(|| no_such_thread(pid))?;
        if tasks::hides_files(root, pid) {
            return Err(Error::new(
                format!("process {pid} cannot be looked into: its open files are not shown"),
                "run it as root",
            ));
        }
        let mut found = None;
        for path in tasks::memory_files(root, pid, MEMORY) {
            let opened = root.open(&path).and_then(Reader::open);
            found = opened.map_err(|error| Error::new(format!("open {path}: {error}"), ""))?;
            if found.is_some() {
                break;
            }
        }
        let published = found.ok_or_else(|| nothing_published(&task))?;
        let mut cores = Vec::new();
        for number in 0..published.cores() {
            let (tid, _) = published.now(number).map_err(unreadable)?;
            // One that nobody dispatches has no thread.
            if let Some(task) = tasks::task(root, pid, tid).filter(|_| tid > 0) {
                cores.push(Core::new(number, tasks::with_affinity(root, task)));
            }
        }
        if cores.is_empty() {
            return Err(Error::new(
                format!("no thread of process {pid} dispatches"),
                "start its cores first: Cores::start, Dispatcher::dispatch",
            ));
        }
        Ok(Self { published: Some(published), ..Self::of(cores) })
    }

    /// Threads of which it is not known what they run.
    pub fn of_threads(root: &SysRoot, tids: &[i32]) -> Result<Self> {
        let core = |(number, tid): (usize, i32)| {
            let living = tasks::start_of_living(root, tid).and_then(|_| tasks::task(root, tid, tid));
            let task = living.ok_or_else(|| no_such_thread(tid))?;
            Ok(Core::new(number, tasks::with_affinity(root, task)))
        };
        // One that is named twice is one.
        let tids: BTreeSet<i32> = tids.iter().copied().collect();
        Ok(Self::of(tids.into_iter().enumerate().map(core).collect::<Result<_>>()?))
    }

    fn of(cores: Vec<Core>) -> Self {
        Self { cores, published: None, last: None, doubt: 0, objects: Vec::new(), queues: Vec::new() }
    }

    pub fn len(&self) -> usize {
        self.cores.len()
    }

    pub fn all(&self) -> &[Core] {
        &self.cores
    }

    /// Whether it is known what the cores run.
    pub fn is_published(&self) -> bool {
        self.published.is_some()
    }

    pub fn tids(&self) -> Vec<i32> {
        self.cores.iter().map(|core| core.task.tid).collect()
    }

    /// An object's name.
    pub fn object(&self, number: u32) -> String {
        named(&self.objects, number, "object")
    }

    /// A queue's name.
    pub fn queue(&self, number: u32) -> String {
        named(&self.queues, number, "queue")
    }

    /// The CPUs that they may run on; all, where that cannot be read.
    pub fn cpus(&self, online: &CpuList) -> CpuList {
        let cpus: CpuList = self.cores.iter().flat_map(|core| core.task.cpus.iter()).collect();
        if cpus.is_empty() { online.clone() } else { cpus }
    }

    pub fn in_words(&self) -> String {
        let what = if self.is_published() { "core" } else { "thread" };
        report::text::count_of(self.len() as u64, what)
    }

    /// What ran so far is left out.
    pub fn begin(&mut self) -> Result<()> {
        if let Some(published) = &mut self.published {
            published.forget().map_err(unreadable)?;
            self.last = Some(published.moment());
        }
        Ok(())
    }

    /// Reads what the cores ran since; true where all of them have ended.
    pub fn look(&mut self, root: &SysRoot, charges: &mut Charges) -> Result<bool> {
        let is_there = |core: &Core| tasks::start_of_living(root, core.task.tid) == Some(core.task.start);
        let now = Nanos(sys::clock::Clock::Monotonic.now());
        for core in self.cores.iter_mut().filter(|core| core.ended.is_none()) {
            core.ended = (!is_there(core)).then_some(now);
        }
        let has_ended = self.cores.iter().all(|core| core.ended.is_some());
        let Some(published) = &mut self.published else {
            self.cores.iter_mut().for_each(|core| core.known = now);
            return Ok(has_ended);
        };
        let names = published.queues().map_err(unreadable)?;
        let limit = |limit: Option<u64>| limit.map(Nanos);
        charges.promise(
            names
                .iter()
                .map(|queue| Limits {
                    budget: limit(queue.budget),
                    deadline: limit(queue.deadline),
                    bound: limit(queue.bound),
                })
                .collect(),
        );
        self.queues = names.into_iter().map(|queue| queue.name).collect();
        self.objects = published.objects().map_err(unreadable)?;
        let moment = published.moment();
        let from = self.last.replace(moment).unwrap_or(moment);
        self.doubt = self.doubt.max(moment.doubt);
        let lay = |machine: u64| laid(from, moment, machine);
        for (place, core) in self.cores.iter_mut().enumerate() {
            // Before the ring: what ends in between is in the ring, and is known.
            let (_, running) = published.now(core.number).map_err(unreadable)?;
            let mut ran = Vec::new();
            let lost = published.each(core.number, &mut |one| ran.push(one)).map_err(unreadable)?;
            core.overwritten += lost;
            let activations: Vec<Activation> = ran.iter().map(|one| activation(one, &lay)).collect();
            if let Some(next) = activations.first().filter(|_| lost > 0) {
                charges.overwritten(place, next.begin);
            }
            activations.into_iter().for_each(|one| charges.ran(place, one));
            core.running = running.and_then(|one| Some((one.object?, one.queue, lay(one.begin))));
            core.known = core.running.map_or(now, |(_, _, since)| since.min(now));
        }
        Ok(has_ended)
    }

    /// Of threads that publish nothing all is known up to now.
    pub fn end(&mut self, now: Nanos) {
        if self.published.is_none() {
            self.cores.iter_mut().for_each(|core| core.known = now);
        }
    }

    /// All is known of the cores up to the last look.
    pub fn settle(&self, charges: &mut Charges) {
        for (place, core) in self.cores.iter().enumerate() {
            charges.settle(place, core.known);
        }
    }
}

impl Core {
    fn new(number: usize, task: Task) -> Self {
        Self { number, task, running: None, known: Nanos::ZERO, overwritten: 0, ended: None }
    }

    /// Which it is, in words.
    pub fn name(&self, is_published: bool) -> String {
        let Task { name, tid, cpus, .. } = &self.task;
        let of = if is_published { format!("core {}: ", self.number) } else { String::new() };
        format!("{of}thread {name} [{tid}] on {}", cpus.named())
    }
}

fn named(names: &[String], number: u32, what: &str) -> String {
    let name = names.get(number as usize).filter(|name| !name.is_empty());
    name.cloned().unwrap_or_else(|| format!("{what} {number}"))
}

/// A time of the machine's clock on the trace's, between two moments at which both were read, or a little outside.
fn laid(from: Moment, to: Moment, machine: u64) -> Nanos {
    let (span, real) = (to.machine.saturating_sub(from.machine), to.monotonic.saturating_sub(from.monotonic));
    let since = i128::from(machine) - i128::from(to.machine);
    let moved = if span == 0 { since } else { since * i128::from(real) / i128::from(span) };
    Nanos(u64::try_from(i128::from(to.monotonic) + moved).unwrap_or(0))
}

fn activation(ran: &Ran, lay: &impl Fn(u64) -> Nanos) -> Activation {
    Activation {
        sent: (ran.sent > 0).then(|| lay(ran.sent)),
        begin: lay(ran.begin),
        end: lay(ran.end),
        object: ran.object,
        queue: ran.queue,
    }
}

fn unreadable(error: std::io::Error) -> Error {
    Error::new(format!("read what the cores run: {error}"), "")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A time that is long past moves by the ratio of the last two readings.
    #[test]
    fn times_are_laid_between_two_readings() {
        let at = |machine, monotonic| Moment { machine, monotonic, doubt: 0 };
        let (from, to) = (at(1_000_000, 50_000_000), at(2_000_000, 51_000_100));
        assert_eq!(laid(from, to, 2_000_000), Nanos(51_000_100));
        assert_eq!(laid(from, to, 1_500_000), Nanos(50_500_050));
        assert_eq!(laid(from, to, 1_000_000), Nanos(50_000_000));
        assert_eq!(laid(to, to, 1_999_000), Nanos(50_999_100));
        assert_eq!(laid(from, to, 0), Nanos(48_999_900));
    }
}
