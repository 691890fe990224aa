//! What the rings had when the instance stood still.

use std::collections::{BTreeMap, BTreeSet};

use explain::{Account, Event, Kind, Usual, Window, account, judge};
use failure::{Error, Result};
use machine::facts::virtualization::virtualization;
use record::{Hit, Lab, LateWakeUp, Unit};
use sysroot::SysRoot;
use trace::live::Instance;
use trace::{Item, Symbols};
use units::{CpuId, InOrder, Nanos};

/// How long before `due` the events of a hit begin.
const LEAD: Nanos = Nanos(50_000);

/// So much is no difference between two readings of the clock.
const STEAL: Nanos = Nanos(100_000);

/// The most events that a hit keeps.
const MOST_EVENTS: usize = 400;

/// A wake-up that was explained before anything was known of what is usual.
#[derive(Debug)]
struct Early {
    account: Account,
    /// The events around it.
    window: Window,
}

/// A late wake-up, explained.
#[derive(Debug)]
pub struct Explained {
    pub hit: Hit,
    early: Option<Box<Early>>,
}

impl From<Hit> for Explained {
    fn from(hit: Hit) -> Self {
        Self { hit, early: None }
    }
}

/// What the rings have next.
#[derive(Clone, Copy, Debug)]
pub enum Read<'a> {
    Event(&'a Event),
    /// Events were overwritten before they were read.
    Lost {
        /// Whose; none where that is not known.
        cpu: Option<CpuId>,
        /// When the last of its events before was; none where there was none.
        after: Option<Nanos>,
    },
}

/// Events of each CPU, in order of time.
#[derive(Debug)]
pub struct Rings {
    events: BTreeMap<CpuId, Vec<Event>>,
    /// What was usual of threads when the rings last had enough of their wake-ups: just after they stood still they have none.
    usual: BTreeMap<i32, Usual>,
    is_guest: bool,
    /// Whether what a host took was ever seen.
    shows_steal: bool,
    /// Threads that read the rings and do nothing else.
    recorders: BTreeSet<i32>,
    /// The thread that reads them and does more.
    reader: Option<i32>,
}

impl Rings {
    /// Those of this machine. In a guest of the lab in instruction time no hypervisor takes any of it.
    pub fn of_this_machine() -> Self {
        let hypervisor = virtualization(&SysRoot::live());
        let lab = Lab::of_this_guest().ok().flatten();
        let is_of_instructions = lab.is_some_and(|lab| lab.unit() == Unit::Instructions);
        let is_guest = !is_of_instructions && hypervisor.value().is_some_and(|name| name != "none");
        Self {
            events: BTreeMap::new(),
            usual: BTreeMap::new(),
            is_guest,
            shows_steal: false,
            recorders: BTreeSet::new(),
            reader: None,
        }
    }

    /// What the calling thread takes for reading them is the recording's.
    pub fn are_read_here(&mut self) {
        self.reader = Some(sys::schedule::thread_id());
    }

    /// What these threads take is the recording's from now on.
    pub fn are_read_by(&mut self, recorders: BTreeSet<i32>) {
        self.recorders = recorders;
    }

