//! What a journal speaks of, found again: by name, because numbers are given to others.

use machine::{interrupts, tasks};
use sysroot::SysRoot;

use crate::setting::{Target, Thread};

/// Where something is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Here, perhaps under another number.
    Here(Target),
    /// Gone, and why that is believed.
    Gone(String),
    /// It could be one of several.
    Unclear(String),
}

/// Finds `target` again.
pub(crate) fn find(root: &SysRoot, target: &Target) -> Found {
    match target {
        Target::Interrupt { number, identity } => interrupt(root, *number, identity),
        Target::Affinity(thread) | Target::Freed(thread) | Target::Scheduling(thread) => {
            match thread.task(root) {
                Some(_) => Found::Here(target.clone()),
                None => Found::Gone("that thread has ended".to_owned()),
            }
        }
        Target::Swap(_) | Target::Service { .. } => Found::Here(target.clone()),
        Target::File(_)
        | Target::CpusetBelow(_)
        | Target::Group(_)
        | Target::Programs(_)
        | Target::LatencyLimit => match target.text(root) {
            record::Fact::Absent => Found::Gone("it is no longer there".to_owned()),
            _ => Found::Here(target.clone()),
        },
    }
}

/// What stands in the place of `target` now: itself, or the one thread of the kernel that has its name.
pub(crate) fn successor(root: &SysRoot, target: &Target) -> Option<Target> {
    let by_name = |gone: &Thread| {
        let mut same =
            tasks::all(root).into_iter().filter(|task| task.kernel && is_named_like(&task.name, &gone.name));
        same.next().filter(|_| same.next().is_none()).map(|task| Thread::from(&task))
    };
    match (find(root, target), target) {
        (Found::Here(target), _) => Some(target),
        (Found::Gone(_), Target::Affinity(thread)) => by_name(thread).map(Target::Affinity),
        (Found::Gone(_), Target::Scheduling(thread)) => by_name(thread).map(Target::Scheduling),
        (Found::Gone(_) | Found::Unclear(_), _) => None,
    }
}

/// Whether a thread is called as another was: that of an interrupt by its handler, whatever its number is now.
fn is_named_like(name: &str, gone: &str) -> bool {
    let handler = |name: &str| Some(name.strip_prefix("irq/")?.split_once('-')?.1.to_owned());
    name == gone || handler(name).is_some_and(|one| Some(one) == handler(gone))
}

/// By its number, if that has the same identity still; else by its identity, if one interrupt alone has it.
fn interrupt(root: &SysRoot, number: u32, identity: &str) -> Found {
    let all = interrupts::all(root);
    let mut same = all.iter().filter(|interrupt| interrupt.identity() == identity);
    let numbers: Vec<u32> = same.by_ref().map(|interrupt| interrupt.number).collect();
    let here = |number| Found::Here(Target::Interrupt { number, identity: identity.to_owned() });
    match numbers.as_slice() {
        numbers if numbers.contains(&number) => here(number),
        [other] => here(*other),
        [] => Found::Gone("no interrupt of that name is there now".to_owned()),
        _ => Found::Unclear("several interrupts have its name now, and none its number".to_owned()),
    }
}
