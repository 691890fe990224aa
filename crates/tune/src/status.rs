//! What of a journal holds now, and how what does not is written again.

use control::Kernel;
use record::Fact;
use sysroot::SysRoot;

use crate::error::Result;
use crate::journal::{History, Journal, Line, Taken};
use crate::setting::Found;
use crate::write::write;

/// How one thing is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Now {
    /// As we wrote it.
    Holds,
    /// As it was before us: somebody put it back, or it was reset.
    AsBefore,
    /// It says something else.
    Drifted(String),
    /// It is gone, and why that is believed: there is nothing that could hold or not.
    Gone(String),
    /// Which one it is is unknown.
    Unclear(String),
    /// It cannot be read: the errno.
    Unreadable(i32),
}

/// Each thing that was written, and how it is now. What the kernel refused is not among them.
pub fn now<'a>(root: &SysRoot, history: &'a History) -> Vec<(&'a Taken, Now)> {
    let written = history.latest().into_iter().filter_map(|taken| Some((taken, taken.ours()?)));
    written.map(|(taken, ours)| (taken, one(root, taken, ours))).collect()
}

impl Now {
    /// Whether something that is there is not as we wrote it.
    pub fn is_off(&self) -> bool {
        !matches!(self, Self::Holds | Self::Gone(_))
    }
}

/// A thread that began anew under its name is judged as the one that ended.
fn one(root: &SysRoot, taken: &Taken, ours: &str) -> Now {
    let target = match (taken.target.find(root), taken.target.successor(root)) {
        (Found::Here(target), _) | (Found::Gone(_), Some(target)) => target,
        (Found::Gone(why), None) => return Now::Gone(why),
        (Found::Unclear(why), _) => return Now::Unclear(why),
    };
    match target.value(root) {
        Fact::Value(now) if target.kind().holds(&now, ours) => Now::Holds,
        Fact::Value(now) if target.same(&now, &taken.old) => Now::AsBefore,
        Fact::Value(now) => Now::Drifted(now),
        Fact::Unreadable(errno) => Now::Unreadable(errno),
        Fact::Absent | Fact::Unsupported => Now::Gone("it is no longer there".to_owned()),
    }
}

/// Writes again what does not hold, found by name where its number is another's; what was written, in that order.
///
/// # Errors
/// Where the journal cannot be written: what was not written yet stays as it is.
pub fn reconcile(kernel: &mut dyn Kernel, journal: &mut Journal, history: &History) -> Result<Vec<Taken>> {
    let mut again = Vec::new();
    for taken in history.latest().into_iter().filter(|taken| taken.held()) {
        let root = kernel.root();
        let Some(target) = taken.target.successor(&root) else { continue };
        let Fact::Value(old) = target.value(&root) else { continue };
        if target.kind().holds(&old, &taken.new) {
            continue;
        }
        let (rules, new) = (taken.rules.clone(), taken.new.clone());
        let mut done = Taken { rules, target, old, new, outcome: None };
        let step = journal.intend(&done)?;
        let outcome = write(kernel, &done.target, &done.old, &done.new);
        done.outcome = Some(outcome.clone());
        journal.tell(&Line::Done { step, outcome })?;
        again.push(done);
    }
    if !again.is_empty() && history.applied {
        journal.promise(&Line::Applied)?;
    }
    Ok(again)
}
