//! What a hypervisor took, by the clock of threads that does not count it.
//!
//! `sched_stat_runtime` says how much of the CPU a thread has had since it was last said. Between two of them the thread ran
//! all the time, or was switched out in between; what wall time has beyond the run time is what a hypervisor took (with
//! `CONFIG_PARAVIRT_TIME_ACCOUNTING`) and, with `CONFIG_IRQ_TIME_ACCOUNTING`, interrupts and softirqs, which are taken out here. On
//! other kernels the difference is nothing, which proves nothing.

use units::Nanos;

use crate::event::{Event, Frame, Kind};
use crate::window::Window;

/// What was taken from threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Steal {
    /// In the steps that reach into `[due, woke]`: a lower bound of what was taken in them.
    pub seen: Nanos,
    /// Of it, what cannot have been before `due`.
    pub within: Nanos,
}

impl Steal {
    /// What is left after it was found in a gap of this length.
    pub fn without(self, gap: Nanos) -> Self {
        let left = |of: Nanos| Nanos(of.0.saturating_sub(gap.0));
        Self { seen: left(self.seen), within: left(self.within) }
    }
}

/// An interrupt or softirq takes this much before its first event and after its last.
const OUTSIDE_ITS_EVENTS: u64 = 1_000;

/// What was taken on the window's CPU.
pub fn stolen(window: &Window) -> Steal {
    let mut step = Step::default();
    let mut sum = Steal::default();
    for event in window.of(window.cpu) {
        match &event.kind {
            Kind::Enter(Frame::Vector(_) | Frame::Handler(..) | Frame::Softirq(_)) => step.enter(event.at),
            Kind::Leave(Frame::Vector(_) | Frame::Handler(..) | Frame::Softirq(_)) => step.leave(event.at),
            Kind::Waking(_) => step.end = Some((event.at, step.interrupts_until(event.at))),
            Kind::Switch { next, .. } => step.begin(next.tid, event.at),
            Kind::Runtime { tid, length } => {
                if reaches_into(window, event) {
                    let (taken, from) = step.taken(*tid, *length, event.at);
                    let before = window.due.0.saturating_sub(from.0);
                    sum.seen += Nanos(taken);
                    sum.within += Nanos(taken.saturating_sub(before));
                }
                step.begin(*tid, event.at);
            }
            Kind::Lost | Kind::Resumed => step.thread = None,
            _ => {}
        }
    }
    sum
}

/// From one time that a thread's run time is said to the next.
#[derive(Default)]
struct Step {
    thread: Option<(i32, Nanos)>,
    /// A thread was woken, and interrupts until then. The run time may be that of this moment: the scheduler leaves out to read its clock
    /// again when it gives the CPU to who was woken (kernel/sched/core.c: `rq_clock_skip_update`).
    end: Option<(Nanos, u64)>,
    interrupts: u64,
    depth: u32,
    entered: Nanos,
}

impl Step {
    fn begin(&mut self, tid: i32, at: Nanos) {
        self.thread = Some((tid, at));
        self.end = None;
        self.interrupts = 0;
    }

    fn enter(&mut self, at: Nanos) {
        if self.depth == 0 {
            self.entered = at;
        }
        self.depth += 1;
    }

    fn leave(&mut self, at: Nanos) {
        self.depth = self.depth.saturating_sub(1);
        if self.depth == 0 {
            self.interrupts = self.interrupts.saturating_add(self.since_it_was_entered(at));
        }
    }

    fn since_it_was_entered(&self, at: Nanos) -> u64 {
        at.0.saturating_sub(self.entered.0).saturating_add(OUTSIDE_ITS_EVENTS)
    }

    fn interrupts_until(&self, at: Nanos) -> u64 {
        let open = if self.depth > 0 { self.since_it_was_entered(at) } else { 0 };
        self.interrupts.saturating_add(open)
    }

    /// What the thread did not get of this step at least, and when that began.
    fn taken(&self, tid: i32, length: Nanos, at: Nanos) -> (u64, Nanos) {
        let Some((_, from)) = self.thread.filter(|(running, _)| *running == tid) else {
            return (0, at);
        };
        let (end, interrupts) = self.end.unwrap_or_else(|| (at, self.interrupts_until(at)));
        (end.0.saturating_sub(from.0).saturating_sub(length.0).saturating_sub(interrupts), from)
    }
}

fn reaches_into(window: &Window, event: &Event) -> bool {
    event.at > window.due && event.at <= window.woke && event.cpu == window.cpu
}
