//! How far a wake-up had come, and when.

use record::Stage;
use units::{CpuId, Nanos};

use crate::event::{Event, Frame, Kind};
use crate::playback::Playback;
use crate::wake_up::ON_ITS_WAY;
use crate::window::Window;

/// Links of a chain of threads that wake one another.
const LONGEST_CHAIN: usize = 8;

/// The moments of a wake-up. Each is none where the trace does not have it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stages {
    /// The timer's interrupt began.
    pub interrupt: Option<Nanos>,
    /// The thread was to run, or the first of a chain of threads that led to it.
    pub waking: Option<Nanos>,
    /// Where that was.
    pub waking_cpu: Option<CpuId>,
    /// The last interrupt or softirq before it got the CPU was over; from then on only threads ran.
    pub threads: Option<Nanos>,
    /// It got the CPU.
    pub switch: Option<Nanos>,
}

impl Stages {
    /// Finds them.
    pub fn find(window: &Window) -> Self {
        let switch = seen_before(window, switch(window));
        let wakings = wakings(window, switch.unwrap_or(window.woke));
        let Some(waking) = wakings.first() else {
            return Self { switch, ..Self::default() };
        };
        let interrupt = interrupt_around(window, waking);
        let threads = switch.and_then(|switch| last_end(window, waking.at, switch));
        Self { interrupt, waking: Some(waking.at), waking_cpu: Some(waking.cpu), threads, switch }
    }

    /// The stage just after `at`.
    pub fn at(&self, at: Nanos) -> Stage {
        match *self {
            Self { switch: Some(switch), .. } if at >= switch => Stage::Running,
            Self { waking: Some(waking), .. } if at >= waking => Stage::Runnable,
            Self { interrupt: Some(interrupt), .. } if at >= interrupt => Stage::InInterrupt,
            Self { waking: Some(_), .. } => Stage::BeforeInterrupt,
            _ => Stage::Unknown,
        }
    }
}

/// What is usual on a CPU, of many wake-ups stage by stage: medians. In nanoseconds, or in what the clock counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usual {
    /// From the time it was due to the interrupt.
    pub before_interrupt: Nanos,
    /// From there to the waking.
    pub in_interrupt: Nanos,
    /// From there to the switch.
    pub runnable: Nanos,
    /// What the scheduler itself takes: the shortest tenth of the last part of that, in which nothing but threads ran. Under a load
    /// most wake-ups may wait for a thread.
    pub scheduling: Nanos,
    /// From the switch to its own code.
    pub running: Nanos,
}

impl Usual {
    /// Medians over wake-ups of one thread; none where there are fewer than eight.
    pub fn of(wake_ups: &[(Nanos, Stages, Nanos)]) -> Option<Self> {
        const LEAST: usize = 8;
        let lengths = wake_ups.iter().filter_map(|(due, stages, woke)| {
            let (interrupt, waking, switch) = (stages.interrupt?, stages.waking?, stages.switch?);
            let from = |later: Nanos, earlier: Nanos| later.0.saturating_sub(earlier.0);
            let due = (*due).min(interrupt);
            let threads = stages.threads.unwrap_or(waking);
            Some([
                from(interrupt, due),
                from(waking, interrupt),
                from(switch, waking),
                from(switch, threads),
                from(*woke, switch),
            ])
        });
        let lengths: Vec<[u64; 5]> = lengths.collect();
        if lengths.len() < LEAST {
            return None;
        }
        let quantile = |stage: usize, parts: usize| {
            let mut of_stage: Vec<u64> = lengths.iter().map(|lengths| lengths[stage]).collect();
            of_stage.sort_unstable();
            Nanos(of_stage[of_stage.len() / parts])
        };
        let median = |stage| quantile(stage, 2);
        Some(Self {
            before_interrupt: median(0),
            in_interrupt: median(1),
            runnable: median(2),
            scheduling: quantile(3, 10),
            running: median(4),
        })
    }

