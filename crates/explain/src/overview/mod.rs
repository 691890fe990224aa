//! What all activations took part by part, and everything that runs and is no thread.

mod handlers;
mod idle;
mod parts;

use record::{Handler, LateWakeUp, Overview};
use units::{CpuId, CpuList, InOrder};

use crate::event::{Event, Kind};
use handlers::Handlers;
use idle::Idle;
use parts::Parts;

/// The most handlers that are kept.
const MOST: usize = 60;

/// Sums over a stream of events, those of all CPUs in order of time.
#[derive(Debug, Default)]
pub struct Watching {
    parts: Parts,
    handlers: Handlers,
    idle: Idle,
}

impl Watching {
    /// Goes on by one event. `is_one` says which threads measure.
    pub fn see(&mut self, event: &Event, is_one: impl Fn(i32, &str) -> bool) {
        if matches!(event.kind, Kind::Lost | Kind::Resumed) {
            return self.lose(Some(event.cpu));
        }
        self.parts.see(event, is_one);
        self.handlers.see(event);
        self.idle.see(event);
    }

    /// A thread has marked a late wake-up, in the event that was seen last.
    pub fn late(&mut self, late: &LateWakeUp) {
        self.parts.late(late);
    }

    /// CPUs whose idle thread leaves no events: neither the switch to a thread that it wakes nor the exit from idle is there.
    pub fn silent_idle(&self) -> CpuList {
        self.idle.silent()
    }

    /// Events of a CPU were lost, or those of all CPUs were not recorded for a time: what was under way there is not counted.
    pub fn lose(&mut self, cpu: Option<CpuId>) {
        self.parts.lose();
        self.handlers.lose(cpu);
    }

    /// What it came to.
    pub fn overview(&self) -> Overview {
        let mut handlers: Vec<Handler> = self.handlers.totals();
        handlers.order_by_key(|handler| std::cmp::Reverse((handler.longest, handler.time)));
        let left_out = handlers.len().saturating_sub(MOST) as u64;
        handlers.truncate(MOST);
        Overview {
            activations: self.parts.activations(),
            others: self.parts.others(),
            parts: self.parts.totals(),
            watched: self.handlers.watched(),
            handlers,
            left_out,
        }
    }
}
