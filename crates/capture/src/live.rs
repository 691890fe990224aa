//! Wake-ups of any threads, read from the trace while it is recorded: nothing is frozen, nobody marks anything.

use explain::{WakeUp, WakeUps, Watching};
use failure::{Error, Result};
use record::{Hit, LateWakeUp, Overview, Tracing};
use trace::live::Form;
use units::Nanos;

use crate::hits::{Recordings, is_own};
use crate::rings::Rings;
use crate::{KEPT, Recording, Threads};

/// Threads whose wake-ups are watched. Dropped, the instance is removed.
pub struct Live {
    recording: Recording,
    threads: Threads,
    rings: Rings,
    wake_ups: WakeUps,
    watching: Watching,
    /// Late ones that are not explained yet: the stack behind the switch is still to come.
    late: Vec<WakeUp>,
    /// The end of the events that were read.
    read: Nanos,
    /// Wake-ups so far.
    count: u64,
    recordings: Recordings,
}

impl Live {
    /// Begins to record for wake-ups that are so late.
    ///
    /// # Errors
    /// There is no tracefs, or the kernel refuses.
    pub fn begin(threads: Threads, threshold: Nanos) -> Result<Self> {
        let mut recording = Recording::begin(&threads, threshold)?;
        recording.instance.open(Form::Binary).map_err(Error::from)?;
        recording.instance.write("tracing_on", "1").map_err(Error::from)?;
        Ok(Self {
            recording,
            threads,
            rings: Rings::of_this_machine(),
            wake_ups: WakeUps::default(),
            watching: Watching::default(),
            late: Vec::new(),
            read: Nanos::ZERO,
            count: 0,
            recordings: Recordings::default(),
        })
    }

    /// From now on wake-ups of these threads alone count: anybody may call a thread as ours are called.
    pub fn watch_only(&mut self, ids: Vec<i32>) {
        self.threads = Threads::Ids(ids);
    }

    /// Reads what was recorded since, and explains the late wake-ups in it.
    ///
    /// # Errors
    /// What the kernel answered.
    pub fn look(&mut self) -> Result<Vec<Hit>> {
        let Self { recording, threads, rings, wake_ups, watching, late, read, count, recordings } = self;
        let threshold = recording.tracing.threshold;
        rings.read_on(&mut recording.instance, &recording.symbols, &mut |event| {
            let Some(event) = event else {
                watching.lose(None);
                return wake_ups.lose();
            };
            watching.see(event, |tid, name| threads.has(tid, name));
            *read = event.at.max(*read);
            if let Some(one) = wake_ups.see(event, |tid, name| threads.has(tid, name)) {
                *count += 1;
                late.extend((one.latency() >= threshold).then_some(one));
            }
        })?;
        recording.look_at_cpus();
        let (ready, wait): (Vec<WakeUp>, Vec<WakeUp>) =
            late.drain(..).partition(|one| rings.reach_beyond(one.cpu, one.switched));
        *late = wait;
        let mut hits = Vec::new();
        for one in ready {
            let Some(hit) = rings.explain(&of(&one)).map(|explained| explained.hit) else {
                recording.tracing.blind += 1;
                continue;
            };
            recordings.add(&hit, threshold);
            if is_own(&hit) {
                recording.tracing.own += 1;
            } else {
                hits.push(hit);
            }
        }
        if recordings.hide_the_rest() {
            recording.do_without_stacks();
        }
        let needed = late.iter().map(|one| one.due).min().unwrap_or(*read).min(*read);
        rings.forget_before(Nanos(needed.0.saturating_sub(KEPT.0)));
        Ok(hits)
    }

    /// Wake-ups so far, late or not.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Wake-ups of which the trace lacks the end.
    pub fn unfinished(&self) -> u64 {
        self.wake_ups.unfinished()
    }

    /// What all wake-ups and handlers took so far.
    pub fn overview(&self) -> Overview {
        self.watching.overview()
    }

    /// What was traced.
    pub fn tracing(&self) -> Tracing {
        self.recording.tracing(&self.watching)
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
    }
}
