//! Wake paths: which of the kernel's threads stand between an event and the real-time thread that waits for it. Found by
//! experiment (`worstcase check --wake`), a hog of each priority beside the thread.

use serde::{Deserialize, Serialize};
use units::{CpuId, CpuList, Nanos, Policy};

use crate::Machine;

/// All ways of waiting that were tried on one CPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WakePaths {
    /// The machine.
    pub machine: Machine,
    /// Where.
    pub cpu: CpuId,
    /// The priority of the thread that waited.
    pub priority: u32,
    /// How long a hog computed around each wake-up.
    pub burst: Nanos,
    /// How many wake-ups there were beside each hog.
    pub wake_ups: u32,
    /// What was found.
    pub paths: Vec<WakePath>,
    /// How the threads of a program wait, where one was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<Program>,
}

/// How the threads of a program wait, as it was seen in looks at all of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Program {
    /// The process.
    pub pid: i32,
    /// How often its threads were looked at.
    pub looks: u32,
    /// Each call that each of them was seen waiting in, the most frequent first. Threads that never waited have none.
    pub waits: Vec<Waiting>,
}

/// A call that a thread waits in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Waiting {
    /// The thread.
    pub thread: Thread,
    /// The CPUs that it may use.
    pub cpus: CpuList,
    /// The call, and on what: `epoll_wait: timerfd, eventfd`.
    pub call: String,
    /// The ways that this is, by their names; none for what is not tried.
    pub ways: Vec<String>,
    /// In how many of the looks it waited there.
    pub seen: u32,
}

/// What wakes a thread that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Waker {
    /// A clock.
    Clock,
    /// Another thread, which is the hog itself.
    Thread,
    /// The end of a critical section of a thread of the lowest real-time priority, from which the hog takes the CPU.
    Holder,
}

/// What was found of one way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WakePath {
    /// Its name.
    pub way: String,
    /// Its calls.
    pub title: String,
    /// What wakes.
    pub waker: Waker,
    /// The latest wake-up beside a hog of the priority below the waiter's; none where it could not be tried.
    pub worst: Option<Nanos>,
    /// The lowest priority at which a hog delays it; none where none below the waiter's does, or it could not be found.
    pub delayed_from: Option<u32>,
    /// The kernel's threads that the wake-up passes through: those with that priority that ran with each wake-up.
    pub through: Vec<Thread>,
    /// Why it is not known.
    pub unknown: Option<String>,
    /// What can be used in its place.
    pub instead: String,
}

/// A thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Thread {
    /// Its name: `ktimers/0`.
    pub name: String,
    /// Its id.
    pub tid: i32,
    /// Its policy.
    pub policy: Policy,
    /// Its priority, 0 for a policy without.
    pub priority: u32,
}

impl WakePath {
    /// Whether no thread below the waiter's priority delays it; none where that is not known.
    pub fn is_safe(&self) -> Option<bool> {
        self.unknown.is_none().then_some(self.delayed_from.is_none())
    }
}