    /// Adds what the kernel has recorded since, up to `until`, and shows it.
    pub fn read_on(
        &mut self,
        instance: &mut Instance,
        symbols: &Symbols,
        until: Nanos,
        see: &mut dyn FnMut(Read<'_>),
    ) -> Result<()> {
        let mut each = |item: &Item<'_>| match item {
            Item::Event(event) => {
                let event = Event::of(event, symbols);
                see(Read::Event(&event));
                self.events.entry(event.cpu).or_default().push(event);
            }
            Item::Lost(lost) => {
                let last = |cpu: CpuId| Some(self.events.get(&cpu)?.last()?.at);
                see(Read::Lost { cpu: lost.cpu, after: lost.cpu.and_then(last) });
                self.lost(lost.cpu);
            }
        };
        instance.each_before(until, &mut each).map_err(Error::from)
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

    /// The kernel records again, after it stood still.
    pub fn resume(&mut self, at: Nanos) {
        for (cpu, events) in &mut self.events {
            events.push(Event { at, cpu: *cpu, task: 0, is_wanted: None, kind: Kind::Resumed });
        }
    }

    /// Events of a CPU were lost, or of some CPU that is not known.
    fn lost(&mut self, cpu: Option<CpuId>) {
        for (one, events) in &mut self.events {
            if cpu.is_none_or(|cpu| cpu == *one) {
                let (at, task) = events.last().map_or((Nanos::ZERO, 0), |event| (event.at, event.task));
                events.push(Event { at, cpu: *one, task, is_wanted: None, kind: Kind::Lost });
            }
        }
    }

    /// Takes a late wake-up apart; none where its CPU has no events.
    pub fn explain(&mut self, late: &LateWakeUp) -> Option<Explained> {
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
            slack_until: late.slack_until,
            is_guest: self.is_guest,
            shows_steal: self.shows_steal,
            recorders: self.recorders.clone(),
            reader: self.reader,
            // Lent: they are many.
            events: std::mem::take(&mut self.events),
        };
        let usual = self.usual.get(&late.tid);
        let account = account(&window, usual);
        self.shows_steal |= account.stolen.seen >= STEAL;
        let early = usual.is_none().then(|| Early { account: account.clone(), window: around(&window) });
        let kept: Vec<&Event> = window.all().filter(|event| belongs(event, late)).collect();
        let left_out = kept.len().saturating_sub(MOST_EVENTS);
        let mut events: Vec<_> = kept.iter().take(MOST_EVENTS).map(|event| event.kept(late.due)).collect();
        events.order_by_key(|event| event.at);
        self.events = window.events;
        let hit = Hit {
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
        };
        Some(Explained { hit, early: early.map(Box::new) })
    }

    /// The wake-up as it is judged by what is known of it now.
    pub fn judged(&self, explained: Explained) -> Hit {
        let Explained { mut hit, early } = explained;
        if let Some((mut early, usual)) = early.zip(self.usual.get(&hit.tid)) {
            judge(&early.window, &mut early.account, Some(usual));
            hit.causes = early.account.causes;
        }
        hit
    }
}

/// The window with no more events of a CPU than those in its time, some before it, and the last before these.
fn around(window: &Window) -> Window {
    let (from, to) = (window.due.0.saturating_sub(LEAD.0), window.woke.0.saturating_add(LEAD.0));
    let of_cpu = |events: &Vec<Event>| {
        let first = events.partition_point(|event| event.at.0 < from).saturating_sub(1);
        let end = events.partition_point(|event| event.at.0 <= to).max(first);
        events[first..end].to_vec()
    };
    let events = window.events.iter().map(|(cpu, events)| (*cpu, of_cpu(events))).collect();
    Window { events, recorders: window.recorders.clone(), ..*window }
}

/// Whether a hit keeps an event: those of its CPU, and IPIs and calls that others sent to it.
fn belongs(event: &Event, late: &LateWakeUp) -> bool {
    let is_in_time = event.at.0 >= late.due.0.saturating_sub(LEAD.0) && event.at <= late.woke;
    let is_sent = match &event.kind {
        Kind::Ipi { to, .. } => to.contains(late.cpu),
        Kind::Queue { cpu, .. } => *cpu == late.cpu,
        _ => false,
    };
    is_in_time && (event.cpu == late.cpu || is_sent)
}

