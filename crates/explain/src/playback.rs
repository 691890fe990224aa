//! What a CPU does after each event.

use std::collections::BTreeMap;

use record::Activity;

use crate::event::{Event, Frame, Kind, Task};

/// What is known of one CPU: which thread runs, and what runs on top of it.
#[derive(Clone, Debug, Default)]
pub struct Playback {
    /// The thread that runs; none while no event has said it.
    running: Option<i32>,
    /// Of an idle CPU: whether it sleeps; none while no event has said it.
    asleep: Option<bool>,
    /// On top of the thread, the latest last.
    frames: Vec<Frame>,
    /// What is on top of threads that were preempted: softirqs of threads on PREEMPT_RT.
    put_aside: BTreeMap<i32, Vec<Frame>>,
    /// Threads seen so far.
    tasks: BTreeMap<i32, Task>,
    /// What kworkers carry out.
    work: BTreeMap<i32, String>,
    /// Switches that the trace does not have.
    hidden: u64,
}

impl Playback {
    /// Before the first event of a CPU: the thread that it names ran. `tasks` are threads that events of any CPU and time
    /// describe: the switch to a thread may be missing.
    pub fn beginning_with(event: Option<&Event>, tasks: BTreeMap<i32, Task>) -> Self {
        let running = event.filter(|event| event.kind != Kind::Resumed).map(|event| event.task);
        Self { running, tasks, ..Self::default() }
    }

    /// Whether the events let this one follow: the thread that it names is the one that runs.
    pub fn expects(&self, event: &Event) -> bool {
        // A stack belongs to the event before it: one of a switch still names the thread that gave way.
        matches!(event.kind, Kind::Stack(_) | Kind::Resumed)
            || self.running.is_none_or(|running| running == event.task)
    }

    /// Goes on by one event of this CPU.
    pub fn see(&mut self, event: &Event) {
        if !self.expects(event) {
            self.hidden += 1;
            self.switch_to(event.task);
        }
        if matches!(event.kind, Kind::Stack(_)) {
            return;
        }
        self.running = Some(event.task);
        match &event.kind {
            Kind::Switch { previous, next } => {
                self.learn(previous);
                self.learn(next);
                self.switch_to(next.tid);
            }
            Kind::Enter(frame) => {
                self.frames.push(frame.clone());
                // An interrupt ends the sleep of an idle CPU; its loop says when it sleeps again.
                self.asleep = Some(false);
            }
            Kind::Leave(end) => self.leave(end),
            Kind::Work(Some(function)) => {
                self.work.insert(event.task, function.clone());
            }
            Kind::Work(None) => {
                self.work.remove(&event.task);
            }
            Kind::Sleep(asleep) => self.asleep = Some(*asleep),
            Kind::Lost => self.forget(),
            Kind::Resumed => {
                self.forget();
                self.running = None;
            }
            _ => {}
        }
    }

    /// What ended meanwhile is not known: nothing is taken to go on.
    fn forget(&mut self) {
        self.frames.clear();
        self.put_aside.clear();
        self.work.clear();
        self.asleep = None;
    }

    /// A thread keeps the name that it has in the end: until it has named itself, or executed its program, it has another's.
    fn learn(&mut self, task: &Task) {
        let known = self.tasks.entry(task.tid).or_insert_with(|| task.clone());
        known.priority = task.priority;
    }

    fn switch_to(&mut self, next: i32) {
        let frames = std::mem::take(&mut self.frames);
        if let Some(previous) = self.running.filter(|_| !frames.is_empty()) {
            self.put_aside.insert(previous, frames);
        }
        self.frames = self.put_aside.remove(&next).unwrap_or_default();
        self.running = Some(next);
        self.asleep = Some(false);
    }

    fn leave(&mut self, end: &Frame) {
        if let Some(place) = self.frames.iter().rposition(|frame| frame.ends_by(end)) {
            self.frames.truncate(place);
        }
    }

    /// What runs on top of the thread, the latest last.
    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// How many switches the events did not have.
    pub fn hidden(&self) -> u64 {
        self.hidden
    }

    /// What the CPU does until its next event.
    pub fn activity(&self) -> Activity {
        match (self.frames.last(), self.running) {
            (Some(frame), _) => of_frame(frame),
            (None, Some(tid)) => self.of_thread(tid),
            (None, None) => unknown("no event says who ran"),
        }
    }

    /// What the CPU did until `event`, its next one.
    pub fn activity_until(&self, event: &Event) -> Activity {
        match (self.running, &event.kind) {
            (None, Kind::Leave(_)) => unknown("what ended then began before anything was recorded"),
            (None, _) => self.of_thread(event.task),
            (Some(_), _) => self.activity(),
        }
    }

    fn of_thread(&self, tid: i32) -> Activity {
        match (tid, self.asleep) {
            (0, Some(asleep)) => Activity::Idle { asleep },
            (0, None) => unknown("no event says whether the idle CPU slept"),
            (tid, _) => {
                let task = self.tasks.get(&tid);
                Activity::Thread {
                    tid,
                    name: task.map(|task| task.name.clone()).unwrap_or_default(),
                    priority: task.and_then(|task| task.priority),
                    work: self.work.get(&tid).cloned(),
                }
            }
        }
    }
}

fn unknown(why: &str) -> Activity {
    Activity::Unknown { why: why.to_owned() }
}

fn of_frame(frame: &Frame) -> Activity {
    match frame.clone() {
        Frame::Vector(name) | Frame::Handler(name, _) => Activity::Interrupt { name },
        Frame::Softirq(name) => Activity::Softirq { name },
        Frame::Timer(function, _) => Activity::Timer { function },
        Frame::Call(function) => Activity::Call { function },
    }
}
