//! How long each interrupt, softirq, call, timer's function and work item ran.

use std::collections::BTreeMap;

use record::{Handler, HandlerKind};
use units::{CpuId, Nanos};

use crate::event::{Event, Frame, Kind};

/// What is summed under one name. The number is that of a device's interrupt.
type Key = (HandlerKind, String, Option<u32>);

#[derive(Debug, Default)]
struct Total {
    count: u64,
    time: u64,
    longest: u64,
    longest_on: CpuId,
}

/// Something that has begun and not ended.
#[derive(Debug)]
struct Open {
    frame: Begun,
    since: Nanos,
    /// How much of the time since then others had.
    others: u64,
}

#[derive(Debug)]
enum Begun {
    Frame(Frame),
    Work(String),
}

#[derive(Debug, Default)]
struct Cpu {
    running: Option<i32>,
    /// The innermost last.
    open: Vec<Open>,
    first: Option<Nanos>,
    last: Nanos,
}

#[derive(Debug, Default)]
pub(super) struct Handlers {
    cpus: BTreeMap<CpuId, Cpu>,
    /// What threads had begun when they lost their CPU, and when that was.
    put_aside: BTreeMap<i32, (Nanos, Vec<Open>)>,
    totals: BTreeMap<Key, Total>,
    watched: u64,
}

impl Handlers {
    pub fn see(&mut self, event: &Event) {
        let cpu = self.cpus.entry(event.cpu).or_default();
        cpu.first.get_or_insert(event.at);
        cpu.last = cpu.last.max(event.at);
        if matches!(event.kind, Kind::Stack(_)) {
            return;
        }
        // A switch is missing: nobody knows what ended meanwhile.
        if cpu.running.is_some_and(|running| running != event.task) {
            cpu.open.clear();
        }
        cpu.running = Some(event.task);
        match &event.kind {
            Kind::Enter(frame) => {
                cpu.open.push(Open { frame: Begun::Frame(frame.clone()), since: event.at, others: 0 })
            }
            Kind::Work(Some(function)) => {
                cpu.open.push(Open { frame: Begun::Work(function.clone()), since: event.at, others: 0 })
            }
            Kind::Leave(end) => self.end(event, |open| match &open.frame {
                Begun::Frame(frame) => frame.ends_by(end),
                Begun::Work(_) => false,
            }),
            Kind::Work(None) => self.end(event, |open| matches!(open.frame, Begun::Work(_))),
            Kind::Switch { previous, next } => self.switch(event, previous.tid, next.tid),
            Kind::Nmi { handler, length } => {
                self.count((HandlerKind::Nmi, handler.clone(), None), length.0, event.cpu);
            }
            _ => {}
        }
    }

    /// Ends the innermost that `is_it`; what it had begun and whose end is missing is not counted.
    fn end(&mut self, event: &Event, is_it: impl Fn(&Open) -> bool) {
        let Some(cpu) = self.cpus.get_mut(&event.cpu) else { return };
        let Some(place) = cpu.open.iter().rposition(is_it) else { return };
        let mut ended = cpu.open.split_off(place);
        let open = ended.swap_remove(0);
        let all = event.at.0.saturating_sub(open.since.0);
        if let Some(below) = cpu.open.last_mut() {
            below.others += all;
        }
        let nested = ended.iter().fold(0, |sum: u64, open| sum.saturating_add(open.others));
        let own = all.saturating_sub(open.others).saturating_sub(nested);
        self.count(key(open.frame), own, event.cpu);
    }

    fn switch(&mut self, event: &Event, previous: i32, next: i32) {
        let Some(cpu) = self.cpus.get_mut(&event.cpu) else { return };
        let open = std::mem::take(&mut cpu.open);
        // The idle threads of all CPUs have one number.
        if !open.is_empty() && previous != 0 {
            self.put_aside.insert(previous, (event.at, open));
        }
        cpu.running = Some(next);
        if let Some((at, mut open)) = self.put_aside.remove(&next) {
            if let Some(innermost) = open.last_mut() {
                innermost.others += event.at.0.saturating_sub(at.0);
            }
            cpu.open = open;
        }
    }

    fn count(&mut self, key: Key, own: u64, cpu: CpuId) {
        let total = self.totals.entry(key).or_default();
        total.count += 1;
        total.time = total.time.saturating_add(own);
        if total.count == 1 || own > total.longest {
            (total.longest, total.longest_on) = (own, cpu);
        }
    }

    pub fn lose(&mut self, cpu: Option<CpuId>) {
        for (one, state) in &mut self.cpus {
            if cpu.is_none_or(|cpu| cpu == *one) {
                let Cpu { first, last, .. } = std::mem::take(state);
                self.watched += first.map_or(0, |first| last.0.saturating_sub(first.0));
            }
        }
        self.put_aside.clear();
    }

    pub fn watched(&self) -> Nanos {
        let now =
            self.cpus.values().map(|cpu| cpu.first.map_or(0, |first| cpu.last.0.saturating_sub(first.0)));
        Nanos(self.watched + now.sum::<u64>())
    }

    pub fn totals(&self) -> Vec<Handler> {
        let handler = |((kind, name, interrupt), total): (&Key, &Total)| Handler {
            kind: *kind,
            name: name.clone(),
            interrupt: *interrupt,
            count: total.count,
            time: Nanos(total.time),
            longest: Nanos(total.longest),
            longest_on: total.longest_on,
        };
        self.totals.iter().map(handler).collect()
    }
}

fn key(begun: Begun) -> Key {
    match begun {
        Begun::Work(function) => (HandlerKind::Work, function, None),
        Begun::Frame(Frame::Vector(name)) => (HandlerKind::Vector, name, None),
        Begun::Frame(Frame::Handler(name, number)) => {
            (HandlerKind::Interrupt, name, u32::try_from(number).ok())
        }
        Begun::Frame(Frame::Softirq(name)) => (HandlerKind::Softirq, name, None),
        Begun::Frame(Frame::Timer(function, _)) => (HandlerKind::Timer, function, None),
        Begun::Frame(Frame::Call(function)) => (HandlerKind::Call, function, None),
    }
}
