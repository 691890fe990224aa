//! Wake-ups of threads, by their events alone.

use std::collections::BTreeMap;

use units::{CpuId, Nanos};

use crate::event::{Event, Frame, Kind};
use crate::window::slack;

/// A thread got a CPU that it had waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WakeUp {
    /// The thread.
    pub tid: i32,
    /// Where it runs.
    pub cpu: CpuId,
    /// When its timer was due; where something else woke it, when that did.
    pub due: Nanos,
    /// When it got the CPU.
    pub switched: Nanos,
    /// Until when its timer slack let the kernel wait with the timer.
    pub slack_until: Option<Nanos>,
    /// From one `due` to the next; none for the first.
    pub interval: Option<Nanos>,
}

impl WakeUp {
    /// How late it was.
    pub fn latency(&self) -> Nanos {
        Nanos(self.switched.0.saturating_sub(self.due.0))
    }
}

/// A thread that is woken may still be on its way to sleep, on another CPU: so long its own events do not say that it runs.
pub(crate) const ON_ITS_WAY: Nanos = Nanos(20_000);

/// A timer that a thread has set for itself.
#[derive(Clone, Copy, Debug)]
struct Armed {
    timer: u64,
    due: Nanos,
    slack_until: Option<Nanos>,
}

/// A thread that is to run.
#[derive(Clone, Copy, Debug)]
struct Woken {
    due: Nanos,
    slack_until: Option<Nanos>,
    at: Nanos,
}

/// What is known of threads that sleep and wake up.
#[derive(Clone, Debug, Default)]
pub struct WakeUps {
    /// The timer whose function runs on a CPU.
    runs: BTreeMap<CpuId, u64>,
    armed: BTreeMap<i32, Armed>,
    woken: BTreeMap<i32, Woken>,
    /// When a thread was due last.
    last: BTreeMap<i32, Nanos>,
    /// Wake-ups whose end is in no event.
    unfinished: u64,
}

impl WakeUps {
    /// Goes on by one event; events of all CPUs come in order of time. The wake-up that it ends, if it does. `is_one` says of which
    /// threads.
    pub fn see(&mut self, event: &Event, is_one: impl Fn(i32, &str) -> bool) -> Option<WakeUp> {
        self.find_running(event);
        match &event.kind {
            Kind::Enter(Frame::Timer(_, timer)) => {
                self.runs.insert(event.cpu, *timer);
            }
            Kind::Leave(Frame::Timer(..)) => {
                self.runs.remove(&event.cpu);
            }
            Kind::Arm { timer, due, latest } => {
                let armed = Armed { timer: *timer, due: *due, slack_until: slack(*due, *latest) };
                self.armed.insert(event.task, armed);
            }
            // Who runs while it is woken did not sleep.
            Kind::Waking(task) if is_one(task.tid, &task.name) && task.tid != event.task => {
                // A timer on another clock is due far from now.
                let armed = self
                    .armed
                    .remove(&task.tid)
                    .filter(|armed| self.runs.get(&event.cpu) == Some(&armed.timer) && armed.due <= event.at);
                let due = armed.map_or(event.at, |armed| armed.due);
                let slack_until = armed.and_then(|armed| armed.slack_until);
                let before = self.woken.insert(task.tid, Woken { due, slack_until, at: event.at });
                // It cannot be woken again unless it has run and slept meanwhile.
                self.unfinished += u64::from(before.is_some());
            }
            Kind::Switch { next, .. } => {
                let Woken { due, slack_until, .. } = self.woken.remove(&next.tid)?;
                let last = self.last.insert(next.tid, due);
                let interval = last.map(|last| Nanos(due.0.saturating_sub(last.0)));
                let (tid, cpu, switched) = (next.tid, event.cpu, event.at);
                return Some(WakeUp { tid, cpu, due, switched, slack_until, interval });
            }
            _ => {}
        }
        None
    }

    /// A thread that is seen to run has got its CPU, though the switch to it is in no event.
    fn find_running(&mut self, event: &Event) {
        let woken = self.woken.get(&event.task).map(|woken| woken.at);
        let is_over = |woken: Nanos| event.at.0 > woken.0.saturating_add(ON_ITS_WAY.0);
        // A switch's stack still names the thread that gave way.
        if woken.is_some_and(is_over) && !matches!(event.kind, Kind::Stack(_)) {
            self.woken.remove(&event.task);
            self.unfinished += 1;
        }
    }

    /// Wake-ups whose end is in no event, so that how late they were is not known.
    pub fn unfinished(&self) -> u64 {
        self.unfinished
    }

