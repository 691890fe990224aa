//! Wake-ups of any threads, read from the trace while it is recorded: nothing is frozen, nobody marks anything.

use std::collections::{BTreeMap, BTreeSet};

use explain::{Event, WakeUp, WakeUps, Watching};
use failure::{Error, Result};
use record::{Hit, LateWakeUp, LostEvents, Overview, Tracing, WatchSummary};
use sys::clock::Clock;
use sysroot::SysRoot;
use trace::live::Form;
use units::{CpuId, Nanos};

use crate::hits::{Recordings, is_own};
use crate::rings::{Read, Rings};
use crate::{KEPT, Recording, Threads};

/// Threads whose wake-ups are watched. Dropped, the instance is removed.
pub struct Live {
    recording: Recording,
    rings: Rings,
    seen: Seen,
    /// Events from then on are not read.
    until: Nanos,
    recordings: Recordings,
    /// Late wake-ups that were explained so far.
    late: u64,
}

impl Live {
    /// Begins to record for wake-ups that are so late.
    ///
    /// # Errors
    /// There is no tracefs, or the kernel refuses.
    pub fn begin(threads: Threads, threshold: Nanos) -> Result<Self> {
        let mut recording = Recording::begin(&threads, threshold)?;
        recording.instance.open(Form::Binary).map_err(Error::from)?;
        let began = Nanos(Clock::Monotonic.now());
        recording.instance.write("tracing_on", "1").map_err(Error::from)?;
        let mut live = Self {
            recording,
            rings: Rings::of_this_machine(),
            seen: Seen::new(threads, threshold, began),
            until: Nanos(u64::MAX),
            recordings: Recordings::default(),
            late: 0,
        };
        live.rings.are_read_by(own_threads(&BTreeSet::new()));
        Ok(live)
    }

    /// From now on wake-ups of these threads alone count: anybody may call a thread as ours are called.
    pub fn watch_only(&mut self, ids: Vec<i32>) {
        self.rings.are_read_by(own_threads(&ids.iter().copied().collect()));
        self.seen.threads = Threads::Ids(ids);
    }

    /// Wake-ups before `since`, on `CLOCK_MONOTONIC`, do not count: threads that were made to be watched were not yet what they are to
    /// be.
    pub fn count_from(&mut self, since: Nanos) {
        self.seen.since = since;
    }

    /// Nothing from `until` on, on `CLOCK_MONOTONIC`, counts or is read.
    pub fn count_until(&mut self, until: Nanos) {
        self.until = until;
    }

    /// Reads what was recorded since, and explains the late wake-ups in it. It ends where the rings ended when this was called, also
    /// where the kernel records faster than this reads.
    ///
    /// # Errors
    /// What the kernel answered.
    pub fn look(&mut self) -> Result<Vec<Hit>> {
        self.read()?;
        let Self { seen, rings, .. } = self;
        let (ready, wait): (Vec<WakeUp>, Vec<WakeUp>) =
            seen.late.drain(..).partition(|one| rings.reach_beyond(one.cpu, one.switched));
        seen.late = wait;
        let hits = self.explain(ready);
        let read = self.seen.read;
        let needed = self.seen.late.iter().map(|one| one.due).min().unwrap_or(read).min(read);
        self.rings.forget_before(Nanos(needed.0.saturating_sub(KEPT.0)));
        Ok(hits)
    }

    /// Has the kernel record no more, reads the rest, and explains the wake-ups of which more events were waited for.
    ///
    /// # Errors
    /// What the kernel answered.
    pub fn finish(&mut self) -> Result<Vec<Hit>> {
        self.recording.instance.write("tracing_on", "0").map_err(Error::from)?;
        self.read()?;
        let late = std::mem::take(&mut self.seen.late);
        Ok(self.explain(late))
    }

    fn read(&mut self) -> Result<()> {
        let Self { recording, rings, seen, until, .. } = self;
        rings.read_on(&mut recording.instance, &recording.symbols, *until, &mut |item| seen.see(item))?;
        recording.look_at_cpus();
        Ok(())
    }

    fn explain(&mut self, late: Vec<WakeUp>) -> Vec<Hit> {
        let Self { recording, rings, recordings, .. } = self;
        let mut hits = Vec::new();
        for one in late {
            let Some(hit) = rings.explain(&of(&one)).map(|explained| explained.hit) else {
                recording.tracing.blind += 1;
                continue;
            };
            recordings.add(&hit, recording.tracing.threshold);
            if is_own(&hit) {
                recording.tracing.own += 1;
            } else {
                hits.push(hit);
            }
        }
        if recordings.hide_the_rest() {
            recording.do_without_stacks();
        }
        self.late += hits.len() as u64;
        hits
    }

    /// What all wake-ups and handlers took so far.
    pub fn overview(&self) -> Overview {
        self.seen.watching.overview()
    }

    /// What was traced.
    pub fn tracing(&self) -> Tracing {
        self.recording.tracing(&self.seen.watching)
    }

    /// What was watched so far, in so many seconds, and what of it is not known.
    pub fn summary(&self, seconds: f64) -> WatchSummary {
        let Tracing { threshold, blind, own, absent, .. } = self.tracing();
        WatchSummary {
            seconds,
            threshold,
            wake_ups: self.seen.count,
            late: self.late,
            unknown: self.seen.wake_ups.unfinished(),
            lost: self.seen.losses(),
            own,
            blind,
            absent,
        }
    }
}

/// Threads of this process, but for those that are watched: they read the trace, and wait.
fn own_threads(watched: &BTreeSet<i32>) -> BTreeSet<i32> {
    let pid = i32::try_from(std::process::id()).unwrap_or(0);
    let threads = machine::tasks::threads(&SysRoot::live(), pid).into_iter().map(|thread| thread.tid);
    threads.filter(|tid| !watched.contains(tid)).collect()
}

