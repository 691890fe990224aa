//! What the rings had when the instance stood still.

use std::collections::BTreeMap;

use explain::{Event, Kind, Usual, Window, account};
use failure::{Error, Result};
use record::Hit;
use trace::live::Instance;
use trace::{Item, Symbols};
use units::{CpuId, Nanos};

use crate::Late;

/// How far before the wake-ups events are kept: enough of them to say what is usual.
const BEFORE: Nanos = Nanos(60_000_000);

/// How long after a wake-up its mark may come.
const MARKED_WITHIN: Nanos = Nanos(2_000_000);

/// How long before `due` the events of a hit begin.
const LEAD: Nanos = Nanos(50_000);

/// The most events that a hit keeps.
const MOST_EVENTS: usize = 400;

/// Events of each CPU, in order of time.
#[derive(Debug, Default)]
pub struct Rings(BTreeMap<CpuId, Vec<Event>>);

impl Rings {
    /// Reads all rings to their ends.
    pub fn read(instance: &mut Instance, symbols: &Symbols, late: &[Late]) -> Result<Self> {
        let first = late.iter().map(|late| late.due.0).min().unwrap_or_default();
        let from = Nanos(first.saturating_sub(BEFORE.0));
        let mut rings = Self::default();
        let mut see = |item: &Item<'_>| match item {
            Item::Event(event) if event.time >= from => {
                rings.0.entry(event.cpu).or_default().push(Event::of(event, symbols));
            }
            Item::Event(_) => {}
            Item::Lost(lost) => rings.lost(lost.cpu),
        };
        instance.each(&mut see).map_err(Error::from)?;
        Ok(rings)
    }

    /// Events of a CPU were lost, or of some CPU that is not known.
    fn lost(&mut self, cpu: Option<CpuId>) {
        for (one, events) in &mut self.0 {
            if cpu.is_none_or(|cpu| cpu == *one) {
                let (at, task) = events.last().map_or((Nanos::ZERO, 0), |event| (event.at, event.task));
                events.push(Event { at, cpu: *one, task, kind: Kind::Lost });
            }
        }
    }

    /// Takes a late wake-up apart; none where the rings do not reach up to it.
    pub fn explain(&self, late: &Late) -> Option<Hit> {
        if !self.has_mark(late) {
            return None;
        }
        let events = self.0.get(&late.cpu)?;
        let usual = Usual::before(events, late.tid, late.due, late.interval);
        let window = Window {
            cpu: late.cpu,
            tid: late.tid,
            priority: priority(events, late.tid),
            due: late.due,
            woke: late.woke,
            events: self.0.clone(),
        };
        let account = account(&window, usual.as_ref());
        let kept: Vec<&Event> = window.all().filter(|event| belongs(event, late)).collect();
        let left_out = kept.len().saturating_sub(MOST_EVENTS);
        let mut events: Vec<_> = kept.iter().take(MOST_EVENTS).map(|event| event.kept(late.due)).collect();
        events.sort_by_key(|event| event.at);
        Some(Hit {
            cpu: late.cpu,
            tid: late.tid,
            activation: late.activation,
            due: late.due,
            latency: late.latency(),
            pieces: account.pieces,
            causes: account.causes,
            waking_stack: account.waking_stack,
            switch_stack: account.switch_stack,
            events,
            left_out: left_out as u64,
        })
    }

    /// The mark that the thread wrote when it woke up: what is before it was recorded.
    fn has_mark(&self, late: &Late) -> bool {
        let until = late.woke + MARKED_WITHIN;
        let is_it = |event: &Event| {
            event.kind == Kind::Mark && event.task == late.tid && event.at >= late.woke && event.at <= until
        };
        self.0.values().flatten().any(is_it)
    }
}

/// Whether a hit keeps an event: those of its CPU, and IPIs that others sent to it.
fn belongs(event: &Event, late: &Late) -> bool {
    let is_in_time = event.at.0 >= late.due.0.saturating_sub(LEAD.0) && event.at <= late.woke;
    let is_sent = matches!(&event.kind, Kind::Ipi { to, .. } if to.contains(late.cpu));
    is_in_time && (event.cpu == late.cpu || is_sent)
}

/// The kernel's priority of a thread, as a switch to it says.
fn priority(events: &[Event], tid: i32) -> Option<i32> {
    events.iter().rev().find_map(|event| match &event.kind {
        Kind::Switch { next, .. } if next.tid == tid => next.priority,
        _ => None,
    })
}
