//! The parts of each activation of the threads that measure.

use std::collections::BTreeMap;

use histogram::Histogram;
use record::{PathLengths, PathPart};
use units::{CpuId, Nanos};

use crate::event::{Event, Frame, Kind};

/// An interrupt under way on a CPU.
#[derive(Debug, Default)]
struct Cpu {
    depth: u32,
    interrupt: Option<Nanos>,
    /// The timer whose function runs, and since when.
    timer: Option<(u64, Nanos)>,
}

/// An activation under way.
#[derive(Clone, Copy, Debug)]
struct Way {
    cpu: CpuId,
    due: Nanos,
    interrupt: Nanos,
    function: Nanos,
    waking: Nanos,
    /// The end of the interrupt.
    left: Option<Nanos>,
    switch: Option<Nanos>,
}

#[derive(Debug, Default)]
pub(super) struct Parts {
    cpus: BTreeMap<CpuId, Cpu>,
    /// The timer that a thread has set for itself, and when it is due.
    armed: BTreeMap<i32, (u64, Nanos)>,
    ways: BTreeMap<i32, Way>,
    lengths: [Histogram; PathPart::ALL.len()],
    activations: u64,
    others: u64,
}

impl Parts {
    pub fn see(&mut self, event: &Event, is_one: impl Fn(i32, &str) -> bool) {
        match &event.kind {
            Kind::Enter(Frame::Vector(_) | Frame::Handler(..)) => {
                let cpu = self.cpus.entry(event.cpu).or_default();
                if cpu.depth == 0 {
                    cpu.interrupt = Some(event.at);
                }
                cpu.depth += 1;
            }
            Kind::Leave(Frame::Vector(_) | Frame::Handler(..)) => self.leave(event),
            Kind::Enter(Frame::Timer(_, timer)) => {
                self.cpus.entry(event.cpu).or_default().timer = Some((*timer, event.at));
            }
            Kind::Leave(Frame::Timer(..)) => self.cpus.entry(event.cpu).or_default().timer = None,
            Kind::Waking(task) if is_one(task.tid, &task.name) => self.wake(event, task.tid),
            Kind::Switch { next, .. } => {
                if let Some(way) = self.ways.get_mut(&next.tid).filter(|way| way.switch.is_none()) {
                    way.switch = Some(event.at);
                }
            }
            Kind::Arm { timer, due } => {
                self.end(event);
                self.armed.insert(event.task, (*timer, *due));
            }
            Kind::Mark(_) => self.end(event),
            _ => {}
        }
    }

    fn leave(&mut self, event: &Event) {
        let cpu = self.cpus.entry(event.cpu).or_default();
        cpu.depth = cpu.depth.saturating_sub(1);
        if cpu.depth > 0 {
            return;
        }
        cpu.interrupt = None;
        let here = self.ways.values_mut().filter(|way| way.cpu == event.cpu && way.switch.is_none());
        for way in here {
            way.left.get_or_insert(event.at);
        }
    }

    fn wake(&mut self, event: &Event, tid: i32) {
        let cpu = self.cpus.entry(event.cpu).or_default();
        let armed = self.armed.remove(&tid);
        let own = armed.zip(cpu.timer).filter(|((timer, due), (runs, _))| timer == runs && *due <= event.at);
        let Some(((_, due), (_, function))) = own else {
            self.others += 1;
            self.ways.remove(&tid);
            return;
        };
        let interrupt = cpu.interrupt.unwrap_or(function);
        let way =
            Way { cpu: event.cpu, due, interrupt, function, waking: event.at, left: None, switch: None };
        if self.ways.insert(tid, way).is_some() {
            self.others += 1;
        }
    }

    /// The thread acts: what was under way is over.
    fn end(&mut self, event: &Event) {
        let Some(way) = self.ways.remove(&event.task) else { return };
        let Some(switch) = way.switch else {
            self.others += 1;
            return;
        };
        self.activations += 1;
        let left = way.left.unwrap_or(way.waking);
        // One that was due while another interrupt ran is noticed there: its own interrupt does not come first.
        let moments = [way.due, way.interrupt, way.function, way.waking, left, switch, event.at];
        let mut from = way.due;
        for (lengths, to) in self.lengths.iter_mut().zip(&moments[1..]) {
            let to = (*to).max(from);
            lengths.record(Nanos(to.0 - from.0));
            from = to;
        }
    }

    pub fn lose(&mut self) {
        self.others += self.ways.len() as u64;
        self.cpus.clear();
        self.armed.clear();
        self.ways.clear();
    }

    pub fn activations(&self) -> u64 {
        self.activations
    }

    pub fn others(&self) -> u64 {
        self.others
    }

    pub fn totals(&self) -> Vec<PathLengths> {
        if self.activations == 0 {
            return Vec::new();
        }
        let each = PathPart::ALL.into_iter().zip(&self.lengths);
        each.map(|(name, lengths)| PathLengths { name, lengths: lengths.clone() }).collect()
    }
}