    /// Of the wake-ups of `tid` before the one that was due at `due`, each `interval` apart. When one came is taken from the
    /// thread's next event, a little later than it was.
    pub fn before(events: &[Event], tid: i32, due: Nanos, interval: Nanos) -> Option<Self> {
        let interval = interval.0.max(1);
        let switches = events.iter().enumerate().filter(|(_, event)| {
            matches!(&event.kind, Kind::Switch { next, .. } if next.tid == tid) && event.at < due
        });
        let wake_ups: Vec<_> = switches
            .filter_map(|(place, switch)| {
                let back = (due.0 - switch.at.0).div_ceil(interval);
                let due = Nanos(due.0.checked_sub(back * interval)?);
                let (due, latest) = armed(&events[..place], tid, switch.at, interval)
                    .filter(|(armed, _)| switch.at.0.checked_sub(armed.0).is_some_and(|late| late < interval))
                    .unwrap_or((due, due));
                let is_stack = |event: &&Event| matches!(event.kind, Kind::Stack(_));
                let woke = events[place + 1..].iter().find(|event| !is_stack(event))?.at;
                let first = events.partition_point(|event| event.at.0 + interval < due.0);
                let of_it = events[first..].iter().take_while(|event| event.at <= woke).cloned().collect();
                let events = [(switch.cpu, of_it)].into();
                let window = Window { cpu: switch.cpu, tid, due, woke, events, ..Window::default() };
                // Until its slack ends nothing is late.
                Some((latest.max(due), Stages::find(&window), woke))
            })
            .collect();
        Self::of(&wake_ups)
    }

    /// Up to which length a stage is as it usually is: three times its median.
    pub fn limit(&self, stage: Stage) -> Nanos {
        let median = match stage {
            Stage::BeforeInterrupt => self.before_interrupt,
            Stage::InInterrupt => self.in_interrupt,
            Stage::Runnable => self.runnable,
            Stage::Running => self.running,
            Stage::Unknown => Nanos::ZERO,
        };
        median.saturating_mul(3)
    }

    /// Up to which length a thread's part of the wait for the CPU is as it usually is.
    pub fn limit_of_threads(&self) -> Nanos {
        self.scheduling.saturating_mul(3)
    }
}

/// For when `tid` had last set its timer, and the latest time of that, less than two intervals before `before`. A thread's activations
/// may be further apart than its interval says: those of a probe that sweeps past the phases of the tick are.
fn armed(events: &[Event], tid: i32, before: Nanos, interval: u64) -> Option<(Nanos, Nanos)> {
    let recent = events
        .iter()
        .rev()
        .take_while(|event| event.at.0.saturating_add(interval.saturating_mul(2)) >= before.0);
    recent.filter(|event| event.task == tid).find_map(|event| match event.kind {
        Kind::Arm { due, latest, .. } => Some((due, latest)),
        _ => None,
    })
}

/// When the last interrupt or softirq on the thread's CPU between the two moments was over.
fn last_end(window: &Window, from: Nanos, to: Nanos) -> Option<Nanos> {
    let ends = window.of(window.cpu).iter().filter(|event| matches!(event.kind, Kind::Leave(_)));
    ends.map(|event| event.at).filter(|at| (from..=to).contains(at)).max()
}

/// When the thread got the CPU for this wake-up: its first switch after its waking; the last one where no waking is in the trace.
fn switch(window: &Window) -> Option<Nanos> {
    let to_it = |event: &&Event| {
        let is_it = matches!(&event.kind, Kind::Switch { next, .. } if next.tid == window.tid);
        is_it && event.at >= window.due && event.at <= window.woke
    };
    let mut switches = window.of(window.cpu).iter().filter(to_it).map(|event| event.at);
    match waking(window, window.tid, window.woke) {
        Some(waking) => switches.find(|at| *at >= waking.at),
        None => switches.next_back(),
    }
}

/// When the thread was first seen to run on its CPU after its own waking, where that is before the switch: the switch that began it is
/// in no event, and in the one that is there it came back.
fn seen_before(window: &Window, switch: Option<Nanos>) -> Option<Nanos> {
    let Some(waking) = waking(window, window.tid, switch.unwrap_or(window.woke)) else { return switch };
    let from = waking.at.0.saturating_add(ON_ITS_WAY.0);
    let ran = window.of(window.cpu).iter().find(|event| {
        let is_in_time = event.at.0 > from && event.at < switch.unwrap_or(window.woke);
        is_in_time && event.task == window.tid && !matches!(event.kind, Kind::Stack(_))
    });
    ran.map(|event| event.at).or(switch)
}

