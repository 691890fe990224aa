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
    /// Each call that each of them was seen waiting in, the most frequent first. A real-time thread that was never seen waiting has
    /// one that was seen in no look.
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
    /// Whether these ways are all that it waits by. A descriptor that no way stands for, or that could not be read, is another.
    pub whole: bool,
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

impl Waiting {
    /// Whether no thread of a lower priority delays it, as `paths` say; none where that is not known of all that it waits by.
    pub fn is_safe(&self, paths: &[WakePath]) -> Option<bool> {
        let tried = |name: &String| paths.iter().find(|path| path.way == *name);
        if self.delayed_from(paths).is_some() {
            return Some(false);
        }
        let is_known = |name| tried(name).is_some_and(|path| path.is_safe().is_some());
        (self.whole && self.ways.iter().all(is_known)).then_some(true)
    }

    /// The lowest priority below the thread's own that delays it by one of its ways, as far as `paths` say.
    pub fn delayed_from(&self, paths: &[WakePath]) -> Option<u32> {
        let of = self.ways.iter().filter_map(|name| paths.iter().find(|path| path.way == *name));
        of.filter_map(|path| path.delayed_from).filter(|priority| *priority < self.thread.priority).min()
    }
}

impl WakePath {
    /// Whether no thread below the waiter's priority delays it; none where that is not known.
    pub fn is_safe(&self) -> Option<bool> {
        self.unknown.is_none().then_some(self.delayed_from.is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(way: &str, delayed_from: Option<u32>, unknown: Option<&str>) -> WakePath {
        WakePath {
            way: way.into(),
            title: way.into(),
            waker: Waker::Clock,
            worst: None,
            delayed_from,
            through: Vec::new(),
            unknown: unknown.map(str::to_owned),
            instead: String::new(),
        }
    }

    #[test]
    fn a_wait_is_safe_only_where_all_that_it_waits_by_is_known_to_be() {
        let paths =
            [path("nanosleep", None, None), path("timerfd", Some(1), None), path("udp", None, Some("no"))];
        let of = |ways: &[&str], whole, priority| {
            let thread = Thread { name: "t".into(), tid: 1, policy: Policy::Fifo, priority };
            let ways = ways.iter().map(|way| (*way).to_owned()).collect();
            Waiting { thread, cpus: CpuList::new(), call: String::new(), ways, whole, seen: 1 }
                .is_safe(&paths)
        };
        assert_eq!(of(&["nanosleep"], true, 80), Some(true));
        assert_eq!(of(&["nanosleep"], false, 80), None, "and something that is not tried");
        assert_eq!(of(&["nanosleep", "pipe"], true, 80), None, "a way that was not tried here");
        assert_eq!(of(&["nanosleep", "udp"], true, 80), None, "a trial that failed");
        assert_eq!(of(&[], false, 80), None, "a thread that was not seen waiting");
        assert_eq!(of(&["nanosleep", "timerfd"], false, 80), Some(false));
        assert_eq!(of(&["timerfd"], true, 1), Some(true), "nothing is below it");
    }
}
