//! The parts of each activation of the threads that measure.

use std::collections::BTreeMap;

use histogram::Histogram;
use record::{LateWakeUp, PathLengths, PathPart};
use units::{CpuId, Nanos};

use crate::event::{Event, Frame, Kind, wakes_its_owner};

/// Parts that end before the switch to the thread: timer late, interrupt entry, timer function, wake-up.
const UP_TO_THE_SWITCH: usize = 4;

/// An interrupt under way on a CPU.
#[derive(Debug, Default)]
struct Cpu {
    depth: u32,
    interrupt: Option<Nanos>,
    /// The timer whose function runs, since when, and whether that wakes the thread which set it.
    timer: Option<(u64, Nanos, bool)>,
}

/// An activation under way.
#[derive(Clone, Copy, Debug)]
struct Way {
    cpu: CpuId,
    /// None where the timer was set before the trace began: a mark says it.
    due: Option<Nanos>,
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
            Kind::Enter(Frame::Timer(function, timer)) => {
                let wakes = wakes_its_owner(function);
                self.cpus.entry(event.cpu).or_default().timer = Some((*timer, event.at, wakes));
            }
            Kind::Leave(Frame::Timer(..)) => self.cpus.entry(event.cpu).or_default().timer = None,
            Kind::Waking(task) if is_one(task.tid, &task.name) => self.wake(event, task.tid),
            Kind::Switch { next, .. } => {
                if let Some(way) = self.ways.get_mut(&next.tid).filter(|way| way.switch.is_none()) {
                    way.switch = Some(event.at);
                }
            }
            Kind::Arm { timer, due, .. } => {
                self.end(event.task, None, event.at);
                self.armed.insert(event.task, (*timer, *due));
            }
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
        let own = cpu.timer.and_then(|(runs, since, wakes)| match armed {
            Some((timer, due)) => (timer == runs && due <= event.at).then_some((Some(due), since)),
            None => wakes.then_some((None, since)),
        });
        let Some((due, function)) = own else {
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

    /// A thread has marked that it was late. Its mark stops the trace: of this wake-up no later act is seen. It also says when it
    /// was due, where the trace went on only after its timer was set.
    pub fn late(&mut self, late: &LateWakeUp) {
        self.end(late.tid, Some(late.due), late.woke);
    }

    /// The thread acts: what was under way is over.
    fn end(&mut self, tid: i32, due: Option<Nanos>, at: Nanos) {
        let Some(way) = self.ways.remove(&tid) else { return };
        let Some(due) = way.due.or(due) else {
            self.others += 1;
            return;
        };
        // Some kernels withhold the switch from some threads: what came before it is known all the same.
        let (switch, known) = match way.switch {
            Some(switch) => {
                self.activations += 1;
                (switch, PathPart::ALL.len())
            }
            None => {
                self.others += 1;
                (at, UP_TO_THE_SWITCH)
            }
        };
        let left = way.left.unwrap_or(way.waking);
        // One that was due while another interrupt ran is noticed there: its own interrupt does not come first.
        let moments = [due, way.interrupt, way.function, way.waking, left, switch, at];
        let mut from = due;
        for (lengths, to) in self.lengths.iter_mut().zip(&moments[1..]).take(known) {
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
        if self.lengths.iter().all(|lengths| lengths.summary().count == 0) {
            return Vec::new();
        }
        let each = PathPart::ALL.into_iter().zip(&self.lengths);
        each.map(|(name, lengths)| PathLengths { name, lengths: lengths.clone() }).collect()
    }
}