    /// Events were lost: nothing that was under way is known any more.
    pub fn lose(&mut self) {
        self.unfinished += self.woken.len() as u64;
        self.runs.clear();
        self.armed.clear();
        self.woken.clear();
        self.last.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Task;

    const OWN: i32 = 100;

    fn event(at: u64, task: i32, kind: Kind) -> Event {
        Event { at: Nanos(at), cpu: CpuId(0), task, is_wanted: None, kind }
    }

    /// When the thread was due that got the CPU at 2000.
    fn due(events: &[Event]) -> Option<Nanos> {
        let mut wake_ups = WakeUps::default();
        let own = Task { tid: OWN, ..Task::default() };
        let switch = event(2_000, 0, Kind::Switch { previous: Task::default(), next: own });
        let each = events.iter().chain([&switch]);
        each.filter_map(|event| wake_ups.see(event, |tid, _| tid == OWN)).last().map(|one| one.due)
    }

    /// Events of a task can be missing as a whole: a wake-up without its end is no punctual one.
    #[test]
    fn a_wake_up_whose_switch_is_in_no_event_is_counted_apart() {
        let mut wake_ups = WakeUps::default();
        let own = Task { tid: OWN, ..Task::default() };
        let waking = |at| event(at, 0, Kind::Waking(own.clone()));
        let switch = |at| event(at, 0, Kind::Switch { previous: Task::default(), next: own.clone() });
        let events = [waking(1), waking(2), switch(3), waking(4)];
        let seen = events.iter().filter_map(|event| wake_ups.see(event, |tid, _| tid == OWN)).count();
        assert_eq!((seen, wake_ups.unfinished()), (1, 1));
        wake_ups.lose();
        assert_eq!(wake_ups.unfinished(), 2);
    }

    #[test]
    fn a_wake_up_of_a_thread_that_was_seen_to_run_is_over() {
        let mut wake_ups = WakeUps::default();
        let own = Task { tid: OWN, ..Task::default() };
        let rival = Task { tid: 7, ..Task::default() };
        let to_own = |at| event(at, 7, Kind::Switch { previous: rival.clone(), next: own.clone() });
        let from_own = |at| event(at, OWN, Kind::Switch { previous: own.clone(), next: rival.clone() });
        let waking = |at, task| event(at, task, Kind::Waking(own.clone()));
        let mut count = |events: &[Event]| {
            events.iter().filter_map(|event| wake_ups.see(event, |tid, _| tid == OWN)).count()
        };
        // The switch to it is not there; then it is preempted, and comes back.
        assert_eq!(
            count(&[waking(0, 0), event(200_000, OWN, Kind::Other), from_own(600_000), to_own(3_600_000)]),
            0
        );
        // It had not slept.
        assert_eq!(count(&[waking(4_000_000, OWN), from_own(4_600_000), to_own(7_000_000)]), 0);
        // It was on its way to sleep on another CPU.
        assert_eq!(count(&[waking(8_000_000, 0), from_own(8_001_000), to_own(8_050_000)]), 1);
        assert_eq!(wake_ups.unfinished(), 1);
    }

    #[test]
    fn a_thread_is_due_when_its_timer_is_and_else_when_it_is_woken() {
        let armed = |due| event(100, OWN, Kind::Arm { timer: 7, due: Nanos(due), latest: Nanos(due) });
        let timer = |timer| Frame::Timer("hrtimer_wakeup".into(), timer);
        let enter = |number| event(1_400, 0, Kind::Enter(timer(number)));
        let leave = || event(1_450, 0, Kind::Leave(timer(7)));
        let waking = |task| event(1_500, task, Kind::Waking(Task { tid: OWN, ..Task::default() }));
        assert_eq!(due(&[armed(1_000), enter(7), waking(0)]), Some(Nanos(1_000)));
        // Another thread woke it first; another timer; a timer that was over; a timer on another clock.
        assert_eq!(due(&[armed(1_900), waking(5)]), Some(Nanos(1_500)));
        assert_eq!(due(&[armed(1_000), enter(8), waking(0)]), Some(Nanos(1_500)));
        assert_eq!(due(&[armed(1_000), enter(7), leave(), waking(0)]), Some(Nanos(1_500)));
        assert_eq!(due(&[armed(1 << 60), enter(7), waking(0)]), Some(Nanos(1_500)));
        // It was preempted, and did not sleep.
        assert_eq!(due(&[armed(1_000)]), None);
    }
}