/// The kernel's priority of a thread, as a switch to it says.
fn priority(events: &[Event], tid: i32) -> Option<i32> {
    events.iter().rev().find_map(|event| match &event.kind {
        Kind::Switch { next, .. } if next.tid == tid => next.priority,
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use explain::{Frame, Task};
    use record::{Activity, Class};

    const LATE: LateWakeUp = LateWakeUp {
        tid: 100,
        cpu: CpuId(0),
        activation: 1,
        due: Nanos::ZERO,
        woke: Nanos::ZERO,
        interval: Nanos(1_000_000),
        slack_until: None,
    };

    fn task(tid: i32, priority: i32) -> Task {
        Task { tid, name: format!("t{tid}"), priority: Some(priority), state: None }
    }

    fn event(at: u64, task: i32, kind: Kind) -> Event {
        Event { at: Nanos(at), cpu: CpuId(0), task, is_wanted: None, kind }
    }

    fn rings_of(events: BTreeMap<CpuId, Vec<Event>>) -> Rings {
        Rings {
            events,
            usual: BTreeMap::new(),
            is_guest: false,
            shows_steal: false,
            recorders: BTreeSet::new(),
            reader: None,
        }
    }

    /// A thread of the same priority that has the CPU when the thread is due: who reads the trace is no rival.
    #[test]
    fn time_of_a_thread_that_reads_the_trace_is_the_recordings() {
        let (own, other) = (task(100, 120), task(200, 120));
        let events = vec![
            event(900_000, 100, Kind::Switch { previous: own.clone(), next: other.clone() }),
            event(1_000_500, 200, Kind::Waking(own.clone())),
            event(4_010_500, 200, Kind::Switch { previous: other, next: own }),
        ];
        let late = LateWakeUp { due: Nanos(1_000_000), woke: Nanos(4_011_000), ..LATE };
        let mut rings = rings_of(BTreeMap::from([(CpuId(0), events)]));
        let rival = rings.explain(&late).unwrap().hit;
        assert_eq!(rival.causes[0].class, Class::Rival, "{:?}", rival.causes);
        assert!(!crate::hits::is_own(&rival));
        rings.are_read_by([200].into());
        let own = rings.explain(&late).unwrap().hit;
        assert_eq!(own.causes[0].class, Class::Tracing, "{:?}", own.causes);
        assert!(crate::hits::is_own(&own), "it is counted and left out");
    }

    #[test]
    fn what_ran_when_the_trace_stood_still_does_not_run_when_it_goes_on() {
        let (own, other) = (task(100, 1), task(200, 120));
        let softirq = Frame::Softirq("NET_RX".to_owned());
        let before = vec![event(500_000, 200, Kind::Enter(softirq))];
        let after = vec![
            event(900_000, 200, Kind::Waking(other.clone())),
            event(1_000_500, 200, Kind::Waking(own.clone())),
            event(1_010_500, 200, Kind::Switch { previous: other, next: own }),
        ];
        let late = LateWakeUp { due: Nanos(1_000_000), woke: Nanos(1_011_000), ..LATE };
        for stood_still in [false, true] {
            let events = BTreeMap::from([(CpuId(0), before.clone())]);
            let mut rings = rings_of(events);
            if stood_still {
                rings.resume(Nanos(800_000));
            }
            rings.events.get_mut(&CpuId(0)).unwrap().extend(after.clone());
            let hit = rings.explain(&late).unwrap().hit;
            let has_softirq =
                hit.pieces.iter().any(|piece| matches!(piece.activity, Activity::Softirq { .. }));
            assert_eq!(has_softirq, !stood_still, "{:?}", hit.pieces);
        }
    }

    #[test]
    fn the_first_wake_ups_are_judged_by_what_turns_out_to_be_usual() {
        let (own, other) = (task(100, 1), task(200, 120));
        let events = vec![
            event(900_000, 100, Kind::Switch { previous: own.clone(), next: other.clone() }),
            event(1_000_500, 200, Kind::Waking(own.clone())),
            event(1_010_500, 200, Kind::Switch { previous: other, next: own }),
        ];
        let events = BTreeMap::from([(CpuId(0), events)]);
        let mut rings = rings_of(events);
        let late = LateWakeUp { due: Nanos(1_000_000), woke: Nanos(1_011_000), ..LATE };
        let first = rings.explain(&late).unwrap();
        assert_eq!(first.hit.causes[0].class, Class::Usual, "{:?}", first.hit.causes);
        let short = Nanos(1_000);
        rings.usual.insert(100, Usual { runnable: short, scheduling: short, ..Usual::default() });
        let judged = rings.judged(first);
        assert_eq!((judged.causes[0].class, judged.causes[0].length), (Class::Unknown, Nanos(10_000)));
        let second = rings.explain(&late).unwrap();
        assert_eq!(second.hit.causes, judged.causes, "as one that came later");
    }
}
