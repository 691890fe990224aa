//! Events in few words.

use explain::{Event, Frame, Kind, Task, Window};
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
        self.0.push(Event { at: Nanos(at), cpu: CpuId(0), task, kind });
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
