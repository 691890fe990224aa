//! Puts back what a journal lists, and proves it. Nothing that somebody else has changed since is overwritten.

mod away;
mod bindings;
#[cfg(test)]
mod tests;

use control::Kernel;
use record::Fact;
use sysroot::SysRoot;

use crate::journal::{Outcome, Taken};
use crate::setting::{Found, Target};
use bindings::Bindings;

pub use away::{online, undo};

/// What became of one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Back {
    /// It said what it said before already.
    AsBefore,
    /// It was put back, and reads so.
    Restored,
    /// It says what neither we nor anybody before us wrote: it is left alone.
    Foreign(String),
    /// It is gone, and why that is believed.
    Gone(String),
    /// Which one it is is unknown, so nothing was written.
    Unclear(String),
    /// The kernel refused it: its errno.
    Refused(i32),
    /// It can be put back once these CPUs are online again.
    Waits(String),
    /// It was written, and reads otherwise.
    Differs(String),
    /// It cannot be read: the errno.
    Unreadable(i32),
}

impl Back {
    /// Whether nothing of ours is left, and nothing else is there.
    pub fn is_as_before(&self) -> bool {
        matches!(self, Self::AsBefore | Self::Restored | Self::Gone(_))
    }

    /// Whether ours may still be there, so that undoing is to be tried again.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Refused(_) | Self::Unreadable(_) | Self::Waits(_))
    }
}

/// One thing that was to be put back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undone {
    /// The setting.
    pub target: Target,
    /// What it said before.
    pub old: String,
    /// What became of it.
    pub back: Back,
}

/// Puts back `taken`, the last first.
pub fn restore(kernel: &mut dyn Kernel, taken: &[Taken]) -> Vec<Undone> {
    let mut undone = Vec::new();
    let bindings = Bindings::take(&kernel.root(), taken);
    for step in taken.iter().rev() {
        let Some(ours) = step.ours() else { continue };
        let back = match bindings.of(&step.target) {
            Some(cpus) => Back::Foreign(cpus.to_string()),
            None => restore_one(kernel, step, ours),
        };
        undone.push(Undone { target: step.target.clone(), old: step.old.clone(), back });
    }
    bindings.restore(kernel);
    let root = kernel.root();
    undone.iter_mut().filter(|undone| undone.back.is_open()).for_each(|undone| look_again(&root, undone));
    undone
}

/// What was refused can have gone with something that was put back after it, as a file with its group.
fn look_again(root: &SysRoot, undone: &mut Undone) {
    match undone.target.find(root) {
        Found::Gone(why) => undone.back = Back::Gone(why),
        Found::Unclear(why) => undone.back = Back::Unclear(why),
        Found::Here(target) => {
            let now = target.value(root);
            if now.value().is_some_and(|now| target.same(now, &undone.old)) {
                undone.back = Back::Restored;
            }
        }
    }
}

fn restore_one(kernel: &mut dyn Kernel, step: &Taken, ours: &str) -> Back {
    let target = match step.target.find(&kernel.root()) {
        Found::Here(target) => target,
        Found::Gone(why) => return Back::Gone(why),
        Found::Unclear(why) => return Back::Unclear(why),
    };
    if let Some(none) = target.kind().released() {
        return released(kernel, &target, &none, &step.old);
    }
    match target.value(&kernel.root()) {
        Fact::Value(now) if target.same(&now, &step.old) => Back::AsBefore,
        Fact::Value(now) if target.same(&now, ours) || target.is_reset_by_the_kernel() => {
            put_back(kernel, &target, &now, &step.old)
        }
        Fact::Value(now) => Back::Foreign(now),
        Fact::Unreadable(errno) => Back::Unreadable(errno),
        Fact::Absent | Fact::Unsupported => Back::Gone("it is no longer there".to_owned()),
    }
}

fn put_back(kernel: &mut dyn Kernel, target: &Target, ours: &str, old: &str) -> Back {
    match crate::write::write(kernel, target, ours, old) {
        Outcome::Exact | Outcome::Equal(_) => Back::Restored,
        Outcome::Clamped(now) => Back::Differs(now),
        Outcome::Ignored => Back::Differs(ours.to_owned()),
        Outcome::Refused(errno) => Back::Refused(errno),
    }
}

/// A request that stands beside others is taken back whatever the others ask for.
fn released(kernel: &mut dyn Kernel, target: &Target, none: &str, old: &str) -> Back {
    if let Err(errno) = target.kind().write(kernel, none) {
        return Back::Refused(errno.raw_os_error());
    }
    match target.value(&kernel.root()) {
        Fact::Value(now) if target.same(&now, old) => Back::Restored,
        Fact::Value(now) => Back::Foreign(now),
        Fact::Unreadable(errno) => Back::Unreadable(errno),
        Fact::Absent | Fact::Unsupported => Back::Gone("it is no longer there".to_owned()),
    }
}

/// What does not read as it did before anything was changed, with what it said and says: empty where all does.
pub fn differences(root: &SysRoot, taken: &[Taken]) -> Vec<(Target, String, String)> {
    let mut seen: Vec<&Target> = Vec::new();
    let mut differences = Vec::new();
    for step in taken.iter().filter(|step| step.ours().is_some()) {
        // Before a partition a thread's CPUs were what the kernel has forgotten, and not what a later step has found.
        let is_later = |freed: &&Target| matches!((freed, &step.target), (Target::Freed(one), Target::Affinity(other)) if one == other);
        if seen.contains(&&step.target) || seen.iter().any(is_later) {
            continue;
        }
        seen.push(&step.target);
        let target = match step.target.find(root) {
            Found::Here(target) => target,
            Found::Gone(_) => continue,
            Found::Unclear(why) => {
                differences.push((step.target.clone(), step.old.clone(), why));
                continue;
            }
        };
        let now = target.value(root);
        if !now.value().is_some_and(|now| target.same(now, &step.old)) {
            differences.push((target, step.old.clone(), now.to_string()));
        }
    }
    differences
}
