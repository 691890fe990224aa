//! Events in few words.

use explain::{Event, Frame, Kind, Task, Usual, Window, account};
use record::{Certainty, Class};
use units::{CpuId, Nanos};

/// The thread that measures.
pub const OWN: i32 = 100;
/// A program.
pub const OTHER: i32 = 200;

/// Events of CPU 0, each by one line: `TIME TASK WHAT`.
#[derive(Default)]
pub struct Script(Vec<Event>);

pub fn task(tid: i32) -> Task {
    let (name, priority) = match tid {
        0 => ("swapper/0", 120),
        OWN => ("probe/0", 1),
        OTHER => ("stress", 120),
        400..500 => ("make", 120),
        _ => ("hog", 0),
    };
    Task { tid, name: name.to_owned(), priority: Some(priority), state: None }
}

impl Script {
    pub fn at(mut self, at: u64, task: i32, kind: Kind) -> Self {
        self.0.push(Event { at: Nanos(at), cpu: CpuId(0), task, is_wanted: None, kind });
        self
    }

    pub fn switch(self, at: u64, previous: i32, next: i32) -> Self {
        self.at(at, previous, Kind::Switch { previous: task(previous), next: task(next) })
    }

    pub fn enter(self, at: u64, task: i32, frame: Frame) -> Self {
        self.at(at, task, Kind::Enter(frame))
    }

    pub fn leave(self, at: u64, task: i32, frame: Frame) -> Self {
        self.at(at, task, Kind::Leave(frame))
    }

    pub fn stack(self, at: u64, task: i32, callers: &str) -> Self {
        self.at(at, task, Kind::Stack(callers.split_whitespace().map(str::to_owned).collect()))
    }

    /// The timer's interrupt from `at` on, with the waking 500 ns later, 700 ns in all.
    pub fn timer(self, at: u64, task: i32, stack: &str) -> Self {
        let vector = || Frame::Vector("local_timer".to_owned());
        let timer = || Frame::Timer("hrtimer_wakeup".to_owned(), 7);
        let woken = self.enter(at, task, vector()).enter(at + 200, task, timer()).at(
            at + 500,
            task,
            Kind::Waking(self::task(OWN)),
        );
        let woken = if stack.is_empty() { woken } else { woken.stack(at + 550, task, stack) };
        woken.leave(at + 600, task, timer()).leave(at + 700, task, vector())
    }

    /// The wake-up that was due at 1 ms.
    pub fn window(self, woke: u64) -> Window {
        Window {
            cpu: CpuId(0),
            tid: OWN,
            priority: Some(1),
            due: Nanos(1_000_000),
            woke: Nanos(woke),
            events: [(CpuId(0), self.0)].into(),
            ..Window::default()
        }
    }
}

/// What is usual of the wake-ups here.
pub const USUAL: Usual = Usual {
    before_interrupt: Nanos(2_000),
    in_interrupt: Nanos(500),
    runnable: Nanos(2_000),
    scheduling: Nanos(1_000),
    running: Nanos(1_000),
};

/// User space.
pub const USER: &str = "try_to_wake_up hrtimer_wakeup hrtimer_interrupt asm_sysvec_apic_timer_interrupt";

/// The idle thread, on its way to sleep.
pub const IDLE: &str = "try_to_wake_up hrtimer_wakeup hrtimer_interrupt asm_sysvec_apic_timer_interrupt \
                    default_idle_call do_idle cpu_startup_entry";
/// One that gives way when it ends.
pub const TO_USER: &str = "__schedule schedule exit_to_user_mode_prepare syscall_exit_to_user_mode do_syscall_64 \
                       entry_SYSCALL_64_after_hwframe";

/// The cause that is most of the latency, its share in percent.
pub fn main_cause(window: &Window) -> (Class, String, Certainty, u64) {
    main_cause_of(window, &USUAL)
}

pub fn main_cause_of(window: &Window, usual: &Usual) -> (Class, String, Certainty, u64) {
    let account = account(window, Some(usual));
    let sum: u64 = account.pieces.iter().map(|piece| piece.length.0).sum();
    assert_eq!(sum, window.latency().0, "{:#?}", account.pieces);
    let of_causes: u64 = account.causes.iter().map(|cause| cause.length.0).sum();
    assert_eq!(of_causes, sum, "{:#?}", account.causes);
    let cause = &account.causes[0];
    (cause.class, cause.culprit.clone(), cause.certainty, cause.length.0 * 100 / sum)
}
