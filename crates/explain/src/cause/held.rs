//! Threads of lower priority that ran on though another one was ready.

use record::{Certainty, Class, Piece};

use super::{Found, Judge};
use crate::stack::{self, GaveWay, Interrupted};

/// Callers, innermost first: when the thread was woken that was ready, and when it got the CPU.
#[derive(Clone, Copy)]
pub(super) struct Stacks<'a> {
    pub(super) waking: &'a [String],
    pub(super) switch: &'a [String],
}

impl Judge<'_> {
    /// A thread of lower priority ran on: as the stacks say.
    pub(super) fn held_up(&self, piece: &Piece, thread: &str, stacks: Stacks<'_>) -> Found {
        let Stacks { waking, switch } = stacks;
        let held = |class, frames: &[String], witness: &str| {
            let interrupted = match stack::interrupted(waking) {
                Interrupted::Kernel(frames) => frames,
                _ => &[],
            };
            let function = stack::common(interrupted, switch).or_else(|| stack::function(frames));
            let culprit = format!("{} in {thread}", function.unwrap_or("the kernel"));
            Found::new(class, culprit, Certainty::Likely, witness)
        };
        match stack::gave_way(switch) {
            GaveWay::ReschedPoint(frames) => {
                held(Class::NoPreemption, frames, "it gave way at a resched point (__cond_resched)")
            }
            GaveWay::Preempted(frames) => {
                held(Class::PreemptionOff, frames, "preempted there as soon as it could be")
            }
            GaveWay::ToUser => match stack::interrupted(waking) {
                // All that it does in the kernel at once ran to its end: not only the function that was interrupted.
                Interrupted::Kernel(frames) if stack::is_whole(frames) => {
                    let whole = stack::outermost(frames);
                    held(Class::NoPreemption, whole, "it gave way on its way to user space")
                }
                Interrupted::Kernel(frames) => {
                    let inner = stack::function(frames).unwrap_or("the kernel");
                    let entry = if stack::is_of_call(switch) { "a system call" } else { "the kernel" };
                    let witness = format!(
                        "it gave way on its way to user space; interrupted in {inner}, whose callers the kernel could not tell"
                    );
                    let culprit = format!("{entry} in {thread}");
                    Found::new(Class::NoPreemption, culprit, Certainty::Likely, witness)
                }
                Interrupted::User | Interrupted::Unknown => self.path(piece),
            },
            GaveWay::Slept(frames) => held(Class::NoPreemption, frames, "it gave way when it slept"),
            GaveWay::Unknown => {
                let witness = "a thread of lower priority ran on: no stack says where";
                Found::new(Class::Unknown, thread, Certainty::Unknown, witness)
            }
        }
    }
}