/// What the events say of the threads that are watched.
struct Seen {
    threads: Threads,
    threshold: Nanos,
    /// When the kernel began to record.
    began: Nanos,
    since: Nanos,
    wake_ups: WakeUps,
    watching: Watching,
    /// Late ones that are not explained yet: the stack behind the switch is still to come.
    late: Vec<WakeUp>,
    /// The end of the events that were read.
    read: Nanos,
    /// Wake-ups so far.
    count: u64,
    /// Where events were lost: how often, and for how long.
    lost: BTreeMap<CpuId, (u64, Nanos)>,
    /// Since when a CPU's events are lost, until its next one.
    gaps: BTreeMap<CpuId, Nanos>,
}

impl Seen {
    fn new(threads: Threads, threshold: Nanos, began: Nanos) -> Self {
        Self {
            threads,
            threshold,
            began,
            since: Nanos::ZERO,
            wake_ups: WakeUps::default(),
            watching: Watching::default(),
            late: Vec::new(),
            read: Nanos::ZERO,
            count: 0,
            lost: BTreeMap::new(),
            gaps: BTreeMap::new(),
        }
    }

    fn see(&mut self, item: Read<'_>) {
        match item {
            Read::Event(event) => self.event(event),
            Read::Lost { cpu, after } => {
                self.watching.lose(None);
                self.wake_ups.lose();
                let Some(cpu) = cpu else { return };
                self.lost.entry(cpu).or_default().0 += 1;
                self.gaps.entry(cpu).or_insert(after.unwrap_or(self.began));
            }
        }
    }

    fn event(&mut self, event: &Event) {
        let Self { threads, since, .. } = self;
        let counts = |tid: i32, name: &str| event.at >= *since && threads.has(tid, name);
        self.watching.see(event, counts);
        self.read = event.at.max(self.read);
        if let Some(one) = self.wake_ups.see(event, counts).filter(|one| one.due >= *since) {
            self.count += 1;
            self.late.extend((one.latency() >= self.threshold).then_some(one));
        }
        if let Some(from) = self.gaps.remove(&event.cpu) {
            self.lost.entry(event.cpu).or_default().1 += Nanos(event.at.0.saturating_sub(from.0));
        }
    }

    fn losses(&self) -> Vec<LostEvents> {
        let each = self.lost.iter();
        each.map(|(cpu, (times, length))| LostEvents { cpu: *cpu, times: *times, length: *length }).collect()
    }
}

fn of(one: &WakeUp) -> LateWakeUp {
    LateWakeUp {
        tid: one.tid,
        cpu: one.cpu,
        activation: 0,
        due: one.due,
        woke: one.switched,
        interval: one.interval.unwrap_or_default(),
        slack_until: one.slack_until,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use explain::{Kind, Task};

    const OWN: i32 = 100;
    const THRESHOLD: Nanos = Nanos(1_000);

    fn event(at: u64, kind: Kind) -> Event {
        Event { at: Nanos(at), cpu: CpuId(0), task: 0, is_wanted: None, kind }
    }

    /// A thread that is woken and gets the CPU.
    fn wake_up(seen: &mut Seen, woken: u64, switched: u64) {
        let own = || Task { tid: OWN, name: "explain/0".to_owned(), priority: Some(120), ..Task::default() };
        seen.see(Read::Event(&event(woken, Kind::Waking(own()))));
        let switch = Kind::Switch { previous: Task::default(), next: own() };
        seen.see(Read::Event(&event(switched, switch)));
    }

    fn seen() -> Seen {
        Seen::new(Threads::Ids(vec![OWN]), THRESHOLD, Nanos(10))
    }

    #[test]
    fn wake_ups_of_a_thread_that_is_being_started_do_not_count() {
        let mut seen = seen();
        seen.since = Nanos(50_000);
        // Its start, late; one that begins before and ends after; one that counts and is punctual.
        for (woken, switched) in [(20_000, 30_000), (49_000, 52_000), (60_000, 60_100)] {
            wake_up(&mut seen, woken, switched);
        }
        assert_eq!((seen.count, seen.late.len(), seen.wake_ups.unfinished()), (1, 0, 0));
        wake_up(&mut seen, 70_000, 72_000);
        assert_eq!((seen.count, seen.late.len()), (2, 1));
    }

    #[test]
    fn events_that_were_overwritten_are_counted_by_times_and_length() {
        let mut seen = seen();
        seen.see(Read::Lost { cpu: Some(CpuId(0)), after: None });
        wake_up(&mut seen, 1_010, 1_100);
        assert_eq!(seen.losses(), [LostEvents { cpu: CpuId(0), times: 1, length: Nanos(1_000) }]);
        seen.see(Read::Lost { cpu: Some(CpuId(0)), after: Some(Nanos(1_100)) });
        seen.see(Read::Lost { cpu: Some(CpuId(1)), after: Some(Nanos(900)) });
        wake_up(&mut seen, 3_100, 3_200);
        let lost = [(0, 2, 3_000), (1, 1, 0)];
        let lost =
            lost.map(|(cpu, times, length)| LostEvents { cpu: CpuId(cpu), times, length: Nanos(length) });
        assert_eq!(seen.losses(), lost, "no event says until when CPU 1's were lost");
        assert_eq!(seen.count, 2);
    }

    /// Whoever sleeps in a test of this process is not watched, and reads no less than others.
    #[test]
    fn threads_of_this_process_are_the_recordings_and_those_that_are_watched_are_not() {
        let own = sys::schedule::thread_id();
        assert!(own_threads(&BTreeSet::new()).contains(&own));
        assert!(!own_threads(&[own].into()).contains(&own));
    }
}
