//! What pieces come to.

mod calls;
mod chain;
mod held;
mod idle;
mod preempted;

use std::cell::Cell;

use record::{Activity, Cause, Certainty, Class, Piece, Stage};
use units::{CpuId, InOrder, Nanos};

use crate::account::{Account, stage_length};
use crate::event::{Event, Frame, Kind, wakes_its_owner};
use crate::places::{Place, places};
use crate::stack::{self, GaveWay, Interrupted};
use crate::stages::Usual;
use crate::steal::Steal;
use crate::window::Window;
use chain::Link;
use held::Stacks;

/// Where nothing is known of what is usual, a part of a wake-up up to this length is.
const USUAL: Nanos = Nanos(20_000);

/// Interrupts of each CPU's timer: x86's vector, and handlers of arm64, arm, RISC-V and PowerPC.
const TIMERS: [&str; 5] = ["local_timer", "arch_timer", "twd", "riscv-timer", "timer"];

/// The tick's function does little with interrupts off: so long is no work of the kernel.
const LONG_TICK: Nanos = Nanos(1_000_000);

fn is_tick(function: &str) -> bool {
    matches!(function, "tick_sched_timer" | "tick_nohz_handler")
}

/// The kernel's priorities from here on are the fair scheduler's (include/linux/sched/prio.h: MAX_RT_PRIO): its threads get shares, and
/// none goes before another.
const FAIR: i32 = 100;

/// What the kernel's stopper threads are called (kernel/stop_machine.c): they go before every other, whatever their priority is.
const STOPPER: &str = "migration/";

/// So many choices of a lower thread are no race of a waking that is on its way from another CPU.
const PASSED_OVER: usize = 2;

/// Stolen time of at least this share of a gap, in percent, makes it the host's for sure.
const STOLEN: u64 = 90;

/// The thread that runs where none is ready.
const IDLE: &str = "the idle thread";

/// What shows that interrupts were off, where a function was interrupted.
const ON_AGAIN: &str = "interrupted there once interrupts were on again";

const OFF_OR_HOST: &str = "interrupted there: interrupts were off, or the host had the CPU";

/// Interrupts are off for so long now and then; hosts take CPUs for so long all the time.
const LONG_IN_A_GUEST: Nanos = Nanos(1_000_000);

/// The causes of a wake-up's pieces: they sum to its latency, the largest first.
pub fn causes(window: &Window, account: &Account, usual: Option<&Usual>) -> Vec<Cause> {
    let places = places(window, &account.stages);
    let (links, stolen) = (chain::links(window, account), Cell::new(account.stolen));
    let judge = Judge { window, account, usual, places, links, stolen };
    let mut causes: Vec<Cause> = Vec::new();
    let last = account.pieces.iter().rposition(|piece| piece.stage == Stage::BeforeInterrupt);
    for (place, piece) in account.pieces.iter().enumerate() {
        let found = judge.cause(piece, Some(place) == last);
        let same = causes.iter_mut().find(|one| {
            (one.class, &one.culprit, one.certainty, &one.witness)
                == (found.class, &found.culprit, found.certainty, &found.witness)
        });
        match same {
            Some(one) => one.length += found.length,
            None => causes.push(found),
        }
    }
    causes.order_by_key(|cause| std::cmp::Reverse(cause.length));
    causes
}

struct Judge<'a> {
    window: &'a Window,
    account: &'a Account,
    usual: Option<&'a Usual>,
    places: Vec<Place>,
    links: Vec<Link>,
    /// What was stolen and is not yet found in a piece.
    stolen: Cell<Steal>,
}

/// What a piece is found to be: class, culprit, how sure, what shows it.
struct Found(Class, String, Certainty, String);

impl Found {
    fn new(
        class: Class,
        culprit: impl Into<String>,
        certainty: Certainty,
        witness: impl Into<String>,
    ) -> Self {
        Self(class, culprit.into(), certainty, witness.into())
    }

    fn usual() -> Self {
        Self::new(Class::Usual, "", Certainty::Sure, "")
    }
}

