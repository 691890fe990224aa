//! What the rings had when the instance stood still.

use std::collections::BTreeMap;

use explain::{Event, Kind, Usual, Window, account};
use failure::{Error, Result};
use machine::facts::virtualization::virtualization;
use record::{Hit, LateWakeUp};
use sysroot::SysRoot;
use trace::live::Instance;
use trace::{Item, Symbols};
use units::{CpuId, InOrder, Nanos};

/// How long before `due` the events of a hit begin.
const LEAD: Nanos = Nanos(50_000);

/// The most events that a hit keeps.
const MOST_EVENTS: usize = 400;

/// Events of each CPU, in order of time.
#[derive(Debug)]
pub struct Rings {
    events: BTreeMap<CpuId, Vec<Event>>,
    /// What was usual of threads when the rings last had enough of their wake-ups: just after they stood still they have none.
    usual: BTreeMap<i32, Usual>,
    is_guest: bool,
}

impl Rings {
    /// Those of this machine.
    pub fn of_this_machine() -> Self {
        let hypervisor = virtualization(&SysRoot::live());
        let is_guest = hypervisor.value().is_some_and(|name| name != "none");
        Self { events: BTreeMap::new(), usual: BTreeMap::new(), is_guest }
    }

    /// Adds what the kernel has recorded since. Shows each event, and none where events were lost.
    pub fn read_on(
        &mut self,
        instance: &mut Instance,
        symbols: &Symbols,
        see: &mut dyn FnMut(Option<&Event>),
    ) -> Result<()> {
        let mut each = |item: &Item<'_>| match item {
            Item::Event(event) => {
                let event = Event::of(event, symbols);
                see(Some(&event));
                self.events.entry(event.cpu).or_default().push(event);
            }
            Item::Lost(lost) => {
                see(None);
                self.lost(lost.cpu);
            }
        };
        instance.each(&mut each).map_err(Error::from)
    }

    /// Forgets what was before a time, but for the last event of each CPU: that says what ran there.
    pub fn forget_before(&mut self, from: Nanos) {
        for events in self.events.values_mut() {
            let old = events.partition_point(|event| event.at < from);
            events.drain(..old.saturating_sub(1));
        }
    }

    /// Whether a CPU's events go on after a time.
    pub fn reach_beyond(&self, cpu: CpuId, at: Nanos) -> bool {
        self.events.get(&cpu).and_then(|events| events.last()).is_some_and(|event| event.at > at)
    }

    /// Events of a CPU were lost, or of some CPU that is not known.
    fn lost(&mut self, cpu: Option<CpuId>) {
        for (one, events) in &mut self.events {
            if cpu.is_none_or(|cpu| cpu == *one) {
                let (at, task) = events.last().map_or((Nanos::ZERO, 0), |event| (event.at, event.task));
                events.push(Event { at, cpu: *one, task, kind: Kind::Lost });
            }
        }
    }

    /// Takes a late wake-up apart; none where its CPU has no events.
    pub fn explain(&mut self, late: &LateWakeUp) -> Option<Hit> {
        let events = self.events.get(&late.cpu)?;
        if let Some(usual) = Usual::before(events, late.tid, late.due, late.interval) {
            self.usual.insert(late.tid, usual);
        }
        let window = Window {
            cpu: late.cpu,
            tid: late.tid,
            priority: priority(events, late.tid),
            due: late.due,
            woke: late.woke,
            is_guest: self.is_guest,
            // Lent: they are many.
            events: std::mem::take(&mut self.events),
        };
        let account = account(&window, self.usual.get(&late.tid));
        let kept: Vec<&Event> = window.all().filter(|event| belongs(event, late)).collect();
        let left_out = kept.len().saturating_sub(MOST_EVENTS);
        let mut events: Vec<_> = kept.iter().take(MOST_EVENTS).map(|event| event.kept(late.due)).collect();
        events.order_by_key(|event| event.at);
        self.events = window.events;
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
}

/// Whether a hit keeps an event: those of its CPU, and IPIs that others sent to it.
fn belongs(event: &Event, late: &LateWakeUp) -> bool {
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