/// The wakings that led to it, its own the last: of the thread, of the thread that woke it, and so on back to an interrupt.
pub fn wakings(window: &Window, before: Nanos) -> Vec<&Event> {
    let mut links: Vec<&Event> = waking(window, window.tid, before).into_iter().collect();
    while let Some(link) = links.last().filter(|_| links.len() <= LONGEST_CHAIN) {
        if link.task == 0 || is_of_softirqs(link) || is_in_interrupt(window, link) {
            break;
        }
        let before_due = || ready_before(window, link.task, link.at).filter(|waking| is_of_softirqs(waking));
        match waking(window, link.task, link.at).or_else(before_due) {
            Some(earlier) if earlier.task != link.task => links.push(earlier),
            _ => break,
        }
    }
    links.reverse();
    links
}

/// Whether a thread is woken that carries softirqs out: an interrupt's exit does that, on top of whatever thread it interrupted.
fn is_of_softirqs(waking: &Event) -> bool {
    let is_one = |name: &str| ["ktimers/", "ksoftirqd/"].iter().any(|begin| name.starts_with(begin));
    matches!(&waking.kind, Kind::Waking(woken) if is_one(&woken.name))
}

/// The last waking of `tid` in the window that came no later than `before`.
pub fn waking(window: &Window, tid: i32, before: Nanos) -> Option<&Event> {
    let is_it = |event: &&Event| {
        matches!(&event.kind, Kind::Waking(woken) if woken.tid == tid)
            && event.at >= window.due
            && event.at <= before
    };
    window.all().filter(is_it).max_by_key(|event| event.at)
}

/// The waking of `tid` before the wake-up was due, where the thread has not slept from then until `before`.
fn ready_before(window: &Window, tid: i32, before: Nanos) -> Option<&Event> {
    let is_change = |event: &&Event| match &event.kind {
        Kind::Waking(woken) => woken.tid == tid,
        Kind::Switch { previous, .. } => {
            previous.tid == tid && previous.state.is_none_or(|state| state.is_asleep())
        }
        _ => false,
    };
    let last =
        window.all().filter(|event| event.at < before).filter(is_change).max_by_key(|event| event.at)?;
    matches!(last.kind, Kind::Waking(_)).then_some(last)
}

/// What runs on the waking's CPU at its moment.
fn state_at(window: &Window, waking: &Event) -> (Playback, Vec<(Frame, Nanos)>) {
    let mut playback = Playback::default();
    let mut entered: Vec<(Frame, Nanos)> = Vec::new();
    for event in window.of(waking.cpu) {
        if event.at > waking.at || std::ptr::eq(event, waking) {
            break;
        }
        playback.see(event);
        if let Kind::Enter(frame) = &event.kind {
            entered.push((frame.clone(), event.at));
        }
        let frames = playback.frames();
        entered.retain(|(frame, _)| frames.contains(frame));
    }
    (playback, entered)
}

fn is_in_interrupt(window: &Window, waking: &Event) -> bool {
    let (_, entered) = state_at(window, waking);
    entered.iter().any(|(frame, _)| matches!(frame, Frame::Vector(_) | Frame::Handler(..)))
}

/// When the interrupt began in which the waking came: the outermost one, or the timer's function where interrupts have no
/// events.
fn interrupt_around(window: &Window, waking: &Event) -> Option<Nanos> {
    let (_, entered) = state_at(window, waking);
    let outermost =
        |wanted: fn(&Frame) -> bool| entered.iter().find(|(frame, _)| wanted(frame)).map(|(_, at)| *at);
    outermost(|frame| matches!(frame, Frame::Vector(_) | Frame::Handler(..)))
        .or_else(|| outermost(|frame| matches!(frame, Frame::Timer(..))))
}
