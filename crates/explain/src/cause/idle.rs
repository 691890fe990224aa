//! What an idle CPU did while a thread waited for it.

use record::{Activity, Certainty, Class, Piece, Stage};
use units::Nanos;

use super::{Found, IDLE, Judge, USUAL, thread_words};
use crate::account::stage_length;
use crate::event::{Event, Frame, Kind};
use crate::stack::{self, Interrupted};

/// Timers and calls that give threads their time back: of groups with a quota (cpu.max, cpu.cfs_quota_us), and of real-time threads.
const QUOTAS: [&str; 3] = ["sched_cfs_period_timer", "sched_cfs_slack_timer", "__cfsb_csd_unthrottle"];
const RT_PERIOD: [&str; 1] = ["sched_rt_period_timer"];

/// What the scheduler has other CPUs do: wakings and balancing, in microseconds.
const BRIEF: [&str; 2] = ["sched_ttwu_pending", "nohz_csd_func"];

impl Judge<'_> {
    pub(super) fn idle(&self, piece: &Piece, asleep: bool, is_interrupted: bool) -> Found {
        if let Some(timer) = self.throttled_until().filter(|_| piece.stage == Stage::Runnable) {
            let witness = format!("idle until {timer}");
            return Found::new(Class::Throttling, "", Certainty::Sure, witness);
        }
        if let Some(found) = self.quota_since_it_ran(IDLE).filter(|_| piece.stage == Stage::Running) {
            return found;
        }
        if let Some(found) = self.called(piece).or_else(|| self.kept_from_an_idle_cpu(piece)) {
            return found;
        }
        if self.is_usual(piece) {
            return Found::usual();
        }
        if let Some(found) = self.stolen_found(piece, "the CPU was idle") {
            return found;
        }
        if piece.stage == Stage::BeforeInterrupt && !asleep && self.is_sleep_seen() {
            return if is_interrupted { self.silent_idle(piece) } else { self.passed(piece, IDLE) };
        }
        if self.window.is_guest {
            let witness = "an idle CPU is handed to the hypervisor, and no event came until the interrupt";
            return Found::new(Class::Host, "", Certainty::Likely, witness);
        }
        let culprit = if asleep { "an idle state" } else { "" };
        Found::new(
            Class::IdleExit,
            culprit,
            Certainty::Likely,
            "idle, and no event until the interrupt; or the firmware",
        )
    }

    /// No interrupt came while the idle thread was awake, on its way to sleep or out of an interrupt before.
    fn silent_idle(&self, piece: &Piece) -> Found {
        let thread = thread_words(&format!("swapper/{}", self.window.cpu), 0, None);
        if let Some(found) = self.waking_found(0, &thread) {
            return found;
        }
        match stack::interrupted(&self.account.waking_stack) {
            Interrupted::Kernel(frames) => self.interrupts_off(piece, frames, &thread),
            Interrupted::User | Interrupted::Unknown => {
                let witness = "interrupts were off, or the host had the CPU: the kernel gave no stack";
                Found::new(Class::Unknown, IDLE, Certainty::Unknown, witness)
            }
        }
    }

    /// Whether the kernel says when this CPU sleeps: it may withhold events of the idle thread.
    fn is_sleep_seen(&self) -> bool {
        self.window.of(self.window.cpu).iter().any(|event| matches!(event.kind, Kind::Sleep(_)))
    }

    /// The timer that gives threads like this one their time back, where it led to the switch. It also expires where none is throttled:
    /// somewhere in the time in which a thread waits for something else.
    pub(super) fn throttled_until(&self) -> Option<&str> {
        let timers: &[&str] = if self.is_fair() { &QUOTAS } else { &RT_PERIOD };
        let end = self.account.stages.switch.unwrap_or(self.window.woke);
        let (at, name) = self.last_of(timers, self.account.stages.waking.unwrap_or_default(), end)?;
        let waited = stage_length(&self.account.pieces, Stage::Runnable);
        (Nanos(end.0 - at.0) <= Nanos(waited.0 / 10).max(USUAL)).then_some(name)
    }

    /// The last of these timers and calls that began from one moment to the other, on any CPU.
    fn last_of(&self, names: &[&str], from: Nanos, to: Nanos) -> Option<(Nanos, &str)> {
        let begun = self.window.all().filter_map(|event| match &event.kind {
            Kind::Enter(Frame::Timer(name, _) | Frame::Call(name)) => Some((event.at, name.as_str())),
            _ => None,
        });
        begun.filter(|(at, name)| names.contains(name) && (from..=to).contains(at)).max_by_key(|(at, _)| *at)
    }

    /// A thread of the fair scheduler that gave way before it was in user space, while a timer gave groups their time back: its group's
    /// quota can have been spent, which the kernel enforces there since Linux 6.18.
    pub(super) fn quota_since_it_ran(&self, other: &str) -> Option<Found> {
        let (from, end) = (self.account.stages.switch.filter(|_| self.is_fair())?, self.window.woke);
        let waited = stage_length(&self.account.pieces, Stage::Running);
        let (at, timer) = self.last_of(&QUOTAS, from, end).filter(|_| waited > USUAL)?;
        if end.0 - at.0 <= waited.0 / 10 {
            let witness = format!("it gave way before it was in user space, until {timer}");
            return Some(Found::new(Class::Throttling, "", Certainty::Likely, witness));
        }
        let witness = format!(
            "before it was in user space others had their share, or a quota was spent ({timer} came)"
        );
        Some(Found::new(Class::Unknown, other, Certainty::Unknown, witness))
    }

    /// A call from another CPU that the idle thread runs before the interrupt for it comes, with interrupts off. Where the kernel
    /// withholds the idle thread's events, all that is seen of it is that it was queued.
    fn called(&self, piece: &Piece) -> Option<Found> {
        if piece.length <= USUAL || self.is_sleep_seen() {
            return None;
        }
        let from = self.begin_of(piece);
        let until = from + piece.length;
        let here = self.window.of(self.window.cpu);
        let is_vector = |event: &&Event| matches!(event.kind, Kind::Enter(Frame::Vector(_)));
        let before = here.iter().take_while(|event| event.at <= from).filter(is_vector);
        // What was queued while an interrupt ran is run when that ends.
        let since = before.last().map_or(from, |event| event.at);
        let is_run = |queued: Nanos, function: &str| {
            let mut calls = here.iter().filter(|event| event.at >= queued);
            calls.any(|event| matches!(&event.kind, Kind::Enter(Frame::Call(name)) if name == function))
        };
        let queued = self.window.all().filter_map(|event| match &event.kind {
            Kind::Queue { cpu, from, function } => {
                let is_long = *cpu == self.window.cpu && !BRIEF.contains(&function.as_str());
                is_long.then_some((event, from, function))
            }
            _ => None,
        });
        let (event, from, function) = queued
            .filter(|(event, _, function)| (since..until).contains(&event.at) && !is_run(event.at, function))
            .max_by_key(|(event, ..)| event.at)?;
        let sender = self.sender_words(event, from);
        let witness = format!("queued by {sender}, and run by the idle thread, whose events are withheld");
        Some(Found::new(Class::Call, function, Certainty::Likely, witness))
    }

    /// When a piece of the account begins.
    pub(super) fn begin_of(&self, piece: &Piece) -> Nanos {
        let before = self.account.pieces.iter().take_while(|one| !std::ptr::eq(*one, piece));
        before.fold(self.window.due, |at, one| at + one.length)
    }

    /// A thread that is ready gets an idle CPU when an interrupt of that CPU ends, or it must not run.
    fn kept_from_an_idle_cpu(&self, piece: &Piece) -> Option<Found> {
        if piece.stage != Stage::Runnable || piece.length <= USUAL || !self.is_passed_by_an_idle_cpu() {
            return None;
        }
        // Who was woken on another CPU may still have been on the way.
        if self.account.stages.waking_cpu != Some(self.window.cpu) {
            let witness = "it was ready, and the idle CPU did not take it when an interrupt ended";
            return Some(Found::new(Class::Unknown, IDLE, Certainty::Unknown, witness));
        }
        let witness =
            "it was ready, and its CPU stayed idle after an interrupt: a quota of its group, or throttling";
        Some(Found::new(Class::Throttling, "", Certainty::Likely, witness))
    }

    /// Whether the CPU was idle, took an interrupt and was idle again for longer than a switch takes, all while the thread was ready.
    fn is_passed_by_an_idle_cpu(&self) -> bool {
        let mut ready = self.account.pieces.iter().filter(|piece| piece.stage == Stage::Runnable);
        let is_idle = |piece: &&Piece| matches!(piece.activity, Activity::Idle { .. });
        let is_interrupt = |piece: &Piece| matches!(piece.activity, Activity::Interrupt { .. });
        ready.any(|piece| is_idle(&piece))
            && ready.any(is_interrupt)
            && ready.any(|piece| is_idle(&piece) && piece.length > USUAL)
    }
}