impl Judge<'_> {
    fn cause(&self, piece: &Piece, is_interrupted: bool) -> Cause {
        let Found(class, culprit, certainty, witness) =
            self.unless_the_host_had_it(piece, self.found(piece, is_interrupted));
        Cause { class, culprit, length: piece.length, certainty, witness }
    }

    /// Code with interrupts off in which a guest's host has the CPU looks as if it took so long itself.
    fn unless_the_host_had_it(&self, piece: &Piece, found: Found) -> Found {
        let is_doubtful = piece.length >= LONG_IN_A_GUEST && self.may_be_the_hosts(piece);
        match found {
            Found(Class::InterruptsOff, culprit, ..) if is_doubtful => {
                Found::new(Class::Unknown, culprit, Certainty::Unknown, OFF_OR_HOST)
            }
            // Softirqs have interrupts on: the timer's would have come.
            Found(Class::Softirq, culprit, ..) if is_doubtful && piece.stage == Stage::BeforeInterrupt => {
                Found::new(Class::Unknown, culprit, Certainty::Unknown, OFF_OR_HOST)
            }
            found => found,
        }
    }

    /// Whether a host may have had the CPU, and no clock shows that it did not: idle threads have none.
    fn may_be_the_hosts(&self, piece: &Piece) -> bool {
        let has_no_clock = !self.window.shows_steal || matches!(piece.activity, Activity::Idle { .. });
        self.window.is_guest && (has_no_clock || self.stolen.get().seen.0 > piece.length.0 / 10)
    }

    /// `is_interrupted` says whether the timer's interrupt ended the piece.
    fn found(&self, piece: &Piece, is_interrupted: bool) -> Found {
        use Certainty::Sure;
        if piece.stage == Stage::BeforeInterrupt && self.is_slack(piece) {
            let witness = "its timer may come until then (hrtimer_start: expires)";
            return Found::new(Class::TimerSlack, "", Sure, witness);
        }
        if let Some(found) = self.preempted_softirq(piece, is_interrupted) {
            return found;
        }
        match &piece.activity {
            Activity::Tracing => Found::new(Class::Tracing, "", Sure, "stacks are recorded"),
            Activity::Unknown { why } => Found::new(Class::Unknown, "", Certainty::Unknown, why),
            Activity::Nmi { name } => Found::new(Class::Nmi, name, Sure, "its event"),
            Activity::Softirq { name } => Found::new(Class::Softirq, name, Sure, "its events"),
            Activity::Timer { function } if wakes_its_owner(function) => self.path(piece),
            Activity::Timer { function } if is_tick(function) && piece.length >= LONG_TICK => {
                let witness = "the tick took many times its usual time";
                Found::new(Class::Host, "", Certainty::Likely, witness)
            }
            Activity::Timer { function } if self.wakes(function) && self.is_usual(piece) => Found::usual(),
            Activity::Timer { function } => Found::new(Class::Timer, function, Sure, "its events"),
            Activity::Call { function } => self.call(piece, function),
            Activity::Interrupt { name } if TIMERS.contains(&name.as_str()) => self.path(piece),
            Activity::Interrupt { name } => self.interrupt(piece, name),
            Activity::Idle { .. } | Activity::Thread { .. } if self.elsewhere(piece).is_some() => {
                self.moved_from(piece)
            }
            Activity::Idle { asleep } => self.idle(piece, *asleep, is_interrupted),
            Activity::Thread { tid, .. } if *tid == self.window.tid => self.own(piece),
            Activity::Thread { tid, .. } if self.reads_the_trace(*tid) => {
                Found::new(Class::Tracing, "", Sure, "the trace is read")
            }
            Activity::Thread { tid, name, priority, work } => {
                let thread = thread_words(name, *tid, work.as_deref());
                self.thread(piece, (*tid, &thread), *priority, is_interrupted)
            }
        }
    }

    /// Whether the kernel was still free to wait with the timer, whatever the CPU did. Timers without slack that come meanwhile have it
    /// expire earlier.
    fn is_slack(&self, piece: &Piece) -> bool {
        self.window.slack_until.is_some_and(|until| self.begin_of(piece) < until)
    }

    /// Whether a timer's function is the one that woke the thread: it is part of each wake-up by such a timer.
    fn wakes(&self, function: &str) -> bool {
        let stages = &self.account.stages;
        let Some((waking, cpu)) = stages.waking.zip(stages.waking_cpu) else { return false };
        let mut before = self.window.of(cpu).iter().rev().skip_while(|event| event.at >= waking);
        let last = before.find_map(|event| match &event.kind {
            Kind::Enter(Frame::Timer(name, _)) => Some(Some(name)),
            Kind::Leave(Frame::Timer(..)) => Some(None),
            _ => None,
        });
        last.flatten().is_some_and(|name| name == function)
    }

    fn reads_the_trace(&self, tid: i32) -> bool {
        let Account { waking_stack, switch_stack, .. } = self.account;
        let reads = || [waking_stack, switch_stack].into_iter().any(|stack| stack::reads_a_trace(stack));
        self.window.recorders.contains(&tid) || self.window.reader == Some(tid) && reads()
    }

    /// Code that each wake-up runs through with interrupts off: longer than usual, it was not the kernel that took longer.
    fn path(&self, piece: &Piece) -> Found {
        if self.is_usual(piece) {
            return Found::usual();
        }
        let witness = "a fixed path with interrupts off took many times its usual time";
        Found::new(Class::Host, "the timer's interrupt", Certainty::Likely, witness)
    }

    /// Where a stage as a whole took longer than usual, that is due to the piece that is most of it.
    fn is_usual(&self, piece: &Piece) -> bool {
        let limit = self.usual.map_or(USUAL, |usual| usual.limit(piece.stage)).max(self.least());
        let stage = stage_length(&self.account.pieces, piece.stage);
        let is_most = piece.length.saturating_mul(2) > stage;
        piece.length <= limit && (stage <= limit || !is_most)
    }

    /// Whether a thread ran on for longer than the scheduler usually takes, and a stack says where. The whole of the wait has a larger
    /// limit: recording a stack belongs to it.
    fn is_held(&self, piece: &Piece) -> bool {
        let limit = self.usual.map_or(USUAL, Usual::limit_of_threads).max(self.least());
        let says_where = match stack::gave_way(&self.account.switch_stack) {
            GaveWay::ReschedPoint(_) | GaveWay::Preempted(_) | GaveWay::Slept(_) => true,
            GaveWay::ToUser => {
                matches!(stack::interrupted(&self.account.waking_stack), Interrupted::Kernel(_))
            }
            GaveWay::Unknown => false,
        };
        piece.length > limit && says_where
    }

    /// Parts of a wake-up are never unusual below this.
    fn least(&self) -> Nanos {
        Nanos(self.window.latency().0 / 50)
    }

    fn name_of(&self, tid: i32) -> String {
        self.window.tasks().remove(&tid).map_or_else(|| "?".to_owned(), |task| task.name)
    }

    /// An interrupt that was held off comes where interrupts are switched on again. In a guest it may come anywhere: when its host had the
    /// CPU.
    fn interrupts_off(&self, piece: &Piece, frames: &[String], thread: &str) -> Found {
        let culprit = format!("{} in {thread}", stack::function(frames).unwrap_or("the kernel"));
        if self.may_be_the_hosts(piece) && !stack::switches_on(frames) {
            return Found::new(Class::Unknown, culprit, Certainty::Unknown, OFF_OR_HOST);
        }
        Found::new(Class::InterruptsOff, culprit, Certainty::Likely, ON_AGAIN)
    }

    /// That a thread woke another with interrupts off, where that is the last thing it did before the timer's interrupt.
    fn waking_found(&self, tid: i32, thread: &str) -> Option<Found> {
        let interrupt = self.account.stages.interrupt?;
        let mut before = self.window.of(self.window.cpu).iter().rev().filter(|event| event.at < interrupt);
        // Waking also charges whoever runs.
        let last = before.find(|event| !matches!(event.kind, Kind::Runtime { .. }))?;
        match &last.kind {
            Kind::Waking(task) if last.task == tid && last.at >= self.window.due => {
                let woken = thread_words(&task.name, task.tid, None);
                let witness =
                    format!("the last event before the interrupt: it woke {woken}, with interrupts off");
                let culprit = format!("try_to_wake_up in {thread}");
                Some(Found::new(Class::InterruptsOff, culprit, Certainty::Likely, witness))
            }
            _ => None,
        }
    }

    /// Whether the thread is one of the fair scheduler's.
    fn is_fair(&self) -> bool {
        self.window.priority.is_some_and(|priority| priority >= FAIR)
    }

    /// How often the CPU went to a thread of lower priority while this one was ready.
    fn times_passed_over(&self) -> usize {
        let Some(own) = self.window.priority.filter(|_| !self.is_fair()) else { return 0 };
        let is_before = |at: Nanos| at <= self.window.woke;
        let wakings = self.window.all().filter(|event| {
            matches!(&event.kind, Kind::Waking(task) if task.tid == self.window.tid) && is_before(event.at)
        });
        let Some(ready) = wakings.map(|event| event.at).max() else { return 0 };
        let went_lower = |event: &&Event| match &event.kind {
            Kind::Switch { next, .. } => {
                // The idle thread runs where nobody is ready: that has another sign.
                next.tid != 0 && next.priority.is_some_and(|priority| priority > own)
            }
            _ => false,
        };
        let since =
            self.window.of(self.window.cpu).iter().filter(|event| event.at > ready && is_before(event.at));
        since.filter(went_lower).count()
    }

    /// The priority of a piece's thread when it gave way after this one was ready.
    fn priority_at_the_end(&self, piece: &Piece) -> Option<i32> {
        let Activity::Thread { tid, .. } = &piece.activity else { return None };
        let ready = self.account.stages.waking?;
        self.window.of(self.window.cpu).iter().filter(|event| event.at >= ready).find_map(
            |event| match &event.kind {
                Kind::Switch { previous, .. } if previous.tid == *tid => previous.priority,
                _ => None,
            },
        )
    }

    fn own(&self, piece: &Piece) -> Found {
        let faulted = self.window.of(self.window.cpu).iter().any(|event| {
            let is_fault = event.kind == Kind::PageFault && event.task == self.window.tid;
            is_fault && Some(event.at) >= self.account.stages.switch && event.at <= self.window.woke
        });
        if faulted {
            return Found::new(Class::PageFault, "", Certainty::Sure, "its event");
        }
        if self.is_usual(piece) {
            return Found::usual();
        }
        let witness = "the return to user space took many times its usual time";
        Found::new(Class::Host, "the return to user space", Certainty::Likely, witness)
    }

    fn thread(
        &self,
        piece: &Piece,
        (tid, thread): (i32, &str),
        priority: Option<i32>,
        is_interrupted: bool,
    ) -> Found {
        match piece.stage {
            Stage::Runnable => self.thread_first(piece, thread, priority),
            Stage::BeforeInterrupt if !is_interrupted => self.passed(piece, thread),
            Stage::BeforeInterrupt | Stage::InInterrupt => self.silent(piece, tid, thread),
            Stage::Running => {
                let other = self.quota_since_it_ran(thread).or_else(|| self.rival(thread, priority));
                other.or_else(|| self.share(thread, priority)).unwrap_or_else(|| {
                    let witness = "it gave way again before it was in user space";
                    Found::new(Class::Unknown, thread, Certainty::Unknown, witness)
                })
            }
            Stage::Unknown => {
                Found::new(Class::Unknown, thread, Certainty::Unknown, "the trace does not have the waking")
            }
        }
    }

    /// A thread ran on after the timer was due, and then something else did before the interrupt came. Who gives way has
    /// interrupts on before: one that was pending would have come. It has them off while it gives way.
    fn passed(&self, piece: &Piece, thread: &str) -> Found {
        if self.is_usual(piece) {
            return Found::usual();
        }
        if let Some(found) = self.stolen_found(piece, &format!("{thread} ran")) {
            return found;
        }
        let is_short = piece.length <= self.usual.map_or(USUAL, Usual::limit_of_threads);
        if is_short && self.gave_way_before_the_interrupt(piece) {
            let culprit = format!("__schedule in {thread}");
            let witness = "it came due while that gave way, with interrupts off";
            return Found::new(Class::InterruptsOff, culprit, Certainty::Likely, witness);
        }
        if !self.gave_way_before_the_interrupt(piece) {
            let witness = "another interrupt came first: they were off until then, or the host had the CPU";
            return Found::new(Class::Unknown, thread, Certainty::Unknown, witness);
        }
        let witness = format!("it had not come when {thread} gave way, with interrupts on");
        Found::new(Class::Host, "the timer's interrupt", Certainty::Likely, witness)
    }

    /// Whether a piece's thread was switched out after the timer was due and before its interrupt.
    fn gave_way_before_the_interrupt(&self, piece: &Piece) -> bool {
        let tid = match &piece.activity {
            Activity::Thread { tid, .. } => *tid,
            _ => 0,
        };
        let until = self.account.stages.interrupt.unwrap_or(self.window.woke);
        self.window.of(self.window.cpu).iter().any(|event| {
            let is_in_time = event.at >= self.window.due && event.at <= until;
            is_in_time && matches!(&event.kind, Kind::Switch { previous, .. } if previous.tid == tid)
        })
    }

    /// No interrupt came while a thread ran.
    fn silent(&self, piece: &Piece, tid: i32, thread: &str) -> Found {
        if self.is_usual(piece) {
            return Found::usual();
        }
        match stack::interrupted(&self.account.waking_stack) {
            Interrupted::User => self
                .stolen_found(piece, &format!("{thread} was interrupted in user space"))
                .unwrap_or_else(|| {
                    let witness = format!("{thread} was interrupted in user space, where interrupts are on");
                    Found::new(Class::Host, "", Certainty::Likely, witness)
                }),
            Interrupted::Kernel(frames) => {
                if let Some(found) = self.stolen_found(piece, &format!("{thread} ran")) {
                    return found;
                }
                self.interrupts_off(piece, frames, thread)
            }
            Interrupted::Unknown => {
                let stolen = self.stolen_found(piece, &format!("{thread} ran"));
                stolen.or_else(|| self.waking_found(tid, thread)).unwrap_or_else(|| {
                    let witness = "interrupts were off, or the host had the CPU: the kernel gave no stack";
                    Found::new(Class::Unknown, thread, Certainty::Unknown, witness)
                })
            }
        }
    }

    /// The host's doing, where the threads' clock shows that most of the piece was taken: likely where that can have been before, too.
    fn stolen_found(&self, piece: &Piece, witness: &str) -> Option<Found> {
        let stolen = self.stolen.get();
        let is_most = |of: Nanos| of.0.saturating_mul(100) / piece.length.0.max(1) >= STOLEN;
        // Without a host, what two clocks differ by is no steal.
        (self.window.is_guest && is_most(stolen.seen) && stolen.seen > Nanos::ZERO).then(|| {
            self.stolen.set(stolen.without(piece.length));
            let certainty = if is_most(stolen.within) { Certainty::Sure } else { Certainty::Likely };
            let seen = self.account.stolen.seen.as_micros_f64();
            Found::new(Class::Host, "", certainty, format!("{seen:.1} us of steal; {witness}"))
        })
    }

    /// A thread that goes before this one.
    fn rival(&self, thread: &str, priority: Option<i32>) -> Option<Found> {
        let goes_before = priority.zip(self.window.priority).is_some_and(|(other, own)| other <= own)
            || thread.starts_with(STOPPER);
        goes_before
            .then(|| Found::new(Class::Rival, thread, Certainty::Sure, "its priority is the same or higher"))
    }

    /// The CPU on which the thread was ready, where it was moved from there to the one on which it ran.
    fn elsewhere(&self, piece: &Piece) -> Option<CpuId> {
        let is_ready = piece.stage == Stage::Runnable;
        let at = self.begin_of(piece);
        let place = self.places.iter().find(|place| is_ready && at >= place.from && at < place.to)?;
        (place.cpu != self.window.cpu).then_some(place.cpu)
    }

    /// What held the thread up on another CPU. The stacks are of the one on which it ran.
    fn moved_from(&self, piece: &Piece) -> Found {
        let (thread, found) = match &piece.activity {
            Activity::Thread { tid, name, priority, work } => {
                let thread = thread_words(name, *tid, work.as_deref());
                let found = self.rival(&thread, *priority).or_else(|| self.share(&thread, *priority));
                (thread, found)
            }
            _ => (IDLE.to_owned(), None),
        };
        found.unwrap_or_else(|| {
            if self.is_usual(piece) {
                return Found::usual();
            }
            let from = self.elsewhere(piece).map_or_else(String::new, |cpu| format!(" from CPU {cpu}"));
            let witness = format!("it was ready there until it was moved{from}");
            Found::new(Class::Unknown, thread, Certainty::Unknown, witness)
        })
    }

    /// Another thread of the fair scheduler had its share before this one.
    fn share(&self, thread: &str, priority: Option<i32>) -> Option<Found> {
        let are_fair = self.is_fair() && priority.is_some_and(|priority| priority >= FAIR);
        let witness = "both are of the fair scheduler, which gave it its share first";
        are_fair.then(|| Found::new(Class::Rival, thread, Certainty::Sure, witness))
    }

    /// Another thread ran while this one was ready.
    fn thread_first(&self, piece: &Piece, thread: &str, priority: Option<i32>) -> Found {
        if let Some(link) = self.link_at(piece) {
            return self.before_link(link, piece, thread, priority);
        }
        let own = self.window.priority;
        if let Some(found) = self.rival(thread, priority) {
            return found;
        }
        // It may have changed its policy while it ran: no event says when.
        if self.priority_at_the_end(piece).zip(own).is_some_and(|(other, own)| other <= own) {
            let witness = "its priority was the same or higher when it gave way";
            return Found::new(Class::Rival, thread, Certainty::Likely, witness);
        }
        let waited = stage_length(&self.account.pieces, Stage::Runnable);
        if let Some(timer) = self.throttled_until().filter(|_| waited > USUAL) {
            let witness = format!("{thread} ran until {timer}");
            // In the kernel it may have been without a preemption point, or it had its share, and that timer have come by chance.
            let certainty = match stack::interrupted(&self.account.waking_stack) {
                Interrupted::User if !self.is_fair() => Certainty::Sure,
                _ => Certainty::Likely,
            };
            return Found::new(Class::Throttling, "", certainty, witness);
        }
        if let Some(found) = self.share(thread, priority) {
            return found;
        }
        if self.times_passed_over() >= PASSED_OVER && waited > USUAL {
            let witness = "the scheduler chose threads of lower priority again and again while this one was ready: the \
                           fair server, or throttling";
            return Found::new(Class::Throttling, "", Certainty::Likely, witness);
        }
        if let Some(found) = self.chosen_again(piece, thread) {
            return found;
        }
        if self.is_usual(piece) && !self.is_held(piece) {
            return Found::usual();
        }
        if priority.is_none() {
            return Found::new(
                Class::Unknown,
                thread,
                Certainty::Unknown,
                "its priority is not in the trace",
            );
        }
        let Account { waking_stack, switch_stack, .. } = self.account;
        self.held_up(piece, thread, Stacks { waking: waking_stack, switch: switch_stack })
    }

    /// A thread of lower priority that had to give way, and goes on without: the scheduler chose it once more. No switch says so.
    fn chosen_again(&self, piece: &Piece, thread: &str) -> Option<Found> {
        let Activity::Thread { tid, .. } = &piece.activity else { return None };
        let ready = self.account.stages.waking.filter(|_| piece.length > USUAL && !self.is_fair())?;
        let end = self.begin_of(piece) + piece.length;
        let here = self.window.of(self.window.cpu).iter();
        // At a switch the flag has been cleared.
        let is_in_between = |event: &Event| !matches!(event.kind, Kind::Switch { .. } | Kind::Stack(_));
        let mut its = here
            .filter(|event| event.task == *tid && event.at > ready && event.at < end && is_in_between(event));
        let wanted = |event: &Event| event.is_wanted == Some(true);
        let is_chosen = its.any(wanted) && its.any(|event| event.is_wanted == Some(false));
        let witness = format!("the scheduler ran and chose {thread} again: the fair server, or throttling");
        is_chosen.then(|| Found::new(Class::Throttling, "", Certainty::Likely, witness))
    }
}

fn thread_words(name: &str, tid: i32, work: Option<&str>) -> String {
    match work {
        Some(function) => format!("{name} [{tid}], work {function}"),
        None => format!("{name} [{tid}]"),
    }
}
